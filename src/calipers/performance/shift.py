"""Covariate shift: the new rows come from another distribution of inputs, with known weights.

If a row's law changes by the likelihood ratio w(z), the calibration losses count with their weights and
the new row with its own (weighted exchangeability). For an algorithm this shifts the evaluation rows
only: the training sample stays as it was.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.conformal.weighted import weighted_quantiles
from calipers.exceptions import InputError
from calipers.inputs import (
    Features,
    align_features,
    check_count,
    check_features,
    check_vector,
    check_weights,
    exact_level,
)
from calipers.inputs.option_checks import check_choice
from calipers.performance.guarantee import Side
from calipers.performance.indicator_table import indicator_table


def shifted_intervals(
    losses: Any, weights: Any, new_weights: Any, alpha: Any, *, side: Side = "two-sided"
) -> np.ndarray:
    """Intervals for the losses of rows from a shifted distribution.

    Parameters
    ----------
    losses : array of shape (n,)
        Calibration losses.
    weights : array of shape (n,)
        Likelihood ratio (new over old distribution) at each loss's row, up to a common factor.
    new_weights : array of shape (n_new,)
        The same ratio at each new row.
    alpha : float
        Allowed miscoverage, half of it on each side when two-sided.
    side : {"two-sided", "upper", "lower"}
        Which ends are asked for; the others are infinite.

    Returns
    -------
    array of shape (n_new, 2)
        An end is infinite when the new row's own weight exceeds its share of alpha: such a row is
        unlike anything seen.

    Notes
    -----
    With p_i = w_i / (sum w + w_new) and p_new on the far side, the upper end is the smallest loss whose
    weighted distribution function reaches its level, the lower end its mirror image. Equal weights give
    `conformal_quantile` and the tight rule of `conformal_interval`. Coverage is at least 1 - alpha when
    the weights are the true ratio [1]_; with estimated weights it is approximate. O(n log n + n_new log n).

    References
    ----------
    .. [1] Tibshirani, Barber, Candes and Ramdas (2019), Conformal prediction under covariate shift.

    Examples
    --------
    >>> from calipers.performance import shifted_intervals
    >>> shifted_intervals(range(1, 10), [1.0] * 9, [1.0, 2.0], 0.1, side="upper").tolist()
    [[-inf, 9.0], [-inf, inf]]
    """
    values = np.asarray(as_numpy(check_vector(losses, name="losses", finite=False)), dtype=np.float64)
    mass = check_weights(weights, values.size, name="weights")
    if mass is None:
        raise InputError("weights must be given; without a shift use interval().")
    new = np.asarray(as_numpy(check_vector(new_weights, name="new_weights")), dtype=np.float64)
    if (new < 0).any():
        raise InputError(f"new_weights must not be negative, got {new.min()} at row {int(np.argmin(new))}.")
    check_choice(side, ("two-sided", "upper", "lower"), name="side")
    share = exact_level(alpha) / (2 if side == "two-sided" else 1)
    ends = np.column_stack([np.full(new.size, -np.inf), np.full(new.size, np.inf)])
    if side != "lower":
        ends[:, 1] = _upper_ends(values, mass, new, share)
    if side != "upper":
        ends[:, 0] = -_upper_ends(-values, mass, new, share)
    return ends


def _upper_ends(values: np.ndarray, mass: np.ndarray, new: np.ndarray, share: Fraction) -> np.ndarray:
    order = np.argsort(values, kind="stable")
    return weighted_quantiles(values[order], np.concatenate([[0.0], np.cumsum(mass[order])]), new, share)


def effective_sample_size(weights: Any) -> float:
    """Number of equally weighted losses that carry as much information, (sum w)^2 / sum w^2.

    Parameters
    ----------
    weights : array of shape (n,)
        Non-negative weights, not all zero.

    Returns
    -------
    float
        Between 1 and n.

    Raises
    ------
    InputError
        When a weight is negative, or all are zero.

    Examples
    --------
    >>> from calipers.performance import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 2.0])
    2.6666666666666665
    """
    values = check_vector(weights, name="weights")
    mass = check_weights(values, values.shape[0], name="weights")
    assert mass is not None  # noqa: S101 - for the type checker; only None stays None
    mass = mass / mass.max()  # only proportions count, and squares of tiny weights are lost
    return float(mass.sum() ** 2 / (mass**2).sum())


def estimate_shift_weights(
    X_old: Any, X_new: Any, *, classifier: Any = None, cv: int = 5, random_state: RandomState = None
) -> tuple[np.ndarray, np.ndarray]:
    """Likelihood ratios of new over old rows, estimated by telling the two samples apart.

    Parameters
    ----------
    X_old, X_new : table of features
        Rows of the calibration distribution and of the new one. Columns of dataframes are matched by name,
        those of matrices by position; text columns become one indicator per category.
    classifier : scikit-learn classifier with predict_proba, or None
        None: logistic regression on standardised features.
    cv : int
        Folds; each row's ratio comes from a model that has not seen it.
    random_state : RandomState
        Order of the folds.

    Returns
    -------
    (old, new) : tuple of arrays
        Ratio at each row, p(new | x) / p(old | x) times n_old / n_new.

    Raises
    ------
    InputError
        When the tables differ in their columns, or in the kind of one.

    Notes
    -----
    The intervals made with them hold as far as the classifier's odds are right.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import estimate_shift_weights
    >>> rng = np.random.default_rng(0)
    >>> X_old, X_new = rng.normal(0, 1, (400, 1)), rng.normal(1, 1, (400, 1))
    >>> old, new = estimate_shift_weights(X_old, X_new, random_state=0)
    >>> bool(old.mean() < new.mean())
    True
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    X, y = labelled_sources(X_old, X_new, names=("X_old", "X_new"))
    n_old, cv = int(np.sum(y == 0)), check_count(cv, name="cv", minimum=2)
    if min(n_old, y.size - n_old) < cv:
        raise InputError(
            f"X_old and X_new must have at least {cv} rows each (cv), got {n_old}, {y.size - n_old}."
        )
    seed = int(generator(random_state).integers(2**31 - 1))
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    model = default_classifier() if classifier is None else classifier
    table = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
    odds = table[:, 1] / np.maximum(table[:, 0], np.finfo(float).eps) * n_old / (y.size - n_old)
    return odds[:n_old], odds[n_old:]


def labelled_sources(X_old: Any, X_new: Any, *, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Both tables as one matrix of numbers, and per row whether it is new."""
    old, new = (check_features(X, name=name) for X, name in zip((X_old, X_new), names, strict=True))
    old, new = align_features(old, new, names=names)
    both = Features(np.concatenate([old.values, new.values]), old.names, old.categories)
    return indicator_table(both), np.repeat([0, 1], [len(old), len(new)])


def default_classifier() -> Any:
    """Logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression())
