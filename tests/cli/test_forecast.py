"""``calipers forecast``: from a model, from an algorithm, from losses alone."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_diabetes

from calipers.cli import main
from calipers.conformal import conformal_interval
from calipers.performance import AlgorithmPerformance, CandidatePerformance, SymbolicPerformance

X, Y = load_diabetes(return_X_y=True)
RIDGE = "sklearn.linear_model:Ridge"


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": Y}).write_csv(path)
    return str(path)


def document(capsys, *words):
    assert main(["forecast", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_model_is_trained_split_and_forecast(rows, capsys):
    from sklearn.linear_model import Ridge

    found = document(
        capsys, "--model", RIDGE, "--data", rows, "--target", "y", "--loss", "absolute", "--seed", "3"
    )
    ours = CandidatePerformance(Ridge(), loss="absolute", random_state=3).fit(X, Y)
    assert found["interval"] == pytest.approx(ours.interval())
    assert found["upper_bound"] == pytest.approx(ours.upper_bound())
    assert found["n"] == 221
    assert found["train_size"] is None


def test_an_algorithm_is_retrained_on_subsets(rows, capsys):
    from sklearn.linear_model import Ridge

    words = (
        "--model",
        RIDGE,
        "--data",
        rows,
        "--target",
        "y",
        "--loss",
        "absolute",
        "--algorithm",
        "--points",
        "40",
    )
    found = document(capsys, *words, "--alpha", "0.2")
    ours = AlgorithmPerformance(Ridge(), loss="absolute", n_points=40, alpha=0.2, random_state=0).fit(X, Y)
    assert found["interval"] == pytest.approx(ours.interval())
    assert found["train_size"] == 10
    assert "trained anew on 10 rows" in found["guarantee"]


def test_losses_alone_need_no_model(tmp_path, capsys):
    losses = np.random.default_rng(0).exponential(size=99)
    path = tmp_path / "losses.parquet"
    pl.DataFrame({"loss": losses}).write_parquet(path)
    found = document(capsys, "--data", str(path), "--losses", "loss")
    assert tuple(found["interval"]) == conformal_interval(losses, 0.1)
    assert found["coverage"] == 0.91


def test_infinite_ends_are_strict_json_and_explained(tmp_path, capsys):
    path = tmp_path / "few.csv"
    pl.DataFrame({"loss": [1.0, 2.0, 3.0]}).write_csv(path)
    found = document(capsys, "--data", str(path), "--losses", "loss")
    assert found["interval"] == [{"$float": "-inf"}, {"$float": "inf"}]
    assert found["losses_needed"] == 20
    assert "3 losses are fewer than the 20 needed" in found["guarantee"]


def test_sentences_for_people_and_a_picture(rows, tmp_path, capsys):
    picture = tmp_path / "bars.png"
    assert main(["forecast", "--model", RIDGE, "--data", rows, "--target", "y", "--plot", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("interval ")
    assert "The loss of this trained model on one new row lies in [" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_factory_in_the_current_folder_and_text_features(tmp_path, capsys, monkeypatch):
    (tmp_path / "my_models.py").write_text(
        "from sklearn.compose import make_column_transformer\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import OneHotEncoder\n"
        "def build():\n"
        "    encode = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), ['city']))\n"
        "    return make_pipeline(encode, LogisticRegression())\n"
    )
    rng = np.random.default_rng(0)
    city = rng.choice(["Bonn", "Rome", "Oslo"], 120)
    path = tmp_path / "rows.csv"
    pl.DataFrame({"city": city, "label": np.where(city == "Rome", "yes", "no")}).write_csv(path)
    monkeypatch.chdir(tmp_path)
    found = document(
        capsys, "--model", "my_models:build", "--data", str(path), "--target", "label", "--loss", "zero_one"
    )
    assert found["upper_bound"] == 0.0


def test_npz_files_hold_x_and_the_target(tmp_path, capsys):
    path = tmp_path / "rows.npz"
    np.savez(path, X=X, y=Y)
    assert document(capsys, "--model", RIDGE, "--data", str(path), "--target", "y")["n"] == 221


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "sklearn.linear_model"), "--model must have the form module:name"),
        (
            ("--model", "no_such_module:thing"),
            "--model names the module 'no_such_module', which cannot be imported",
        ),
        (("--model", "sklearn.linear_model:Rigde"), "--model names 'Rigde', which is not in the module"),
        (("--model", "builtins:dict"), "--model must give an object with a method fit"),
        ((), "--model must name an estimator as module:name, or --losses a column of losses"),
        (("--model", RIDGE, "--target", "z"), "--target must be a column of the file, got 'z'"),
        (("--losses", "loss"), "--losses must be a column of the file, got 'loss'"),
        (("--model", RIDGE, "--loss", "mse"), "loss must be one of squared"),
        (("--model", RIDGE, "--alpha", "2"), "alpha must lie strictly between 0 and 1"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(rows, capsys, words, message):
    extra = () if "--target" in words else ("--target", "y")
    assert main(["forecast", "--data", rows, *words, *extra]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_model_that_cannot_take_the_columns_is_bad_input(tmp_path, capsys):
    frame = pl.DataFrame({"y_true": np.arange(40.0), "size": np.arange(40), "city": ["Bonn", "Rome"] * 20})
    frame.write_csv(tmp_path / "rows.csv")
    assert main(["forecast", "--data", str(tmp_path / "rows.csv"), "--model", RIDGE]) == 2
    assert "Ridge cannot be fitted on" in capsys.readouterr().err


def test_an_algorithm_says_its_training_size_and_keeps_to_what_a_loss_can_be(rows, capsys):
    words = ("--model", RIDGE, "--data", rows, "--target", "y", "--loss", "absolute", "--algorithm")
    assert main(["forecast", *words, "--train-size", "60"]) == 0
    shown = capsys.readouterr().out
    # 442 rows hold seven subsets, too few for a lower end: no absolute error is negative.
    assert shown.startswith("interval 0 to inf")
    assert "training size 60 of 442 rows" in shown
    found = document(capsys, *words, "--train-size", "21")
    assert (found["train_size"], found["rows"]) == (21, 442)
    assert found["interval"][0] > 0


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.csv"
    columns = {f"x{j}": X[:12, j] for j in range(X.shape[1])}
    pl.DataFrame(columns | {"y": Y[:12]}).write_csv(path)
    return str(path)


@pytest.mark.parametrize("modulation", ["regression", "quantile"])
def test_modulated_intervals_follow_the_cases(rows, cases, capsys, modulation):
    from sklearn.linear_model import Ridge

    words = ("--model", RIDGE, "--data", rows, "--target", "y", "--loss", "absolute", "--points", "25")
    found = document(capsys, *words, "--modulation", modulation, "--cases", cases, "--seed", "3")
    ours = AlgorithmPerformance(
        Ridge(), loss="absolute", n_points=25, modulation=modulation, random_state=3
    ).fit(X, Y)
    np.testing.assert_allclose(found["intervals"], ours.predict_interval(X[:12], Y[:12]))
    np.testing.assert_allclose(found["upper_bounds"], ours.predict_upper_bound(X[:12], Y[:12]))
    assert found["guarantee"] == ours.guarantee_
    assert found["train_size"] == ours.train_size_
    assert main(["forecast", *words, "--modulation", modulation, "--cases", cases, "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert "case 9: " in text
    assert "... 2 more cases" in text
    assert "median width" in text


def test_symbolic_forecasts_give_the_outcomes_of_every_case(tmp_path, capsys):
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    A, b = make_classification(1500, 4, flip_y=0.2, random_state=0)
    path = tmp_path / "labelled.csv"
    pl.DataFrame({f"x{j}": A[:, j] for j in range(4)} | {"y": b}).write_csv(path)
    words = ("--model", "sklearn.linear_model:LogisticRegression", "--data", str(path), "--target", "y")
    words += ("--outcome", "confusion", "--cases", str(path), "--points", "25")
    found = document(capsys, *words)
    ours = SymbolicPerformance(LogisticRegression(), outcome="confusion", n_points=25, random_state=0)
    sets = ours.fit(A, b).predict_set(A, b)
    assert found["outcomes"] == ours.outcomes_.tolist()
    assert found["sets"] == [ours.outcomes_[row].tolist() for row in sets]
    assert main(["forecast", *words]) == 0
    assert (
        f"{int((sets.sum(axis=1) == 1).sum())} of 1500 cases have a single outcome" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--modulation", "quantile"], "--cases must name a file"),
        (["--outcome", "confusion"], "--cases must name a file"),
        (["--modulation", "quantile", "--outcome", "confusion"], "give one of them"),
        (["--cases", "rows.csv"], "--cases needs --modulation"),
    ],
)
def test_forms_that_follow_the_case_need_cases(rows, capsys, words, message):
    assert main(["forecast", "--model", RIDGE, "--data", rows, "--target", "y", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
