"""Can probabilities be read as probabilities in every group? The multicalibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator, is_frame
from calipers.inference import NO_EXACT_LAW
from calipers.inference.null_law import NULL_LEVEL
from calipers.inference.staged_law import STAGES, StagedLaw, is_affordable
from calipers.inputs import check_count, check_same_length
from calipers.inputs.attributes import Attributes, check_attributes
from calipers.inputs.weights import effective_size
from calipers.metrics.entry import MetricEntry
from calipers.metrics.multicalibration.group_scores import (
    GroupNoise,
    RangeTails,
    UnitNoise,
    certainty_scores,
)
from calipers.metrics.multicalibration.group_walks import GroupWalks, attribute_sets, group_walks
from calipers.metrics.multicalibration.joint_draws import Family, draw_cost, joint_law
from calipers.metrics.multicalibration.units import PromiseUnits, pool_units
from calipers.metrics.reliability.calibration_estimate import SOFT_REASON
from calipers.metrics.reliability.multiclass import check_reliability_rows
from calipers.results import Estimate

_NO_INTERVAL = "no interval: that of a largest value over groups is not known"
# Groups listed in ``details``, those with the largest values first in line.
_MOST_LISTED = 10_000


def multicalibration_error(
    y_true: Any,
    probabilities: Any,
    groups: Any,
    *,
    depth: int = 2,
    pos_label: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    n_draws: int = STAGES[0],
    random_state: RandomState = None,
) -> Estimate:
    """How far stated probabilities are from observed frequencies in the worst group, in standard deviations.

    Inside every group: take any range of scores, compare the number of events with the number stated, and
    divide the largest difference by its standard deviation under the promise. The value is the largest
    over all groups and all intersections of up to ``depth`` attributes. One calibrated group reads about
    1.6; the worst of many reads more, and ``null_high`` says up to where.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels; or soft labels, which have no test.
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class. With more than two columns the largest probability
        is read as the statement that its label is right (the first of equal ones).
    groups : array of shape (n,), or a table (n, G)
        A label per row; or several attributes as a dataframe, a mapping of columns or a two-dimensional
        array, whose intersections are looked at too.
    depth : int
        Most attributes that are intersected.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    classes : sequence of K labels, optional
        The label of every column, when it cannot be read off ``y_true``.
    sample_weight : array of shape (n,), optional
        Weights. Whole numbers are repeated rows; with others there is no test.
    n_draws : int
        Simulated data sets to begin with.
    random_state : int, Generator or None
        Source of the simulated outcomes.

    Returns
    -------
    Estimate
        ``details``: "groups" (name to value, rows, adjusted p_value, and the mean "stated" and "happened"),
        "worst" (the name of the group with the largest value), "n_groups", "law" (how the p-value was
        found), "n_draws" and "resolution" (the smallest p-value the draws can show).

    Raises
    ------
    InputError
        For lengths that differ, probabilities outside [0, 1], missing labels or groups, and attributes of
        many fractional numbers, which must be binned first.

    Notes
    -----
    Value of a group: the range of the cumulative z - t along t, read where the score changes, over
    sqrt(V), V = sum t (1 - t). A group with fewer than about six rare events is measured by the square
    root of its Poisson deviance instead, which is smaller: one event where 0.01 were expected is no
    matter of ten standard deviations. An outcome that was promised not to happen (t = 0 or 1) reads at
    least 8.4 in every group that holds it.
    Groups with the same rows count once, under the name with the fewest attributes. All rows together are
    no group: `calibration_error` looks at them.
    Test: outcomes are redrawn as coins with the stated probabilities, all groups from the same coins, so that
    groups that share rows keep their dependence; ``n_draws``, and up to 9 999 and 99 999 while fewer
    than ten of them reach the value. Adjusted p-values compare each group with the largest value of
    every draw (max-statistic). Below the resolution of the draws, and where rows times sets of attributes
    exceed 300 000, the p-value is the sum over groups of the tail of the Brownian range, corrected for
    skewness: an upper bound that is close when groups share few rows.
    Cost: O(n log n) for every set of attributes; 100 000 rows and 20 attributes of five labels, 4850 groups,
    take about half a second.

    References
    ----------
    Guy, Haimovich, Linder, Okati, Perini, Tax, Tygert (2025), Measuring multi-calibration,
    arXiv:2506.11251. Feller (1951), The asymptotic distribution of the range of sums of independent
    random variables. Westfall and Young (1993), Resampling-based multiple testing.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import multicalibration_error
    >>> rng = np.random.default_rng(0)
    >>> sex, age = rng.integers(0, 2, 4000), rng.integers(0, 3, 4000)
    >>> stated = rng.random(4000)
    >>> true = np.clip(stated + np.where((sex == 1) & (age == 2), 0.15, 0.0), 0, 1)
    >>> y = rng.random(4000) < true
    >>> error = multicalibration_error(y, stated, {"sex": sex, "age": age}, random_state=0)
    >>> error.details["worst"], error.p_value < 1e-4
    ('sex=1 and age=2', True)
    """
    attributes = check_attributes(groups)
    check_same_length(y_true=y_true, groups=groups if is_frame(groups) else attributes)
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    )
    if sample_weight is not None:  # rows of weight 0 are not there
        attributes = attributes.take(np.flatnonzero(as_numpy(sample_weight, name="sample_weight") > 0))
    units = pool_units(rows, attributes)
    family = measure_family(units, check_count(depth, name="depth"))
    fields: dict[str, Any] = {
        "name": "multicalibration_error",
        "value": float(np.max(family.scores)),
        "n": effective_size(
            float(np.sum(units.trials * units.importance)),
            float(np.sum(units.trials * units.importance**2)),
            whole=units.weights is None,
        ),
    }
    if units.weights is not None or units.soft:
        missing = NO_EXACT_LAW if units.weights is not None else SOFT_REASON
        return Estimate(**fields, method=_method(family), reason=f"{_NO_INTERVAL}; {missing}",
                        details=_details(family, None))  # fmt: skip
    null = joint_law(
        units, family.walks, fields["value"], RangeTails(family.noise), generator(random_state),
        check_count(n_draws, name="n_draws"),
    )  # fmt: skip
    return Estimate(
        **fields,
        p_value=null.p_value(fields["value"]),
        alternative="greater",
        null_high=null.point(NULL_LEVEL),
        null_level=NULL_LEVEL,
        method=f"{_method(family)}, {_law(null)}",
        reason=_NO_INTERVAL,
        details=_details(family, null),
    )


@dataclass(frozen=True, slots=True, eq=False)
class GroupFamily:
    """Every group once, with what it reads.

    Parameters
    ----------
    attributes : Attributes
        Names of attributes and labels.
    members : list of (tuple of int, array)
        Attributes and labels of every group.
    scores, events : array (C,)
        Value and (weighted) number of events of every group.
    noise : GroupNoise
        What they would do under the promise.
    walks : list
        Walks, noise and which groups count, for every set of attributes; empty when too many to simulate.
    """

    attributes: Attributes
    members: list[tuple[tuple[int, ...], np.ndarray]]
    scores: np.ndarray
    events: np.ndarray
    noise: GroupNoise
    walks: list[Family]


def measure_family(units: PromiseUnits, depth: int) -> GroupFamily:
    """Measure all groups and intersections; groups of the same rows are measured once."""
    sets = attribute_sets(len(units.attributes.labels), depth)
    is_small = is_affordable(draw_cost(len(units), len(sets)))
    measure, is_new = _GroupMeasure(units), _NewGroups(len(units))
    members, scores, events, noises, walked = [], [], [], [], []
    for walks in group_walks(units, sets):
        kept = is_new(walks)
        if not kept.any():
            continue
        own_scores, own_events, noise = measure(walks, kept)
        members += [(walks.which, codes) for codes in walks.codes[kept]]
        scores.append(own_scores)
        events.append(own_events)
        noises.append(noise)
        if is_small:
            walked.append((walks, noise, kept))
    return GroupFamily(
        units.attributes,
        members,
        np.concatenate(scores),
        np.concatenate(events),
        GroupNoise.joined(noises),
        walked,
    )


class _GroupMeasure:
    """What groups read; columns of the units are made once for all sets of attributes."""

    def __init__(self, units: PromiseUnits) -> None:
        self.noise, self.impossible = UnitNoise.of(units), units.impossible
        self.residuals, self.events = units.residuals(units.hits)[None], units.hits * units.importance
        self.any_impossible = bool(self.impossible.any())

    def __call__(self, walks: GroupWalks, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, GroupNoise]:
        noise = self.noise.of_groups(walks).take(kept)
        scores = noise.scores(walks.ranges(self.residuals)[0, kept])
        if self.any_impossible:
            scores = np.maximum(scores, certainty_scores(walks.sums(self.impossible)[kept]))
        return scores, walks.sums(self.events)[kept], noise


class _NewGroups:
    """Which groups hold rows that no earlier group holds exactly.

    A set of units is named by its size and by the sum of a random whole number per unit, which is exact.
    """

    def __init__(self, n: int) -> None:
        self.keys = np.random.default_rng(n).integers(1, (1 << 53) // n, n).astype(np.float64)
        self.seen: set[tuple[float, int]] = set()

    def __call__(self, walks: GroupWalks) -> np.ndarray:
        sizes = np.diff(walks.first, append=len(self.keys))
        named = list(zip(walks.sums(self.keys).tolist(), sizes.tolist(), strict=True))
        kept = np.array([name not in self.seen for name in named])
        self.seen.update(named)
        return kept


def _details(family: GroupFamily, null: StagedLaw | None) -> dict[str, Any]:
    order = np.argsort(-family.scores, kind="stable")
    listed = np.sort(order[:_MOST_LISTED])
    names = {int(i): family.attributes.group_name(*family.members[i]) for i in listed}
    p_values = _adjusted(family.scores[listed], null)
    rows = family.noise.rows
    groups = {
        names[int(i)]: {
            "value": float(family.scores[i]),
            "rows": float(rows[i]),
            "p_value": p,
            "stated": float(family.noise.stated[i] / rows[i]),
            "happened": float(family.events[i] / rows[i]),
        }
        for i, p in zip(listed, p_values, strict=True)
    }
    details: dict[str, Any] = {
        "worst": names[int(order[0])],
        "groups": groups,
        "n_groups": len(family.scores),
    }
    if null is None:
        return details
    return details | {"law": _law(null), "n_draws": null.n_draws, "resolution": null.resolution}


def _adjusted(scores: np.ndarray, null: StagedLaw | None) -> list[float | None]:
    """P(largest value of all groups >= that of each group)."""
    if null is None:
        return [None] * len(scores)
    distinct, inverse = np.unique(scores, return_inverse=True)
    # Adjusted p-values fall as scores grow: once one is 1, all below it are.
    p = np.ones(len(distinct))
    for i in reversed(range(len(distinct))):
        p[i] = null.p_value(float(distinct[i]))
        if p[i] >= 1.0:
            break
    return list(p[inverse].tolist())


def _law(null: StagedLaw) -> str:
    if null.n_draws:
        return f"max-statistic over {null.n_draws} joint draws of the outcomes"
    return "sum over groups of the tails of the Brownian range, corrected for skewness"


def _method(family: GroupFamily) -> str:
    return f"largest standardised range of the cumulative difference over {len(family.scores)} groups"


ENTRIES = (
    MetricEntry(
        function=multicalibration_error,
        question="probabilities",
        inputs=("y_true", "probabilities", "groups"),
        direction="lower",
        good="not above null_high; about 1.6 for one group, more for the worst of many",
        bounds=(0.0, float("inf")),
        null="outcomes are coins with the stated probabilities, in all groups together",
        no_interval="the interval of a largest value over groups is not known",
        merge="gather",
        scaled="a test statistic grows with the rows; importance weights have their effective number",
        weighted=True,
        randomized=True,
    ),
)
