"""Adaptive conformal inference: the level follows the misses of rows that come in the order of time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from calipers.arrays import as_numpy
from calipers.conformal.weighted import stack_rows
from calipers.exceptions import InputError, InputTypeError, SmallSampleWarning
from calipers.inputs import check_alpha, check_count, check_same_length, exact_level

# Rows over which several steps compete; the weights of the experts are tuned to intervals so long.
_LOCAL_ROWS = 500


class AdaptiveConformal(BaseEstimator):
    """Keep the coverage of a predictor at ``1 - alpha`` along time, whatever the rows do.

    After every outcome the level moves: down after a miss, so that the next statements are wider, and up
    after a hit (adaptive conformal inference [1]_). Several steps compete when several are given [2]_.

    Parameters
    ----------
    predictor : ConformalRegressor or ConformalClassifier
        Fitted and conformalised; it is conformalised again in place when there is a ``window``.
    alpha : float
        Allowed miscoverage.
    step : float or sequence of floats
        How far one outcome moves the level. Large follows fast drift, small states steadier sets. With
        several, levels of all of them are averaged by how well they did lately.
    window : int, optional
        Conformalise again on the last so many rows as outcomes arrive; by default the scores stay.

    Attributes
    ----------
    level_ : float
        The level of the next statement. At or below 0 everything is stated, at or above 1 as little as
        possible.
    levels_ : list of float
        The level of every row so far.
    covered_ : list of bool
        Whether each row was covered.

    Notes
    -----
    Guarantee for one step, for every sequence of rows, without exchangeability: over T rows, the share of
    misses differs from alpha by at most ``(max(alpha, 1 - alpha) + step) / (step T)``. Several steps have it
    up to the weights' changes. It is about the average over time, not about single rows or groups, so audit
    with ``time``. Outcomes that come late are given to `update` when they come.

    References
    ----------
    .. [1] Gibbs, Candès (2021), Adaptive conformal inference under distribution shift. NeurIPS.
    .. [2] Gibbs, Candès (2024), Conformal inference for online prediction with arbitrary distribution
       shifts. JMLR.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal import AdaptiveConformal, ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1)); y = X[:, 0] + rng.normal(size=2000) * np.linspace(1, 3, 2000)
    >>> predictor = ConformalRegressor().fit(X[:200], y[:200]).conformalize(X[200:500], y[200:500])
    >>> adaptive = AdaptiveConformal(predictor, alpha=0.1, step=0.05)
    >>> intervals = adaptive.run(X[500:], y[500:])
    >>> bool(abs(np.mean(adaptive.covered_) - 0.9) < 0.02)     # guaranteed: within 0.95 / (0.05 * 1500)
    True
    """

    def __init__(
        self,
        predictor: Any,
        *,
        alpha: float = 0.1,
        step: float | Sequence[float] = 0.01,
        window: int | None = None,
    ) -> None:
        self.predictor = predictor
        self.alpha = alpha
        self.step = step
        self.window = window

    def start(self) -> Self:
        """Forget what was seen and begin at ``alpha``.

        Returns
        -------
        self
        """
        check_alpha(self.alpha)
        if not hasattr(self.predictor, "predict_p"):
            raise InputTypeError(
                "predictor must be a conformalised ConformalRegressor or ConformalClassifier, "
                f"got {type(self.predictor).__name__}."
            )
        check_is_fitted(self.predictor)
        steps = np.atleast_1d(np.asarray(self.step, dtype=float))
        if not (steps.size and np.all((steps > 0) & (steps < 1))):
            raise InputError(f"step must lie strictly between 0 and 1, got {self.step}.")
        if self.window is not None:
            check_count(self.window, name="window", minimum=2)
        self._steps = steps
        self._levels = np.full(len(steps), float(self.alpha))
        self._weights = np.full(len(steps), 1.0 / len(steps))
        self._recent: tuple[Any, np.ndarray] | None = None
        self.levels_: list[float] = []
        self.covered_: list[bool] = []
        self.level_ = float(self.alpha)
        return self

    @property
    def is_regression(self) -> bool:
        """Whether the predictor states intervals."""
        return hasattr(self.predictor, "predict_interval")

    def predict_interval(self, X: Any) -> np.ndarray:
        """Intervals at the level of now.

        Parameters
        ----------
        X : table
            Rows of features.

        Returns
        -------
        array (n, 2)
        """
        level = self._started().level_
        n = _num_samples(X)
        if level <= 0:
            return np.tile([-np.inf, np.inf], (n, 1))
        if level >= 1:  # as little as an interval can hold: one point
            return np.repeat(as_numpy(self.predictor.predict(X)).astype(float)[:, None], 2, axis=1)
        with _few_rows_expected():
            return np.asarray(self.predictor.predict_interval(X, alpha=level))

    def predict_set(self, X: Any) -> np.ndarray:
        """Sets at the level of now.

        Parameters
        ----------
        X : table
            Rows of features.

        Returns
        -------
        bool array (n, K)
        """
        level = self._started().level_
        if 0 < level < 1:
            with _few_rows_expected():
                return np.asarray(as_numpy(self.predictor.predict_set(X, alpha=level)))
        return np.full((_num_samples(X), len(self.predictor.classes_)), level <= 0)

    def update(self, X: Any, y: Any) -> Self:
        """Move the level by what happened to rows that were stated at the level of now.

        Parameters
        ----------
        X : table
            Rows of features, in the order of time.
        y : array (n,)
            What happened.

        Returns
        -------
        self
        """
        self._started()
        beta = self._p_values(X, y)
        # Statements read a level as the fraction it stands for; misses must, too.
        exact = float(exact_level(self.level_)) if 0 < self.level_ < 1 else self.level_
        for own in beta:
            self.levels_.append(self.level_)
            self.covered_.append(bool(own > exact or exact <= 0))
            self._learn(float(own))
        self.level_ = float(self._weights @ self._levels)
        if self.window is not None:
            self._recalibrate(X, y)
        return self

    def run(self, X: Any, y: Any, *, batch: int = 1) -> np.ndarray:
        """State every row before its outcome is known, then learn from it, in the order of the rows.

        Parameters
        ----------
        X : table
            Rows of features, in the order of time.
        y : array (n,)
            What happened.
        batch : int
            Outcomes become known after so many rows.

        Returns
        -------
        array
            Intervals (n, 2) or sets (n, K), to be audited: ``calipers.audit(y, intervals=..., time=...)``.
        """
        check_count(batch, name="batch")
        n = check_same_length(y=as_numpy(y, name="y"), X=np.empty(_num_samples(X)))
        self.start()
        state = self.predict_interval if self.is_regression else self.predict_set
        labels, out = as_numpy(y, name="y"), []
        for first in range(0, n, batch):
            rows = np.arange(first, min(first + batch, n))
            part = _safe_indexing(X, rows)
            out.append(state(part))
            self.update(part, labels[rows])
        return np.concatenate(out)

    def _started(self) -> Self:
        return self if hasattr(self, "levels_") else self.start()

    def _p_values(self, X: Any, y: Any) -> np.ndarray:
        """The p-value of every outcome: the largest level at which it is missed."""
        if self.is_regression:
            return np.asarray(as_numpy(self.predictor.predict_p(X, y)), dtype=float)
        codes = np.searchsorted(self.predictor.classes_, as_numpy(y, name="y"))
        return np.asarray(as_numpy(self.predictor.predict_p(X)))[np.arange(len(codes)), codes]

    def _learn(self, beta: float) -> None:
        """One outcome: every expert moves its level, and is weighted by its pinball loss."""
        missed = np.array([not self.covered_[-1]]) if len(self._steps) == 1 else self._missed(beta)
        if len(self._steps) > 1:
            away = beta - self._levels
            loss = self.alpha * away - np.minimum(0.0, away)
            weights = self._weights * np.exp(-self._rate() * loss)
            share = 1 / (2 * _LOCAL_ROWS)
            self._weights = (1 - share) * weights / weights.sum() + share / len(weights)
        self._levels = self._levels + self._steps * (self.alpha - missed)

    def _missed(self, beta: float) -> np.ndarray:
        """Whether each expert's own level would have missed the outcome."""
        return (beta <= self._levels) & (self._levels > 0)

    def _rate(self) -> float:
        """Learning rate of the experts, eq. (5) of the second paper."""
        a, k = float(self.alpha), len(self._steps)
        spread = (1 - a) ** 2 * a**3 + a**2 * (1 - a) ** 3
        return math.sqrt(3 / _LOCAL_ROWS * (math.log(2 * k * _LOCAL_ROWS) + 1) / spread)

    def _recalibrate(self, X: Any, y: Any) -> None:
        labels = as_numpy(y, name="y")
        if self._recent is not None:
            X, labels = stack_rows(self._recent[0], X), np.concatenate([self._recent[1], labels])
        n = _num_samples(X)
        kept = np.arange(max(0, n - (self.window or n)), n)
        self._recent = _safe_indexing(X, kept), labels[kept]
        if n >= (self.window or 0):
            self.predictor.conformalize(*self._recent)


@contextmanager
def _few_rows_expected() -> Iterator[None]:
    """A level near 0 states everything on purpose: no warning that rows are too few for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        yield
