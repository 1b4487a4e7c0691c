"""Predictions of coverage for rows the classifier has not seen, and the sequential steps of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_count, check_groups
from calipers.metrics.conditional.coverage_ensemble import Prediction, deal
from calipers.metrics.conditional.learners import Learner

Splits = Sequence[tuple[np.ndarray, np.ndarray]]
_FEWEST_TRAINING_ROWS = 10
_SMALLEST_PAST = 0.3
# Cross-fits averaged at most when their number is left open.
MOST_REPEATS = 4


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows and what a classifier trained without them predicts for them."""

    rows: np.ndarray
    predictions: np.ndarray


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Everything the excess risks and their tests are made of.

    ``folds`` are all folds of all repeats. ``steps`` are the folds of the first repeat again, each
    predicted by a classifier that saw only rows of earlier steps: given the past, what it predicts
    is fixed, so its fold is a clean test (see `sequential`).
    """

    n: int
    n_repeats: int
    folds: tuple[Fold, ...]
    steps: tuple[Fold, ...]

    def average(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """One value per row from one array per fold: the mean over repeats, NaN for rows never tested."""
        total, count = np.zeros(self.n), np.zeros(self.n)
        for fold, value in zip(self.folds, values, strict=True):
            total[fold.rows] += value
            count[fold.rows] += 1
        return np.asarray(np.divide(total, count, out=np.full(self.n, np.nan), where=count > 0))

    def by_repeat(self) -> tuple[CrossFit, ...]:
        """Every repeat as a cross-fit of its own, without steps."""
        size = len(self.folds) // self.n_repeats
        parts = (self.folds[i * size : (i + 1) * size] for i in range(self.n_repeats))
        return tuple(CrossFit(self.n, 1, part, ()) for part in parts)

    @property
    def predictions(self) -> np.ndarray:
        """Out-of-fold probability of being covered, NaN for rows never tested."""
        return self.average([fold.predictions for fold in self.folds])


def cross_fit(
    learner: Learner,
    X: np.ndarray,
    strata: np.ndarray,
    *,
    cv: Any,
    stratify: bool,
    clusters: Any = None,
    n_repeats: int | None = 1,
    sequential: bool = True,
    enough: Callable[[CrossFit], bool] | None = None,
    rng: np.random.Generator,
) -> CrossFit:
    """Fit on every training part, predict its test part; one thread, so that costs are predictable.

    ``strata`` (the coverage, or a constant where it must not be known) is shown to the user's splitter, and
    to our own folds when they are to be stratified. With ``n_repeats`` None our own folds are dealt again
    until there is ``enough``; splits that were given are used once.
    """
    most = MOST_REPEATS if isinstance(cv, (int, np.integer)) and enough is not None else 1
    if n_repeats is not None:
        most, enough = check_count(n_repeats, name="n_repeats"), None
    fit = CrossFit(len(strata), 0, (), ())
    with threadpool_limits(limits=1, user_api="openmp"):
        while fit.n_repeats < most:
            splits = make_splits(cv, X, strata, stratify, clusters, rng)
            predictions = [learner.fit_predict(train, test, rng) for train, test in splits]
            folds = [Fold(test, p.h) for (_, test), p in zip(splits, predictions, strict=True)]
            steps = fit.steps
            if sequential and not fit.n_repeats:
                steps = tuple(_sequential_steps(learner, splits, predictions, rng))
            fit = CrossFit(fit.n, fit.n_repeats + 1, (*fit.folds, *folds), steps)
            if enough is not None and enough(fit):
                break
    return fit


def _sequential_steps(
    learner: Learner,
    splits: Splits,
    found: Sequence[Prediction],
    rng: np.random.Generator,
) -> list[Fold]:
    """Each fold predicted from the past only: from training rows that neither it nor a later step tests.

    Early folds whose past is a small part of their training rows are left out: their model would know
    little, and every step costs the combined test some power. The last fold has nothing but a past, so
    the prediction it already has will do.
    """
    tester = learner.for_test()
    n = 1 + max(int(max(train.max(), test.max())) for train, test in splits)
    past = np.ones(n, dtype=bool)
    for _, test in splits:
        past[test] = False  # rows never tested may train every step
    fresh = ~past
    steps = []
    for (train, test), prediction in zip(splits, found, strict=True):
        seen, new = past[train], fresh[test]
        if seen.all():
            steps.append(Fold(test[new], prediction.unshrunk[new]))
        elif seen.sum() >= max(_FEWEST_TRAINING_ROWS, _SMALLEST_PAST * len(train)):
            steps.append(Fold(test[new], tester.fit_predict(train[seen], test[new], rng).unshrunk))
        past[test], fresh[test] = True, False
    return [step for step in steps if len(step.rows)]


def make_splits(
    cv: Any, X: np.ndarray, strata: np.ndarray, stratify: bool, clusters: Any, rng: np.random.Generator
) -> Splits:
    """Index pairs (train, test): random, stratified by coverage, whole clusters, or the user's own."""
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        shown = strata if stratify else np.ones(len(strata), dtype=bool)
        return _own_splits(check_count(cv, name="cv", minimum=2), shown, clusters, rng)
    if callable(getattr(cv, "split", None)) and not isinstance(cv, str):
        pairs: Iterable[Any] = cv.split(X, strata.astype(int), clusters)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise InputTypeError(f"cv must be a number of folds, a splitter or index pairs, got {cv!r}.")
    return [_check_pair(pair, len(strata)) for pair in pairs]


def _own_splits(n_folds: int, strata: np.ndarray, clusters: Any, rng: np.random.Generator) -> Splits:
    n = len(strata)
    if n < 2 * n_folds:
        raise InputError(f"cv={n_folds} needs at least {2 * n_folds} rows, got {n}. Use fewer folds.")
    if clusters is None:
        parts = deal(strata, n_folds, rng)
    else:
        labels, codes = check_groups(clusters, n, name="cluster")
        if len(labels) < n_folds:
            raise InputError(f"cv={n_folds} needs at least {n_folds} clusters, got {len(labels)}.")
        from sklearn.model_selection import StratifiedGroupKFold

        splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=int(rng.integers(2**31)))
        parts = np.empty(n, dtype=np.int64)
        for part, (_, test) in enumerate(splitter.split(np.zeros((n, 1)), strata.astype(int), codes)):
            parts[test] = part
    return [(np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in range(n_folds)]


def _check_pair(pair: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    train, test = (np.asarray(rows) for rows in pair)
    train, test = (np.flatnonzero(r) if r.dtype == bool else r.astype(np.int64) for r in (train, test))
    if not (len(train) and len(test)):
        raise InputError("every split of cv must have training and test rows, got an empty part.")
    if min(train.min(), test.min()) < 0 or max(train.max(), test.max()) >= n:
        raise InputError(f"the splits of cv must hold row numbers from 0 to {n - 1}.")
    shared = np.intersect1d(train, test)
    if len(shared):
        raise InputError(
            f"training and test rows of a split must differ, {len(shared)} are in both "
            f"(first: row {shared[0]}). A classifier tested on its own rows reports its memory."
        )
    return train, np.unique(test)
