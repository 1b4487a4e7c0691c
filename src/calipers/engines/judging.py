"""Excess risk of the target coverage over any number of rows: judges taught on a sample, heard on all rows.

Each judge is taught on the sample without one of its folds and judged on every row outside the sample, so no
judge ever speaks about a row it has seen. The value is the mean over judges; its interval holds two errors:
that of the rows judged, and that of the sample the judges were taught on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import special
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from calipers.engines.block import Block
from calipers.engines.levelled import rows_outside
from calipers.engines.sampling import Sample
from calipers.engines.state import State
from calipers.exceptions import InputError
from calipers.inference import Moments
from calipers.inputs import Features, check_features
from calipers.metrics.conditional.coverage_ensemble import deal, logistic_gain
from calipers.metrics.conditional.losses import SIDES, check_distance, clip_to_side
from calipers.results import Estimate, EstimateTable

N_JUDGES = 5
PICKED = 0.2
TENTHS = 10
FEWEST_MISSES = 10
_MOST_CATEGORIES = 255
_HELD_OUT = 5


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """P(covered | x) by a booster, its departure from the target weighed on rows it has not seen.

    ``logit h = logit t + s (a + b (r - logit t))`` with r the booster's logit; a and b maximise the
    likelihood of the rows held out, s = max(0, 1 - 1 / G) shrinks by their gain G, down to the target itself.
    """

    booster: Any
    level: float
    slope: float
    shrinkage: float
    target: float

    def predict(self, values: np.ndarray) -> np.ndarray:
        """The probability of being covered, per row."""
        base = logit(self.target)
        if self.shrinkage == 0.0:
            return np.full(len(values), self.target)
        with threadpool_limits(limits=1, user_api="openmp"):
            margin = self.booster.decision_function(values)
        return np.asarray(expit(base + self.shrinkage * (self.level + self.slope * (margin - base))))


def teach(features: Features, covered: np.ndarray, target: float, rng: np.random.Generator) -> Judge:
    """A judge from rows whose coverage is known."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    few = [c is not None and len(c) <= _MOST_CATEGORIES for c in features.categories]
    booster = HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_leaf_nodes=8,
        max_iter=100,
        l2_regularization=20.0,
        early_stopping=True,
        validation_fraction=0.2,
        n_iter_no_change=5,
        categorical_features=np.array(few) if any(few) else None,
        random_state=int(rng.integers(2**31)),
    )
    held = deal(covered, _HELD_OUT, rng) == 0
    with threadpool_limits(limits=1, user_api="openmp"):
        booster.fit(features.values[~held], covered[~held])
        margin = booster.decision_function(features.values[held]) - logit(target)
    z, base, ones = covered[held].astype(float), np.full(held.sum(), logit(target)), np.ones(held.sum())
    beta, gain = logistic_gain(np.column_stack([ones, margin]), z, base, ones)
    if beta[1] < 0:
        level, gain = logistic_gain(ones[:, None], z, base, ones)
        beta = np.array([level[0], 0.0])
    shrinkage = max(0.0, 1.0 - 1.0 / gain) if gain > 0 else 0.0
    return Judge(booster, float(beta[0]), float(beta[1]), shrinkage, target)


@dataclass(frozen=True, slots=True, eq=False)
class Jury:
    """Judges taught on the folds of a sample, and where the sample's own rows fall in their opinion."""

    judges: tuple[Judge, ...]
    target: float
    reference: Features
    keys: np.ndarray
    threshold: float
    seed: int
    cuts: np.ndarray
    share_at_cut: float

    def opinions(self, values: np.ndarray) -> np.ndarray:
        """What every judge expects of every row, (judges, n)."""
        return np.stack([judge.predict(values) for judge in self.judges])


def form_jury(sample: Sample, covered: np.ndarray, alpha: float, seed: int) -> Jury:
    """Five judges from the five folds of a sample."""
    features = check_features(sample.given["X"])
    misses = int(np.count_nonzero(~covered))
    if misses < 2 * FEWEST_MISSES:
        raise InputError(
            f"the sample has {misses} misses; {2 * FEWEST_MISSES} are needed to learn where they happen."
        )
    rng = np.random.default_rng([seed, *b"jury"])
    parts = deal(covered, N_JUDGES, rng)
    judges = tuple(
        teach(features.take(np.flatnonzero(parts != part)), covered[parts != part], 1.0 - alpha, rng)
        for part in range(N_JUDGES)
    )
    expected = np.stack([judge.predict(features.values) for judge in judges]).mean(axis=0)
    cuts = np.quantile(expected, np.arange(1, TENTHS) / TENTHS)
    # Where many rows share the cut, a draw per row picks so many of them that a fifth is picked in all.
    cut = np.quantile(expected, PICKED)
    below, at = np.mean(expected < cut), np.mean(expected == cut)
    share = float((PICKED - below) / at) if at else 0.0
    return Jury(
        judges, 1.0 - alpha, features.take(np.arange(0)), np.sort(sample.keys), sample.threshold, seed,
        np.concatenate([[cut], cuts]), share,
    )  # fmt: skip


