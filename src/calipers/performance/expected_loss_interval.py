"""From expected losses to the mean loss that will be realised, with its interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from calipers.performance.covariate_shift import Comparison
from calipers.performance.expected_loss import LabelModel, LossModel
from calipers.performance.label_losses import variation
from calipers.performance.shift import effective_sample_size

# Resamples on which the weights are fitted again.
_WEIGHT_DRAWS = 15
# Standard errors from which on what the weights correct shows in the value.
STANDS_OUT = 2.0
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


@dataclass(frozen=True, slots=True)
class Population:
    """All new rows with their like in the reference, where the others here are a sample of them.

    Parameters
    ----------
    rows : int
        Their number.
    pilot : array (s, T)
        Expected losses of the sampled rows by the reference as it is.
    pilot_mean : array (T,)
        Mean of the same over all rows.
    """

    rows: int
    pilot: np.ndarray
    pilot_mean: np.ndarray

    def mean(self, expected: np.ndarray, mix: np.ndarray) -> tuple[float, float]:
        """Mean of the expected losses over all rows, and its variance.

        The pilot is known for all rows; only what is expected beyond it is taken from the sample (a control
        variate). Without a shift of the features there is nothing beyond it.
        """
        beyond = expected - self.pilot @ mix
        value = float(beyond.mean() + self.pilot_mean @ mix)
        left_out = 1.0 - beyond.size / self.rows
        return value, float(beyond.var() / beyond.size * left_out)


# The loss itself, where it is the only one a pilot was computed for.
ONLY = np.ones(1)


def mean_interval(
    model: LabelModel | LossModel,
    new: np.ndarray,
    compared: Comparison,
    confidence: float,
    population: Population | None = None,
    mix: np.ndarray = ONLY,
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
    population : Population or None
        All rows, when the new rows here are a sample of them.
    mix : array (T,)
        The loss as a combination of those of the pilot.

    Returns
    -------
    MeanInterval
        Value, interval and what its width consists of.

    Notes
    -----
    centre = mean of m over new rows + sum of w (loss - m) over the reference, w normalised. Its error is the
    mean of loss - m over new rows minus the weighted one over the reference: variances add. Each part counts
    its largest term twice; rare large losses otherwise make both too small when they have not shown. The
    value takes less of it. The mean residual c of the unweighted reference, with variance v, counts as
    max(0, 1 - v / c^2) c (positive-part shrinkage). What the weights add to it, with a variance v that has
    their uncertainty too, counts as max(0, 1 - 4 v / c^2) c, so not below two standard errors: where the
    expected losses are right, all of it would add v to the squared error, positive-part shrinkage a third of
    v, and this a fiftieth.
    """
    weights = compared.weights / compared.weights.sum()
    expected = model.expected(compared, new)
    residual = model.realised - expected.reference
    correction = float(weights @ residual)
    parts = (weights * (residual - correction) / np.maximum(1.0 - weights, 0.5)) ** 2
    # Noisy calibrated probabilities are too sure of the labels; realised losses tell by how much.
    missing = max(0.0, float(weights @ (residual**2 - expected.reference_variance)))
    plain, thinning, n = float(expected.new.mean()), 0.0, len(new)
    if population is not None:
        (plain, thinning), n = population.mean(expected.new, mix), population.rows
    outcomes = expected.variance.mean() / n + expected.variance.max() / n**2 + missing / n
    ratio = _weight_variance(compared, residual)
    noise = outcomes + thinning + parts.sum() + parts.max()
    variance = noise + ratio + _unseen_loss(model, new, weights)
    # Few rows carry the variance: it is itself uncertain, as if from so few rows.
    carriers = parts.sum() ** 2 / max((parts**2).sum(), np.finfo(float).tiny)
    freedom = max(min(effective_sample_size(weights), carriers) - 1.0, _LEAST_FREEDOM)
    half = float(stats.t.ppf(0.5 + confidence / 2.0, freedom) * np.sqrt(variance))
    part = float(ratio / variance) if variance > 0 else 0.0
    shares = {"sampling": 1.0 - part, "weights": part}
    value = plain + _standing_out(weights, residual, ratio)
    return MeanInterval(value, plain + correction, half, shares)


