"""Split-conformal regression: intervals by absolute, normalised or quantile residuals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from calipers.arrays import as_numpy
from calipers.conformal.p_values import CalibrationScores, resolve_tau
from calipers.conformal.pac import pac_rank, smallest_pac_size
from calipers.conformal.ranks import conformal_rank
from calipers.conformal.residuals import (
    absolute_residuals,
    fit_difficulty,
    fit_quantile_models,
    positive_difficulty,
    predict_quantiles,
    quantile_residuals,
)
from calipers.conformal.split_estimator import SplitConformalEstimator
from calipers.conformal.weighted import WeightedScores, calibration_order
from calipers.exceptions import InputError
from calipers.inputs import check_alphas, check_same_length, check_vector, exact_level

_KINDS = ("absolute", "normalized", "quantile")


class ConformalRegressor(RegressorMixin, SplitConformalEstimator):
    """Wrap any regressor and get intervals that cover ``1 - alpha``.

    Parameters
    ----------
    estimator : regressor, optional
        The model; default linear regression (gradient-boosted quantiles for "quantile"). A fitted
        model comes in a ``FrozenEstimator`` and needs no `fit`.
    nonconformity : {"absolute", "normalized", "quantile"}
        ``|y - f(x)|``: intervals of one width. ``|y - f(x)| / s(x)``: widths that follow ``difficulty``.
        ``max(q_low(x) - y, y - q_high(x))`` (conformalised quantile regression): the model's own
        quantiles at alpha/2 and 1 - alpha/2, shifted.
    alpha : float, Fraction or Decimal
        Default level of `predict_interval`; for "quantile" also the level of the quantile models.
    groups : str, int, callable or grouping estimator, optional
        Cover ``1 - alpha`` in every group, as in `ConformalClassifier`.
    guarantee : {"marginal", "pac"}
        Coverage on average over calibration sets, or with probability ``1 - delta`` over them.
    delta : float
        Allowed probability of an unlucky calibration set, for "pac".
    calibration_size : None, float or int
        As in `ConformalClassifier`.
    random_state : None, int or Generator
        Source of the split.
    difficulty : callable or regressor, optional
        For "normalized": a function ``s(X)``, a ``FrozenEstimator``, or a regressor that `fit` trains on
        cross-validated absolute residuals. None: the model's own ``predict(X, return_std=True)`` where it
        has one, else a random forest of residuals.
    likelihood_ratio : callable or object with predict, optional
        Weights for covariate shift, as in `ConformalClassifier`.

    Attributes
    ----------
    estimator_ : the fitted model (for "quantile": a list of the fitted quantile models).
    calibration_ : the calibration scores, sorted within groups.
    n_calibration_ : how many calibration rows there were, which `calipers.audit` takes.

    Notes
    -----
    Both ends belong to the interval. Too few calibration rows give (-inf, inf) and a warning that says
    how many are needed; so does a group without calibration rows. An interval that a negative quantile
    correction would turn inside out collapses to its midpoint. Any alpha may be asked for at predict
    time: coverage holds at every level, only the shape of quantile intervals is tuned to the
    constructor's.

    References
    ----------
    Lei, G'Sell, Rinaldo, Tibshirani, Wasserman (2018), Distribution-free predictive inference for regression.
    Romano, Patterson, Candès (2019), Conformalized quantile regression.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal import ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(400, 1)); y = X[:, 0] + rng.uniform(-1, 1, size=400)
    >>> model = ConformalRegressor().fit(X[:200], y[:200]).conformalize(X[200:], y[200:])
    >>> low, high = model.predict_interval([[0.5]], alpha=0.2)[0]
    >>> bool(-0.5 < low < -0.2 and 1.2 < high < 1.5)     # the truth is -0.3 and 1.3
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        nonconformity: str = "absolute",
        alpha: Any = 0.1,
        groups: Any = None,
        guarantee: str = "marginal",
        delta: float = 0.05,
        calibration_size: Any = None,
        random_state: Any = None,
        difficulty: Any = None,
        likelihood_ratio: Any = None,
    ) -> None:
        self.estimator = estimator
        self.nonconformity = nonconformity
        self.alpha = alpha
        self.groups = groups
        self.guarantee = guarantee
        self.delta = delta
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.difficulty = difficulty
        self.likelihood_ratio = likelihood_ratio

    def predict(self, X: Any) -> Any:
        """The model's own point prediction; for "quantile" the median, or the middle of two quantiles.

        Parameters
        ----------
        X : table
            Rows of features.

        Returns
        -------
        array of shape (n,)
        """
        if self.nonconformity != "quantile":
            return self._model().predict(X)
        low, middle, high = predict_quantiles(self._model(), X, self._quantile_levels())
        return (low + high) / 2 if middle is None else middle

    def conformalize(self, X: Any, y: Any, groups: Any = None, *, weights: Any = None) -> Self:
        """Score rows the model was not trained on; a second call replaces the first.

        Parameters
        ----------
        X : table
            Calibration rows, exchangeable with the rows to come.
        y : array of shape (n,)
            Their outcomes.
        groups : array of shape (n,), optional
            Group of each row, when groups are given as arrays.
        weights : array of shape (n,), optional
            Likelihood ratio of each row (target over source) under covariate shift.

        Returns
        -------
        self
        """
        self._check_options()
        codes = self._start_calibration(X, groups, weights)
        scores = self._scores(X, y)
        self.calibration_ = CalibrationScores.build(scores, groups=codes, n_groups=self._n_groups())
        if hasattr(self, "calibration_weights_"):
            cells = np.zeros(len(scores), dtype=np.int64) if codes is None else codes
            order = calibration_order(scores, cells)
            self.weighted_ = WeightedScores(self.calibration_, self.calibration_weights_, order)
        return self

    def predict_interval(
        self, X: Any, alpha: Any = None, groups: Any = None, *, weights: Any = None
    ) -> np.ndarray:
        """Lower and upper end of every row's interval; both belong to it.

        Parameters
        ----------
        X : table
            Rows to predict.
        alpha : float, Fraction, Decimal or list of them, optional
            Allowed miscoverage; None takes the constructor's.
        groups, weights : array of shape (n,), optional
            Group and likelihood ratio of each row, when these were given as arrays.

        Returns
        -------
        float64 array of shape (n, 2), or (n, 2, L) for a list of L levels
        """
        levels, single = check_alphas(self.alpha if alpha is None else alpha)
        self._calibrated()
        codes = self._test_groups(X, groups)
        own = self._test_weights(X, weights)
        self._warn_unseen(codes)
        limits = self._limits(levels, codes, own, X)
        intervals = self._intervals(X, limits)
        return intervals[:, :, 0] if single else intervals

    def predict_p(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        *,
        weights: Any = None,
        tau: Any = None,
    ) -> np.ndarray:
        """The p-value of the outcome y of every row: small where y is strange for its x.

        Parameters
        ----------
        X : table
            Rows to predict.
        y : array of shape (n,)
            Their outcomes, observed or supposed.
        groups, weights : array of shape (n,), optional
            As in `predict_interval`.
        tau : float or array of shape (n,), optional
            Smoothing numbers in [0, 1], as in `conformal_p_values`; None means 1.

        Returns
        -------
        float64 array of shape (n,)
            An outcome lies in the interval at level alpha exactly when its p-value (tau = 1) exceeds alpha.
        """
        table = self._calibrated()
        codes, own = self._test_groups(X, groups), self._test_weights(X, weights)
        self._warn_unseen(codes)
        scores = self._scores(X, y)
        draw = resolve_tau(tau, scores, False, None)
        if own is not None:
            return np.asarray(self.weighted_.p_values(scores, own, codes, draw))
        return np.asarray(table.p_values(scores, groups=codes, tau=draw))

    def _default_model(self) -> Any:
        if self.nonconformity == "quantile":
            from sklearn.ensemble import HistGradientBoostingRegressor

            # Without a seed scikit-learn's boosting would draw from the global state.
            return HistGradientBoostingRegressor(loss="quantile", quantile=0.5, random_state=0)
        from sklearn.linear_model import LinearRegression

        return LinearRegression()

    def _train(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        self._check_options()
        if self.nonconformity == "quantile":
            self.estimator_ = fit_quantile_models(self._template(), X, y, self._quantile_levels(), params)
            self._adopt(self.estimator_[0] if isinstance(self.estimator_, list) else self.estimator_)
            return
        super()._train(X, y, params)
        if self.nonconformity == "normalized":
            self.difficulty_ = fit_difficulty(self.difficulty, self._template(), self.estimator_, X, y)

    def _check_options(self) -> None:
        if self.nonconformity not in _KINDS:
            raise InputError(f"nonconformity must be one of {', '.join(_KINDS)}, got {self.nonconformity!r}.")
        check_alphas(self.alpha)
        if self.guarantee not in ("marginal", "pac"):
            raise InputError(f'guarantee must be "marginal" or "pac", got {self.guarantee!r}.')
        if self.guarantee == "pac" and self.likelihood_ratio is not None:
            raise InputError('guarantee="pac" has no weighted form; leave out likelihood_ratio.')

    def _quantile_levels(self) -> tuple[float, float, float]:
        half = exact_level(self.alpha) / 2
        return float(half), 0.5, float(1 - half)

    def _sigma(self, X: Any) -> np.ndarray:
        fitted = getattr(self, "difficulty_", None)
        return positive_difficulty(self.difficulty if fitted is None else fitted, self._model(), X)

    def _scores(self, X: Any, y: Any) -> np.ndarray:
        outcome = as_numpy(check_vector(y, name="y")).astype(np.float64)
        if self.nonconformity == "quantile":
            low, _, high = predict_quantiles(self._model(), X, self._quantile_levels())
            check_same_length(X=low, y=outcome)
            return quantile_residuals(outcome, low, high)
        center = self._center(X)
        check_same_length(X=center, y=outcome)
        residuals = absolute_residuals(outcome, center)
        return residuals / self._sigma(X) if self.nonconformity == "normalized" else residuals

    def _center(self, X: Any) -> np.ndarray:
        return np.asarray(
            as_numpy(check_vector(self._model().predict(X), name="predict(X)")), dtype=np.float64
        )

    def _limits(
        self, levels: tuple[Any, ...], codes: np.ndarray | None, own: np.ndarray | None, X: Any
    ) -> np.ndarray:
        """Threshold of every row and level, (n, L) or (1, L)."""
        cells = np.zeros(1 if own is None else len(own), dtype=np.int64) if codes is None else codes
        if own is not None:
            if self.guarantee == "pac":
                raise InputError('guarantee="pac" has no weighted form; leave out weights.')
            return np.stack([self.weighted_.thresholds(own, cells, level) for level in levels], axis=1)
        rank: Callable[..., int] = conformal_rank
        needed = None
        if self.guarantee == "pac":
            rank = partial(pac_rank, delta=self.delta)
            needed = smallest_pac_size(min(levels), delta=self.delta)
        self._warn_small(self._used_sizes(codes), levels, "interval is finite", needed)
        return np.asarray(as_numpy(self.calibration_.thresholds(levels, rank))[cells])

    def _intervals(self, X: Any, limits: np.ndarray) -> np.ndarray:
        if self.nonconformity == "quantile":
            low, _, high = predict_quantiles(self._model(), X, self._quantile_levels())
            spread = limits
        else:
            low = high = self._center(X)
            spread = limits * self._sigma(X)[:, None] if self.nonconformity == "normalized" else limits
        lower, upper = low[:, None] - spread, high[:, None] + spread
        middle = (low + high)[:, None] / 2
        crossed = lower > upper
        return np.stack([np.where(crossed, middle, lower), np.where(crossed, middle, upper)], axis=1)
