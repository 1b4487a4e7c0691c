"""One algorithm: what will it lose once it has been trained anew? Section 3.2, Algorithms 2 and 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError, SmallSampleWarning, warn
from calipers.inputs import check_alpha, exact_level
from calipers.performance.batches import batch_losses
from calipers.performance.feature_map import FeatureFunction
from calipers.performance.fitting import FitOptions, fit_blocks
from calipers.performance.forecast import LossForecast
from calipers.performance.forecast_methods import LossAnswers
from calipers.performance.guarantee import Guarantee, Side
from calipers.performance.losses import Loss, loss_limits, resolve_loss
from calipers.performance.modulation import Modulation, check_modulation, fit_modulation
from calipers.performance.progress import Progress
from calipers.performance.rows import Rows, check_rows
from calipers.performance.splitting import BlockPlan, plan_blocks

RANDOM_ORDER = (
    "the condition is that new rows, including the future training sample in random order, are exchangeable "
    "with these (they were shuffled; the algorithm itself need not be symmetric)"
)


@dataclass(frozen=True)
class BlockLoss:
    """Loss of a fitted model on its evaluation rows: what every fit of a free or modulated forecast gives."""

    loss: Loss
    points_per_loss: int

    def __call__(self, model: Any, rows: Rows) -> float:
        """One number."""
        return float(batch_losses(self.loss, model, rows, self.points_per_loss)[0])

    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What the value depends on, for the cache."""
        return (self.loss, self.points_per_loss)


