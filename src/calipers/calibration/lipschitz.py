"""Isotonic regression with a limited slope: the step of SLIsotron, solved exactly.

    minimise sum w_i (y_i - u_i)^2   subject to   0 <= u_{i+1} - u_i <= slope (z_{i+1} - z_i).

Let F_i(u) be the smallest cost of the first i points with u_i = u. It is convex, and

    F_{i+1}(u) = w (y_{i+1} - u)^2 + min over u - slope d <= v <= u of F_i(v).

The inner minimum cuts F_i at its lowest point m_i, shifts the right half by slope d and puts a flat piece
between. So the derivative is piecewise linear; its pieces left and right of the lowest point are kept on
two stacks with pending changes, and each point adds two pieces. Going back, u_i is m_i clipped to the
window that u_{i+1} leaves. Typical cost is linear; the stacks make every move of a piece one operation.

The two loops are compiled by numba where it is installed and the work is worth its loading; otherwise
Python runs the same lines on lists, with the same result to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calipers.arrays.compiled import compiled_function
from calipers.exceptions import InputError

# Points over all calls from which loading numba (half a second) pays; Python takes some 5 microseconds each.
COMPILED_POINTS = 200_000
_LEFT, _RIGHT = 0, 1


def lipschitz_isotonic(
    positions: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    slope: float,
    *,
    n_points: int | None = None,
) -> np.ndarray:
    """The weighted least-squares fit that never falls and rises at most ``slope`` per unit of position.

    ``positions`` increase strictly (pool equal ones first). ``n_points`` counts the points of all calls to
    come, which decides whether compiled code is worth loading; by default those of this call.
    """
    if not slope > 0:
        raise InputError(f"slope must be positive, got {slope!r}.")
    n = positions.size
    many = (n if n_points is None else n_points) >= COMPILED_POINTS
    compiled = compiled_function(fit_points) if many else None
    if compiled is None:
        stacks = [[[0.0] * (2 * n + 1) for _ in range(3)] for _ in (_LEFT, _RIGHT)]
        z, y, w = positions.tolist(), targets.tolist(), weights.tolist()
        return np.array(fit_points(z, y, w, float(slope), [0.0] * n, stacks))
    z, y, w = (np.ascontiguousarray(column, dtype=np.float64) for column in (positions, targets, weights))
    return np.asarray(compiled(z, y, w, float(slope), np.empty(n), np.empty((2, 3, 2 * n + 1))))


def fit_points(z: Any, y: Any, w: Any, slope: float, fit: Any, stacks: Any) -> Any:
    """The fit at every point, written into ``fit``.

    ``stacks[side]`` holds the pieces of the derivative on one side of the lowest point, the nearest on top:
    where a piece ends (away from the lowest point), its slope and its intercept, all relative to the pending
    changes of the side. The true place of a stored x is x + shift; the true derivative there is
    (slope + extra slope) x + intercept + extra intercept.
    """
    size, shift, extra_slope, extra_intercept = [1, 1], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    for side in (0, 1):
        stacks[side][0][0] = -math.inf if side == 0 else math.inf
        stacks[side][1][0], stacks[side][2][0] = 2 * w[0], -2 * w[0] * y[0]
    fit[0] = y[0]
    for i in range(1, len(y)):
        here, room = fit[i - 1], slope * (z[i] - z[i - 1])
        shift[1] += room
        # The flat piece from here to here + room; on the left stack, its far end is `here`.
        top = size[0]
        stacks[0][0][top] = here - shift[0]
        stacks[0][1][top], stacks[0][2][top] = -extra_slope[0], -extra_intercept[0]
        size[0] += 1
        for side in (0, 1):  # the derivative 2 w (u - y) of the new point, on every piece
            extra_slope[side] += 2 * w[i]
            extra_intercept[side] += 2 * w[i] * (shift[side] - y[i])
        border = here + room
        # Pieces move in one direction only, so that rounding cannot send one to and fro.
        steep = stacks[0][1][size[0] - 1] + extra_slope[0]
        level = stacks[0][2][size[0] - 1] + extra_intercept[0] - steep * shift[0]
        giver, taker, sign = (0, 1, 1.0) if steep * border + level > 0 else (1, 0, -1.0)
        while True:
            # Hand over pieces on which `sign` times the derivative is positive, up to where it is 0.
            top = size[giver] - 1
            steep = stacks[giver][1][top] + extra_slope[giver]
            level = stacks[giver][2][top] + extra_intercept[giver] - steep * shift[giver]
            if sign * (steep * border + level) <= 0:
                break
            end, last = stacks[giver][0][top] + shift[giver], size[taker]
            stacks[taker][0][last] = border - shift[taker]
            stacks[taker][1][last] = steep - extra_slope[taker]
            stacks[taker][2][last] = level + steep * shift[taker] - extra_intercept[taker]
            size[taker] += 1
            zero = -level / steep if steep > 0 else -sign * math.inf
            if sign * (zero - end) > 0:  # the piece crosses 0: its far part stays
                border = zero
                break
            size[giver] -= 1
            border = end
        fit[i] = border
    for i in range(len(y) - 2, -1, -1):
        fit[i] = min(max(fit[i], fit[i + 1] - slope * (z[i + 1] - z[i])), fit[i + 1])
    return fit
