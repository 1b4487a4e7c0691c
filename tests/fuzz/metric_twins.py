"""Metrics by loops over their definitions. ``g`` holds the arguments as arrays, ``w`` one weight per row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from calipers.metrics.selective.certified_share import sequence_starts
from tests.unit.metrics.adaptivity import brute_force
from tests.unit.metrics.conditional.test_dependence import dense_hsic
from tests.unit.metrics.multicalibration.test_measure import brute_force as worst_group
from tests.unit.metrics.reliability.test_worst_interval import brute_force as worst_interval
from tests.unit.metrics.selective.test_selective import blocks, certified
from tests.unit.metrics.test_criteria import by_definition

Given = Mapping[str, Any]
# A number, numbers by name, or numbers in order; None where the definition says nothing.
Reading = float | dict[str, float] | list[float] | None
Twin = Callable[[Given, np.ndarray], Reading]


def mean(values: Any, w: np.ndarray) -> float:
    return math.fsum(a * float(v) for a, v in zip(w, values, strict=True)) / math.fsum(w)


def codes(y: np.ndarray, k: int) -> list[int]:
    """The column of each label: among the sorted labels where there are as many, else the label itself."""
    labels = sorted(set(y.tolist()))
    return [labels.index(v) if len(labels) == k else int(v) for v in y.tolist()]


def positive(y: np.ndarray) -> np.ndarray:
    """0 or 1 per row, soft labels as they are."""
    values = np.array([float(v) for v in y.tolist()])
    soft = y.dtype.kind == "f" and values.min() >= 0 and values.max() <= 1
    return values if soft or set(values) <= {0.0, 1.0} else (values == values.max()).astype(float)


def covered_rows(g: Given, w: np.ndarray) -> list[float]:
    return [
        float(low <= y <= high)
        for y, (low, high) in zip(g["y_true"].tolist(), g["prediction"].tolist(), strict=True)
    ]


def proper_scores(g: Given, w: np.ndarray) -> Reading:
    P = g["probabilities"]
    at = codes(g["y_true"], P.shape[1])
    if P.min() < 1e-12:  # certainty has a floor of its own
        return None
    squares = [sum((p - (j == k)) ** 2 for j, p in enumerate(row)) for row, k in zip(P, at, strict=True)]
    return {
        "log_loss": mean([-math.log(row[k]) for row, k in zip(P, at, strict=True)], w),
        "brier_score": mean(squares, w),
    }


def _gap(share: float, g: Given) -> float:
    return abs(share - (1 - float(g["alpha"])))


def strata(name: str, ranges: Any = None) -> Twin:
    """The largest departure over ranges of a column; every value by itself without ranges."""

    def twin(g: Given, w: np.ndarray) -> Reading:
        values = g[name].tolist()
        if min(values) < 0 or any(v != math.floor(v) for v in values):
            return None  # the ranges are printed for counts
        chosen = ranges or [(v, v) for v in sorted(set(values))]
        return max(_gap(s, g) for s in brute_force.stratified([g["covered"].tolist()], values, chosen)[0])

    return twin


def _line(x: Any, y: Any) -> Reading:
    """Signed R squared; nothing where a side hardly varies."""
    if len(x) < 2 or min(np.ptp(x), np.ptp(y)) < 1e-9:
        return None
    return float(brute_force.signed_r_squared(x, y))


def t_ss(g: Given, w: np.ndarray) -> Reading:
    bins = [b for b in brute_force.shared_bins(g["ease"].tolist(), g["n_bins"]) if b]
    return _line(*([brute_force.mean_over(b, g[name]) for b in bins] for name in ("ranks", "size")))


def rank_ss(g: Given, w: np.ndarray) -> Reading:
    columns = [g["ranks"].tolist(), g["size"].tolist()]
    if min(columns[0]) < 0 or any(v != math.floor(v) for v in columns[0]):
        return None
    return _line(*brute_force.stratified(columns, columns[0], brute_force.RAPS_RANGES))


def pearson(x: np.ndarray, y: np.ndarray) -> float | None:
    if min(np.ptp(x.astype(float)), np.ptp(y.astype(float))) == 0:
        return None
    return float(np.corrcoef(x.astype(float), y.astype(float))[0, 1])


def width_against_error(g: Given, w: np.ndarray) -> Reading:
    x, y = g["error"].tolist(), g["width"].tolist()
    r = pearson(g["error"], g["width"])
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    signs = [[np.sign(z[i] - z[j]) for i, j in pairs] for z in (x, y)]
    untied = [sum(abs(s) for s in side) for side in signs]
    if r is None:
        return None
    agree = sum(a * b for a, b in zip(*signs, strict=True))
    return {"r_squared": r * abs(r), "kendall_tau": float(agree / math.sqrt(untied[0] * untied[1]))}


def spiegelhalter(g: Given, w: np.ndarray) -> Reading:
    p, y = g["probabilities"], positive(g["y_true"])
    spread = np.sum((1 - 2 * p) ** 2 * p * (1 - p))
    if set(y) - {0.0, 1.0} or spread < 1e-9:
        return None
    return {"spiegelhalter": float(np.sum((y - p) * (1 - 2 * p)) / np.sqrt(spread))}


def recalibration_line(g: Given, w: np.ndarray) -> Reading:
    """Slope and intercept of the outcome on the log odds by Newton's steps; nothing where they run away."""
    p, y = g["probabilities"], positive(g["y_true"])
    if p.min() <= 1e-9 or p.max() >= 1 - 1e-9 or np.ptp(p) < 1e-9:
        return None
    X, beta = np.column_stack([np.ones_like(p), np.log(p / (1 - p))]), np.zeros(2)
    for _ in range(60):
        mu = expit(X @ beta)
        hessian = (X * (w * mu * (1 - mu))[:, None]).T @ X
        if not np.isfinite(hessian).all() or np.linalg.det(hessian) < 1e-9:
            return None
        beta = beta + np.linalg.solve(hessian, X.T @ (w * (y - mu)))
    gradient = X.T @ (w * (y - expit(X @ beta)))
    settled = np.abs(gradient).max() < 1e-9 and np.abs(beta).max() < 20
    return {"intercept": float(beta[0]), "slope": float(beta[1])} if settled else None


