"""Ranks, quantiles, p-values, scores and weights by loops over their definitions, in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tests.fuzz.metric_twins import Given, Reading, Twin, codes
from tests.unit.performance.test_monitoring_and_shift import brute_upper


def _share(alpha: float) -> Fraction:
    """The decimal that was meant."""
    return Fraction(str(float(alpha)))


def rank(g: Given, w: np.ndarray) -> Reading:
    return math.ceil((int(g["n"]) + 1) * (1 - _share(g["alpha"])))


def quantile(g: Given, w: np.ndarray) -> Reading:
    ordered = sorted(g["scores"].tolist())
    at = math.ceil((len(ordered) + 1) * (1 - _share(g["alpha"])))
    return ordered[at - 1] if at <= len(ordered) else math.inf


def p_values(g: Given, w: np.ndarray) -> Reading:
    seen = g["calibration_scores"].tolist()
    return [(1 + sum(s >= t for s in seen)) / (len(seen) + 1) for t in g["test_scores"].tolist()]


def _by_row(score: Twin) -> Twin:
    def twin(g: Given, w: np.ndarray) -> Reading:
        found: list[float] = []
        for row in g["P"].tolist():
            found += score({"row": row}, w)  # type: ignore[operator]
        return found

    return twin


def _margin(g: Given, w: np.ndarray) -> Reading:
    row = g["row"]
    return [max(p for j, p in enumerate(row) if j != k) - row[k] for k in range(len(row))]


def _mass_up_to(g: Given, w: np.ndarray) -> Reading:
    row = g["row"]
    if len(set(row)) < len(row):
        return [math.nan] * len(row)  # ties have an order of their own
    return [math.fsum(p for p in row if p >= own) for own in row]


def true_rank(g: Given, w: np.ndarray) -> Reading:
    P = g["probabilities"]
    rows = zip(P.tolist(), codes(g["y_true"], P.shape[1]), strict=True)
    return [float(sum(p >= row[k] for p in row)) for row, k in rows]


def effective(g: Given, w: np.ndarray) -> Reading:
    squares = math.fsum(v**2 for v in g["weights"].tolist())
    return math.fsum(g["weights"].tolist()) ** 2 / squares if squares else None


def shifted_upper(g: Given, w: np.ndarray) -> Reading:
    """The upper ends where whole weights make the comparison exact; the lower ones mirror them."""
    weights, new = ([Fraction(v) for v in g[name].tolist()] for name in ("weights", "new_weights"))
    half = _share(g["alpha"]) / 2
    found = []
    for value in new:
        high = brute_upper(g["losses"].tolist(), weights, value, half)
        low = -brute_upper([-v for v in g["losses"].tolist()], weights, value, half)
        found += [low, high]
    return found


CALLS: dict[str, Twin] = {
    "conformal_rank": rank,
    "conformal_quantile": quantile,
    "conformal_p_values": p_values,
    "lac": _by_row(lambda g, w: [1 - p for p in g["row"]]),
    "margin": _by_row(_margin),
    "aps": _by_row(_mass_up_to),
    "true_rank": true_rank,
    "effective_sample_size": effective,
    "shifted_intervals": shifted_upper,
    "bayes_decision": lambda g, w: [float(p >= 0.25) for p in g["probabilities"].tolist()],
}
