"""Expectations by quadrature, cut where the integrand bends.

|p(x) - t| has a corner wherever p crosses t. Gauss-Legendre rules are exact to rounding on smooth
pieces and poor across a corner, so every integral here is first cut at the crossings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq

Function = Callable[[np.ndarray], np.ndarray]

_GRID = 4001
_PANELS = 16
_ORDER = 20
_ZERO = 1e-13  # a function that is zero up to rounding has no crossings to cut at


def cut_points(function: Function, low: float, high: float, *, known: Sequence[float] = ()) -> np.ndarray:
    """Return the ends, the known corners and every zero of the function, in increasing order.

    Zeros are bracketed on a grid of 4001 points and refined to rounding. Two zeros within one grid step
    can be missed; the integral then loses accuracy of the order of that step squared.
    """
    edges = np.unique([low, high, *(point for point in known if low < point < high)])
    grid = np.unique(np.concatenate([np.linspace(low, high, _GRID), edges]))
    values = np.asarray(function(grid), dtype=float)
    signs = np.where(np.abs(values) <= _ZERO, 0.0, np.sign(values))
    crossing = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    roots = [_root(function, grid[i], grid[i + 1]) for i in crossing]
    touching = grid[1:-1][(signs[1:-1] == 0) & ((signs[:-2] != 0) | (signs[2:] != 0))]
    return np.unique(np.concatenate([edges, roots, touching]))


def _root(function: Function, low: float, high: float) -> float:
    root = brentq(lambda x: float(function(np.array([x]))[0]), low, high, xtol=1e-15, rtol=1e-14)
    return float(root)


def nodes_and_weights(cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Composite Gauss-Legendre nodes and weights, shape (pieces, nodes): 16 panels of order 20 a piece."""
    unit_nodes, unit_weights = np.polynomial.legendre.leggauss(_ORDER)
    edges = np.linspace(cuts[:-1], cuts[1:], _PANELS + 1, axis=1)
    half = np.diff(edges, axis=1) / 2
    middle = edges[:, :-1] + half
    nodes = middle[:, :, None] + half[:, :, None] * unit_nodes
    weights = half[:, :, None] * unit_weights
    pieces = len(cuts) - 1
    return nodes.reshape(pieces, -1), weights.reshape(pieces, -1)


def integrate_pieces(function: Function, cuts: np.ndarray) -> np.ndarray:
    """Return the integral over each piece between neighbouring cuts."""
    nodes, weights = nodes_and_weights(cuts)
    values = np.asarray(function(nodes.ravel()), dtype=float).reshape(nodes.shape)
    return np.asarray(np.sum(weights * values, axis=1))


def prefix_range(pieces: np.ndarray) -> tuple[float, int, int]:
    """Largest |sum of consecutive pieces|, and the first and one-past-last piece that reach it.

    With prefix sums G_0 = 0, G_1, ... the largest |G_j - G_i| is max G - min G. Where several runs reach
    it, the one of fewest pieces is named.
    """
    prefix = np.concatenate([[0.0], np.cumsum(pieces)])
    lows, highs = np.flatnonzero(prefix == prefix.min()), np.flatnonzero(prefix == prefix.max())
    row, column = np.unravel_index(np.argmin(np.abs(lows[:, None] - highs)), (len(lows), len(highs)))
    low, high = int(lows[row]), int(highs[column])
    return float(prefix[high] - prefix[low]), min(low, high), max(low, high)
