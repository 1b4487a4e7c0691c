"""The 298 predictors: p-values of every measure, metric and K, and what the criteria say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from calipers.conformal import transductive_p_values
from calipers.conformal.distances import Distances
from calipers.inference import mean_estimate
from calipers.metrics import efficiency
from calipers.results import Curve
from studies.caching import study_cache
from studies.efficiency.digits import Digits
from studies.efficiency.matrices import METRICS, MatrixStore
from studies.outcome import write_table

# The paper's name of each measure.
MEASURES = {"ratio": "KNN-ratio", "probability": "KNN-CP", "predictability": "KNN-SP"}
# Criteria that need no significance level, and the key that breaks ties of U and F.
CRITERIA = ("U", "OF", "S", "F", "OU", "credibility")

Family = tuple[str, str]  # measure, metric
PValues = Mapping[Family, np.ndarray]


@dataclass(frozen=True, slots=True)
class Reading:
    """One criterion of one predictor."""

    measure: str
    metric: str
    k: int
    criterion: str
    value: float
    std_error: float


def smallest_k(measure: str) -> int:
    """The paper starts KNN-ratio at 1 and the votes at 2."""
    return 1 if measure == "ratio" else 2


def neighbour_p_values(
    digits: Digits, store: MatrixStore, largest: int, *, seed: int, progress: Any
) -> dict[Family, np.ndarray]:
    """Smoothed p-values (m, 10, number of K) of the six families; finished families are read back."""
    found: dict[Family, np.ndarray] = {}
    families = [(measure, metric) for metric in METRICS for measure in MEASURES]
    load = lru_cache(maxsize=1)(store.load)  # one metric at a time in memory, and only if it is needed
    cache = study_cache(store.folder, neighbour_p_values, digits.fingerprint, largest, seed)
    for measure, metric in progress.track(families, description="p-values of 6 families"):
        wanted = range(smallest_k(measure), largest + 1)
        compute = partial(_family, digits, load, metric, measure, wanted, seed)
        found[measure, metric] = cache.get(f"{metric}-{measure}", compute)
    return found


def _family(
    digits: Digits, load: Callable[[str], Any], metric: str, measure: str, wanted: range, seed: int
) -> np.ndarray:
    train, test = load(metric)
    p = transductive_p_values(
        train, digits.y_train, test, measure=measure, n_neighbors=wanted, smoothed=True, random_state=seed
    )
    return np.asarray(p)


def evaluate(y_test: np.ndarray, p_values: PValues) -> list[Reading]:
    """Every criterion of every predictor, with the standard error of its mean over the test images."""
    readings = []
    for (measure, metric), family in p_values.items():
        for place, k in enumerate(range(smallest_k(measure), smallest_k(measure) + family.shape[2])):
            table = efficiency(y_test, family[:, :, place])
            readings += [
                Reading(measure, metric, k, name, float(table[name]), float(table[name].std_error or 0.0))
                for name in CRITERIA
            ]
    return readings


def curve_of(readings: list[Reading], measure: str, metric: str, criterion: str) -> Curve:
    """One line of Figure 2: the criterion against K, with a band of one standard error."""
    chosen = [r for r in readings if (r.measure, r.metric, r.criterion) == (measure, metric, criterion)]
    value, error = np.array([r.value for r in chosen]), np.array([r.std_error for r in chosen])
    return Curve(
        name=f"{MEASURES[measure]}, {metric}",
        x=np.array([r.k for r in chosen]),
        y=value,
        low=value - error,
        high=value + error,
        x_label="number of neighbours K",
        y_label=criterion,
        method="band: one standard error of the mean over test images",
        details={"measure": measure, "metric": metric},
    )


def write_predictors(readings: list[Reading], path: Path) -> Path:
    """One row per predictor: measure, metric, K, every criterion and its standard error."""
    rows: dict[tuple[str, str, int], list[float]] = {}
    for r in readings:
        rows.setdefault((MEASURES[r.measure], r.metric, r.k), []).extend([r.value, r.std_error])
    header = ["measure", "metric", "K"] + [
        column for name in CRITERIA for column in (name, f"{name}_std_error")
    ]
    table = [[*key, *(f"{value:.8g}" for value in values)] for key, values in rows.items()]
    return write_table(path, header, table)


def one_neighbour_errors(
    digits: Digits, store: MatrixStore, progress: Any
) -> list[tuple[str, str, float, float]]:
    """Error of the plain nearest neighbour for both metrics, on normalised and on raw pixels."""
    rows = []
    cache = study_cache(store.folder, one_neighbour_errors, digits.fingerprint)
    for metric, pixels in progress.track(
        [(metric, pixels) for metric in METRICS for pixels in ("normalised", "raw")],
        description="errors of one neighbour",
    ):
        nearest = cache.get(f"{metric}-{pixels}", partial(nearest_rows, digits, store, metric, pixels))
        wrong = digits.y_train[nearest] != digits.y_test
        estimate = mean_estimate(wrong.astype(float), name="error")
        rows.append((metric, pixels, float(estimate), float(estimate.std_error or 0.0)))
    return rows


def nearest_rows(digits: Digits, store: MatrixStore, metric: str, pixels: str) -> np.ndarray:
    """Index of the nearest training image of every test image."""
    if pixels == "normalised":
        return np.concatenate([block.argmin(axis=1) for block in store.test_blocks(metric)])
    distances = Distances(metric, None)
    train, test = distances.prepare(digits.raw_train), distances.prepare(digits.raw_test)
    return np.asarray(distances.between(test, train).argmin(axis=1))
