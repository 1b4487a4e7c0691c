"""Symbolic losses: which outcomes are possible for this case after retraining? Section 3.3.

The paper's text has four slips, repaired here: the learned score must be a conformity (log-probability,
high for likely outcomes, not the log-loss); its quantile is therefore the one at level alpha, not 1 - alpha;
the quantile regression uses the evaluation points of the second split only; and the scores of the last
split come from that split's own models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import RandomState, as_numpy, generator
from calipers.conformal import conformal_quantile, conformal_rank
from calipers.exceptions import InputError
from calipers.inputs import check_alpha, check_groups, exact_level
from calipers.performance.algorithm import RANDOM_ORDER, fit_options
from calipers.performance.feature_map import FeatureFunction, FeatureMap
from calipers.performance.fitting import fit_blocks, seeded_clone
from calipers.performance.guarantee import Guarantee, losses_needed
from calipers.performance.learners import QuantileLearner, default_classifier, default_quantile_learner
from calipers.performance.outcomes import ConfusionOutcome, OutcomeFunction, resolve_outcome
from calipers.performance.progress import Progress
from calipers.performance.rows import Rows, check_rows
from calipers.performance.splitting import plan_blocks

# What a failed fit is called when failures are counted.
FAILED = "failed"
# Probability of an outcome the scoring classifier has not seen.
_FLOOR = 1e-6


@dataclass(frozen=True)
class BlockOutcome:
    """Outcome of a fitted model on its one evaluation row."""

    outcome: OutcomeFunction

    def __call__(self, model: Any, rows: Rows) -> Any:
        """One symbol."""
        symbols = np.asarray(self.outcome(model, rows.X, rows.y)).reshape(-1)
        if symbols.size != 1:
            raise InputError(f"outcome must return one symbol per row, got {symbols.size} for one row.")
        return symbols[0].item() if isinstance(symbols[0], np.generic) else symbols[0]

    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What the value depends on, for the cache."""
        return (self.outcome,)


