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
    tune: Callable[[Any, Any, Any], float],
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
    tune : callable
        ``tune(y, prediction, X)`` of the tuning rows gives the reading: T-SS, mean size, any metric. NaN
        loses.
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

    Examples
    --------
    >>> from functools import partial
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> from calipers.conformal import ConformalClassifier, raps, tune_predictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FrozenEstimator(LogisticRegression().fit(X[::2], y[::2]))
    >>> grid = {p: ConformalClassifier(model, nonconformity=partial(raps, penalty=p)) for p in (0.01, 0.5)}
    >>> def smaller(y, sets, X):
    ...     return -sets.sum()
    >>> tune_predictor(grid, X[1::2], y[1::2], tune=smaller, random_state=0).name
    0.01
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
    parts = [(_safe_indexing(X, rows), _safe_indexing(y, rows)) for rows in (calibrating, tuning)]
    readings = {}
    for name, predictor in candidates.items():
        predictor.conformalize(*parts[0])
        predict = predictor.predict_set if hasattr(predictor, "predict_set") else predictor.predict_interval
        readings[name] = float(tune(parts[1][1], predict(parts[1][0], alpha=alpha), parts[1][0]))
    known = {name: value for name, value in readings.items() if not np.isnan(value)}
    if not known:
        raise InputError("tune gave NaN for every candidate; choose another measure or other candidates.")
    best = (max if higher_is_better else min)(known, key=lambda name: known[name])
    return TunedPredictor(best, candidates[best], readings)