def isotonic(y: np.ndarray, p: np.ndarray, w: np.ndarray) -> list[float]:
    """The largest over starts of the smallest over ends of the mean between them, score by score."""
    levels = sorted(set(p.tolist()))
    mass = [w[p == v].sum() for v in levels]
    total = [(w * y)[p == v].sum() for v in levels]

    def between(i: int, j: int) -> float:
        return float(sum(total[i : j + 1]) / sum(mass[i : j + 1]))

    size = len(levels)
    return [max(min(between(i, j) for j in range(at, size)) for i in range(at + 1)) for at in range(size)]


def brier_decomposition(g: Given, w: np.ndarray) -> Reading:
    p, y = g["probabilities"], positive(g["y_true"])
    fitted = dict(zip(sorted(set(p.tolist())), isotonic(y, p, w), strict=True))
    score, best = (
        mean((y - p) ** 2, w),
        mean([(a - fitted[b]) ** 2 for a, b in zip(y, p.tolist(), strict=True)], w),
    )
    constant = mean((y - mean(y, w)) ** 2, w)
    return {
        "brier": score,
        "miscalibration": score - best,
        "discrimination": constant - best,
        "uncertainty": constant,
    }


def binned_error(g: Given, w: np.ndarray) -> Reading:
    p, y = g["probabilities"], positive(g["y_true"])
    edges = [i / 15 for i in range(1, 15)]
    place = np.array([sum(edge < v for edge in edges) for v in p.tolist()])
    return float(sum(abs(np.sum((w * (y - p))[place == b])) for b in range(15)) / w.sum())


def multicalibration(g: Given, w: np.ndarray) -> Reading:
    """Where no group is rare; those have a scale of their own (eq. of the Poisson deviance)."""
    p, groups, z = g["probabilities"], g["groups"], positive(g["y_true"])
    if ((p == 0) & (z > 0) | (p == 1) & (z < 1)).any():
        return None  # what was called impossible happened: such groups are scored by their evidence
    for which in ([0], [1], [0, 1]):
        for cell in np.unique(groups[:, which], axis=0):
            stated = p[(groups[:, which] == cell).all(axis=1)]
            spread = np.sum(stated * (1 - stated))
            third, fourth = (
                np.sum(stated * (1 - stated) * c) for c in (1 - 2 * stated, 1 - 6 * stated * (1 - stated))
            )
            if spread < 1e-9 or max(third**2 / spread**3, fourth / spread**2) > 0.16:
                return None
    return float(max(worst_group(z, p, groups, 2).values()))


