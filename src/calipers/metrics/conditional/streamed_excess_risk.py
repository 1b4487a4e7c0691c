"""Excess risk of the target coverage over any number of rows: models of a sample, evaluated on all others.

Each model is a coverage ensemble fitted to the sample without one of its folds and evaluated on every row
outside the sample, so no model is evaluated on a row it was fitted to. The value is the mean over models; its
interval holds two errors: that of the rows evaluated, and that of the sample the models were fitted to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import special

from calipers.exceptions import InputError
from calipers.inference import Moments, ShareCounts, State
from calipers.inputs import Features, check_features
from calipers.inputs.rows import Rows
from calipers.inputs.weights import are_whole
from calipers.metrics.conditional.coverage_ensemble import CoverageClassifier, CoverageModel, deal
from calipers.metrics.conditional.cross_fitted_risk import LOWER_BOUND
from calipers.metrics.conditional.losses import SIDES, check_distance, clip_to_side
from calipers.metrics.conditional.risk_tests import UNEQUAL_WEIGHTS
from calipers.metrics.states.sampling import rows_outside
from calipers.results import Estimate, EstimateTable

N_MODELS = 5
PICKED = 0.2
TENTHS = 10
# Fewer misses than this in a half are too few to fit a classifier or to search for rules.
FEWEST_MISSES = 10
# Five models are averaged, so each can be small: what is evaluated on all rows must be quick.
_CLASSIFIER = CoverageClassifier(n_bags=2, n_trees=12)


@dataclass(frozen=True, slots=True, eq=False)
class FoldModels:
    """Models fitted without one fold of a sample each, and where the sample's rows fall in what they expect.

    Parameters
    ----------
    models : tuple of CoverageModel
        One per fold left out.
    target : float
        Promised coverage.
    reference : Features
        The columns of the sample, without rows: how categories are numbered.
    keys, threshold, seed
        The sample: the keys of its rows in order, the draw they lie below, and the seed of other draws.
    cuts : array
        Expected coverage below which a fifth of the sample lies, then its tenths.
    share_at_cut : float
        Share of the rows exactly at the first cut that belong to the fifth.
    """

    models: tuple[CoverageModel, ...]
    target: float
    reference: Features
    keys: np.ndarray
    threshold: float
    seed: int
    cuts: np.ndarray
    share_at_cut: float

    def predictions(self, values: np.ndarray) -> np.ndarray:
        """What every model expects of every row, (models, n)."""
        target = np.full(len(values), self.target)
        return np.stack([model.predict(values, target).h for model in self.models])


def fit_fold_models(
    features: Features,
    covered: np.ndarray,
    weights: np.ndarray | None,
    *,
    alpha: float,
    keys: np.ndarray,
    threshold: float,
    seed: int,
) -> FoldModels:
    """Five models from the five folds of a sample, whose rows have these keys and draws below a threshold."""
    misses = int(np.count_nonzero(~covered))
    if misses < 2 * FEWEST_MISSES:
        raise InputError(
            f"the sample has {misses} misses; {2 * FEWEST_MISSES} are needed to learn where they happen."
        )
    rng, target = np.random.default_rng([seed, *b"folds"]), np.full(len(covered), 1.0 - alpha)
    parts = deal(covered, N_MODELS, rng)
    models = []
    for part in range(N_MODELS):
        rows = np.flatnonzero(parts != part)
        w = None if weights is None else weights[rows]
        models.append(_CLASSIFIER.fit(features.take(rows), covered[rows], target[rows], w, rng))
    expected = np.mean([model.predict(features.values, target).h for model in models], axis=0)
    cuts = np.quantile(expected, np.arange(1, TENTHS) / TENTHS)
    # Where many rows share the cut, a draw per row picks so many of them that a fifth is picked in all.
    cut = np.quantile(expected, PICKED)
    below, at = np.mean(expected < cut), np.mean(expected == cut)
    share = float((PICKED - below) / at) if at else 0.0
    return FoldModels(
        tuple(models), 1.0 - alpha, features.take(np.arange(0)), np.sort(keys), threshold, seed,
        np.concatenate([[cut], cuts]), share,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Mean of contributions of weighted rows and its linearised error, mergeable.

    ``by_weight`` holds the moments under the weights w, ``by_square`` those under w^2: the variance of the
    weighted mean m is ``sum w^2 (r - m)^2 / (sum w)^2``. Without weights both are the same.
    """

    by_weight: Moments = field(default_factory=Moments)
    by_square: Moments = field(default_factory=Moments)

    @classmethod
    def of(cls, rows: np.ndarray, w: np.ndarray | None) -> WeightedRows:
        """Of one block."""
        plain = Moments.of(rows, w)
        return cls(plain, plain if w is None else Moments.of(rows, w * w))

    def merge(self, other: WeightedRows) -> WeightedRows:
        """Of two blocks together."""
        return WeightedRows(self.by_weight.merge(other.by_weight), self.by_square.merge(other.by_square))

    @property
    def mean(self) -> float:
        """Weighted mean."""
        return self.by_weight.mean

    @property
    def effective_rows(self) -> float:
        """``(sum w)^2 / sum w^2``."""
        return self.by_weight.n**2 / self.by_square.n if self.by_square.n else 0.0

    @property
    def std_error(self) -> float:
        """Linearised standard error; NaN below two effective rows."""
        rows, square = self.effective_rows, self.by_square
        if not rows > 1:
            return math.nan
        spread = square.squares + square.n * (square.mean - self.mean) ** 2
        return math.sqrt(spread * rows / (rows - 1.0)) / self.by_weight.n


