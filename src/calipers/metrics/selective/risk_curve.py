"""Mean loss of the rows kept against how many are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.inputs import check_confidence
from calipers.metrics.selective.bounded_tests import upper_bounds
from calipers.metrics.selective.kept_rows import KeptRows, best_order, check_kept_rows
from calipers.results import Curve

# Points of the curve: so many equal steps, and halves of the first one.
_STEPS = 80
# Up to this many distinct certainties each is a point.
_MOST_POINTS = 100


def selective_risk(
    loss: Any, certainty: Any, *, confidence: float = 0.95, loss_range: tuple[float, float] = (0, 1)
) -> Curve:
    """Mean loss of the rows with the largest certainty, against the share of rows kept.

    The curve of a model that stays silent where it is unsure. A certainty that knows what is hard makes it
    fall steeply towards small shares; one that knows nothing leaves it flat at the mean loss.

    Parameters
    ----------
    loss : array of shape (n,)
        Loss of every row, for instance whether the prediction was wrong.
    certainty : array of shape (n,)
        The larger, the rather a row is kept: the top probability, minus the width of an interval. Rows of
        equal certainty are kept together.
    confidence : float
        Level of the band.
    loss_range : (float, float)
        The smallest and the largest loss there can be; the band needs it.

    Returns
    -------
    Curve
        x: the share kept; y: the mean loss; ``low`` and ``high``: a band that holds the expected loss of new
        rows of that certainty at all points of the curve at once. ``details``: "thresholds" (certainty from
        which rows are kept, per point), "rows", "area" (mean of the curve over all shares, ties averaged
        over their orders), "area_of_best_order" (the same for a certainty that sorts losses perfectly)
        and "mean_loss" (that of one that knows nothing).

    Raises
    ------
    InputError
        For lengths that differ, missing values and losses outside their range.

    Notes
    -----
    Points: every distinct certainty when there are at most 100, otherwise the last one within each eightieth
    of the rows, and within a half, a quarter, ... of the first eightieth. Given the next row, the rows kept
    are independent draws from all that are more certain, so that each point has an exact bound:
    Clopper-Pearson for losses at the two ends of their range, Hoeffding-Bentkus or, where losses vary little,
    empirical Bernstein otherwise. The band
    divides the error among the points and both sides (Bonferroni): it holds for any certainty,
    monotone or not, and is conservative, because neighbouring points share rows. Cost: one sort.

    References
    ----------
    El-Yaniv and Wiener (2010), On the foundations of noise-free selective classification. Geifman and
    El-Yaniv (2017), Selective classification for deep neural networks. Bates, Angelopoulos, Lei, Malik and
    Jordan (2021), Distribution-free, risk-controlling prediction sets.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import selective_risk
    >>> rng = np.random.default_rng(0)
    >>> top = rng.uniform(0.5, 1, 2000)
    >>> curve = selective_risk(rng.random(2000) > top, top)
    >>> half = np.searchsorted(curve.x, 0.5)
    >>> f"{curve.y[half]:.3f} [{curve.low[half]:.3f}, {curve.high[half]:.3f}] of {curve.y[-1]:.3f}"
    '0.132 [0.098, 0.172] of 0.247'
    """
    kept = check_kept_rows(loss, certainty, loss_range)
    level = check_confidence(confidence)
    at = curve_points(kept)
    rows, sums = kept.rows[at], kept.sums(at)
    error = (1.0 - level) / (2 * len(at))
    high, low = upper_bounds(sums, error), 1.0 - upper_bounds(sums.opposite(), error)
    return Curve(
        name="selective risk",
        x=rows / kept.n,
        y=kept.in_units(sums.loss / rows),
        low=kept.in_units(np.maximum(low, 0.0)),
        high=kept.in_units(np.minimum(high, 1.0)),
        confidence=level,
        x_label="share of rows kept",
        y_label="mean loss of the rows kept",
        method=f"mean loss of the most certain rows; band over {len(at)} points ({sums.method}, Bonferroni)",
        details={
            "thresholds": kept.certainty[at],
            "rows": rows,
            "area": float(kept.in_units(kept.area())),
            "area_of_best_order": float(kept.in_units(best_order(loss, kept).area())),
            "mean_loss": float(kept.in_units(kept.means[-1])),
        },
    )


def curve_points(kept: KeptRows) -> np.ndarray:
    """Numbers of the blocks that are points of the curve, rising; all rows are the last."""
    if len(kept.rows) <= _MOST_POINTS:
        return np.arange(len(kept.rows))
    steps = np.floor(kept.n * np.arange(1, _STEPS + 1) / _STEPS)
    halves = kept.n / _STEPS / 2.0 ** np.arange(1, 64)
    at = np.unique(kept.last_within(np.concatenate([halves[halves >= 1], steps])))
    return np.asarray(at[at >= 0])
