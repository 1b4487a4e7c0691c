"""Statements of the paper without an experiment, made executable: Theorem 1, Claims 1, 2 and 4, Example 2.

Each function builds what the proof builds and computes both sides, exactly where enumeration can. The
decision-theoretic reading of c (Rossellini et al., 2025) is checked in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from calipers.calibration import bayes_decision
from calipers.metrics.reliability import finite_scores_rademacher

# A prover looks at the objects (as numbers), the stated probabilities and the labels of a sample.
Prover = Callable[[np.ndarray, np.ndarray, np.ndarray], bool]


class ProverGap(NamedTuple):
    """How often a prover accepts f where f is the truth, and where every object has a certain label."""

    accepts_truth: float
    accepts_certain: float  # averaged over the worlds P' of Lemma 1
    repeats: float  # share of samples in which an object occurs twice
    smallest_error: float  # of l1(f, P') over all P', which is B_f


def prover_gap(prover: Prover, stated: np.ndarray, n: int, runs: int, seed: int) -> ProverGap:
    """Theorem 1: run a prover on coupled samples of both kinds of world, objects uniform.

    A world P' of Lemma 1 gives object x the label 1 for ever with probability f(x), else 0. Given samples
    without repeated objects, labels have the law of P: the coupled sample differs in the labels of repeated
    objects only, so no prover can tell the worlds apart more often than objects repeat.
    """
    rng = np.random.default_rng(seed)
    accepted = np.zeros(2)
    repeats = 0
    for _ in range(runs):
        x = rng.integers(0, stated.size, n)
        y = rng.random(n) < stated[x]
        _, first, place = np.unique(x, return_index=True, return_inverse=True)
        certain = y[first[place.reshape(-1)]]  # the label of the object's first appearance
        repeats += first.size < n
        accepted += [prover(x, stated[x], labels) for labels in (y, certain)]
    bound = float(np.minimum(stated, 1 - stated).mean())
    return ProverGap(float(accepted[0]) / runs, float(accepted[1]) / runs, repeats / runs, bound)


def shattered_complexity(X: np.ndarray) -> float:
    """Claim 2: the Rademacher complexity of the slabs of sigmoids of linear scores, built as in its proof.

    For every sign pattern a w with w . x_i = sigma_i is solved for; the set of rows above one half is then
    the set of positive signs. Needs linearly independent rows, n <= d; the answer is then exactly 1/2.
    """
    n = len(X)
    total = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=n):
        w = np.linalg.lstsq(X, np.array(signs), rcond=None)[0]
        stated = 1 / (1 + np.exp(-X @ w))
        total += float(np.sum(np.array(signs)[stated > 0.5]))
    return float(total / (n * 2**n))


def subset_complexity(subsets: Sequence[np.ndarray]) -> float:
    """The Rademacher complexity of a finite class of subsets of n points, over all 2^n sign patterns."""
    table = np.unique(np.array(subsets, dtype=float), axis=0)
    n = table.shape[1]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    return float((signs @ table.T).max(axis=1).mean() / n)


def slabs(classifiers: np.ndarray, low: float, high: float) -> np.ndarray:
    """{p1 < f(x) <= p2} of every classifier (classes, points), bool."""
    return np.asarray((classifiers > low) & (classifiers <= high))


def all_slabs(classifiers: np.ndarray) -> np.ndarray:
    """The class H: slabs of every classifier at every pair of thresholds among the stated values."""
    ends = [-math.inf, *np.unique(classifiers).tolist()]
    pairs = itertools.combinations(ends, 2)
    empty = np.zeros((1, classifiers.shape[1]), dtype=bool)
    return np.unique(np.concatenate([empty, *(slabs(classifiers, a, b) for a, b in pairs)]), axis=0)


def vc_dimension(subsets: np.ndarray) -> int:
    """The size of the largest set of points all of whose subsets are cut out."""
    points = subsets.shape[1]
    for size in range(points, 0, -1):
        for chosen in itertools.combinations(range(points), size):
            if len(np.unique(subsets[:, chosen], axis=0)) == 2**size:
                return size
    return 0


def largest_fixed_dimension(classifiers: np.ndarray) -> int:
    """The largest VC dimension of the slabs with both thresholds held fixed."""
    ends = [-math.inf, *np.unique(classifiers).tolist()]
    return max(vc_dimension(slabs(classifiers, a, b)) for a, b in itertools.combinations(ends, 2))


def subset_classifiers(n: int) -> np.ndarray:
    """The class of Example 2: classifier i states i / 2^n, less 1 / 2^(n + 1) on the i-th subset."""
    subsets = np.array(list(itertools.product((0, 1), repeat=n)))
    return np.asarray((np.arange(1, 2**n + 1)[:, None] - subsets / 2) / 2**n)


class FiniteScores(NamedTuple):
    """Both sides of Claim 4 for one class on one sample of points."""

    n: int
    fixed_dimension: int
    free_dimension: int
    complexity: float
    bound: float


def finite_scores(classifiers: np.ndarray) -> FiniteScores:
    """Claim 4: the complexity of all slabs by enumeration, and its bound."""
    n = classifiers.shape[1]
    free, fixed = all_slabs(classifiers), largest_fixed_dimension(classifiers)
    bound = finite_scores_rademacher(n, max(1, fixed), np.unique(classifiers).size)
    return FiniteScores(n, fixed, vc_dimension(free), subset_complexity(list(free)), bound)


class Decisions(NamedTuple):
    """Expected losses of decision rules that see f only."""

    plain: float  # predict 1 from a / (a + b) on
    best: float  # the best of all rules g


def decision_losses(
    levels: np.ndarray,
    mass: np.ndarray,
    positive: np.ndarray,
    *,
    false_positive: float,
    false_negative: float,
) -> Decisions:
    """Claim 1: the rule f >= a / (a + b) against every rule of the levels of f, by enumeration.

    ``positive`` is P(Y = 1 | f = level): equal to the levels when f is calibrated.
    """
    cost_of_one, cost_of_zero = mass * (1 - positive) * false_positive, mass * positive * false_negative
    plain = bayes_decision(levels, false_positive_cost=false_positive, false_negative_cost=false_negative)
    rules = np.array(list(itertools.product((False, True), repeat=levels.size)))
    losses = np.where(rules, cost_of_one, cost_of_zero).sum(axis=1)
    return Decisions(float(np.where(plain, cost_of_one, cost_of_zero).sum()), float(losses.min()))


def largest_decision_regret(y: np.ndarray, stated: np.ndarray) -> float:
    """What deciding by f >= tau loses against the best monotone recalibration of f, at the worst tau.

    With loss tau for a false positive and 1 - tau for a false negative that is at most c: the best
    h(f) >= tau is a cut of f, rows that only one of the two rules accepts form one interval of f, between
    tau and the cut, and the sum of y - f over it bounds the difference. Between two stated values the
    difference is linear in tau, so both ends of every gap are tried.
    """
    cuts = np.concatenate([np.unique(stated), [math.inf]])
    taus = np.unique(np.concatenate([[0.0, 1.0], stated, np.nextafter(stated, 1.0)]))
    regret = 0.0
    for tau in taus:
        accepted = stated >= cuts[:, None]
        losses = np.where(accepted, tau * (1 - y), (1 - tau) * y).mean(axis=1)
        own = np.where(stated >= tau, tau * (1 - y), (1 - tau) * y).mean()
        regret = max(regret, float(own - losses.min()))
    return regret