@dataclass(eq=False)
class ExcessRiskState(State):
    """What the models expect of all rows outside the sample, against what happened there."""

    SHARED = ("ensemble",)
    ensemble: FoldModels
    sample_seed: int
    losses: tuple[str, ...] = ("l1", "l2")
    null: str = "flat"
    confidence: float = 0.95
    rows: dict[tuple[str, str], WeightedRows] = field(default_factory=dict)
    by_model: dict[tuple[str, str], list[Moments]] = field(default_factory=dict)
    # Per side: rows, covered, expectation minus target, its square, and their product.
    sums: dict[str, np.ndarray] = field(default_factory=dict)
    # Per tenth of what is expected: covered rows, rows, sum of expectations.
    tenths: np.ndarray = field(default_factory=lambda: np.zeros((3, TENTHS)))
    # Picked and other rows: covered, all, the same under squared weights; the mass stated inside picked sets.
    picked: np.ndarray = field(default_factory=lambda: np.zeros((2, 4)))
    stated: float = 0.0
    # Smallest and largest positive weight.
    weight_range: tuple[float, float] = (math.inf, 0.0)
    # Whether all weights are whole numbers.
    whole: bool = True

    @property
    def needs(self) -> frozenset[str]:
        """Features, coverage and what is stated inside the sets."""
        return frozenset({"X", "covered", "probabilities", "row_id", "sample_weight"})

    def fresh(self) -> Self:
        """An empty state with the same models, which are shared, not copied."""
        return type(self)(self.ensemble, self.sample_seed, self.losses, self.null, self.confidence)

    def absorb(self, block: Rows) -> None:
        """Evaluate the models on the rows of the block that are not in the sample."""
        rows = rows_outside(block, self.ensemble.keys, self.ensemble.threshold, self.sample_seed)
        if not len(rows):
            return
        table = block.rows(rows)["X"]
        values = encode_like(table, self.ensemble.reference)
        z = block["covered"][rows].astype(float)
        w = None if block.weights is None else block.weights[rows]
        predictions = self.ensemble.predictions(values)
        self._add_losses(predictions, z, w)
        expected = predictions.mean(axis=0)
        mass = np.ones(len(rows)) if w is None else w
        self._add_weights(mass)
        self._add_sums(expected, z, mass)
        self._add_tenths(expected, z, mass)
        self._add_picked(block, rows, expected, z, mass)

    def _add_losses(self, predictions: np.ndarray, z: np.ndarray, w: np.ndarray | None) -> None:
        target = np.full(len(z), self.ensemble.target)
        for loss in self.losses:
            distance = check_distance(loss, target)
            gains = {
                side: np.stack(
                    [distance.contributions(clip_to_side(h, target, side), z, target) for h in predictions]
                )
                for side in ("over", "under")
            }
            gains["both"] = gains["over"] + gains["under"]
            for side, each in gains.items():
                key = (loss, side)
                own = WeightedRows.of(each.mean(axis=0), w)
                self.rows[key] = self.rows.get(key, WeightedRows()).merge(own)
                before = self.by_model.get(key, [Moments()] * len(predictions))
                self.by_model[key] = [
                    old.merge(Moments.of(rows, w)) for old, rows in zip(before, each, strict=True)
                ]

    def _add_weights(self, w: np.ndarray) -> None:
        positive = w[w > 0]
        if len(positive):
            low, high = self.weight_range
            self.weight_range = (min(low, float(positive.min())), max(high, float(positive.max())))

    def _add_sums(self, expected: np.ndarray, z: np.ndarray, w: np.ndarray) -> None:
        target = np.full(len(z), self.ensemble.target)
        for side in SIDES:
            h = expected if side == "both" else clip_to_side(expected, target, side)
            g = h - self.ensemble.target
            sums = np.array([w.sum(), (w * z).sum(), (w * g).sum(), (w * g * g).sum(), (w * z * g).sum()])
            self.sums[side] = self.sums.get(side, np.zeros(5)) + sums

    def _add_tenths(self, expected: np.ndarray, z: np.ndarray, w: np.ndarray) -> None:
        tenth = np.searchsorted(self.ensemble.cuts[1:], expected, side="right")
        for k, column in enumerate((w * z, w, w * expected)):
            self.tenths[k] += np.bincount(tenth, weights=column, minlength=TENTHS)

    def _add_picked(
        self, block: Rows, rows: np.ndarray, expected: np.ndarray, z: np.ndarray, w: np.ndarray
    ) -> None:
        cut, share = self.ensemble.cuts[0], self.ensemble.share_at_cut
        ties = block.draws("ties", self.ensemble.seed)[rows] < share
        picked = (expected < cut) | ((expected == cut) & ties)
        for k, part in enumerate((picked, ~picked)):
            self.picked[k] += [
                (x * z)[part].sum() if c else x[part].sum() for x in (w, w * w) for c in (1, 0)
            ]
        self.whole = self.whole and are_whole(block.weights)
        P, sets = block.get("probabilities"), block.derived_sets()
        if P is not None and sets is not None:
            chosen = rows[picked]
            self.stated += float(np.sum(w[picked] * np.sum(P[chosen] * sets[chosen], axis=1)))

    def merge(self, other: Self) -> Self:
        """Add what was evaluated elsewhere."""
        for key, theirs in other.rows.items():
            self.rows[key] = self.rows.get(key, WeightedRows()).merge(theirs)
            each = other.by_model[key]
            before = self.by_model.get(key, [Moments()] * len(each))
            self.by_model[key] = [a.merge(b) for a, b in zip(before, each, strict=True)]
        for side, sums in other.sums.items():
            self.sums[side] = self.sums.get(side, np.zeros(5)) + sums
        (low, high), (least, most) = self.weight_range, other.weight_range
        self.weight_range = (min(low, least), max(high, most))
        self.tenths += other.tenths
        self.picked += other.picked
        self.whole = self.whole and other.whole
        self.stated += other.stated
        return self

    def finish(self) -> Any:
        """The state itself: its fields are the numbers."""
        return self

    def picked_counts(self) -> ShareCounts:
        """Covered rows of the fifth that is expected to be covered least, and of the others."""
        hits, totals, hit_noise, noise = self.picked.T
        if self.whole:
            return ShareCounts(hits, totals, hits, totals)
        return ShareCounts(hits, totals, hit_noise, noise, whole=False)

    def table(self) -> EstimateTable:
        """The table of excess risks, by loss and side."""
        estimates = {}
        for loss in self.losses:
            for side in SIDES:
                name = loss if side == "both" else f"{loss}_{side}"
                estimates[name] = self._estimate(loss, side)
        return EstimateTable(estimates, title="Excess risk of the target coverage", notes=(LOWER_BOUND,))

    def _estimate(self, loss: str, side: str) -> Estimate:
        rows = self.rows[loss, side]
        models = np.array([moments.mean for moments in self.by_model[loss, side]])
        error, freedom = combined_error(rows, models)
        half = float(special.stdtrit(freedom, (1 + self.confidence) / 2)) * error
        p, reason = self._p_value(side)
        name = f"{loss.upper()}-ERT"
        return Estimate(
            name=name if side == "both" else f"{name} ({side}-coverage)",
            value=rows.mean,
            std_error=error,
            low=rows.mean - half,
            high=rows.mean + half,
            confidence=self.confidence,
            n=rows.by_weight.n,
            p_value=p,
            alternative=None if p is None else "greater",
            method=f"{len(models)} coverage ensembles fitted to {len(self.ensemble.keys)} rows and evaluated "
            "on all others; error of the rows and, by leaving out folds, of the sample; score test of "
            f"{self.null}",
            reason=reason,
            details={
                "models": models.tolist(),
                "row_error": rows.std_error,
                "sample_rows": len(self.ensemble.keys),
                "coverage": float(self.sums[side][1] / self.sums[side][0]),
                "statement": LOWER_BOUND,
            },
        )

    def _p_value(self, side: str) -> tuple[float | None, str]:
        low, high = self.weight_range
        if high > low:
            return None, UNEQUAL_WEIGHTS
        p = direction_p_value(self.sums[side] / high, self.ensemble.target, self.null)
        return p, "" if p is not None else "no model expects any row to differ from another"


def combined_error(rows: WeightedRows, models: np.ndarray) -> tuple[float, float]:
    """Standard error from the rows evaluated and from the sample fitted to, and its degrees of freedom.

    A model knows all folds but one, so the sum of squares of the models' values around their mean is the
    jackknife of a statistic of K - 1 independent folds; by the inequality of Efron and Stein its
    expectation is at least the variance of one model's value, and so of the mean of them.
    """
    sample = float(np.sum((models - models.mean()) ** 2))
    row = rows.std_error**2
    total = row + sample
    if not total > 0:
        return 0.0, 1.0
    # Welch and Satterthwaite; the folds bring K - 1 degrees of freedom.
    freedom = total**2 / (row**2 / max(1.0, rows.effective_rows - 1) + sample**2 / (len(models) - 1))
    return math.sqrt(total), freedom


def direction_p_value(sums: np.ndarray, target: float, null: str) -> float | None:
    """Test of whether rows are covered more often where the models expect it; None when they expect nothing.

    The models are fixed given the sample, so given the expectations the sum of (z - t) g has mean 0 and
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
