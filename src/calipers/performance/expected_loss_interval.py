"""From expected losses to the mean loss that will be realised, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from calipers.performance.covariate_shift import Comparison
from calipers.performance.expected_loss import LabelModel, LossModel
from calipers.performance.label_losses import variation
from calipers.performance.shift import effective_sample_size

# Resamples on which the weights are fitted again.
_WEIGHT_DRAWS = 15
# With it, no error among n reference rows gives an upper end of 4.3 / n; the exact one is 3.7 / n.
_LEAST_FREEDOM = 2.0


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """The mean loss of new rows.

    Parameters
    ----------
    value : float
        Expected loss plus the part of the correction that stands out from its noise.
    centre : float
        Expected loss plus the whole correction: the middle of the interval.
    half : float
        Half-width of the interval.
    shares : dict
        Shares of the variance: "sampling" (outcomes of new and of reference rows), "weights".
    """

    value: float
    centre: float
    half: float
    shares: dict[str, float]


def mean_interval(
    model: LabelModel | LossModel, new: np.ndarray, compared: Comparison, confidence: float
) -> MeanInterval:
    """The mean loss that new rows with their like in the reference will turn out to have.

    Parameters
    ----------
    model : LabelModel or LossModel
        The reference and its expected losses.
    new : array
        What the model states about the new rows.
    compared : Comparison
        Weights of the reference, and the shift they undo.
    confidence : float
        Level of the interval.

    Returns
    -------
    MeanInterval
        Value, interval and what its width consists of.

    Notes
    -----
    centre = mean of m over new rows + sum of w (loss - m) over the reference, w normalised. Its error is the
    mean of loss - m over new rows minus the weighted one over the reference: variances add. Each part counts
    its largest term twice; rare large losses otherwise make both too small when they have not shown. The
    value takes the correction c only as far as it stands out from its variance v, max(0, 1 - v / c^2) of it
    (positive-part shrinkage): with few effective rows it would bring more noise than it removes.
    """
    weights = compared.weights / compared.weights.sum()
    expected = model.expected(compared.weights, new, compared.tables())
    residual = model.realised - expected.reference
    correction = float(weights @ residual)
    parts = (weights * (residual - correction) / np.maximum(1.0 - weights, 0.5)) ** 2
    # Noisy calibrated probabilities are too sure of the labels; realised losses tell by how much.
    missing = max(0.0, float(weights @ (residual**2 - expected.reference_variance)))
    outcomes = (expected.variance.sum() + expected.variance.max()) / len(new) ** 2 + missing / len(new)
    ratio = _weight_variance(compared, residual)
    variance = outcomes + parts.sum() + parts.max() + ratio + _unseen_loss(model, new, weights)
    # Few rows carry the variance: it is itself uncertain, as if from so few rows.
    carriers = parts.sum() ** 2 / max((parts**2).sum(), np.finfo(float).tiny)
    freedom = max(min(effective_sample_size(weights), carriers) - 1.0, _LEAST_FREEDOM)
    half = float(stats.t.ppf(0.5 + confidence / 2.0, freedom) * np.sqrt(variance))
    part = float(ratio / variance) if variance > 0 else 0.0
    shares = {"sampling": 1.0 - part, "weights": part}
    kept = max(0.0, 1.0 - parts.sum() / correction**2) if correction else 0.0
    plain = float(expected.new.mean())
    return MeanInterval(plain + kept * correction, plain + correction, half, shares)


def _weight_variance(compared: Comparison, residual: np.ndarray) -> float:
    """Variance of the correction over weights that were fitted on resampled rows."""
    if not compared.found or compared.shift is None:
        return 0.0
    redrawn = compared.shift.redrawn_weights(compared.supported, _WEIGHT_DRAWS)
    return float(np.var([w @ residual / w.sum() for w in redrawn], ddof=1))


def _unseen_loss(model: LabelModel | LossModel, new: np.ndarray, weights: np.ndarray) -> float:
    """Variance for a loss that has not occurred yet: one further reference row with the full range."""
    low, high = model.extremes(new)
    span = float(np.mean(high - low))
    if not np.isfinite(span):
        span = float(np.ptp(model.realised))
    return (span / (effective_sample_size(weights) + 1.0)) ** 2


def ends_of_all_rows(
    model: LabelModel | LossModel, new: np.ndarray, kept: np.ndarray, inside: MeanInterval
) -> tuple[float, float]:
    """The ends for all rows: those without their like count with their best and their worst loss."""
    low, high = model.extremes(new)
    ends, value = [], inside.value
    for extreme, end in ((low, inside.centre - inside.half), (high, inside.centre + inside.half)):
        # Rows with support cannot lose less, or more, than their own extremes either.
        near = np.clip(end, low[kept].mean(), high[kept].mean()) if kept.any() else 0.0
        ends.append(float(near * kept.mean() + np.where(kept, 0.0, extreme).mean()))
    return (ends[0], ends[1]) if np.isnan(value) else (min(ends[0], value), max(ends[1], value))


def calibration_bound(model: LabelModel, confidence: float) -> float:
    """How far the expected loss of two classes can be off because of miscalibration, guaranteed.

    The upper bound of the calibration error of the calibrated probabilities, out of fold, times the variation
    of the loss along the stated probability.
    """
    from calipers.metrics import calibration_error

    stated = model.statements
    chances, _ = model.calibrated(np.ones(len(stated)), stated[:1])
    error = calibration_error(
        model.codes == 1, chances[:, 1], confidence=confidence, n_draws=1, random_state=0
    )
    return float(error.high or 0.0) * variation(model.table(stated), stated[:, 1])