@dataclass(eq=False)
class JuryState(State):
    """What the judges expect of all rows outside the sample, against what happened there."""

    SHARED = ("jury",)
    jury: Jury
    sample_seed: int
    losses: tuple[str, ...] = ("l1", "l2")
    null: str = "flat"
    confidence: float = 0.95
    moments: dict[tuple[str, str], Moments] = field(default_factory=dict)
    by_judge: dict[tuple[str, str], list[Moments]] = field(default_factory=dict)
    # Per side: rows, covered, expectation minus target, its square, and their product.
    sums: dict[str, np.ndarray] = field(default_factory=dict)
    # Per tenth of what is expected: covered rows, rows, sum of expectations.
    tenths: np.ndarray = field(default_factory=lambda: np.zeros((3, TENTHS)))
    # Picked and other rows: covered, all; and the mass stated inside the sets of picked rows.
    picked: np.ndarray = field(default_factory=lambda: np.zeros((2, 2)))
    stated: float = 0.0

    @property
    def needs(self) -> frozenset[str]:
        """Features, coverage and what is stated inside the sets."""
        return frozenset({"X", "covered", "probabilities", "row_id", "sample_weight"})

    def fresh(self) -> Self:
        """An empty state with the same jury, which is shared, not copied."""
        return type(self)(self.jury, self.sample_seed, self.losses, self.null, self.confidence)

    def absorb(self, block: Block) -> None:
        """Hear the judges about the rows of the block that are not in the sample."""
        rows = rows_outside(block, self.jury.keys, self.jury.threshold, self.sample_seed)
        if not len(rows):
            return
        table = block.rows(rows)["X"]
        values = encode_like(table, self.jury.reference)
        z = block["covered"][rows].astype(float)
        w = None if block.weights is None else block.weights[rows]
        opinions = self.jury.opinions(values)
        self._add_losses(opinions, z, w)
        expected = opinions.mean(axis=0)
        mass = np.ones(len(rows)) if w is None else w
        self._add_sums(expected, z, mass)
        self._add_tenths(expected, z, mass)
        self._add_picked(block, rows, expected, z, mass)

    def _add_losses(self, opinions: np.ndarray, z: np.ndarray, w: np.ndarray | None) -> None:
        target = np.full(len(z), self.jury.target)
        for loss in self.losses:
            distance = check_distance(loss, target)
            gains = {
                side: np.stack(
                    [distance.contributions(clip_to_side(h, target, side), z, target) for h in opinions]
                )
                for side in ("over", "under")
            }
            gains["both"] = gains["over"] + gains["under"]
            for side, each in gains.items():
                key = (loss, side)
                own = Moments.of(each.mean(axis=0), w)
                self.moments[key] = self.moments.get(key, Moments()).merge(own)
                before = self.by_judge.get(key, [Moments()] * len(opinions))
                self.by_judge[key] = [
                    old.merge(Moments.of(rows, w)) for old, rows in zip(before, each, strict=True)
                ]

    def _add_sums(self, expected: np.ndarray, z: np.ndarray, w: np.ndarray) -> None:
        target = np.full(len(z), self.jury.target)
        for side in SIDES:
            g = (expected if side == "both" else clip_to_side(expected, target, side)) - self.jury.target
            found = np.array([w.sum(), (w * z).sum(), (w * g).sum(), (w * g * g).sum(), (w * z * g).sum()])
            self.sums[side] = self.sums.get(side, np.zeros(5)) + found

    def _add_tenths(self, expected: np.ndarray, z: np.ndarray, w: np.ndarray) -> None:
        tenth = np.searchsorted(self.jury.cuts[1:], expected, side="right")
        for k, column in enumerate((w * z, w, w * expected)):
            self.tenths[k] += np.bincount(tenth, weights=column, minlength=TENTHS)

    def _add_picked(
        self, block: Block, rows: np.ndarray, expected: np.ndarray, z: np.ndarray, w: np.ndarray
    ) -> None:
        cut, share = self.jury.cuts[0], self.jury.share_at_cut
        ties = block.draws("ties", self.jury.seed)[rows] < share
        picked = (expected < cut) | ((expected == cut) & ties)
        for k, part in enumerate((picked, ~picked)):
            self.picked[k] += [(w * z)[part].sum(), w[part].sum()]
        P, sets = block.get("probabilities"), block.derived_sets()
        if P is not None and sets is not None:
            chosen = rows[picked]
            self.stated += float(np.sum(w[picked] * np.sum(P[chosen] * sets[chosen], axis=1)))

    def merge(self, other: Self) -> Self:
        """Add what was heard elsewhere."""
        for key, theirs in other.moments.items():
            self.moments[key] = self.moments.get(key, Moments()).merge(theirs)
            heard = other.by_judge[key]
            before = self.by_judge.get(key, [Moments()] * len(heard))
            self.by_judge[key] = [a.merge(b) for a, b in zip(before, heard, strict=True)]
        for side, sums in other.sums.items():
            self.sums[side] = self.sums.get(side, np.zeros(5)) + sums
        self.tenths += other.tenths
        self.picked += other.picked
        self.stated += other.stated
        return self

    def finish(self) -> Any:
        """The table of excess risks, by loss and side."""
        found = {}
        for loss in self.losses:
            for side in SIDES:
                name = loss if side == "both" else f"{loss}_{side}"
                found[name] = self._estimate(loss, side)
        return EstimateTable(found, title="Excess risk of the target coverage")

    def _estimate(self, loss: str, side: str) -> Estimate:
        rows = self.moments[loss, side]
        judges = np.array([moments.mean for moments in self.by_judge[loss, side]])
        error, freedom = combined_error(rows, judges)
        half = float(special.stdtrit(freedom, (1 + self.confidence) / 2)) * error
        p = direction_p_value(self.sums[side], self.jury.target, self.null)
        name = f"{loss.upper()}-ERT"
        return Estimate(
            name=name if side == "both" else f"{name} ({side}-coverage)",
            value=rows.mean,
            std_error=error,
            low=rows.mean - half,
            high=rows.mean + half,
            confidence=self.confidence,
            n=rows.n,
            p_value=p,
            alternative=None if p is None else "greater",
            method=f"{len(judges)} judges taught on {len(self.jury.keys)} rows and heard on all others; "
            f"error of the rows and, by leaving out folds, of the sample; score test of {self.null}",
            reason="" if p is not None else "no judge expects any row to differ from another",
            details={
                "judges": judges.tolist(),
                "row_error": rows.std_error,
                "sample_rows": len(self.jury.keys),
                "coverage": float(self.sums[side][1] / self.sums[side][0]),
                "statement": "in expectation a lower bound of the true excess risk: no classifier beats the "
                "true conditional coverage",
            },
        )


