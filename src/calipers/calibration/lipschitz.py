"""Isotonic regression with a limited slope: the step of SLIsotron, solved exactly.

    minimise sum w_i (y_i - u_i)^2   subject to   0 <= u_{i+1} - u_i <= slope (z_{i+1} - z_i).

Let F_i(u) be the smallest cost of the first i points with u_i = u. It is convex, and

    F_{i+1}(u) = w (y_{i+1} - u)^2 + min over u - slope d <= v <= u of F_i(v).

The inner minimum cuts F_i at its lowest point m_i, shifts the right half by slope d and puts a flat piece
between. So the derivative is piecewise linear; its pieces left and right of the lowest point are kept on
two stacks with pending changes, and each point adds two pieces. Going back, u_i is m_i clipped to the
window that u_{i+1} leaves. Typical cost is linear; the stacks make every move of a piece one operation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from calipers.exceptions import InputError

# One piece of the derivative: where it ends (away from the lowest point), slope and intercept, all relative
# to the pending changes of its side.
_Piece = tuple[float, float, float]


@dataclass(slots=True)
class _Side:
    """Pieces of the derivative on one side of the lowest point, the nearest on top.

    The true place of a stored x is x + shift; the true derivative there is (slope + extra_slope) x +
    intercept + extra_intercept.
    """

    pieces: list[_Piece] = field(default_factory=list)
    shift: float = 0.0
    extra_slope: float = 0.0
    extra_intercept: float = 0.0

    def add_parabola(self, weight: float, target: float) -> None:
        """Add the derivative 2 weight (u - target) to every piece."""
        self.extra_slope += 2 * weight
        self.extra_intercept += 2 * weight * (self.shift - target)

    def push(self, end: float, slope: float, intercept: float) -> None:
        """Add a piece given in true coordinates."""
        # slope u + intercept with u = x + shift
        self.pieces.append(
            (
                end - self.shift,
                slope - self.extra_slope,
                intercept + slope * self.shift - self.extra_intercept,
            )
        )

    def pop(self) -> _Piece:
        """Remove the nearest piece and give it in true coordinates."""
        end, slope, intercept = self.pieces.pop()
        slope += self.extra_slope
        return end + self.shift, slope, intercept + self.extra_intercept - slope * self.shift


def lipschitz_isotonic(
    positions: np.ndarray, targets: np.ndarray, weights: np.ndarray, slope: float
) -> np.ndarray:
    """The weighted least-squares fit that never falls and rises at most ``slope`` per unit of position.

    ``positions`` increase strictly (pool equal ones first).
    """
    if not slope > 0:
        raise InputError(f"slope must be positive, got {slope!r}.")
    left, right = _Side(), _Side()
    z, y, w = positions.tolist(), targets.tolist(), weights.tolist()
    left.push(-math.inf, 2 * w[0], -2 * w[0] * y[0])
    right.push(math.inf, 2 * w[0], -2 * w[0] * y[0])
    lowest = [y[0]]
    for i in range(1, len(y)):
        here, room = lowest[-1], slope * (z[i] - z[i - 1])
        right.shift += room
        # The flat piece from here to here + room; on the left stack, its far end is `here`.
        left.push(here, 0.0, 0.0)
        left.add_parabola(w[i], y[i])
        right.add_parabola(w[i], y[i])
        lowest.append(_split_at_zero(left, right, here + room))
    return _walk_back(lowest, z, slope)


def _split_at_zero(left: _Side, right: _Side, border: float) -> float:
    """Move pieces until the derivative is negative on the left and positive on the right; the border.

    Pieces move in one direction only, so that rounding cannot send one to and fro.
    """
    end, slope, intercept = left.pop()
    left.push(end, slope, intercept)
    if slope * border + intercept > 0:
        return _move(left, right, border, 1.0)
    return _move(right, left, border, -1.0)


def _move(giver: _Side, taker: _Side, border: float, sign: float) -> float:
    """Hand over pieces on which ``sign`` times the derivative is positive; the place where it is 0."""
    while True:
        end, slope, intercept = giver.pop()
        if sign * (slope * border + intercept) <= 0:
            giver.push(end, slope, intercept)
            return border
        taker.push(border, slope, intercept)
        zero = -intercept / slope if slope > 0 else -sign * math.inf
        if sign * (zero - end) > 0:
            giver.push(end, slope, intercept)
            return zero
        border = end


def _walk_back(lowest: list[float], z: list[float], slope: float) -> np.ndarray:
    fit = np.empty(len(lowest))
    value = fit[-1] = lowest[-1]
    for i in range(len(lowest) - 2, -1, -1):
        value = fit[i] = min(max(lowest[i], value - slope * (z[i + 1] - z[i])), value)
    return fit
