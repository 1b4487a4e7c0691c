"""Proper scores behind the excess risk: one convex distance each.

A convex distance ``f(q) = d(1 - alpha, q)`` with ``f(1 - alpha) = 0`` and 0 among its slopes there gives
the proper score ``l(q, z) = -f(q) - (z - q) f'(q)`` (poster, section 4). Then ``l(1 - alpha, z) = 0`` and
the excess risk of the target is the mean of ``f(h) + (z - h) f'(h)``, whose expectation is
``E d(1 - alpha, p)`` when h is the conditional coverage p, and less for any other h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.exceptions import InputError, InputTypeError

SIDES = ("both", "over", "under")
# A probability of exactly 0 or 1 would make the logarithmic score infinite after one surprise.
_FLOOR = 1e-6
_STEP = 1e-6
_GRID = np.linspace(0.0, 1.0, 513)[1:-1]
_TOLERANCE = 1e-7

Function = Callable[[np.ndarray, np.ndarray], Any]


@dataclass(frozen=True, slots=True)
class Distance:
    """A convex distance from the target, and its slope, as functions of (target, q).

    Parameters
    ----------
    name : str
        Key of its estimates.
    function : callable
        ``function(target, q)``: zero at ``q = target``, convex in q, vectorised.
    slope : callable
        A subderivative in q, zero at ``q = target``.
    """

    name: str
    function: Function
    slope: Function

    def contributions(self, h: np.ndarray, covered: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Score of the target minus score of h, row by row; exactly 0 where h is the target."""
        gain = self.function(target, h) + (covered - h) * self.slope(target, h)
        return np.asarray(np.where(h == target, 0.0, gain))


def clip_to_side(h: np.ndarray, target: np.ndarray, side: str) -> np.ndarray:
    """Only over-coverage (max with the target), only under-coverage (min), or both (section 7)."""
    if side == "over":
        return np.asarray(np.maximum(h, target))
    return np.asarray(np.minimum(h, target)) if side == "under" else h


def _absolute(target: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(q - target))


