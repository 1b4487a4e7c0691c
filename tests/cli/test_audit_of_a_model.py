"""``calipers audit --model``: a saved model and rows of features."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import calipers
from calipers.cli import main
from calipers.conformal import ConformalClassifier, save_predictor

skops = pytest.importorskip("skops.io")
X, Y = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
X, Y = X[ORDER], np.array(["setosa", "versicolor", "virginica"])[Y[ORDER]]
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pl.DataFrame(X, schema=NAMES)


@pytest.fixture(autouse=True)
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The columns come in another order than the model knows them, and one is not a feature.
    table = FRAME[70:].select(reversed(NAMES)).with_columns(species=pl.Series(Y[70:]), note=pl.lit("x"))
    table.write_csv("rows.csv")


def test_a_model_that_knows_its_columns_is_asked_for_them_by_name(capsys):
    model = LogisticRegression(max_iter=500).fit(FRAME[:70], Y[:70])
    skops.dump(model, "model.skops")
    assert main(["audit", "--model", "model.skops", "rows.csv", "--target", "species", "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    by_hand = calipers.audit_model(model, FRAME[70:], Y[70:], random_state=0, name="model")
    assert found["estimates"] == json.loads(by_hand.to_json())["estimates"]
    assert "LogisticRegression asked for predict_proba" in json.dumps(found)
    assert main(["audit", "--model", "model.skops", "rows.csv", "--target", "species"]) in (0, 1)
    assert capsys.readouterr().out.startswith("LogisticRegression asked for predict_proba\n")


def test_a_predictor_of_ours_brings_its_calibration_rows(capsys):
    predictor = ConformalClassifier(calibration_size=30, random_state=0).fit(X[:70], Y[:70])
    save_predictor(predictor, "model.skops")
    words = ["--target", "species", "--features", ",".join(NAMES)]
    assert main(["audit", "rows.csv", "--model", "model.skops", *words, "--json"]) in (
        0,
        1,
        3,
    )  # 3: too few rows
    by_hand = calipers.audit_model(predictor, X[70:], Y[70:], random_state=0)
    coverage = json.loads(capsys.readouterr().out)["estimates"]
    assert coverage == json.loads(by_hand.to_json())["estimates"]


def test_columns_that_are_no_numbers_must_be_left_out_by_name(capsys):
    skops.dump(LogisticRegression(max_iter=500).fit(X[:70], Y[:70]), "model.skops")
    assert main(["audit", "--model", "model.skops", "rows.csv", "--target", "species"]) == 2
    assert "'note' holds no numbers. Name the columns" in " ".join(capsys.readouterr().err.split())


def test_pickle_is_refused_with_the_reason(capsys):
    Path("model.pkl").write_bytes(pickle.dumps(LogisticRegression()))
    assert main(["audit", "--model", "model.pkl", "rows.csv", "--target", "species"]) == 2
    assert "never read: they can run any code" in " ".join(capsys.readouterr().err.split())


def test_types_that_are_not_trusted_are_named_and_can_be_trusted(capsys):
    skops.dump(RandomForestClassifier(5, random_state=0).fit(FRAME[:70], Y[:70]), "model.skops")
    words = ["audit", "--model", "model.skops", "rows.csv", "--target", "species", "--quiet"]
    assert main(words) == 2
    assert "sklearn.tree._tree.Tree" in " ".join(capsys.readouterr().err.split())
    assert main([*words, "--trust", "sklearn.tree._tree.Tree"]) in (0, 1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "none.skops", "rows.csv"], "none.skops does not exist"),
        (["--model", "model.skops", "rows.csv"], "there is no column 'y_true'"),
        (["--model", "model.skops", "rows.csv", "rows.csv"], "needs one file of rows, got 2"),
        (["--model", "model.skops", "rows.csv", "--target", "species", "--alpha", "0.1,0.2"], "one --alpha"),
        (["--model", "model.skops", "rows.csv", "--plan"], "--model reads one file whole"),
    ],
    ids=["file", "target", "files", "alpha", "plan"],
)
def test_what_is_wrong_is_said_in_one_sentence(words, sentence, capsys):
    skops.dump(LogisticRegression(max_iter=500).fit(FRAME[:70], Y[:70]), "model.skops")
    assert main(["audit", *words]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
