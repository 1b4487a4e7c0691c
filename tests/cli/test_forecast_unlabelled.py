"""``calipers forecast --unlabelled``: what the class estimates, read from two files."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from calipers.cli import main
from calipers.performance import LabelFreePerformance


def rows(seed, n, shift=0.0):
    """Features, stated probability and label; one feature is text."""
    rng = np.random.default_rng(seed)
    x = rng.normal(shift, 1, n)
    odds = 1.2 * x
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    p = 1 / (1 + np.exp(-1.5 * odds))
    return pl.DataFrame({"x": x, "city": np.where(x > 0, "a", "b"), "p_yes": p, "y_true": y})


@pytest.fixture
def files(tmp_path):
    reference, new = rows(0, 400), rows(1, 300, 0.7)
    reference.write_csv(tmp_path / "old.csv")
    new.drop("y_true").write_parquet(tmp_path / "new.parquet")
    return ["forecast", "--data", str(tmp_path / "old.csv"), "--unlabelled", str(tmp_path / "new.parquet")]


def document(capsys, words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_loss_is_that_of_the_class(files, capsys):
    found = document(capsys, [*files, "--loss", "zero_one,log,brier,accuracy,precision,recall,f1,auroc,1:9"])
    assert len(found) == 9
    old, new = rows(0, 400), rows(1, 300, 0.7)
    for loss in ("zero_one", "auroc", (1.0, 9.0)):
        model = LabelFreePerformance(loss=loss, confidence=0.9, random_state=0)
        model.fit(old["p_yes"].to_numpy(), old["y_true"].to_numpy(), old.select("x", "city"))
        ours = model.estimate(new["p_yes"].to_numpy(), new.select("x", "city"))
        assert found[ours.name]["value"] == pytest.approx(ours.value)
        assert found[ours.name]["low"] == pytest.approx(ours.low)
        assert found[ours.name]["details"]["shift"]["found"] is True
    accuracy, error = found["accuracy without labels"], found["mean zero_one loss without labels"]
    assert accuracy["value"] == pytest.approx(1 - error["value"])


def test_a_loss_that_was_asked_for_is_not_taken_for_the_default(files, capsys):
    assert main([*files, "--loss", "squared"]) == 2  # the default of a model, and no loss of probabilities
    assert "squared" in capsys.readouterr().err


def test_the_text_names_the_value_its_interval_and_the_shift(files, capsys):
    assert main([*files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mean zero_one loss without labels 0.2")
    assert "at 90 %; on the labelled rows 0.3" in lines[0]
    assert lines[1].startswith("a shift of features was found (p < 0.001); the ")
    assert lines[-1] == "No estimate without labels can see that outcomes given the inputs have changed."


def test_a_single_column_is_that_of_the_class_it_names(tmp_path, files, capsys):
    flipped = tmp_path / "flipped.csv"
    rows(0, 400).with_columns(p_no=1 - pl.col("p_yes")).drop("p_yes").write_csv(flipped)
    rows(1, 300, 0.7).with_columns(p_no=1 - pl.col("p_yes")).drop("p_yes").write_csv(tmp_path / "n.csv")
    words = [
        "forecast",
        "--data",
        str(flipped),
        "--unlabelled",
        str(tmp_path / "n.csv"),
        "--loss",
        "zero_one",
    ]
    ours, other = document(capsys, files), document(capsys, words)
    for found, same in zip(ours.values(), other.values(), strict=True):
        assert found["value"] == pytest.approx(same["value"], abs=1e-9)


def test_point_predictions_are_a_regression(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name, n in (("old", 600), ("new", 300)):
        x = rng.normal(size=n)
        table = pl.DataFrame({"x": x, "y_pred": 2 * x, "price": 2 * x + rng.normal(size=n)})
        table.write_csv(tmp_path / f"{name}.csv")
    words = ["forecast", "--data", str(tmp_path / "old.csv"), "--unlabelled", str(tmp_path / "new.csv")]
    found = document(capsys, [*words, "--target", "price", "--loss", "absolute,squared"])
    # E|N(0,1)| = 0.798, E N(0,1)^2 = 1
    assert found["mean absolute loss without labels"]["value"] == pytest.approx(0.798, abs=0.1)
    assert found["mean squared loss without labels"]["value"] == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(
    ("drop", "options", "words"),
    [
        ({"new": "p_yes"}, [], "has no column 'p_yes'"),
        ({"new": "city"}, [], "has no column 'city'"),
        ({"old": "p_yes"}, [], "states nothing that labels can be expected from"),
        ({}, ["--loss", "1:x"], "costs such as 1:9"),
        ({}, ["--loss", "hinge"], "loss must be one of"),
        ({}, ["--target", "colour"], "colour"),
        ({}, ["--alpha", "90"], "alpha must lie strictly between 0 and 1"),
    ],
)
def test_what_cannot_be_used_is_named(drop, options, words, tmp_path, capsys):
    for name, seed in (("old", 0), ("new", 1)):
        table = rows(seed, 100)
        table = table.drop(drop[name]) if name in drop else table
        table.write_csv(tmp_path / f"{name}.csv")
    command = ["forecast", "--data", str(tmp_path / "old.csv"), "--unlabelled", str(tmp_path / "new.csv")]
    assert main([*command, *options]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("named", "pattern"), [("score", "score"), ("score_yes", "score_*")])
def test_probabilities_and_outcomes_may_have_other_names(named, pattern, files, tmp_path, capsys):
    expected = document(capsys, files)
    for name, table in {"a.csv": rows(0, 400), "b.csv": rows(1, 300, 0.7).drop("y_true")}.items():
        table.rename({"p_yes": named, "y_true": "bought"}, strict=False).write_csv(tmp_path / name)
    words = ["forecast", "--data", str(tmp_path / "a.csv"), "--unlabelled", str(tmp_path / "b.csv")]
    assert document(capsys, [*words, "--target", "bought", "--proba", pattern]) == expected
    assert main([*words, "--target", "bought"]) == 2
    assert "or others with --proba" in capsys.readouterr().err
    assert main(["forecast", "--data", str(tmp_path / "a.csv"), "--losses", named, "--proba", pattern]) == 2
    assert "--proba goes with --unlabelled." in capsys.readouterr().err