def combined_error(rows: Moments, judges: np.ndarray) -> tuple[float, float]:
    """Standard error from the rows judged and from the sample taught on, and its degrees of freedom.

    A judge knows all folds but one, so the sum of squares of the judges' values around their mean is the
    jackknife of a statistic of K - 1 independent folds; by the inequality of Efron and Stein its
    expectation is at least the variance of one judge's value, and so of the mean of them.
    """
    sample = float(np.sum((judges - judges.mean()) ** 2))
    row = rows.std_error**2 if rows.n > 1 else math.nan
    total = row + sample
    if not total > 0:
        return 0.0, 1.0
    # Welch and Satterthwaite; the folds bring K - 1 degrees of freedom.
    freedom = total**2 / (row**2 / max(1.0, rows.n - 1) + sample**2 / (len(judges) - 1))
    return math.sqrt(total), freedom


def direction_p_value(sums: np.ndarray, target: float, null: str) -> float | None:
    """Test of whether rows are covered more often where the judges expect it; None when they expect nothing.

    The judges are fixed given the sample, so given the expectations the sum of (z - t) g has mean 0 and
    variance t (1 - t) sum g^2 under "target"; under "flat", given the number covered, it is a draw without
    replacement with variance c (1 - c) n / (n - 1) sum (g - mean g)^2.
    """
    n, hits, g, square, product = sums
    if null == "target":
        score, variance = product - target * g, target * (1 - target) * square
    else:
        share = hits / n
        score = product - share * g
        variance = share * (1 - share) * n / max(1.0, n - 1) * (square - g * g / n)
    if not variance > 1e-12 * n:
        return None
    return float(special.ndtr(-score / math.sqrt(variance)))


def encode_like(table: Any, reference: Features) -> np.ndarray:
    """The features of some rows, categories numbered as in the sample; a category it lacks is missing."""
    found = check_features(table)
    values = found.values
    for j, known in enumerate(reference.categories):
        if known is not None:
            own = found.categories[j]
            position = {label: float(i) for i, label in enumerate(known)}
            labels = () if own is None else own
            lookup = np.array([*(position.get(label, np.nan) for label in labels), np.nan])
            codes = values[:, j]
            index = np.where(np.isnan(codes), len(labels), codes).astype(np.int64)
            values[:, j] = lookup[np.minimum(index, len(labels))]
    return values
