"""Scores and losses of single rows: the one definition of each, for every command, metric and state.

Every function gives one number per row, in float64; lower is better. They work where the arrays lie
(numpy, torch, CuPy, JAX) and check nothing: rows come checked from `calipers.inputs`.

The **Brier score** is that of scikit-learn (``brier_score_loss`` with ``scale_by_half="auto"``): with two
classes the squared error of the positive class, in [0, 1]; with three or more the sum of the squared
errors of all classes, in [0, 2].

The **log loss** counts no probability below `LOG_LOSS_FLOOR`, the rounding unit of float64 and the floor
that scikit-learn takes for float64. An outcome stated with probability 0 therefore costs 36.04 and not
infinity; `with_floored_rows` says in an estimate how many rows did.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from calipers.arrays import Array, namespace, pick_columns
from calipers.results import Estimate

# One floor for every type of float: the score of a file must not depend on the type it was stored in.
LOG_LOSS_FLOOR = float(np.finfo(np.float64).eps)
LARGEST_LOG_LOSS = -math.log(LOG_LOSS_FLOOR)


def stated_probability(probabilities: Array, codes: Array) -> Array:
    """What each row stated for the label that happened.

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Stated probabilities.
    codes : integer array of shape (n,)
        Column of the label that happened.

    Returns
    -------
    array of shape (n,)
        In float64.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.row_scores import stated_probability
    >>> stated_probability(np.array([[0.1, 0.9], [0.7, 0.3]]), np.array([1, 1]))
    array([0.9, 0.3])
    """
    xp = namespace(probabilities)
    return xp.astype(pick_columns(probabilities, codes), xp.float64)


def brier_rows(probabilities: Array, stated: Array) -> Array:
    """Brier score of each row.

    Parameters
    ----------
    probabilities : array of shape (n, K)
        Stated probabilities.
    stated : array of shape (n,)
        Those of the labels that happened (`stated_probability`), in float64; 0 for a label without a column.

    Returns
    -------
    array of shape (n,)
        ``sum_k (p_k - 1[k happened])^2``, times `brier_scale`.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.row_scores import brier_rows, stated_probability
    >>> two, three = np.array([[0.25, 0.75]]), np.array([[0.25, 0.75, 0.0]])
    >>> [float(brier_rows(P, stated_probability(P, np.array([0])))[0]) for P in (two, three)]
    [0.5625, 1.125]
    """
    xp = namespace(probabilities)
    if isinstance(probabilities, np.ndarray):
        squares = np.einsum("ij,ij->i", probabilities, probabilities, dtype=np.float64)
    else:
        squares = xp.sum(xp.astype(probabilities, xp.float64) ** 2, axis=1)
    # sum_k (p_k - 1[k happened])^2 = sum_k p_k^2 + 1 - 2 p_happened; rounding must not make it negative.
    errors = xp.clip(squares + (1.0 - 2.0 * stated), min=0.0)
    return brier_scale(int(probabilities.shape[1])) * errors


def brier_scale(n_classes: int) -> float:
    """What the sum of squared errors over the classes is multiplied with: one half below three, else one."""
    return 0.5 if n_classes < 3 else 1.0


def event_brier_rows(probability: Array, outcome: Array) -> Array:
    """Brier score of each row for one event: ``(p - y)^2``, with y in {0, 1}, or in [0, 1] for soft labels.

    With two classes it equals `brier_rows`.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.row_scores import event_brier_rows
    >>> event_brier_rows(np.array([0.75, 0.75]), np.array([False, True]))
    array([0.5625, 0.0625])
    """
    xp = namespace(probability)
    return squared_error_rows(xp.astype(outcome, xp.float64), xp.astype(probability, xp.float64))


def log_loss_rows(stated: Array, *, floor: float = LOG_LOSS_FLOOR) -> Array:
    """Minus the logarithm of what each row stated for the label that happened.

    Parameters
    ----------
    stated : array of shape (n,)
        Probabilities (`stated_probability`).
    floor : float
        Smallest probability counted.

    Returns
    -------
    array of shape (n,)
        From 0 to ``-log(floor)``, never infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.row_scores import log_loss_rows
    >>> log_loss_rows(np.array([1.0, 0.5, 0.0])).round(4)
    array([ 0.    ,  0.6931, 36.0437])
    """
    xp = namespace(stated)
    counted = xp.clip(xp.astype(stated, xp.float64, copy=False), min=floor, max=1.0)
    return 0.0 - xp.log(counted)


def with_floored_rows(estimate: Estimate, n_floored: float) -> Estimate:
    """The estimate of a mean log loss that says how many rows were counted at the floor.

    Parameters
    ----------
    estimate : Estimate
        Mean of `log_loss_rows`.
    n_floored : float
        Rows (or their weight) at the floor, see `is_at_floor`.

    Returns
    -------
    Estimate
        With ``details["floored_rows"]``, and the number in ``reason`` when it is not 0.

    Examples
    --------
    >>> from calipers.metrics.row_scores import with_floored_rows
    >>> from calipers.results import Estimate
    >>> print(with_floored_rows(Estimate(name="log loss", value=0.41), 2))
    log loss 0.4100; 2 rows gave what happened a probability of at most 2.2e-16; each counts 36.04 instead of
    its larger, possibly infinite, log loss
    """
    found = int(n_floored) if float(n_floored).is_integer() else float(n_floored)
    if found:
        rows = "1 row" if found == 1 else f"{found:.6g} rows"
        note = (
            f"{rows} gave what happened a probability of at most {LOG_LOSS_FLOOR:.2g}; each counts "
            f"{LARGEST_LOG_LOSS:.2f} instead of its larger, possibly infinite, log loss"
        )
        estimate = replace(estimate, reason="; ".join(part for part in (estimate.reason, note) if part))
    return replace(estimate, details={**estimate.details, "floored_rows": found})


def is_at_floor(losses: Array) -> Array:
    """Which rows of `log_loss_rows` are at the floor; logarithms of different libraries differ by an ulp."""
    return losses > LARGEST_LOG_LOSS - 1e-9


def pinball_rows(y: Array, quantile: Array, level: float) -> Array:
    """Loss of a predicted quantile: ``level`` times a shortfall, ``1 - level`` times an excess.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.row_scores import pinball_rows
    >>> pinball_rows(np.array([3.0, 1.0]), np.array([2.0, 2.0]), 0.9).round(2)
    array([0.9, 0.1])
    """
    error = y - quantile
    return namespace(error).maximum(level * error, (level - 1.0) * error)


def interval_score_rows(y: Array, lower: Array, upper: Array, alpha: float) -> Array:
    """Winkler's interval score: the width, and 2/alpha times the distance of an outcome outside.

    Its mean is smallest for the alpha/2 and 1 - alpha/2 quantiles of the outcome.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.row_scores import interval_score_rows
    >>> interval_score_rows(np.array([0.0, 3.0]), np.array([-1.0, -1.0]), np.array([1.0, 1.0]), 0.1)
    array([ 2., 42.])
    """
    xp = namespace(lower)
    outside = xp.clip(xp.maximum(lower - y, y - upper), min=0.0)
    return upper - lower + 2.0 / alpha * outside


def zero_one_rows(y: Array, predicted: Array) -> Array:
    """1.0 for a wrong label, 0.0 for the right one; with several outputs (n, m), 1.0 when one is wrong."""
    wrong = y != predicted
    xp = namespace(wrong)
    return xp.astype(xp.any(wrong, axis=1) if wrong.ndim == 2 else wrong, xp.float64)


def absolute_error_rows(y: Array, predicted: Array) -> Array:
    """``|y - predicted|``; summed over several outputs (n, m)."""
    return _over_outputs(namespace(predicted).abs(y - predicted))


def squared_error_rows(y: Array, predicted: Array) -> Array:
    """``(y - predicted)^2``; summed over several outputs (n, m)."""
    return _over_outputs((y - predicted) ** 2)


def _over_outputs(errors: Array) -> Array:
    return namespace(errors).sum(errors, axis=1) if errors.ndim == 2 else errors
