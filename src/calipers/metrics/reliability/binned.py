"""Binned and smoothed calibration errors, for habit, with their bias shown.

Both average |stated - observed| over regions of scores. That is never 0 on a sample, not even for a perfect
model, and depends on bins or bandwidth; the null law beside them says how much of a reading is noise. Neither
estimates the l1 distance between f and P(Y = 1 | X): no sample can bound that (Theorem 1 of Gao,
Parameswaran and Peng 2017). For a number with a guarantee use `calibration_error`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft, optimize

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference import SimulatedLaw
from calipers.inputs import check_count
from calipers.metrics.reliability.calibration_test import (
    MAX_COINS,
    N_DRAWS,
    NULL_LEVEL,
    n_coins,
    simulated_hits,
)
from calipers.metrics.reliability.isotonic import pooled_scores
from calipers.metrics.reliability.levels import ScoreLevels, score_levels
from calipers.metrics.reliability.multiclass import check_reliability_rows
from calipers.metrics.reliability.rows import BinaryRows
from calipers.results import Estimate

# Cells of the grid on which residuals are smoothed; the error of the grid is below one cell.
CELLS = 1 << 13
_NO_INTERVAL = "absolute values of noise add up, so no valid interval or standard error is known"


def expected_calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
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
        Weights; a weight of 2 counts as two equal rows.
    classes : sequence of K labels, optional
        The label of every column.
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
    The value changes with the bins and can be 0 for a model that is badly calibrated inside every bin.
    Null: outcomes redrawn as coins with the stated probabilities; beyond 1e8 coins the bin sums are drawn
    from their normal limits. Cost: one pass, and O(levels) per draw.

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
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    ).to_host()
    if strategy not in ("uniform", "quantile"):
        raise InputError(f'strategy must be "uniform" or "quantile", got {strategy!r}.')
    bins = check_count(n_bins, name="n_bins")
    edges = _quantile_edges(rows, bins) if strategy == "quantile" else np.arange(1, bins) / bins
    mass, stated, happened = bin_sums(rows, edges)
    total = float(mass.sum())
    value = float(np.abs(happened - stated).sum()) / total
    draws, how = _binned_draws(rows, edges, check_count(n_draws, name="n_draws"), generator(random_state))
    with np.errstate(invalid="ignore"):
        per_bin = {"mass": mass, "mean_score": stated / mass, "frequency": happened / mass}
    return with_null(
        "expected_calibration_error", value, total, draws, f"{bins} {strategy} bins{how}",
        {key: column.tolist() for key, column in per_bin.items()} | {"edges": edges.tolist()},
    )  # fmt: skip


def bin_sums(rows: BinaryRows, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight, weighted scores and weighted outcomes per bin; inner edges belong to the bin below."""
    sums = np.zeros((3, edges.size + 1))
    for f, y, w in rows.blocks():
        # side="left": a score equal to an edge falls below it.
        index = np.searchsorted(edges, f, side="left")
        for row, weights in enumerate((w, f if w is None else w * f, y if w is None else w * y)):
            sums[row] += np.bincount(index, weights, minlength=edges.size + 1)
    return sums[0], sums[1], sums[2]


def _quantile_edges(rows: BinaryRows, n_bins: int) -> np.ndarray:
    values, mass, _ = pooled_scores(rows)
    reached = np.cumsum(mass) / mass.sum()
    at = np.searchsorted(reached, np.arange(1, n_bins) / n_bins * (1 - 1e-12))
    return np.unique(values[at])