def _standing_out(weights: np.ndarray, residual: np.ndarray, ratio: float) -> float:
    """What is more than noise of the correction: by the reference as it is, and what its weights add."""
    base = float(residual.mean())
    moved = float(weights @ residual) - base
    noise = ((residual - base) / max(residual.size - 1, 1)) ** 2
    doubt = ((weights - 1.0 / residual.size) * (residual - base)) ** 2
    return _shrunk(base, noise.sum() + noise.max()) + _shrunk(
        moved, STANDS_OUT**2 * (doubt.sum() + doubt.max() + ratio)
    )


def _shrunk(correction: float, variance: float) -> float:
    return (1.0 - variance / correction**2) * correction if variance < correction**2 else 0.0


def _weight_variance(compared: Comparison, residual: np.ndarray) -> float:
    """Variance of the correction over weights that were fitted on resampled rows."""
    if not compared.found or compared.shift is None:
        return 0.0
    redrawn = compared.shift.redrawn_weights(compared.supported, _WEIGHT_DRAWS)
    return float(np.var(redrawn @ residual / redrawn.sum(axis=1), ddof=1))


def _unseen_loss(model: LabelModel | LossModel, new: np.ndarray, weights: np.ndarray) -> float:
    """Variance for a loss that has not occurred yet: one further reference row with the full range."""
    low, high = model.extremes(new)
    span = float(np.mean(high - low))
    if not np.isfinite(span):
        span = float(np.ptp(model.realised))
    return (span / (effective_sample_size(weights) + 1.0)) ** 2


@dataclass(slots=True)
class Tally:
    """Rows with and without their like in the reference, and the losses they can have at least and at most.

    Parameters
    ----------
    rows, kept : int
        All rows, and those with their like.
    kept_ends, other_ends : array (2,)
        Sums of the smallest and of the largest loss of those rows, and of the others.
    pilot : array (T,)
        Sums of the pilot over the kept rows.
    """

    rows: int = 0
    kept: int = 0
    kept_ends: np.ndarray = field(default_factory=lambda: np.zeros(2))
    other_ends: np.ndarray = field(default_factory=lambda: np.zeros(2))
    pilot: np.ndarray = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def of(cls, model: LabelModel | LossModel, new: np.ndarray, kept: np.ndarray, pilot: Any = None) -> Tally:
        """The tally of a block of rows; ``pilot`` holds the pilot of the kept rows."""
        ends = np.column_stack(model.extremes(new))
        sums = np.zeros(1) if pilot is None else pilot.sum(axis=0)
        return cls(kept.size, int(kept.sum()), ends[kept].sum(axis=0), ends[~kept].sum(axis=0), sums)

    def merge(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            self.rows + other.rows,
            self.kept + other.kept,
            self.kept_ends + other.kept_ends,
            self.other_ends + other.other_ends,
            self.pilot + other.pilot,
        )

    def ends(self, inside: MeanInterval) -> tuple[float, float]:
        """The ends for all rows: those without their like count with their best and their worst loss."""
        ends, value = [], inside.value
        for at, end in enumerate((inside.centre - inside.half, inside.centre + inside.half)):
            # Rows with support cannot lose less, or more, than their own extremes either.
            near = np.clip(end, *(self.kept_ends / self.kept)) if self.kept else 0.0
            ends.append(float((near * self.kept + self.other_ends[at]) / self.rows))
        return (ends[0], ends[1]) if np.isnan(value) else (min(ends[0], value), max(ends[1], value))


def calibration_bound(model: LabelModel, confidence: float) -> float:
    """How far the expected loss of two classes can be off because of miscalibration, guaranteed.

    The upper bound of the calibration error of the calibrated probabilities, out of fold, times the variation
    of the loss along the stated probability.
    """
    from calipers.metrics import calibration_error

    stated = model.statements
    chances, _ = model.calibrated(stated[:1])
    error = calibration_error(
        model.codes == 1, chances[:, 1], confidence=confidence, n_draws=1, random_state=0
    )
    return float(error.high or 0.0) * variation(model.table(stated), stated[:, 1])
