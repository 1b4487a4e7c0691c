"""Intervals that follow the case: conformal regression of the loss on Z, eq. 22-26."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.conformal import conformal_quantile, conformal_rank
from calipers.exceptions import InputError
from calipers.inputs import exact_level
from calipers.performance.feature_map import FeatureFunction, FeatureMap
from calipers.performance.fitting import seeded_clone
from calipers.performance.guarantee import Guarantee, losses_needed
from calipers.performance.learners import QuantileLearner, default_quantile_learner, default_regressor
from calipers.performance.rows import Rows

_KINDS = (None, "regression", "quantile")


def check_modulation(kind: Any) -> None:
    """Refuse anything but None, "regression" and "quantile"."""
    if kind not in _KINDS:
        raise InputError(f'modulation must be None, "regression" or "quantile", got {kind!r}.')


@dataclass(frozen=True, slots=True, eq=False)
class Modulation:
    """A fitted auxiliary regression and the scores that calibrate it.

    Parameters
    ----------
    kind : {"regression", "quantile"}
        Fixed or variable width.
    feature_map : FeatureMap
        Z to the learner's inputs.
    learner : estimator or QuantileLearner
        Fitted on the first part.
    scores : ndarray (k,)
        eq. 23 (absolute residuals) or eq. 25 (how far outside the predicted quantiles).
    upper_scores : ndarray (k,)
        Loss minus the upper prediction: the one-sided version.
    limits : tuple of two floats
        The least and the most a loss can be.
    """

    kind: str
    feature_map: FeatureMap
    learner: Any
    scores: np.ndarray
    upper_scores: np.ndarray
    limits: tuple[float, float] = (-np.inf, np.inf)

    def interval(self, rows: Rows, alpha: Any) -> np.ndarray:
        """eq. 24 or eq. 26, (n, 2), within the limits; infinite when the rank exceeds k."""
        low, high = _predict(self.kind, self.learner, self.feature_map.transform(rows))
        correction = conformal_quantile(self.scores, alpha)
        ends = np.column_stack([low - correction, high + correction])
        crossed = ends[:, 0] > ends[:, 1]
        # An empty set may be replaced by any superset; its midpoint keeps low <= high.
        ends[crossed] = ((low + high) / 2)[crossed, None]
        return np.clip(ends, *self.limits)

    def upper_bound(self, rows: Rows, alpha: Any) -> np.ndarray:
        """One-sided bound, (n,)."""
        high = _predict(self.kind, self.learner, self.feature_map.transform(rows))[1]
        return np.clip(high + conformal_quantile(self.upper_scores, alpha), *self.limits)

    def guarantee(self, free: Guarantee) -> Guarantee:
        """The promise of the modulated interval: one rank among the k scores, Theorems 10 and 12."""
        n = self.scores.size
        return replace(
            free,
            low_rank=0,
            high_rank=conformal_rank(n, free.alpha),
            low=None,
            high=None,
            needed=losses_needed(free.alpha, "upper"),
            side="upper",
        )


def fit_modulation(
    kind: str,
    *,
    learning: tuple[Rows, np.ndarray],
    calibration: tuple[Rows, np.ndarray],
    alpha: Any,
    learner: Any,
    features: FeatureFunction | None,
    points_per_loss: int,
    limits: tuple[float, float],
    generator: np.random.Generator,
) -> Modulation:
    """Regress the first part's losses on its cases, score the second part's."""
    feature_map = FeatureMap(features, points_per_loss).fit(learning[0])
    model = _learner(kind, learner, alpha, int(generator.integers(2**31 - 1)))
    model = model.fit(feature_map.transform(learning[0]), finite_losses(learning[1])) or model
    low, high = _predict(kind, model, feature_map.transform(calibration[0]))
    losses = calibration[1]
    scores = np.maximum(losses - high, low - losses)
    return Modulation(kind, feature_map, model, scores, losses - high, limits)


def _learner(kind: str, learner: Any, alpha: Any, seed: int) -> Any:
    if kind == "regression":
        return seeded_clone(default_regressor() if learner is None else learner, seed)
    half = float(exact_level(alpha) / 2)
    quantile_learner = default_quantile_learner() if learner is None else learner
    return QuantileLearner(quantile_learner, (half, 1.0 - half), seed)


def _predict(kind: str, model: Any, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if kind == "regression":
        centre = np.asarray(model.predict(table), dtype=np.float64).reshape(-1)
        return centre, centre
    quantiles = model.predict(table)
    return quantiles[:, 0], quantiles[:, 1]


def finite_losses(losses: np.ndarray) -> np.ndarray:
    """Losses a regression can be fitted to: an infinite one counts as the largest finite one.

    Any regression keeps the promise; the infinite losses of the calibration part stay infinite.
    """
    finite = np.isfinite(losses)
    if finite.all():
        return losses
    if not finite.any():
        return np.zeros(losses.size)
    return np.asarray(np.clip(losses, losses[finite].min(), losses[finite].max()))