class SymbolicPerformance(MetaEstimatorMixin, BaseEstimator):
    """Sets of outcomes that a retrained algorithm may have on a given case, at least 1 - alpha of the time.

    The rows are cut into three parts of k blocks each. Every block trains a model and gives the outcome of
    one case. The first part learns how likely each outcome is for a case, the second what conformity is
    usual there, the third calibrates. A set with one outcome is the most that can be said; a set with
    all of them says nothing.

    Parameters
    ----------
    estimator : estimator
        The algorithm.
    outcome : str or callable
        "confusion" (correct, false_positive, false_negative, the larger of two labels being positive;
        `ConfusionOutcome` for the other), "correctness", "prediction", or ``outcome(estimator, X, y)`` with
        one symbol per row.
    alpha : float
        Allowed miscoverage.
    n_points, train_size : int or None
        Blocks per part and training rows per block, as in `AlgorithmPerformance`.
    scorer : classifier or None
        Learns the probability of each outcome from the case; None: a random forest.
    learner : quantile regressor or None
        Learns the alpha-quantile of the log-probability of the outcome; None as in `AlgorithmPerformance`.
    features : callable or None
        ``features(X, y) -> (n, d)``, inputs of both.
    outcomes : sequence or None
        All possible outcomes, in column order; None: those seen, sorted. One never seen in fitting and
        not listed has no column.
    n_jobs, on_failure, cache, progress, inner_threads, random_state
        As in `AlgorithmPerformance`; a failure that is counted is the outcome "failed".

    Attributes
    ----------
    outcomes_ : ndarray
        Outcome of each column.
    observed_ : ndarray of shape (3, k)
        Outcomes of the three parts.
    scores_ : ndarray of shape (k,)
        Calibration scores q(Z) - s(Z, outcome).
    guarantee_ : str
        What holds, in one sentence.
    n_points_, train_size_, failures_
        As in `AlgorithmPerformance`.

    Notes
    -----
    Set: outcomes l with q(z) - s(z, l) at or below the conformal quantile of the scores. Coverage is
    rank/(k + 1) for distinct scores; a forest's scores tie, which adds coverage. 3k fits.

    References
    ----------
    .. [1] Holland (2020), section 3.3.
    .. [2] Cauchois, Gupta and Duchi (2021), Knowing what you know.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from calipers.performance import SymbolicPerformance
    >>> X, y = make_classification(1500, 4, flip_y=0.2, random_state=0)
    >>> forecast = SymbolicPerformance(LogisticRegression(), outcome="confusion", n_points=25, random_state=0)
    >>> forecast.fit(X, y).predict_set(X[:5], y[:5]).shape, forecast.outcomes_.tolist()
    ((5, 3), ['correct', 'false_negative', 'false_positive'])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        outcome: str | OutcomeFunction,
        alpha: Any = 0.1,
        n_points: int | None = None,
        train_size: int | None = None,
        scorer: Any = None,
        learner: Any = None,
        features: FeatureFunction | None = None,
        outcomes: Any = None,
        n_jobs: int | None = None,
        on_failure: str = "raise",
        cache: Any = None,
        progress: bool | Progress = False,
        inner_threads: int = 1,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.outcome = outcome
        self.alpha = alpha
        self.n_points = n_points
        self.train_size = train_size
        self.scorer = scorer
        self.learner = learner
        self.features = features
        self.outcomes = outcomes
        self.n_jobs = n_jobs
        self.on_failure = on_failure
        self.cache = cache
        self.progress = progress
        self.inner_threads = inner_threads
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SymbolicPerformance:
        """Train on every block of the three parts, learn the scores, calibrate.

        Raises
        ------
        InputError
            When there are too few rows for three parts, or an option breaks its rule.
        FitError
            When a fit fails and ``on_failure`` is "raise".
        """
        check_alpha(self.alpha)
        options, outcome = fit_options(self), resolve_outcome(self.outcome)
        rows = check_rows(X, y)
        if isinstance(outcome, ConfusionOutcome) and rows.y is not None:
            outcome = outcome.for_labels(rows.y)
        order, fits, auxiliary = generator(self.random_state).spawn(3)
        plan = plan_blocks(
            len(rows),
            n_points=self.n_points,
            train_size=self.train_size,
            points_per_loss=1,
            parts=3,
            alpha=self.alpha,
            generator=order,
        )
        k, m = plan.n_points, plan.train_size
        symbols, self.failures_ = fit_blocks(
            self.estimator,
            rows,
            plan.train.reshape(3 * k, m),
            plan.evaluate.reshape(3 * k, 1),
            BlockOutcome(outcome),
            generator=fits,
            options=options,
            failed_value=FAILED,
        )
        self.n_points_, self.train_size_ = k, m
        self.evaluation_rows_, self.discarded_rows_ = plan.evaluate[-1], plan.discarded
        codes = self._encode(symbols).reshape(3, k)
        self.observed_ = self.outcomes_[codes]
        self._calibrate([rows.take(part) for part in plan.evaluate], codes, auxiliary)
        return self

    def _encode(self, symbols: list[Any]) -> np.ndarray:
        column = np.empty(len(symbols), dtype=object)
        column[:] = symbols
        seen, codes = check_groups(column, len(symbols), name="outcome")
        if self.outcomes is None:
            self.outcomes_ = seen
            return codes
        listed = as_numpy(self.outcomes, name="outcomes")
        position = {symbol: i for i, symbol in enumerate(listed.tolist())}
        missing = [symbol for symbol in seen.tolist() if symbol not in position]
        if missing:
            raise InputError(f"outcomes must list every outcome that occurs, {missing[0]!r} is missing.")
        self.outcomes_ = listed
        return np.asarray(np.array([position[symbol] for symbol in seen.tolist()])[codes])

    def _calibrate(self, cases: list[Rows], codes: np.ndarray, auxiliary: np.random.Generator) -> None:
        seeds = auxiliary.integers(0, 2**31 - 1, size=2).tolist()
        level = float(exact_level(self.alpha))
        self._features = FeatureMap(self.features, 1).fit(cases[0])
        tables = [self._features.transform(part) for part in cases]
        scorer = default_classifier() if self.scorer is None else self.scorer
        self.scorer_ = seeded_clone(scorer, seeds[0]).fit(tables[0], codes[0])
        learner = default_quantile_learner() if self.learner is None else self.learner
        second = self._conformity(tables[1])[np.arange(self.n_points_), codes[1]]
        self._quantile = QuantileLearner(learner, (level,), seeds[1]).fit(tables[1], second)
        self.scores_ = self._nonconformity(tables[2])[np.arange(self.n_points_), codes[2]]

    def _conformity(self, table: np.ndarray) -> np.ndarray:
        """Log-probability of every outcome, (n, n_outcomes); unseen outcomes get a floor."""
        probability = np.zeros((len(table), self.outcomes_.size))
        probability[:, self.scorer_.classes_] = self.scorer_.predict_proba(table)
        return np.asarray(np.log(np.clip(probability, _FLOOR, 1.0)))

    def _nonconformity(self, table: np.ndarray) -> np.ndarray:
        return np.asarray(self._quantile.predict(table) - self._conformity(table))

    def predict_set(self, X: Any, y: Any = None, alpha: Any = None) -> np.ndarray:
        """Which outcomes belong to the set of each case, bool (n, n_outcomes), columns in ``outcomes_``."""
        check_is_fitted(self, "scores_")
        threshold = conformal_quantile(self.scores_, self.alpha if alpha is None else alpha)
        return np.asarray(self._nonconformity(self._features.transform(check_rows(X, y))) <= threshold)

    def guarantee(self, alpha: Any = None) -> Guarantee:
        """The promise of ``predict_set`` at this level, in numbers; its ``str`` is the sentence."""
        check_is_fitted(self, "scores_")
        level = self.alpha if alpha is None else alpha
        n = self.scores_.size
        return Guarantee(
            target=f"the outcome of the algorithm on one new row, trained anew on {self.train_size_} rows,",
            condition=RANDOM_ORDER,
            n=n,
            alpha=check_alpha(level),
            low_rank=0,
            high_rank=conformal_rank(n, level),
            low=None,
            high=None,
            needed=losses_needed(level, "upper"),
            rows_per_loss=3 * (self.train_size_ + 1),
            train_size=self.train_size_,
            region="its predicted set",
            side="upper",
        )

    @property
    def guarantee_(self) -> str:
        """What holds, in one sentence."""
        return str(self.guarantee())