def distance_from_uniform(values: Any, w: np.ndarray) -> float:
    found = 0.0
    for v in values:
        below, up_to = w[values < v].sum() / w.sum(), w[values <= v].sum() / w.sum()
        found = max(found, abs(up_to - v), abs(v - below))
    return float(found)


def quantile_shares(g: Given, w: np.ndarray) -> Reading:
    columns = zip(g["levels"], g["quantiles"].T, strict=True)
    return {f"{level:g}": mean(g["y_true"] <= column, w) for level, column in columns}


def crps(g: Given, w: np.ndarray) -> Reading:
    scores = []
    for y, row in zip(g["y_true"], g["quantiles"], strict=True):
        pinball = [(y - q) * (t - (y < q)) for t, q in zip(g["levels"], row, strict=True)]
        scores.append(2 * np.trapezoid(pinball, g["levels"]))
    return mean(scores, w)


def criteria_rows(g: Given, name: str = "p_values", alpha: float = 0.1) -> list[dict[str, float]]:
    p = g[name].tolist()
    at = codes(g["y_true"], g[name].shape[1])
    return [by_definition(row, k, alpha) for row, k in zip(p, at, strict=True)]


def efficiency(g: Given, w: np.ndarray) -> Reading:
    rows = criteria_rows(g)
    return {key: mean([row[key] for row in rows], w) for key in rows[0]}


def efficiency_difference(g: Given, w: np.ndarray) -> Reading:
    pairs = list(zip(criteria_rows(g), criteria_rows(g, "other_p_values"), strict=True))
    return {key: mean([a[key] - b[key] for a, b in pairs], w) for key in pairs[0][0]}


def efficiency_by_label(g: Given, w: np.ndarray) -> Reading:
    rows, y = criteria_rows(g), g["y_true"]
    return {
        f"{key} | {label}": mean([r[key] for r, v in zip(rows, y, strict=True) if v == label], w[y == label])
        for key in ("OF", "OE")
        for label in sorted({v + 0.0 if isinstance(v, float) else v for v in y.tolist()})  # -0.0 is 0.0
    }


def widths(g: Given, w: np.ndarray) -> Reading:
    ends = g["intervals"]
    return {f"size at {a:g}": mean(ends[:, 1, j] - ends[:, 0, j], w) for j, a in enumerate(g["alpha"])}


def group_shares(g: Given, w: np.ndarray, name: str) -> list[float] | None:
    """Coverage by distinct value; nothing for numbers with more values than bins."""
    labels = g[name].tolist()
    if name != "groups" and len(set(labels)) > 10:
        return None
    return [mean(g["covered"][g[name] == label], w[g[name] == label]) for label in sorted(set(labels))]


def mean_gap(name: str) -> Twin:
    def twin(g: Given, w: np.ndarray) -> Reading:
        shares = group_shares(g, w, name)
        return None if shares is None else math.fsum(_gap(s, g) for s in shares) / len(shares)

    return twin


def smallest_share(name: str) -> Twin:
    def twin(g: Given, w: np.ndarray) -> Reading:
        shares = group_shares(g, w, name)
        return None if shares is None else min(shares)

    return twin