class AlgorithmPerformance(LossAnswers, MetaEstimatorMixin, BaseEstimator):
    """Forecast of the loss on a new case after the algorithm has been trained on a new sample.

    Trains on k disjoint subsets of m rows and evaluates each model on a case of its own. The interval then
    covers both sources of chance, the sample and the case. Without modulation it is the same for every
    case; with it, it follows the case.

    Parameters
    ----------
    estimator : estimator
        The algorithm; cloned for every subset. Open ``random_state`` parameters get a seed per subset.
    loss : str or callable
        As in `CandidatePerformance`.
    alpha : float
        Allowed miscoverage.
    n_points : int or None
        Subsets per part, k (a modulated forecast has two parts). None: as many as ``train_size`` allows;
        with neither, the smallest k with two finite ends (20 at alpha = 0.1), and a warning that says
        which training size that leaves; a modulated forecast, which learns from the points, takes five
        times as many.
    train_size : int or None
        Training rows per subset, m: the forecast is for training samples of this size. None: as many as
        ``n_points`` allows.
    modulation : {None, "regression", "quantile"}
        None: Algorithm 2. "regression": fixed width around a regression of the loss on the case (eq. 24).
        "quantile": variable width by conformalised quantile regression (eq. 26).
    learner : estimator, pair of estimators, or None
        The auxiliary regression. None: a random forest; for quantiles a quantile forest (extra ``forest``),
        or gradient boosting with the pinball loss where that is not installed.
    features : callable or None
        ``features(X, y) -> (n, d)``, inputs of the auxiliary regression. None: the columns of X, and y
        one-hot or as a number.
    points_per_loss : int
        Evaluation rows per subset: the forecast is then for a new batch of that many rows.
    tight : bool
        Tighter lower rank where ``(k + 1) alpha / 2`` is an integer (no modulation).
    n_jobs : int or None
        Workers, by joblib; any backend set with ``joblib.parallel_config`` is used.
    on_failure : {"raise", "infinite"}
        A failed fit stops the run with its subset's index, or counts as an infinite loss.
    cache : path or None
        Folder of finished fits: an interrupted run resumes. Needs an integer ``random_state``. A fit is used
        again only for the same rows, estimator and loss, and the same code of both.
    progress : bool or callable
        True: a bar on stderr. A callable gets (fits done, fits in all).
    inner_threads : int
        Threads per fit, the same for every ``n_jobs`` so that results agree to the last bit.
    random_state : RandomState
        Order of the rows and seeds of the fits.

    Attributes
    ----------
    losses_ : ndarray of shape (k,)
        Losses that calibrate (with modulation, those of the second part).
    guarantee_ : str
        What holds, for which training size, with which n, exactly how often.
    n_points_, train_size_ : int
        k and m.
    evaluation_rows_, discarded_rows_ : int arrays (k, points_per_loss) and (r,)
        Evaluation rows of ``losses_``; the remainder, dropped at random.
    failures_ : dict
        Subset index to error, for failed fits that count as infinite.
    modulation_ : Modulation or None
        The fitted auxiliary regression with its calibration scores.

    Notes
    -----
    Theorems 8, 10 and 12. Equal disjoint blocks of shuffled exchangeable rows are exchangeable, so the k
    losses and the next one are, for any algorithm. Coverage is (upper rank - lower rank)/(k + 1) without
    modulation and ceil((k+1)(1-alpha))/(k + 1) with it, for distinct losses. The price is data: the
    forecast speaks of training samples of m rows, not n, and m is at most n / k. That cannot be helped
    without assumptions: no test that sees the algorithm as a black box can tell how well it does with
    training samples of m rows unless there are many times m rows in all, not even a stable one [3]_. What
    one model trained on most of the rows will lose is an easier question, answered by
    `CandidatePerformance`. Ends stay within what the loss can be: an absolute error is never below 0. Cost:
    k fits (2k with modulation) of m rows.

    References
    ----------
    .. [1] Holland (2020), Making learning more transparent using conformalized performance prediction.
    .. [2] Romano, Patterson and Candes (2019), Conformalized quantile regression.
    .. [3] Luo and Barber (2024), The limits of assumption-free tests for algorithm performance,
       arXiv:2402.07388.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from calipers.performance import AlgorithmPerformance
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forecast = AlgorithmPerformance(Ridge(), loss="absolute", n_points=40, random_state=0).fit(X, y)
    >>> forecast.train_size_, "trained anew on 10 rows" in forecast.guarantee_
    (10, True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        loss: str | Loss,
        alpha: Any = 0.1,
        n_points: int | None = None,
        train_size: int | None = None,
        modulation: str | None = None,
        learner: Any = None,
        features: FeatureFunction | None = None,
        points_per_loss: int = 1,
        tight: bool = False,
        n_jobs: int | None = None,
        on_failure: str = "raise",
        cache: Any = None,
        progress: bool | Progress = False,
        inner_threads: int = 1,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.alpha = alpha
        self.n_points = n_points
        self.train_size = train_size
        self.modulation = modulation
        self.learner = learner
        self.features = features
        self.points_per_loss = points_per_loss
        self.tight = tight
        self.n_jobs = n_jobs
        self.on_failure = on_failure
        self.cache = cache
        self.progress = progress
        self.inner_threads = inner_threads
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> AlgorithmPerformance:
        """Train on every subset, evaluate each model on its own case, calibrate.

        Raises
        ------
        InputError
            When there are too few rows for the blocks, lengths differ, or an option breaks its rule.
        FitError
            When a fit fails and ``on_failure`` is "raise"; the message names the subset.
        """
        check_alpha(self.alpha)
        check_modulation(self.modulation)
        options, loss = fit_options(self), resolve_loss(self.loss)
        rows = check_rows(X, y)
        # Separate streams: the split must not depend on how many draws a fit or a learner takes.
        order, fits, auxiliary = generator(self.random_state).spawn(3)
        plan = plan_blocks(
            len(rows),
            n_points=self.n_points,
            train_size=self.train_size,
            points_per_loss=self.points_per_loss,
            parts=1 if self.modulation is None else 2,
            alpha=self.alpha,
            generator=order,
        )
        self._warn_small(plan.train_size, len(rows))
        losses = self._run_fits(rows, plan, loss, fits, options)
        # A failed fit that counts as infinite may happen again: only the lower limit of the loss holds.
        limits = loss_limits(loss, self.estimator)
        limits = (limits[0], float("inf")) if self.on_failure == "infinite" else limits
        self._finish(rows, plan, losses, limits, auxiliary)
        return self

    def _warn_small(self, train_size: int, n: int) -> None:
        """Say which training size the defaults chose, where it is far below the rows at hand."""
        if self.n_points is None and self.train_size is None and 10 * train_size < n:
            share = f"{100 * train_size / n:.2g} % of the {n} at hand"
            warn(
                f"The forecast is about training samples of {train_size} rows, {share}: so many disjoint "
                f"subsets are needed at alpha={float(exact_level(self.alpha)):g}. Choose train_size or "
                "n_points, a larger alpha, or CandidatePerformance for one model trained on most rows.",
                SmallSampleWarning,
            )

    def _run_fits(
        self, rows: Rows, plan: BlockPlan, loss: Loss, fits: np.random.Generator, options: FitOptions
    ) -> np.ndarray:
        parts, k, m = plan.train.shape
        values, self.failures_ = fit_blocks(
            self.estimator,
            rows,
            plan.train.reshape(parts * k, m),
            plan.evaluate.reshape(parts * k, -1),
            BlockLoss(loss, self.points_per_loss),
            generator=fits,
            options=options,
        )
        return np.array(values, dtype=np.float64).reshape(parts, k)

    def _finish(
        self,
        rows: Rows,
        plan: BlockPlan,
        losses: np.ndarray,
        limits: tuple[float, float],
        auxiliary: np.random.Generator,
    ) -> None:
        self.n_points_, self.train_size_ = plan.n_points, plan.train_size
        self.evaluation_rows_, self.discarded_rows_ = plan.evaluate[-1], plan.discarded
        self.modulation_: Modulation | None = None
        if self.modulation is not None:
            self.modulation_ = fit_modulation(
                self.modulation,
                learning=(rows.take(plan.evaluate[0]), losses[0]),
                calibration=(rows.take(plan.evaluate[1]), losses[1]),
                alpha=self.alpha,
                learner=self.learner,
                features=self.features,
                points_per_loss=self.points_per_loss,
                limits=limits,
                generator=auxiliary,
            )
        parts, b = losses.shape[0], self.points_per_loss
        case = "one new row" if b == 1 else f"a new batch of {b} rows"
        self.forecast_ = LossForecast(
            losses[-1],
            self.alpha,
            tight=self.tight,
            target=f"the loss of the algorithm on {case}, trained anew on {plan.train_size} rows,",
            condition=RANDOM_ORDER,
            rows_per_loss=parts * (plan.train_size + b),
            train_size=plan.train_size,
            n_rows=len(rows),
            limits=limits,
        )

    def predict_interval(self, X: Any, y: Any = None, alpha: Any = None) -> np.ndarray:
        """Interval of the loss on each given case, (n, 2), over the draw of a new training sample.

        Parameters
        ----------
        X, y : features and targets
            The cases; with ``points_per_loss`` b, consecutive groups of b rows are one batch each.
        alpha : float or None
            None: the constructor's. The quantiles stay those fitted, only the correction changes.

        Returns
        -------
        array of shape (n, 2)
            ``-inf`` and ``inf``, or the least and most a loss can be, when the rank exceeds k. An empty set
            (negative correction wider than the predicted interval) is returned as its midpoint.
        """
        return self._modulated().interval(check_rows(X, y), self.alpha if alpha is None else alpha)

    def predict_upper_bound(self, X: Any, y: Any = None, alpha: Any = None) -> np.ndarray:
        """One-sided bound on the loss on each given case, (n,)."""
        return self._modulated().upper_bound(check_rows(X, y), self.alpha if alpha is None else alpha)

    def guarantee(self, alpha: Any = None, *, side: Side = "two-sided") -> Guarantee:
        """The promise at this level: of ``predict_interval`` with modulation, of ``interval`` without."""
        promise = self._answers().guarantee(alpha, side=side)
        return promise if self.modulation_ is None else self.modulation_.guarantee(promise)

    @property
    def guarantee_(self) -> str:
        """What holds, in one sentence."""
        return str(self.guarantee())

    def _modulated(self) -> Modulation:
        check_is_fitted(self, "forecast_")
        if self.modulation_ is None:
            raise InputError(
                "modulation=None has one interval for every case: use interval(), "
                'or fit with modulation="regression" or "quantile".'
            )
        return self.modulation_


def fit_options(forecast: Any) -> FitOptions:
    """The fit options of a forecast object, checked."""
    if forecast.cache is not None and not isinstance(forecast.random_state, (int, np.integer)):
        raise InputError(
            "cache needs an integer random_state, so that the next run makes the same blocks; "
            f"got {forecast.random_state!r}."
        )
    return FitOptions(
        n_jobs=forecast.n_jobs,
        on_failure=forecast.on_failure,
        cache=None if forecast.cache is None else str(forecast.cache),
        progress=forecast.progress,
        inner_threads=forecast.inner_threads,
    )
