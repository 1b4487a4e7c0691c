"""The rows of a promise side by side: outcome, promised probability and cluster of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special, stats

from calipers.auditing.check_result import CheckResult
from calipers.auditing.measurements import Measurements
from calipers.auditing.promise import Promise
from calipers.inference import (
    FEWEST_CLUSTERS,
    Moments,
    bounded_mean_interval,
    bounded_mean_p_value,
    clopper_pearson,
    cluster_sign_test,
    design_effect,
    fit_logistic,
    logistic_log_likelihood,
)
from calipers.inputs.rows import Rows
from calipers.results.formatting import format_percent

# Log-odds beyond this are certainties: exp(-16) is one in nine million.
_CERTAIN = 16.0
# A recalibration of all rows is used when the rows support it at this level.
_ASKED = 0.05
# Knots of the splines that are tried, at equally spaced quantiles, and the rows that each must have.
_KNOTS, _ROWS_PER_KNOT = (1, 3, 7), 50
# Up to so many promises each has a value of its own.
_FEW_VALUES = 8
# Rows on which the probability of one of several classes is looked at: there are as many promises as classes.
_CLASS_ROWS = 10_000
# Parts, those with the largest gaps, whose own maps are tried against the map of all rows, and the gain in
# log-likelihood that decides for one of them: that of two more terms, by Akaike's criterion.
_TRIED_PARTS, _CLEARLY = 5, 2.0
# A mean difference of shares below this is rounding.
_ROUNDING = 1e-13

FEW_CLUSTERS = (
    f"Rows depend on each other inside clusters, and there are fewer than {FEWEST_CLUSTERS} of them: no test."
)


@dataclass(frozen=True, slots=True, eq=False)
class PromiseRows:
    """Outcomes and promises of some rows.

    Parameters
    ----------
    rows : Rows
        The rows as the promise reads them, whole-number weights written out.
    kept : bool array (n,)
        Whether the promise came true.
    promised : array (n,)
        Its probability.
    expected : array (n,)
        The same after one recalibration of all rows, where these support it: what differs between slices is
        then not what is wrong with all of them.
    cluster : array (n,) or None
        Rows that depend on each other share a value.
    """

    rows: Rows
    kept: np.ndarray
    promised: np.ndarray
    expected: np.ndarray
    cluster: np.ndarray | None

    @property
    def residuals(self) -> np.ndarray:
        """Outcome minus expectation."""
        return np.asarray(self.kept - self.expected)

    def take(self, which: np.ndarray) -> PromiseRows:
        """Some of the rows."""
        cluster = None if self.cluster is None else self.cluster[which]
        return PromiseRows(
            self.rows.take(which), self.kept[which], self.promised[which], self.expected[which], cluster
        )

    @property
    def design_effect(self) -> float:
        """Rows that count as one independent row, on average."""
        return 1.0 if self.cluster is None else design_effect(self.residuals, self.cluster)

    def share_interval(self, confidence: float) -> tuple[float, float]:
        """Clopper-Pearson interval of the share of kept promises, at the design effect of clusters.

        What was promised with certainty and kept, such as a set of all labels, has no noise.
        """
        certain = (self.promised == 1) & self.kept
        n, open_rows = len(self.kept), int(np.count_nonzero(~certain))
        if not open_rows:
            return 1.0, 1.0
        hits = int(np.count_nonzero(self.kept & ~certain))
        effect = self.design_effect
        ends = clopper_pearson(hits / effect, open_rows / effect, confidence=confidence)
        low, high = (float((n - open_rows + open_rows * float(end)) / n) for end in ends)
        return low, high

    @property
    def gap(self) -> float:
        """Mean of outcome minus promise; exactly 0 where only rounding is left."""
        mean = float(np.mean(self.kept - self.promised))
        return 0.0 if abs(mean) < _ROUNDING else mean

    def gap_interval(self, confidence: float) -> tuple[float, float]:
        """Interval of that mean for rows of a known range, at the design effect of clusters.

        Sharp probabilities leave little noise: it is far narrower than that of the share of kept promises.
        """
        ends = bounded_mean_interval(self._gaps, **self._range, confidence=confidence)
        return min(float(ends.low), self.gap), max(float(ends.high), self.gap)

    def gap_p_value(self, generator: np.random.Generator) -> float | None:
        """Of the mean against 0: whatever the spread of the rows, or by signs of clusters, if not too few.

        Promises that are too sharp spread outcomes more than they say; their mean may be right.
        """
        if self.cluster is None:
            return bounded_mean_p_value(self._gaps, null=0.0, **self._range)
        promised = replace(self, expected=self.promised)
        return promised.sign_test(lambda residuals: np.abs(residuals.sum(axis=1)), generator)

    @property
    def _gaps(self) -> Moments:
        rows, effect = Moments.of(self.kept - self.promised), self.design_effect
        return Moments(rows.n / effect, rows.mean, rows.squares / effect)

    @property
    def _range(self) -> dict[str, float]:
        return {"low": -float(self.promised.max()), "high": 1.0 - float(self.promised.min())}

    def sign_test(
        self,
        statistic: Callable[[np.ndarray], np.ndarray],
        generator: np.random.Generator,
        seen: float | None = None,
    ) -> float | None:
        """P-value by signs of whole clusters; None with too few of them."""
        if self.cluster is None:
            raise RuntimeError("a sign test needs clusters")
        return cluster_sign_test(self.residuals, self.cluster, statistic, generator, seen=seen)


def without_a_chance_to_miss(base: CheckResult, promise: Promise, side: PromiseRows) -> CheckResult | None:
    """What is said of implied sets that all hold every label, without a test; None where some may miss."""
    if promise.kind != "stated" or not (np.all(side.promised == 1) and np.all(side.kept)):
        return None
    return replace(
        base,
        clean=f"No label reaches {format_percent(1 - promise.alpha)}: every set of the likeliest labels "
        "holds all of them and cannot miss.",
        details={"alpha": promise.alpha, "descriptive": True},
    )


def promise_rows(m: Measurements, promise: Promise) -> PromiseRows | None:
    """The sample as the promise reads it; None with importance weights, for which there is no exact test."""
    return m.kept(f"promise rows {promise.key}", lambda: _promise_rows(m, promise))


def _promise_rows(m: Measurements, promise: Promise) -> PromiseRows | None:
    rows = m.counted_rows(promise)
    if rows is None:
        return None
    if promise.is_of_class and rows.n > _CLASS_ROWS:
        rows = rows.take(m.generator("class rows").choice(rows.n, _CLASS_ROWS, replace=False))
    kept = np.asarray(rows["covered"], dtype=bool)
    if not promise.per_row:
        promised = np.full(rows.n, promise.promised)
        expected = np.full(rows.n, kept.mean())
    else:
        promised = np.clip(rows["promised"].astype(float), 0.0, 1.0)
        expected = recalibrated(kept, promised)
    cluster = rows.get("cluster")
    return PromiseRows(rows, kept, promised, expected, None if cluster is None else np.asarray(cluster))


def recalibrated(kept: np.ndarray, promised: np.ndarray) -> np.ndarray:
    """Promised probabilities as they are, or by the map of all rows that these support.

    The map is logistic or, where the rows support more, a linear spline in the log-odds (one value for each
    promise where there are few): whatever is wrong with all rows alike must not be found again in the slices
    whose promises happen to be higher or lower. Certainties stay as they are: a promise of probability 1 that
    is broken is impossible in any slice.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.auditing.promise_rows import recalibrated
    >>> rng = np.random.default_rng(0)
    >>> t = rng.random(2000)
    >>> bool(np.array_equal(recalibrated(rng.random(2000) < t, t), t))
    True
    """
    open_rows = (promised > 0) & (promised < 1)
    if np.count_nonzero(open_rows) < 20 or len(np.unique(kept[open_rows])) < 2:
        return promised
    z, t = kept[open_rows].astype(float), promised[open_rows]
    odds = np.clip(special.logit(t), -_CERTAIN, _CERTAIN)
    # The promise itself is the start: an intercept of 0 and a slope of 1.
    likelihood, n_terms, found = logistic_log_likelihood(odds, z, np.ones(len(z))), 0, promised
    for design in _maps(odds):
        fit = fit_logistic(design, z, offset=odds, ridge=1e-9)
        gain = max(0.0, fit.log_likelihood - likelihood)
        if stats.chi2.sf(2.0 * gain, design.shape[1] - n_terms) <= _ASKED:
            likelihood, n_terms, found = fit.log_likelihood, design.shape[1], promised.copy()
            found[open_rows] = fit.fitted
    return found


def is_fault_of_one_part(side: PromiseRows, masks: Sequence[np.ndarray]) -> bool:
    """Whether a map of one part alone describes the outcomes better than the map of all rows.

    A part that is off can own a range of probabilities: the map of all rows then takes its fault for
    everybody's, and the other rows of that range stand out in its place.
    """
    if np.array_equal(side.expected, side.promised):
        return False
    gaps = [_standardised_gap(side.take(mask)) for mask in masks]
    described = _log_likelihood(side.kept, side.expected)
    for k in np.argsort(gaps)[-_TRIED_PARTS:]:
        inside, alone = side.take(masks[k]), side.promised.copy()
        alone[masks[k]] = recalibrated(inside.kept, inside.promised)
        if _log_likelihood(side.kept, alone) > described + _CLEARLY:
            return True
    return False


def _standardised_gap(side: PromiseRows) -> float:
    noise = float(np.sum(side.promised * (1.0 - side.promised)))
    return abs(float(np.sum(side.kept - side.promised))) / math.sqrt(max(noise, 1.0))


def _log_likelihood(kept: np.ndarray, expected: np.ndarray) -> float:
    chance = np.where(kept, expected, 1.0 - expected)
    return float(np.sum(np.log(np.maximum(chance, np.finfo(float).tiny))))


def _maps(odds: np.ndarray) -> list[np.ndarray]:
    """Features of maps from the simplest on; each holds the ones before it."""
    values, at = np.unique(odds, return_inverse=True)
    constant = np.ones((len(odds), 1))
    if len(values) == 1:
        return [constant]
    line = np.column_stack([constant, odds])
    if len(values) == 2:
        return [line]
    if len(values) <= _FEW_VALUES:
        return [line, (at[:, None] == np.arange(len(values))).astype(float)]
    counts = [n_knots for n_knots in _KNOTS if len(odds) >= _ROWS_PER_KNOT * n_knots]
    return [line, *(_spline(line, odds, values, n_knots) for n_knots in counts)]


def _spline(line: np.ndarray, odds: np.ndarray, values: np.ndarray, n_knots: int) -> np.ndarray:
    """Linear pieces between equally spaced quantiles."""
    knots = np.unique(np.quantile(odds, np.arange(1, n_knots + 1) / (n_knots + 1)))
    inside = knots[(knots > values[0]) & (knots < values[-1])]
    return np.column_stack([line, np.maximum(0.0, odds[:, None] - inside)])
