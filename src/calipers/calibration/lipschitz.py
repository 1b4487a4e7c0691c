"""Isotonic regression with a limited slope: the step of SLIsotron, solved exactly.

    minimise sum w_i (y_i - u_i)^2   subject to   0 <= u_{i+1} - u_i <= room_i = slope (z_{i+1} - z_i).

Let F_i(u) be the smallest cost of the first i points with u_i = u. It is convex, and

    F_{i+1}(u) = w (y_{i+1} - u)^2 + min over u - room <= v <= u of F_i(v).

The inner minimum cuts F_i at its lowest point m_i, shifts the right half by the room and puts a flat piece
between. So the derivative is continuous and piecewise linear; its knots left and right of the lowest point
are kept on two stacks, and each point adds two. Going back, u_i is m_i clipped to the window that u_{i+1}
leaves.

This is a loop over points, so long inputs are shortened first. With lambda_k = sum over i <= k of
w_i (y_i - u_i), a fit is the best one exactly if lambda_k >= 0 where it does not rise, <= 0 where it rises by
all of its room, and = 0 elsewhere. A fit to means of eight neighbours gives approximate lambdas. Points that
a clearly positive or negative one ties together become one point, the shorter problem is solved, and ties
with a lambda of the wrong sign are cut until there is none.
"""

from __future__ import annotations

import math

import numpy as np

from calipers.exceptions import InputError

# Points up to which the loop is run at once, and points in a mean above.
_SHORT, _GROUP = 512, 8
# Approximate lambdas up to this share of a mean weight leave the state of a gap open.
_OPEN = 0.3
# Share of the total weight below which a lambda is rounding.
_ROUNDING = 1e-14


def lipschitz_isotonic(
    positions: np.ndarray, targets: np.ndarray, weights: np.ndarray, slope: float
) -> np.ndarray:
    """The weighted least-squares fit that never falls and rises at most ``slope`` per unit of position.

    ``positions`` increase strictly (pool equal ones first).
    """
    if not slope > 0:
        raise InputError(f"slope must be positive, got {slope!r}.")
    # The fit stays within the targets: a larger room is never used, and its size would cost digits.
    rooms = np.minimum(slope * np.diff(positions), np.ptp(targets))
    return _fit(targets, weights, rooms)


def _fit(y: np.ndarray, w: np.ndarray, rooms: np.ndarray) -> np.ndarray:
    if y.size <= _SHORT:
        return fit_points(y, w, rooms)
    places, starts = np.append(0.0, np.cumsum(rooms)), np.arange(0, y.size, _GROUP)
    total = np.add.reduceat(w, starts)
    means, centres = (np.add.reduceat(w * column, starts) / total for column in (y, places))
    guess = np.interp(places, centres, _fit(means, total, np.diff(centres)))
    residuals = w * (y - guess)
    lambdas = np.cumsum(residuals - w * (residuals.sum() / w.sum()))[:-1]
    free = np.abs(lambdas) <= _OPEN * w.mean()
    return _fit_tied(y, w, rooms, free, lambdas < 0)


def _fit_tied(
    y: np.ndarray, w: np.ndarray, rooms: np.ndarray, free: np.ndarray, full: np.ndarray
) -> np.ndarray:
    """The fit, from a guess of the gaps that are free and of those that rise by all of their room."""
    slack = _ROUNDING * w.sum()
    while True:
        starts = np.append(0, np.flatnonzero(free) + 1)
        # Within tied points the fit is a constant plus this rise.
        rise = np.append(0.0, np.cumsum(np.where(full & ~free, rooms, 0.0)))
        total = np.add.reduceat(w, starts)
        tied = fit_points(np.add.reduceat(w * (y - rise), starts) / total, total, rooms[free])
        fit = rise + np.repeat(tied, np.diff(starts, append=y.size))
        lambdas = np.cumsum(w * (y - fit))[:-1]
        wrong = ~free & (np.where(full, lambdas, -lambdas) > slack)
        if not wrong.any():
            return np.asarray(fit)
        free = free | wrong


def fit_points(y: np.ndarray, w: np.ndarray, rooms: np.ndarray) -> np.ndarray:
    """The fit by the two stacks, point by point."""
    steps = rooms.tolist()
    lowest = _lowest_points(y.tolist(), w.tolist(), steps, np.cumsum(rooms).tolist())
    here = lowest.pop()
    fit = [here]
    for low, room in zip(reversed(lowest), reversed(steps), strict=True):
        here = min(max(low, here - room), here)
        fit.append(here)
    return np.array(fit[::-1])


def _lowest_points(y: list[float], w: list[float], rooms: list[float], shifts: list[float]) -> list[float]:
    """Where each F_i is lowest.

    A knot is a place and the change of slope there, from left to right; places on the right stack are
    relative to the shift so far. ``steep`` is the slope at the lowest point, ``pull`` what the derivative
    still has to change by.
    """
    left, right = [(-math.inf, 0.0)], [(math.inf, 0.0)]
    low, steep = y[0], w[0]
    lowest = [low]
    for target, weight, room, shift in zip(y[1:], w[1:], rooms, shifts, strict=True):
        end = low + room  # the flat piece lies between low and end
        pull, past = weight * (low - target), weight * (target - end)
        if pull > 0:
            right += [(end - shift, steep), (low - shift, -steep)]
            steep += weight
            while (rest := pull - steep * (low - left[-1][0])) > 0:
                low, change = left.pop()
                right.append((low - shift, change))
                # No piece is less steep than the new point alone, whatever rounding says.
                pull, steep = rest, max(steep - change, weight)
            low -= pull / steep
        elif past > 0:
            left += [(low, -steep), (end, steep)]
            low, steep = end, steep + weight
            while (rest := past - steep * (right[-1][0] + shift - low)) > 0:
                place, change = right.pop()
                low = place + shift
                left.append((low, change))
                past, steep = rest, max(steep + change, weight)
            low += past / steep
        else:
            left.append((low, -steep))
            right.append((end - shift, steep))
            low, steep = target, weight
        lowest.append(low)
    return lowest
