"""The link families: features of the score in which the log-odds are linear, all non-decreasing.

Each family contains the identity for stated probabilities, so a calibrated model can be left as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline

from calipers.exceptions import InputError
from calipers.inference.logistic import clipped_log_odds

FAMILIES = ("platt", "temperature", "beta", "spline")
# Probabilities 0 and 1 have no log-odds. Half a unit in the last place of float32 below 1: finer
# statements cannot be made by a float32 softmax, and coarser clipping would change honest ones.
CLIP = 2.0**-24
_DEGREE = 3


class LinkFamily(NamedTuple):
    """A fixed basis: what is fitted is one coefficient per feature.

    ``start`` are the coefficients of the identity, ``lower`` the bounds that keep the map non-decreasing.
    """

    name: str
    inputs: str
    knots: np.ndarray
    start: np.ndarray
    lower: np.ndarray

    def features(self, scores: np.ndarray) -> np.ndarray:
        """(n, d) features whose weighted sum is the log-odds."""
        if self.name == "beta":
            p = np.clip(scores, CLIP, 1 - CLIP)
            return np.stack([np.ones(p.size), np.log(p), -np.log1p(-p)], axis=1)
        s = _on_log_scale(scores, self.inputs)
        if self.name == "temperature":
            return s[:, None]
        if self.name == "platt":
            return np.stack([np.ones(s.size), s], axis=1)
        return _monotone_spline(s, self.knots)


def make_family(name: str, inputs: str, scores: np.ndarray, weights: np.ndarray, n_knots: int) -> LinkFamily:
    """The family with its knots (spline only) at quantiles of the scores."""
    if name not in FAMILIES:
        raise InputError(f"family must be one of {', '.join(FAMILIES)}, got {name!r}.")
    if name == "beta" and inputs == "scores":
        raise InputError('family="beta" needs probabilities; with inputs="scores" use platt or spline.')
    free, nowhere = [-np.inf], np.empty(0)
    if name == "temperature":
        return LinkFamily(name, inputs, nowhere, np.ones(1), np.zeros(1))
    if name == "platt":
        return LinkFamily(name, inputs, nowhere, np.array([0.0, 1.0]), np.array([*free, 0.0]))
    if name == "beta":
        return LinkFamily(name, inputs, nowhere, np.array([0.0, 1.0, 1.0]), np.array([*free, 0.0, 0.0]))
    knots = _spline_knots(_on_log_scale(scores, inputs), weights, n_knots)
    # A spline with control points at the Greville abscissae is the straight line s.
    greville = np.convolve(knots[1:-1], np.ones(_DEGREE) / _DEGREE, mode="valid")
    start = np.concatenate([greville[:1], np.diff(greville)])
    return LinkFamily(name, inputs, knots, start, np.array(free + [0.0] * (start.size - 1)))


def _on_log_scale(scores: np.ndarray, inputs: str) -> np.ndarray:
    """Log-odds of clipped probabilities; scores are taken as they are."""
    if inputs == "scores":
        return scores
    return clipped_log_odds(scores, CLIP)


def _spline_knots(s: np.ndarray, weights: np.ndarray, n_knots: int) -> np.ndarray:
    """Clamped knots: both ends repeated, inner ones at weighted quantiles of the scores (increasing s)."""
    share = (np.cumsum(weights) - weights / 2) / weights.sum()
    inner = np.interp(np.arange(1, n_knots + 1) / (n_knots + 1), share, s)
    low, high = float(s[0]), float(s[-1])
    if high - low < 1e-9:
        low, high = low - 1.0, high + 1.0
    room = 1e-6 * (high - low)
    inner = np.unique(inner[(inner > low + room) & (inner < high - room)])
    return np.concatenate([np.repeat(low, _DEGREE + 1), inner, np.repeat(high, _DEGREE + 1)])


def _monotone_spline(s: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """A constant and the I-spline basis, continued beyond the end knots by straight lines.

    I_k is the sum of the B-splines from the k-th on: it rises from 0 to 1, so non-negative coefficients
    give a non-decreasing function.
    """
    inside = np.clip(s, knots[0], knots[-1])
    n_basis = knots.size - _DEGREE - 1
    basis = BSpline(knots, np.eye(n_basis), _DEGREE)
    beyond = s - inside
    values = np.asarray(basis(inside))
    outside = np.flatnonzero(beyond)
    if outside.size:
        values[outside] += np.asarray(basis(inside[outside], nu=1)) * beyond[outside, None]
    return np.ascontiguousarray(np.cumsum(values[:, ::-1], axis=1)[:, ::-1])
