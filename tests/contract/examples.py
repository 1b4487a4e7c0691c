"""One example of arguments per registered metric; the contract tests run every metric on its own.

`EXAMPLES[name](rng, n)` gives ``(data, options)``: data is a dictionary of row arrays (first axis n),
options are keyword arguments that do not depend on the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

Example = Callable[[np.random.Generator, int], tuple[dict[str, Any], dict[str, Any]]]


def _coverage(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    y = rng.normal(size=n)
    return {"y_true": y, "prediction": np.tile([-1.5, 1.5], (n, 1))}, {"alpha": 0.1, "n_calibration": 200}


def _binary_probabilities(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    f = np.round(rng.random(n), 2)
    return {"y_true": (rng.random(n) < f**1.5).astype(np.int64), "probabilities": f}, {}


def _grouped_probabilities(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    data, _ = _binary_probabilities(rng, n)
    return data | {"groups": rng.integers(0, 3, (n, 2))}, {}


def _four_probabilities(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    P = rng.dirichlet(np.ones(4), size=n)
    return {"y_true": rng.permutation(np.arange(n) % 4), "probabilities": P}, {}


def _adaptive(rng: np.random.Generator, n: int) -> dict[str, Any]:
    ease = rng.random(n)
    ranks = 1 + rng.poisson(4 * (1 - ease))
    size = 1 + rng.poisson(6 * (1 - ease))
    return {"covered": ranks <= size, "ease": ease, "ranks": ranks, "size": size}


def _pick(*names: str, **options: Any) -> Example:
    return lambda rng, n: ({name: _adaptive(rng, n)[name] for name in names}, options)


def _width_against_error(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    scale = rng.uniform(1, 3, n)
    return {"error": np.abs(rng.normal(0, scale)), "width": 3.3 * scale}, {"n_draws": 99}


def _p_values(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    y, p = rng.integers(0, 4, n), rng.random((n, 4)) ** 3
    p[np.arange(n), y] = rng.random(n)
    return {"y_true": y, "p_values": p}, {}


def _two_p_values(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    data, options = _p_values(rng, n)
    return data | {"other_p_values": data["p_values"] ** 1.2}, options


def _interval_levels(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    half = rng.random((n, 1, 1)) + np.array([3.0, 2.0, 1.0])
    return {"intervals": np.concatenate([-half, half], axis=1)}, {"alpha": [0.05, 0.1, 0.3]}


def _quantiles(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    middle, levels = np.round(rng.normal(size=n), 1), [0.1, 0.5, 0.9]
    y = np.round(middle + rng.normal(size=n), 1)  # some outcomes lie on their quantile
    return {"y_true": y, "quantiles": middle[:, None] + [-1.3, 0.0, 1.3]}, {"levels": levels}


def _selective(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    certainty = np.round(rng.uniform(0.5, 1, n), 2)
    return {"loss": (rng.random(n) > certainty).astype(float), "certainty": certainty}, {"risk": 0.35}


class ContentFolds:
    """Folds by what a row holds, so that equal rows share a fold in every order."""

    def split(self, X, y, groups=None):
        part = np.floor(1e4 * np.asarray(X)[:, 0]).astype(int) % 4
        return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(4)]


def _by(name: str, stratum: Callable[[np.ndarray], np.ndarray], **options: Any) -> Example:
    """Covered rows, and one column made from a uniform number by which they are told apart."""

    def example(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
        x = rng.random(n)
        return {"covered": rng.random(n) < 0.8 + 0.2 * x, name: stratum(x)}, options

    return example


def _where(options: dict[str, Any]) -> Example:
    def example(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
        X = rng.uniform(size=(n, 2))
        return {"X": X, "covered": rng.random(n) < np.where(X[:, 0] > 0.5, 0.5, 0.99)}, {
            "alpha": 0.1
        } | options

    return example


def _conditional(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    X = rng.uniform(size=(n, 2))
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    data = {"X": X, "covered": rng.random(n) < 0.8 + 0.2 * X[:, 0]}
    return data, {"alpha": 0.1, "classifier": tree, "cv": ContentFolds()}


EXAMPLES: dict[str, Example] = {
    "efficiency": _p_values,
    "efficiency_by_label": _p_values,
    "efficiency_difference": _two_p_values,
    "p_value_uniformity": _p_values,
    "average_p_value": lambda rng, n: ({"p_values": rng.random(n) ** 2}, {}),
    "regression_efficiency": _interval_levels,
    "coverage": _coverage,
    "crps": _quantiles,
    "quantile_calibration": _quantiles,
    "pit_uniformity": lambda rng, n: ({"pit": np.round(rng.random(n) ** 1.1, 2)}, {}),
    "selective_threshold": _selective,
    "proper_scores": _four_probabilities,
    "brier_decomposition": _binary_probabilities,
    "calibration_error": _binary_probabilities,
    "calibration_slope": _binary_probabilities,
    "calibration_tests": _binary_probabilities,
    "multicalibration_error": _grouped_probabilities,
    "expected_calibration_error": _binary_probabilities,
    "smooth_calibration_error": _binary_probabilities,
    "t_cv": _pick("covered", "ease", alpha=0.1, n_bins=7, n_calibration=60),
    "t_ss": _pick("ranks", "size", "ease", n_bins=7, n_draws=99),
    "sscv": _pick("covered", "size", alpha=0.1),
    "escv": _pick("covered", "size", alpha=0.1, n_calibration=80),
    "rank_cv": _pick("covered", "ranks", alpha=0.1),
    "rank_ss": _pick("ranks", "size", n_draws=99),
    "deficit": _pick("ranks", "size"),
    "excess": _pick("ranks", "size"),
    "difficulty_concordance": _pick("ranks", "size", group_size=10, n_draws=200, n_permutations=19),
    "width_against_error": _width_against_error,
    "change_over_time": _by("time", lambda x: np.floor(30 * x), alpha=0.1),
    "coverage_gap": _by("groups", lambda x: np.floor(4 * x).astype(int), alpha=0.1),
    "equal_opportunity_gap": _by("y_true", lambda x: np.floor(4 * x).astype(int), alpha=0.1),
    "failing_regions": _where({"keep": "all"}),
    "feature_stratified_coverage": _by("feature", lambda x: x, alpha=0.1),
    "label_stratified_coverage": _by("y_true", lambda x: np.floor(4 * x).astype(int)),
    "size_coverage_correlation": _by("size", lambda x: x, n_draws=99),
    "size_coverage_hsic": _by("size", lambda x: x, n_draws=99),
    "size_stratified_coverage": _by("size", lambda x: np.floor(4 * x), alpha=0.1),
    "worst_slab_coverage": _where({"n_directions": 20}),
    "ert": _conditional,
    "ert_table": _conditional,
}
