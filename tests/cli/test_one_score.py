"""One file through every command gives one Brier score and one log loss: those of scikit-learn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from calipers.cli import main
from calipers.metrics import brier_decomposition
from calipers.performance.losses import NAMED_LOSSES

CLASSES = {2: ["no", "yes"], 3: ["a", "b", "c"]}


class Stated:
    """A model that states the probabilities it is given as X."""

    def __init__(self, classes: list[str]) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return X


@pytest.fixture(params=[2, 3], ids=["two classes", "three classes"])
def stated(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """A file, its labels and its probabilities: overconfident, some outcomes stated with probability 0."""
    k, rng = request.param, np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(k), size=600)
    labels = np.array(CLASSES[k])[(rng.random((600, 1)) > truth.cumsum(axis=1)).sum(axis=1)]
    raised = truth**2
    raised[raised < 0.02] = 0.0
    wrong = int(labels[7] == CLASSES[k][0])
    raised[7] = np.eye(k)[wrong] + 1e-20  # what happened is stated far below the floor, but not with 0
    P = raised / raised.sum(axis=1, keepdims=True)
    file = tmp_path / "rows.csv"
    columns = {f"p_{label}": P[:, j] for j, label in enumerate(CLASSES[k])}
    pl.DataFrame({"y_true": labels} | columns).write_csv(file)
    return file, labels, P


def of_compare(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict]:
    assert main(["compare", f"one={file}", f"two={file}", "--quiet", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["lines"]
    return {line["measure"]: line["values"]["one"] for line in lines}


def of_calibrate(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict]:
    assert main(["calibrate", str(file), "--out", str(file.parent / "out"), "--quiet"]) == 0
    document = json.loads((file.parent / "out" / "calibration.json").read_text(encoding="utf-8"))
    return document["calibration"]["before"]["result"]["estimates"]


def of_measure(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict]:
    assert main(["measure", str(file), "--metrics", "proper_scores", "--quiet", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["result"]["estimates"]
    return {name.split(".")[-1]: estimate for name, estimate in found.items()}


COMMANDS = {
    "compare": (of_compare, "Brier score", "log loss"),
    "calibrate": (of_calibrate, "Brier score", "log loss"),
    "measure": (of_measure, "brier_score", "log_loss"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_gives_the_scores_of_scikit_learn(stated, command, capsys):
    file, labels, P = stated
    read, brier, log = COMMANDS[command]
    found = read(file, capsys)
    assert found[brier]["value"] == pytest.approx(brier_score_loss(labels, P), rel=1e-12)
    assert found[log]["value"] == pytest.approx(log_loss(labels, P), rel=1e-12)


@pytest.mark.parametrize("command", COMMANDS)
def test_rows_at_the_floor_of_the_log_loss_are_counted_aloud(stated, command, capsys):
    file, labels, P = stated
    read, _, log = COMMANDS[command]
    own = P[np.arange(len(P)), np.searchsorted(np.unique(labels), labels)]
    n_floored = int((own <= np.finfo(float).eps).sum())
    assert n_floored > 1
    found = read(file, capsys)[log]
    assert found["details"]["floored_rows"] == n_floored
    assert f"{n_floored} rows" in found["reason"]


def test_functions_give_the_scores_of_scikit_learn(stated):
    _, labels, P = stated
    model = Stated(CLASSES[P.shape[1]])
    brier, log = (NAMED_LOSSES[name](model, P, labels).mean() for name in ("brier", "log"))
    assert brier == pytest.approx(brier_score_loss(labels, P), rel=1e-12)
    assert log == pytest.approx(log_loss(labels, P), rel=1e-12)
    if P.shape[1] == 2:
        found = brier_decomposition(labels, P, n_draws=19, random_state=0)["brier"]
        assert found.value == pytest.approx(brier_score_loss(labels, P), rel=1e-12)
