"""Choosing between predictors on rows of their own, by any measure of their sets or intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from calipers.arrays import RandomState, generator, short_repr
from calipers.exceptions import InputError
from calipers.inputs import check_fraction


@dataclass(frozen=True, slots=True, eq=False)
class TunedPredictor:
    """The predictor that read best on the tuning rows, conformalised on the others.

    Parameters
    ----------
    name : str
        Its name among the candidates.
    predictor : ConformalClassifier or ConformalRegressor
        Ready to predict.
    readings : dict
        What every candidate read on the tuning rows.
    """

    name: str
    predictor: Any
    readings: dict[str, float]

    __repr__ = short_repr


def tune_predictor(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    tune: str | Callable[[Any, Any, Any], float],
    tune_options: Mapping[str, Any] | None = None,
    alpha: Any = 0.1,
    tune_size: float = 0.5,
    higher_is_better: bool = True,
    random_state: RandomState = None,
) -> TunedPredictor:
    """Conformalise every candidate on one part of the rows and keep the best on the other part.

    Parameters
    ----------
    candidates : mapping of name to predictor
        `ConformalClassifier` or `ConformalRegressor` with fitted models, for instance one per number of
        difficulty bins, transformation, RAPS penalty or SAPS weight.
    X : table
        Rows the models were not trained on.
    y : array of shape (n,)
        Their outcomes.
    tune : "t_ss" or callable
        "t_ss": T-SS of the sets or intervals (eq. 4 of [1]_), over at most 50 bins, of at least 20 rows each,
        of the ease of the tuning rows under the candidate's model. A callable ``tune(y, prediction, X)`` of
        the tuning rows gives any other reading. NaN loses.
    tune_options : mapping, optional
        With "t_ss": ``n_bins``, and options of `calipers.difficulty.ease` (``transform``, ``scale``, ...).
    alpha : float, Fraction or Decimal
        Level of the sets or intervals.
    tune_size : float
        Share of the rows on which candidates are compared; they take no part in any threshold.
    higher_is_better : bool
        Direction of the reading.
    random_state : int, Generator or None
        Source of the split.

    Returns
    -------
    TunedPredictor

    Raises
    ------
    InputError
        Without candidates, or when every reading is NaN.

    Notes
    -----
    The choice looks at the tuning rows only, so the chosen predictor keeps its guarantee: its thresholds come
    from rows that had no say.

    References
    ----------
    .. [1] Jang and Lee (2025), Quantifying and improving adaptivity in conformal prediction through input
       transformations.

    Examples
    --------
    >>> from functools import partial
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> from calipers.conformal import ConformalClassifier, raps, tune_predictor
    >>> X, y = make_classification(1000, n_classes=4, n_informative=4, random_state=0)
    >>> model = FrozenEstimator(LogisticRegression().fit(X[::2], y[::2]))
    >>> grid = {p: ConformalClassifier(model, nonconformity=partial(raps, penalty=p)) for p in (0.01, 0.5)}
    >>> by_size = tune_predictor(grid, X[1::2], y[1::2], tune=lambda y, sets, X: -sets.sum(), random_state=0)
    >>> by_size.name, tune_predictor(grid, X[1::2], y[1::2], tune="t_ss", random_state=0).name
    (0.5, 0.01)
    """
    if not candidates:
        raise InputError("candidates must hold at least one predictor, got none.")
    n = _num_samples(X)
    share = check_fraction(
        tune_size, name="tune_size", meaning="It is the share of rows on which candidates are compared"
    )
    order = generator(random_state).permutation(n)
    cut = round(share * n)
    if not 0 < cut < n:
        raise InputError(f"tune_size={share} of {n} rows leaves no row for one of the two parts.")
    tuning, calibrating = np.sort(order[:cut]), np.sort(order[cut:])
    read = _reading(tune, tune_options, random_state)
    parts = [(_safe_indexing(X, rows), _safe_indexing(y, rows)) for rows in (calibrating, tuning)]
    readings = {}
    for name, predictor in candidates.items():
        predictor.conformalize(*parts[0])
        predict = predictor.predict_set if hasattr(predictor, "predict_set") else predictor.predict_interval
        readings[name] = read(predictor, parts[1][1], predict(parts[1][0], alpha=alpha), parts[1][0])
    known = {name: value for name, value in readings.items() if not np.isnan(value)}
    if not known:
        raise InputError("tune gave NaN for every candidate; choose another measure or other candidates.")
    best = (max if higher_is_better else min)(known, key=lambda name: known[name])
    return TunedPredictor(best, candidates[best], readings)


def _reading(
    tune: Any, options: Mapping[str, Any] | None, random_state: RandomState
) -> Callable[[Any, Any, Any, Any], float]:
    """What a candidate reads on the tuning rows: of (predictor, y, prediction, X)."""
    if tune == "t_ss":
        # The measure is defined in a package above this one, hence the late import.
        from calipers.metrics.adaptivity.tuning import SizeAdaptivity

        return SizeAdaptivity(dict(options or {}), random_state)
    if not callable(tune):
        raise InputError(f'tune must be "t_ss" or a function of (y, prediction, X), got {tune!r}.')
    if options is not None:
        raise InputError('tune_options belong to tune="t_ss".')
    return lambda predictor, y, prediction, X: float(tune(y, prediction, X))