def hsic(g: Given, w: np.ndarray) -> Reading:
    x = g["size"].astype(float)
    apart = np.sort([abs(a - b) for a in x for b in x if a != b])
    if not apart.size or np.ptp(g["covered"].astype(float)) == 0:
        return None
    median = float(apart[(apart.size + 1) // 2 - 1])
    return float(dense_hsic(x, g["covered"].astype(bool), median**2))


def cumulative_difference(g: Given, w: np.ndarray) -> Reading:
    p, y = g["probabilities"], positive(g["y_true"])
    return [float(np.sum((w * (y - p))[p <= v]) / w.sum()) for v in sorted(set(p.tolist()))]


def kept_labels(g: Given, w: np.ndarray) -> Reading:
    levels = [k / 100 for k in range(1, 100)]
    return [mean((g["p_values"] > a).sum(axis=1), w) for a in levels]


def deficits(sign: float) -> Twin:
    return lambda g, w: mean(
        [max(0.0, sign * (r - s)) for r, s in zip(g["ranks"], g["size"], strict=True)], w
    )


def true_p_values(g: Given, w: np.ndarray) -> Reading:
    p = g["p_values"]
    own = np.array([row[k] for row, k in zip(p, codes(g["y_true"], p.shape[1]), strict=True)])
    return distance_from_uniform(own, w)


def selective_threshold(g: Given, w: np.ndarray) -> Reading:
    loss, certainty = g["loss"], g["certainty"]
    if not sequence_starts(len(loss), g["risk"], 0.05):
        return 0.0
    return certified(loss, certainty, g["risk"], 0.05, binary=bool(set(loss.tolist()) <= {0, 1}))


METRICS: dict[str, Twin] = {
    "coverage": lambda g, w: mean(covered_rows(g, w), w),
    "is_covered": covered_rows,
    "proper_scores": proper_scores,
    "t_cv": lambda g, w: brute_force.t_cv(g["covered"], g["ease"].tolist(), g["alpha"], g["n_bins"]),
    "sscv": strata("size", brute_force.RAPS_RANGES),
    "escv": strata("size"),
    "rank_cv": strata("ranks", brute_force.RAPS_RANGES),
    "t_ss": t_ss,
    "rank_ss": rank_ss,
    "deficit": deficits(1.0),
    "excess": deficits(-1.0),
    "width_against_error": width_against_error,
    "calibration_error": lambda g, w: worst_interval(g["probabilities"], positive(g["y_true"]), w),
    "calibration_tests": spiegelhalter,
    "calibration_slope": recalibration_line,
    "brier_decomposition": brier_decomposition,
    "expected_calibration_error": binned_error,
    "multicalibration_error": multicalibration,
    "pit_uniformity": lambda g, w: distance_from_uniform(g["pit"], w),
    "p_value_uniformity": true_p_values,
    "quantile_calibration": quantile_shares,
    "crps": crps,
    "average_p_value": lambda g, w: mean(g["p_values"], w),
    "efficiency": efficiency,
    "efficiency_difference": efficiency_difference,
    "efficiency_by_label": efficiency_by_label,
    "efficiency_curve": kept_labels,
    "regression_efficiency": widths,
    "selective_threshold": selective_threshold,
    "selective_risk": lambda g, w: [sum(losses) / n for _, n, losses in blocks(g["loss"], g["certainty"])],
    "coverage_gap": mean_gap("groups"),
    "equal_opportunity_gap": mean_gap("y_true"),
    "feature_stratified_coverage": smallest_share("feature"),
    "size_stratified_coverage": smallest_share("size"),
    "label_stratified_coverage": smallest_share("y_true"),
    "size_coverage_correlation": lambda g, w: pearson(g["covered"], g["size"]),
    "size_coverage_hsic": hsic,
    "reliability_curve": lambda g, w: isotonic(positive(g["y_true"]), g["probabilities"], w),
    "cumulative_difference_curve": cumulative_difference,
}
# Registered metrics without a twin here.
WITHOUT = {
    "difficulty_concordance": "random groups; tests/unit/metrics/adaptivity/test_size_and_difficulty.py compares pair by pair",
    "smooth_calibration_error": "an integral on a grid; tests/reference/test_reliability_peers.py",
    "change_over_time": "windows of a grid of its own; tests/unit/metrics/over_time/test_measure.py",
    "worst_slab_coverage": "random directions and halves; tests/unit/metrics/conditional/test_slab.py",
}
# Twins that know repeated rows only: bins and tests by counts.
REPEATED_ONLY = {
    "t_cv", "sscv", "escv", "rank_cv", "t_ss", "rank_ss", "multicalibration_error", "calibration_tests",
    "size_coverage_correlation", "size_coverage_hsic", "width_against_error", "selective_threshold", "selective_risk",
}  # fmt: skip
