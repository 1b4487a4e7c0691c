"""Files as version 0.1 wrote them: results as JSON, reports of commands, saved predictors.

``python -m tests.golden.version_0_1`` wrote them; they are not written again by a later version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import calipers
from calipers.conformal import (
    ConformalClassifier,
    ConformalRegressor,
    TransductiveKNNClassifier,
    save_predictor,
)
from calipers.metrics import calibration_error, cumulative_difference_curve, efficiency
from calipers.results import to_json
from tests.golden.samples import SAMPLES
from tests.golden.storage import VERSION_0_1

MUTE = ["CAL601"]


def binary_rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(201)
    p = rng.integers(1, 20, n) / 20
    return (rng.random(n) < p).astype(int), p


def results() -> dict[str, Any]:
    """One result of every kind that has JSON of its own; a NaN, an infinity and text among the values."""
    y, p = binary_rows()
    p_values = np.random.default_rng(202).integers(1, 100, (50, 3)) / 100
    faulty = SAMPLES["sets_too_large_everywhere"]()
    found = calipers.audit(faulty["y_true"], sets=faulty["sets"], alpha=0.2, random_state=0, mute=MUTE)
    odd = calipers.results.Estimate(
        name="odd",
        value=float("nan"),
        high=float("inf"),
        reason="nothing to measure",
        details={"array": np.arange(3)},
    )
    return {
        "estimate": calibration_error(y, p, random_state=0),
        "estimate_odd": odd,
        "estimate_table": efficiency(np.arange(50) % 3, p_values, alpha=0.1),
        "curve": cumulative_difference_curve(y, p),
        "finding": found.faults[0],
    }


def predictors() -> dict[str, tuple[Any, np.ndarray]]:
    """Fitted predictors of integers, and the rows they are asked about."""
    rng = np.random.default_rng(203)
    X = rng.integers(-3, 4, (60, 2)).astype(float)
    y = (X[:, 0] + rng.integers(-1, 2, 60) > 0).astype(int)
    target = 2 * X[:, 0] + rng.integers(-2, 3, 60)
    asked = X[:6] + 0.25
    return {
        "classifier": (
            ConformalClassifier(nonconformity="lac", calibration_size=0.5, random_state=0).fit(X, y),
            asked,
        ),
        "regressor": (ConformalRegressor(calibration_size=0.5, random_state=0).fit(X, target), asked),
        "transductive": (TransductiveKNNClassifier(measure="ratio", n_neighbors=1).fit(X, y), asked),
    }


def predicted(predictor: Any, X: np.ndarray) -> list[Any]:
    """What a predictor says about rows."""
    if hasattr(predictor, "predict_interval"):
        return np.asarray(predictor.predict_interval(X)).tolist()
    return np.asarray(predictor.predict_p(X)).tolist()


def write() -> None:
    VERSION_0_1.mkdir(parents=True, exist_ok=True)
    for name, result in results().items():
        _text(f"{name}.json", to_json(result))
    write_commands(VERSION_0_1)
    answers = {}
    for name, (predictor, asked) in predictors().items():
        save_predictor(predictor, VERSION_0_1 / f"{name}.skops")
        answers[name] = {"asked": asked.tolist(), "answer": predicted(predictor, asked)}
    _text("predictions.json", json.dumps(answers))


def write_commands(folder: Path) -> None:
    """audit.json, comparison.json and repair.json, as a user gets them."""
    audits = {}
    for name, half in (("narrow", 1.0), ("right", 1.645)):
        y = np.random.default_rng(204).normal(size=400)
        groups = np.where(np.arange(400) % 2, "a", "b")
        audits[name] = calipers.audit(
            y, intervals=np.tile([-half, half], (400, 1)), groups=groups, random_state=0, mute=MUTE, name=name
        )
    audits["narrow"].to_json(folder / "audit.json")
    calipers.compare(audits).to_json(folder / "comparison.json")
    audits["narrow"].repair().to_json(folder / "repair.json")


def _text(name: str, text: str) -> None:
    (VERSION_0_1 / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