def _absolute_slope(target: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.asarray(np.sign(q - target))


def _squared(target: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.asarray((q - target) ** 2)


def _squared_slope(target: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.asarray(2.0 * (q - target))


def _inside(q: np.ndarray) -> np.ndarray:
    """Probabilities, and targets, moved to where logarithms are finite."""
    return np.asarray(np.clip(q, _FLOOR, 1.0 - _FLOOR))


def _divergence(target: np.ndarray, q: np.ndarray) -> np.ndarray:
    q, target = _inside(q), _inside(target)
    return np.asarray(q * np.log(q / target) + (1.0 - q) * np.log((1.0 - q) / (1.0 - target)))


def _divergence_slope(target: np.ndarray, q: np.ndarray) -> np.ndarray:
    q, target = _inside(q), _inside(target)
    return np.asarray(np.log(q / target) - np.log((1.0 - q) / (1.0 - target)))


class _Logarithmic(Distance):
    """KL: the score is taken at the clipped h, so that f and its slope belong together."""

    __slots__ = ()

    def contributions(self, h: np.ndarray, covered: np.ndarray, target: np.ndarray) -> np.ndarray:
        return Distance.contributions(self, _inside(h), covered, target)


DISTANCES = {
    "l1": Distance("l1", _absolute, _absolute_slope),
    "l2": Distance("l2", _squared, _squared_slope),
    "kl": _Logarithmic("kl", _divergence, _divergence_slope),
}


def convex_distance(function: Function, slope: Function | None = None, *, name: str = "") -> Distance:
    """A distance d(1 - alpha, q) for `ert`, with its subderivative or with a numerical one.

    Parameters
    ----------
    function : callable
        ``function(target, q)`` on arrays of equal shape; convex in q and 0 at ``q = target``.
    slope : callable, optional
        A subderivative of it in q. Without it, difference quotients that never step across the target
        (so that a kink there is met from the right side).
    name : str
        Key of its estimates; the function's own name by default.

    Returns
    -------
    Distance

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.conditional import convex_distance
    >>> quartic = convex_distance(lambda t, q: (q - t) ** 4, name="quartic")
    >>> float(quartic.slope(np.array([0.5]), np.array([0.75])).round(4)[0])
    0.0625
    """
    if not callable(function):
        raise InputTypeError(f"a distance must be a function of (target, q), got {function!r}.")
    label = name or getattr(function, "__name__", type(function).__name__)
    return Distance(label, _vectorised(function, label), slope or _numerical_slope(function))


def _vectorised(function: Function, name: str) -> Function:
    def values(target: np.ndarray, q: np.ndarray) -> np.ndarray:
        found = np.asarray(function(target, q), dtype=float)
        if found.shape != np.shape(q):
            raise InputError(
                f"the distance {name} must give one value per row, got shape {found.shape} "
                f"for {np.shape(q)}. Write it with numpy functions of (target, q)."
            )
        return found

    return values


def _numerical_slope(function: Function) -> Function:
    def slope(target: np.ndarray, q: np.ndarray) -> np.ndarray:
        target, q = np.broadcast_arrays(np.asarray(target, float), np.asarray(q, float))
        low, high = np.maximum(q - _STEP, 0.0), np.minimum(q + _STEP, 1.0)
        low = np.where(q > target, np.maximum(low, target), low)
        high = np.where(q < target, np.minimum(high, target), high)
        rise = np.asarray(function(target, high), float) - np.asarray(function(target, low), float)
        return np.where(q == target, 0.0, rise / (high - low))

    return slope


def check_distance(loss: Any, target: np.ndarray) -> Distance:
    """A name, a `Distance`, a function d(target, q) or a pair (d, slope), as a checked `Distance`."""
    if isinstance(loss, str):
        if loss not in DISTANCES:
            raise InputError(f'loss must be "l1", "l2", "kl" or a convex distance, got {loss!r}.')
        return DISTANCES[loss]
    if isinstance(loss, tuple) and len(loss) == 2:
        loss = convex_distance(*loss)
    distance = loss if isinstance(loss, Distance) else convex_distance(loss)
    if distance not in DISTANCES.values():
        for level in np.unique(np.quantile(target, (0.0, 0.5, 1.0), method="nearest")):
            _require_convex(distance, float(level))
    return distance


def _require_convex(distance: Distance, level: float) -> None:
    grid = np.unique(np.append(_GRID, level))
    target = np.full(grid.shape, level)
    values = np.asarray(distance.function(target, grid), dtype=float)
    slopes = np.asarray(distance.slope(target, grid), dtype=float)
    what, at = f"the distance {distance.name}", f"at 1 - alpha = {level:g}"
    if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
        raise InputError(f"{what} must be finite inside (0, 1), it is not {at}.")
    scale = max(1.0, float(values.max()))
    here = int(np.searchsorted(grid, level))
    if abs(values[here]) > _TOLERANCE * scale or abs(slopes[here]) > _TOLERANCE * scale:
        raise InputError(
            f"{what} and its slope must be 0 {at}, got {values[here]:.3g} and {slopes[here]:.3g}. "
            "Subtract the value there, and choose 0 among the slopes."
        )
    # A chord from q to r lies above the tangent at q: values[r] >= values[q] + slope[q] (r - q).
    tangents = values[:, None] + slopes[:, None] * (grid[None, :] - grid[:, None])
    gap = values[None, :] - tangents
    if gap.min() < -1e-5 * scale:
        q, r = np.unravel_index(int(gap.argmin()), gap.shape)
        raise InputError(
            f"{what} must be convex in q with the slope given, it is not {at}: "
            f"between q = {grid[q]:.3g} and {grid[r]:.3g} it lies below its tangent."
        )