def _binned_draws(
    rows: BinaryRows, edges: np.ndarray, n_draws: int, rng: np.random.Generator
) -> tuple[np.ndarray | None, str]:
    """Draws of the error under calibration, and how they were made; None for soft labels."""
    if rows.soft:
        return None, ""
    levels = score_levels(rows)
    index = np.searchsorted(edges, levels.values, side="left")
    if n_coins(levels, n_draws) > MAX_COINS:
        spread = np.sqrt(np.bincount(index, levels.variances))
        return np.abs(rng.normal(size=(n_draws, spread.size)) * spread).sum(axis=1), ", normal bin sums"
    first = np.flatnonzero(np.append(True, index[1:] != index[:-1]))
    expected = np.add.reduceat(levels.expected, first)
    draws = [
        np.abs(np.add.reduceat(hits * levels.unit_weights, first, axis=1) - expected).sum(axis=1)
        for hits in simulated_hits(levels, n_draws, rng)
    ]
    return np.concatenate(draws), f", exact Monte Carlo by score level, {n_draws} draws"


def with_null(
    name: str, value: float, total: float, draws: np.ndarray | None, method: str, details: dict[str, Any]
) -> Estimate:
    """The estimate, with the null of ``draws`` (sums, not divided by the total weight) if there is one."""
    shared: dict[str, Any] = {
        "name": name,
        "value": value,
        "n": int(total) if total == int(total) else total,
        "method": method,
    }
    if draws is None:
        reason = f"{_NO_INTERVAL}; soft labels have no Bernoulli law, so there is no null"
        return Estimate(**shared, reason=reason, details=details)
    law = SimulatedLaw(draws / total)
    noise = {"noise_floor": law.mean, "above_noise": max(0.0, value - law.mean)}
    fields = law.estimate_fields(value, level=NULL_LEVEL)
    return Estimate(**shared, **fields, reason=_NO_INTERVAL, details=noise | details)


def smooth_calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    n_draws: int = 199,
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
        Weights; a weight of 2 counts as two equal rows.
    classes : sequence of K labels, optional
        The label of every column.
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
    values, mass, sums = pooled_scores(rows)
    cells = np.minimum((values * CELLS).astype(int), CELLS - 1)
    total = float(mass.sum())
    value = smooth_error(np.bincount(cells, sums - mass * values, minlength=CELLS) / total)
    draws = _smooth_draws(rows, check_count(n_draws, name="n_draws"), generator(random_state))
    method = f"reflected Gaussian kernel on {CELLS} cells, bandwidth equal to the error"
    return with_null("smooth_calibration_error", value, total, draws, method, {"bandwidth": value})


def smooth_error(residuals: np.ndarray) -> float:
    """The bandwidth at which the smoothed residuals on equal cells of [0, 1] have that l1 norm."""
    spectrum = fft.dct(residuals, type=2)
    frequencies = (np.pi * np.arange(residuals.size)) ** 2 / 2

    def excess(bandwidth: float) -> float:
        smoothed = fft.idct(spectrum * np.exp(-frequencies * bandwidth**2), type=2)
        return float(np.abs(smoothed).sum()) - bandwidth

    if excess(1e-6) <= 0:
        return 0.0
    return float(optimize.brentq(excess, 1e-6, 1.0, xtol=1e-10))


def _smooth_draws(rows: BinaryRows, n_draws: int, rng: np.random.Generator) -> np.ndarray | None:
    """Draws of total weight times the error; by cell, whose sums are what smoothing sees."""
    if rows.soft:
        return None
    levels: ScoreLevels = score_levels(rows)
    total = levels.total
    cells = np.minimum((levels.values * CELLS).astype(int), CELLS - 1)
    weights = levels.unit_weights
    expected = np.bincount(cells, levels.expected, minlength=CELLS)
    if n_coins(levels, n_draws) > MAX_COINS:
        spread = np.sqrt(np.bincount(cells, levels.variances, minlength=CELLS))
        noise = (rng.normal(size=CELLS) * spread for _ in range(n_draws))
        return total * np.array([smooth_error(part / total) for part in noise])
    sums = (
        np.bincount(cells, hits * weights, minlength=CELLS) - expected
        for batch in simulated_hits(levels, n_draws, rng)
        for hits in batch
    )
    return total * np.array([smooth_error(part / total) for part in sums])
