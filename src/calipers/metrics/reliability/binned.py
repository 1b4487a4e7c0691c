"""Binned and smoothed calibration errors, for habit, with their bias shown.

Both average |stated - observed| over regions of scores. That is never 0 on a sample, not even for a perfect
model, and depends on bins or bandwidth; the null law beside them says how much of a reading is noise. Neither
estimates the l1 distance between f and P(Y = 1 | X): no sample can bound that (Theorem 1 of Gao,
Parameswaran and Peng 2017). For a number with a guarantee use `calibration_error`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import RandomState
from calipers.inference import State
from calipers.inputs import check_confidence, check_count
from calipers.inputs.option_checks import check_choice
from calipers.metrics.entry import MetricEntry, known_options
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.binned_states import BinState
from calipers.metrics.reliability.calibration_test import N_DRAWS
from calipers.metrics.reliability.cumulative_differences import pooled_scores
from calipers.metrics.reliability.multiclass import check_reliability_rows
from calipers.metrics.states.all_rows import GatherState
from calipers.results import Estimate

N_BINS = 15
# Each draw is a search for a bandwidth.
N_SMOOTH_DRAWS = 199
_NO_EDGES = np.empty(0)


def expected_calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = N_BINS,
    strategy: str = "uniform",
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    random_state: RandomState = None,
) -> Estimate:
    """Mean over bins of |observed frequency - mean stated probability|, weighted by the rows in the bin.

    Lower is better, but 0 is out of reach: ``details["noise_floor"]`` is what a calibrated model with these
    scores reads on average, ``null_high`` what it reads at most in 95 of 100 samples.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels, or soft labels in [0, 1].
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class; with K > 2 those of the top label.
    n_bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        Bins of equal width, (k / n_bins, (k + 1) / n_bins] with 0 in the first, or of about equal mass (rows
        of equal score stay together).
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    classes : sequence of K labels, optional
        The label of every column.
    confidence : float
        Level of the interval.
    n_draws : int
        Draws of the null law.
    random_state : int, Generator or None
        Source of those draws.

    Returns
    -------
    Estimate
        ``details`` has ``noise_floor``, ``above_noise`` (value minus noise floor, at least 0) and per bin the
        mass, the mean score and the frequency.

    Raises
    ------
    InputError
        As `calibration_error`.

    Notes
    -----
    The value changes with the bins and can be 0 for a model that is badly calibrated inside every bin. Null:
    outcomes redrawn as coins with the stated probabilities, score by score up to 100 000 rows; beyond, the
    number of events of each bin is drawn from the binomial law with its mean and variance. Cost: one pass,
    and O(levels) per draw.

    Interval, for the error of the population in the same bins and a model fixed beforehand, guaranteed at any
    number of rows: the population's error is the mean of (y - f) with one sign per bin, and the sample's is
    at least what the sample says about these signs, so that the upper end needs the deviation of one mean
    (`calipers.metrics.reliability.upper_bound`); the lower end allows for the choice of the signs
    (Bousquet's inequality). Bins of equal mass are chosen by the sample and have no interval.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import expected_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(1000)
    >>> perfect = expected_calibration_error(rng.random(1000) < f, f, random_state=0)
    >>> round(perfect.value, 4), round(perfect.details["noise_floor"], 4)
    (0.0374, 0.0388)
    """
    check_choice(strategy, ("uniform", "quantile"), name="strategy")
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    ).to_host()
    bins = check_count(n_bins, name="n_bins")
    edges = _quantile_edges(rows, bins) if strategy == "quantile" else _uniform_edges(bins)
    draws, level = check_count(n_draws, name="n_draws"), check_confidence(confidence)
    return _over(rows, BinState(edges, False, draws, random_state, strategy, level))


def _over(rows: BinaryRows, state: BinState) -> Estimate:
    for block in rows.blocks():
        state.add(block)
    return state.finish()


def _uniform_edges(n_bins: int) -> np.ndarray:
    return np.arange(1, n_bins) / n_bins


def _quantile_edges(rows: BinaryRows, n_bins: int) -> np.ndarray:
    values, mass, _ = pooled_scores(rows)
    reached = np.cumsum(mass) / mass.sum()
    at = np.searchsorted(reached, np.arange(1, n_bins) / n_bins * (1 - 1e-12))
    return np.unique(values[at])


def smooth_calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    n_draws: int = N_SMOOTH_DRAWS,
    random_state: RandomState = None,
) -> Estimate:
    """Calibration error of kernel-smoothed residuals, with the bandwidth that equals the error (smECE).

    Lower is better; it changes continuously with the scores, unlike a binned error, and it is positive for
    a calibrated model on a sample: compare with ``details["noise_floor"]`` and ``null_high``.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels, or soft labels in [0, 1].
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class; with K > 2 those of the top label.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    classes : sequence of K labels, optional
        The label of every column.
    confidence : float
        Level of the interval.
    n_draws : int
        Draws of the null law.
    random_state : int, Generator or None
        Source of those draws.

    Returns
    -------
    Estimate
        The bandwidth is the value itself.

    Raises
    ------
    InputError
        As `calibration_error`.

    Notes
    -----
    smECE_s = integral over t of |mean of K_s(t, f) (y - f)|, K_s the Gaussian kernel reflected at 0 and 1;
    the error is the s with smECE_s = s. Residuals are put on 8192 cells; a reflected Gaussian is a
    multiplication by exp(-(pi k s)^2 / 2) of their cosine transform, so one bandwidth costs two fast
    transforms. The grid moves scores by at most 1/16384.

    Interval: from 0 to a guaranteed upper end for the population's error s of a model fixed beforehand. s is
    a mean of (y - f) times a smoothed sign; smECE_s of the sample is at least what the sample says about it,
    and falls in s, so that s exceeds the sample's error by at most the deviation of one mean. A lower end
    would need all bandwidths at once, and none is known that is not 0.

    References
    ----------
    Blasiok and Nakkiran (2024), Smooth ECE: principled reliability diagrams via kernel smoothing, ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import smooth_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(1000)
    >>> error = smooth_calibration_error(rng.random(1000) < f**2, f, random_state=0)
    >>> round(error.value, 3), error.p_value
    (0.15, 0.005)
    """
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    ).to_host()
    draws, level = check_count(n_draws, name="n_draws"), check_confidence(confidence)
    return _over(rows, BinState(_NO_EDGES, True, draws, random_state, confidence=level))


def binned_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Sums over bins of equal width; bins of equal mass need the rows."""
    known = ("n_bins", "strategy", "confidence", "n_draws", "random_state")
    chosen = known_options(entry, options, known)
    if chosen.get("strategy", "uniform") != "uniform":
        return GatherState(entry.function, entry.inputs, chosen, weighted=True)
    edges = _uniform_edges(check_count(chosen.get("n_bins", N_BINS), name="n_bins"))
    draws = check_count(chosen.get("n_draws", N_DRAWS), name="n_draws")
    return BinState(edges, False, draws, chosen.get("random_state"), confidence=chosen["confidence"])


def smooth_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Sums over fine cells of the score."""
    chosen = known_options(entry, options, ("confidence", "n_draws", "random_state"))
    draws = check_count(chosen.get("n_draws", N_SMOOTH_DRAWS), name="n_draws")
    return BinState(_NO_EDGES, True, draws, chosen.get("random_state"), confidence=chosen["confidence"])
