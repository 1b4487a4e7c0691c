"""Estimates without labels on public data with real shift, beside simpler ones.

Run with ``python -m benchmarks.label_free --data FOLDER [--repeats N]``. A model is trained and a reference
labelled where the data come from; its loss on rows from elsewhere is estimated without their labels: Adult by
native country, Covertype by wilderness area, the bike data by date. Beside it stand the loss on the reference
itself and the bare formulas of the usual estimators: CBPE (expected loss under isotonically calibrated
probabilities) and DLE (mean of a regression of the loss), both without weights and without correction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from calipers.calibration import IsotonicCalibrator
from calipers.datasets import load_adult, load_covtype, load_regression
from calipers.inputs import check_features
from calipers.performance import LabelFreePerformance

REFERENCE, NEW, TRAIN = 3000, 2000, 6000
# Features, outcomes, and which rows come from elsewhere.
Problem = tuple[pl.DataFrame, np.ndarray, np.ndarray]


def adult(folder: str) -> Problem:
    """Income; elsewhere: born outside the United States."""
    data = load_adult(folder)
    away = data.X["native_country"].to_numpy() != "United-States"
    return data.X.drop("native_country"), np.asarray(data.y), away


def covertype(folder: str) -> Problem:
    """Spruce or not; elsewhere: the second and third wilderness area."""
    data = load_covtype(folder)
    X = np.asarray(data.X, dtype=np.float64)
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(10)})
    return frame, (np.asarray(data.y) == 1).astype(int), X[:, 10] == 0


def bike(folder: str) -> Problem:
    """Bikes hired per hour; elsewhere: the last third of the time."""
    data = load_regression("bike", data_dir=folder)
    frame = pl.DataFrame(check_features(data.X).values, orient="row")
    n = frame.height
    return frame, np.asarray(data.y, dtype=float), np.arange(n) >= 2 * n // 3


def samples(problem: Problem, repeats: int) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
    """Training, reference and new rows: features as numbers, and outcomes."""
    X, y, away = problem
    values, rng = check_features(X).values, np.random.default_rng(0)
    for _ in range(repeats):
        here, there = rng.permutation(np.flatnonzero(~away)), rng.permutation(np.flatnonzero(away))
        parts = here[:TRAIN], here[-min(REFERENCE, here.size // 3) :], there[:NEW]
        yield [(values[rows], y[rows]) for rows in parts]


def classified(parts: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Error rate of a boosted classifier."""
    (A, a), (X, y), (X_new, z) = parts
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(A, a)
    p, q = (model.predict_proba(rows)[:, 1] for rows in (X, X_new))
    found = LabelFreePerformance(random_state=0).fit(p, y, X).estimate(q, X_new)
    chance = IsotonicCalibrator().fit(p, y).predict(q)
    bare = np.where(q >= 0.5, 1 - chance, chance).mean()
    return {
        "realised": np.mean((q >= 0.5) != z),
        "reference": np.mean((p >= 0.5) != y),
        "bare": bare,
    } | _ends(found)


def measured(parts: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
    """Absolute error of a boosted regression."""
    (A, a), (X, y), (X_new, z) = parts
    model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(A, a)
    p, q = model.predict(X), model.predict(X_new)
    found = LabelFreePerformance(loss="absolute", random_state=0).fit(p, y, X).estimate(q, X_new)
    learner = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    learner.fit(np.column_stack([p, X]), np.abs(y - p))
    bare = learner.predict(np.column_stack([q, X_new])).mean()
    return {"realised": np.abs(z - q).mean(), "reference": np.abs(y - p).mean(), "bare": bare} | _ends(found)


def _ends(found: Any) -> dict[str, Any]:
    return {"calipers": found.value, "holds": (found.low, found.high), "details": found.details}


CASES: dict[str, tuple[Callable[[str], Problem], Callable[..., dict[str, Any]]]] = {
    "Adult, by country (error rate)": (adult, classified),
    "Covertype, by area (error rate)": (covertype, classified),
    "bike, by date (absolute error)": (bike, measured),
}


def main() -> None:
    """Print mean absolute errors and how often the interval holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    for name, (load, run) in CASES.items():
        rows = [run(parts) for parts in samples(load(options.data), options.repeats)]
        errors = {
            key: np.mean([abs(row[key] - row["realised"]) for row in rows])
            for key in ("reference", "bare", "calipers")
        }
        holds = np.mean([row["holds"][0] <= row["realised"] <= row["holds"][1] for row in rows])
        realised = np.mean([row["realised"] for row in rows])
        width = np.mean([row["holds"][1] - row["holds"][0] for row in rows])
        unlike = np.mean([row["details"]["unsupported_rows"] for row in rows])
        effective = np.mean([row["details"]["effective_rows"] for row in rows])
        print(
            f"{name}: realised {realised:.4g}; mean absolute error of",
            ", ".join(f"{key} {value:.4g}" for key, value in errors.items()),
            f"; interval holds {holds:.2f}, width {width:.4g};",
            f"effective rows {effective:.0f}, unlike {unlike:.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
