"""Other predictions of the same rows, to see whether smaller ones cover as often.

Each rival is a family with one threshold. What a rival fits, it fits on one half of the rows and states about
the other half, so no row is predicted by a model that has seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from calipers.auditing.matched_size import Family, label_sets, match_coverage, scaled_intervals
from calipers.auditing.measurements import Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.slice_coverage import Worst, fifths, worst_slice
from calipers.conformal import lac
from calipers.inference import Moments
from calipers.inputs.rows import Rows
from calipers.metrics.equal_values import EQUAL, is_one_width, pool_equal

# Rows that a rival's models are fitted on, at most; more make them little better.
MOST_TRAINING_ROWS = 5_000
# Fitted rivals need rows to learn from.
FEWEST_TRAINING_ROWS = 100
# Predicted spreads below this share of their mean are raised to it.
SMALLEST_SPREAD = 0.05
TREES, SMALLEST_LEAF = 30, 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rival:
    """Another way to predict.

    Parameters
    ----------
    name : str
        In the name of its estimate: "size saved by ...".
    words : str
        At the start of a sentence.
    family : Family
        Its predictions at every threshold.
    is_itself : bool
        Whether it is the audited predictor with another threshold; it can show only that one covers too much.
    """

    name: str
    words: str
    family: Family
    is_itself: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Saving:
    """What a rival saves at equal coverage, as a share of the mean size, and its worst slice.

    Parameters
    ----------
    rival : Rival
        Who saves it.
    share, std_error : float
        The share saved; its error includes that of the rival's threshold.
    n : float
        Rows behind it.
    wanted : float
        The coverage at which both are compared.
    worst : Worst
        The slice that the rival covers least.
    own_worst : float
        The smallest coverage of a slice by the audited predictor.
    own_there : float
        What the audited predictor covers in the rival's worst slice.
    is_worse : bool
        Whether the rival's worst slice is surely worse than that of the audited predictor and than the
        coverage that both reach.
    """

    rival: Rival
    share: float
    std_error: float
    n: float
    wanted: float
    worst: Worst
    own_worst: float
    own_there: float
    is_worse: bool


def rivals_of(m: Measurements, promise: Promise, rows: Rows) -> list[Rival]:
    """Every rival that what was given allows; ``rows`` are those of the sample with finite sizes."""
    found = _of_sets(rows) if m.task == "classification" else _of_intervals(m, promise, rows)
    return list(found)


def _of_sets(rows: Rows) -> Iterator[Rival]:
    y = rows["codes"]
    if (p_values := rows.get("p_values")) is not None and p_values.ndim == 2:
        yield Rival(
            name="the same p-values at another level", words="The same p-values, cut at another level,",
            family=label_sets(-p_values, y), is_itself=True,
        )  # fmt: skip
    if (P := rows.get("probabilities")) is not None:
        yield Rival(
            name="a threshold on the probabilities", words="A plain threshold on the same probabilities",
            family=label_sets(lac(P), y),
        )  # fmt: skip


def _of_intervals(m: Measurements, promise: Promise, rows: Rows) -> Iterator[Rival]:
    y, (lower, upper) = rows["outcomes"], rows["interval_at_level"].T
    middle, half = (lower + upper) / 2, m.half("CAL302")[np.isfinite(m.rows_at(promise)["size"])]
    yield Rival(
        name="scaling the intervals", words="The same intervals, scaled around their middles,",
        family=scaled_intervals(y, lower, upper), is_itself=True,
    )  # fmt: skip
    if not is_one_width(lower, upper):
        yield Rival(
            name="equal widths", words="Intervals of one width around the same middles",
            family=scaled_intervals(y, middle - 1, middle + 1),
        )  # fmt: skip
    if np.ptp(lower) > 0 or np.ptp(upper) > 0:
        centre = out_of_half(half, lambda train: np.full(rows.n, _densest_middle(y[train], promise.promised)))
        yield Rival(
            name="a constant interval", words="One interval for all rows, without any model,",
            family=scaled_intervals(y, centre - 1, centre + 1),
        )  # fmt: skip
    if rows.get("X") is not None and min(half.sum(), (~half).sum()) >= FEWEST_TRAINING_ROWS:
        yield from _fitted(m, promise, rows, middle, half)


def out_of_half(half: np.ndarray, predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """For each half of the rows what ``predict(rows of the other half)`` says of all rows."""
    found = np.empty(len(half))
    for test in (half, ~half):
        found[test] = predict(np.flatnonzero(~test))[test]
    return found


def _densest_middle(y: np.ndarray, share: float) -> float:
    """The middle of the shortest interval that holds a share of the outcomes."""
    ranked = np.sort(y)
    inside = min(len(ranked) - 1, int(np.ceil(share * len(ranked))) - 1)
    at = int(np.argmin(ranked[inside:] - ranked[: len(ranked) - inside]))
    return float(ranked[at] + ranked[at + inside]) / 2


def _fitted(
    m: Measurements, promise: Promise, rows: Rows, middle: np.ndarray, half: np.ndarray
) -> Iterator[Rival]:
    # Normalised conformal predictors: around the same middles, and around a model of the features.
    values = m.features.values[np.isfinite(m.rows_at(promise)["size"])]
    X = filled(values)
    y, weights, rng = rows["outcomes"], rows.weights, m.generator(f"CAL302{promise.tag}")
    fit = Learner(X, weights, rng)
    spread = out_of_half(half, lambda train: fit.spread(train, np.abs(y - middle)))
    yield Rival(
        name="widths by the features",
        words="Intervals around the same middles, as wide as the features ask,",
        family=scaled_intervals(y, middle - spread, middle + spread),
    )  # fmt: skip
    centre, spread = np.empty(len(y)), np.empty(len(y))
    for test in (half, ~half):
        train = rng.permutation(np.flatnonzero(~test))
        first, second = train[: 2 * len(train) // 3], train[2 * len(train) // 3 :]
        stated = fit.mean(first, y)
        centre[test], spread[test] = stated[test], fit.spread(second, np.abs(y - stated))[test]
    yield Rival(
        name="a model of the features",
        words="A normalised conformal predictor fitted to the features on other rows",
        family=scaled_intervals(y, centre - spread, centre + spread),
    )  # fmt: skip


def filled(values: np.ndarray) -> np.ndarray:
    """Features without gaps: what is missing is a value of its own, below all others."""
    return np.where(np.isnan(values), np.nanmin(values, axis=0, initial=0.0) - 1.0, values)


@dataclass(frozen=True, slots=True, eq=False)
class Learner:
    """Extremely randomised trees of the features, fitted to some rows and read at all."""

    X: np.ndarray
    weights: np.ndarray | None
    rng: np.random.Generator

    def mean(self, train: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The expected target of every row."""
        from sklearn.ensemble import ExtraTreesRegressor

        if len(train) > MOST_TRAINING_ROWS:
            train = self.rng.choice(train, MOST_TRAINING_ROWS, replace=False)
        # Weights only matter by their ratios.
        weights = None if self.weights is None else self.weights[train] / self.weights[train].mean()
        model = ExtraTreesRegressor(
            n_estimators=TREES, min_samples_leaf=SMALLEST_LEAF, random_state=int(self.rng.integers(2**31))
        )
        model.fit(self.X[train], target[train], sample_weight=weights)
        return np.asarray(model.predict(self.X))

    def spread(self, train: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """The expected residual of every row, positive."""
        stated = self.mean(train, residuals)
        floor = max(SMALLEST_SPREAD * float(residuals[train].mean()), float(np.finfo(float).tiny))
        return np.asarray(np.maximum(stated, floor))


def distinct_sizes(rows: Rows) -> np.ndarray:
    """Finite sizes of sets or intervals; those that differ only by rounding are one size."""
    size = rows["size"].astype(float)
    ends = rows.get("interval_at_level")
    if ends is not None and is_one_width(*ends.T):
        return np.full(rows.n, size.mean())
    return pool_equal(size)


def saving_of(rival: Rival, rows: Rows, promised: float, slices: Mapping[str, np.ndarray]) -> Saving | None:
    """What a rival saves at the coverage that both reach; None where it cannot reach it with a finite size.

    Notes
    -----
    The coverage is the promised one, or that of the audited predictor where it is lower. With d_i the size
    less the rival's contribution (`matched_size`) and s_i the size, the share saved is sum d / sum s, and its
    standard error that of the mean of d_i - share s_i over the mean size.
    """
    covered, size, weights = rows["covered"], rows["size"].astype(float), rows.weights
    own = float(np.average(covered, weights=weights))
    wanted = min(own, promised)
    if not 0.0 < wanted < 1.0:
        return None
    matched = match_coverage(rival.family, wanted, weights)
    mean = float(np.average(size, weights=weights))
    if matched is None or mean <= 0:
        return None
    # Where its own coverage is matched, that moves with the rows too.
    luck = matched.rate * (covered - own) if own < promised else 0.0
    saved = size - matched.contributions - luck
    saved[np.abs(saved) <= EQUAL * mean] = 0.0  # equal in exact arithmetic
    share = float(np.average(saved, weights=weights)) / mean
    moments = Moments.of(saved - share * size, weights)
    sizes = {"size": distinct_sizes(rows), "the size of the rival": pool_equal(matched.sizes)}
    along = {name: fifths(values, weights) for name, values in sizes.items() if np.ptp(values) > 0}
    worst, own_worst = (worst_slice(z, dict(slices) | along, weights) for z in (matched.covered, covered))
    return Saving(
        rival=rival, share=share, std_error=moments.std_error / mean, n=moments.rows, wanted=wanted,
        worst=worst, own_worst=own_worst.share,
        own_there=float(np.average(covered[worst.rows], weights=_at(weights, worst))),
        is_worse=worst.high < min(own_worst.share, wanted),
    )  # fmt: skip


def _at(weights: np.ndarray | None, worst: Worst) -> np.ndarray | None:
    return None if weights is None else weights[worst.rows]
