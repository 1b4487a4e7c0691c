"""Where coverage fails: readable rules, found on one part of the rows and estimated on another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.exceptions import InputError
from calipers.inference import CoverageLaw, binomial_p_value, clopper_pearson, holm, sidak_confidence
from calipers.inputs import (
    Features,
    check_alpha,
    check_confidence,
    check_count,
    check_covered,
    check_features,
    check_fraction,
    check_same_length,
)
from calipers.metrics.conditional.conditions import (
    Condition,
    Rule,
    all_conditions,
    rule_holds,
    rule_in_words,
    simplified,
)
from calipers.metrics.conditional.halves import random_order
from calipers.metrics.entry import MetricEntry
from calipers.results import Estimate, EstimateTable

_NULL_LEVEL = 0.95
_BEAM = 12
# A longer rule must explain this much more than the one it grew from.
_WORTH_A_CONDITION = 1.15
_MOST_SEARCHED = 20_000
_MOSTLY_NEW = 0.8
# Regions that explain less than this many standard errors on the searching part are not worth a test.
_WORTH_A_TEST = 2.5


@dataclass(frozen=True, slots=True)
class _Search:
    """The searching part: condition masks, departures of coverage from the target, options."""

    conditions: list[Condition]
    masks: np.ndarray
    noise: float
    smallest: float
    most_conditions: int


def failing_regions(
    X: Any,
    covered: Any,
    *,
    alpha: Any,
    min_mass: float = 0.02,
    max_conditions: int = 3,
    max_regions: int = 8,
    search_size: float = 0.5,
    keep: str = "significant",
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> EstimateTable:
    """Regions where coverage is not 1 - alpha, as rules a person can read.

    A key reads "27.5 < age <= 41 and city is Rome", its `Estimate` is the coverage there, measured on rows
    that did not choose the rule. The table is empty when nothing fails, and ranked by how much of the excess
    risk each region explains. Both under- and over-coverage count.

    Parameters
    ----------
    X : table of shape (n, d)
        Features; numbers, booleans, categories, text and missing values are fine.
    covered : bool array of shape (n,)
        Whether each outcome lay in its set.
    alpha : float
        Allowed miscoverage.
    min_mass : float
        Smallest share of the rows a region may hold.
    max_conditions : int
        Longest rule.
    max_regions : int
        Most regions to test.
    search_size : float
        Share of the rows that choose the rules; the others measure them.
    keep : {"significant", "all"}
        Regions whose adjusted p-value is at most 1 - confidence, or every region that was tested.
    confidence : float
        Level at which all intervals hold together.
    random_state : int, Generator or None
        Source of the two parts.

    Returns
    -------
    EstimateTable
        Rule in words -> `Estimate` of its coverage. The p-value is adjusted for the number of regions
        tested (Holm), the interval is Clopper-Pearson at the Sidak level. ``details``: "mass" (share of the
        rows), "rows", "excess_risk" (mass times squared gap), "side", "sentence".

    Raises
    ------
    InputError
        For fewer than 20 rows, or lengths that differ.

    Notes
    -----
    Search: rules are grown condition by condition, the best 12 at a time, to explain as much as possible of
    the squared excess risk, ``(sum_R (z - t))^2 / |R|``; a further condition must add 15 %, and
    more than the luckiest of M useless ones would, 2 log M squared standard errors. When a region is
    found its rows are laid aside and the search goes on; a rule at least four fifths new is kept. Bounds are
    rounded before they are used: what is printed is what was measured. At most 20 000 rows search. Given the
    rules the measuring rows are fresh, so tests and intervals are exact binomial ones.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import failing_regions
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(4000, 3))
    >>> covered = rng.random(4000) < np.where(X[:, 1] > 8, 0.6, 0.9)
    >>> table = failing_regions(X, covered, alpha=0.1, random_state=0)
    >>> len(table), next(iter(table)).split(" > ")[0], next(iter(table.values())).details["side"]
    (1, 'x1', 'under')
    """
    features, z = check_features(X), as_numpy(check_covered(covered))
    n = check_same_length(X=X, covered=covered)
    target, level = 1.0 - check_alpha(alpha), check_confidence(confidence)
    share = check_fraction(search_size, name="search_size", meaning="It is the share of rows that search")
    mass = check_fraction(min_mass, name="min_mass", meaning="It is the smallest share of rows in a region")
    if keep not in ("significant", "all"):
        raise InputError(f'keep must be "significant" or "all", got {keep!r}.')
    if n < 20:
        raise InputError(f"failing_regions needs at least 20 rows, got {n}.")
    order = random_order(features, z, generator(random_state))
    cut = min(max(int(share * n), 10), n - 10)
    searching, measuring = order[:cut][:_MOST_SEARCHED], order[cut:]
    rules = _find_rules(
        features.take(searching), z[searching], target, mass,
        check_count(max_conditions, name="max_conditions"), check_count(max_regions, name="max_regions"),
    )  # fmt: skip
    measured = features.take(measuring)
    estimates = _measure(rules, measured, z[measuring], target, level)
    return _table(estimates, 1.0 - level if keep == "significant" else 1.0)


def _find_rules(
    features: Features, z: np.ndarray, target: float, mass: float, most_conditions: int, most_regions: int
) -> list[Rule]:
    conditions = all_conditions(features)
    if not conditions:
        return []
    masks = np.stack([c.holds(features) for c in conditions]).astype(np.float32)
    search = _Search(conditions, masks, target * (1.0 - target), max(5.0, mass * len(z)), most_conditions)
    fresh = np.ones(len(z))
    rules: list[Rule] = []
    for _ in range(2 * most_regions):
        rule, held, score = _best_rule(search, fresh * (z - target), fresh)
        if score < _WORTH_A_TEST**2 or len(rules) == most_regions:
            break
        rows = rule_holds(rule, features)
        # A rule that mostly repeats earlier ones would tell nothing new; its rows are laid aside anyhow.
        if held.sum() >= _MOSTLY_NEW * rows.sum():
            rules.append(simplified(rule))
        fresh = fresh * (1.0 - held)
    return rules


def _best_rule(
    search: _Search, departure: np.ndarray, everyone: np.ndarray
) -> tuple[Rule, np.ndarray, float]:
    """Beam search among the given rows for the rule that explains most, in squared standard errors."""
    best: tuple[Rule, np.ndarray, float] = ((), everyone, 0.0)
    beam: list[tuple[Rule, np.ndarray, float]] = [((), everyone, 0.0)]
    for _ in range(search.most_conditions):
        grown = [candidate for parent in beam for candidate in _grow(search, departure, parent)]
        if not grown:
            break
        grown.sort(key=lambda found: -found[2])
        beam = grown[:_BEAM]
        # The luckiest of M useless conditions adds about 2 log M.
        added = len(beam[0][0]) - max(1, len(best[0]))
        luck = 2.0 * added * math.log(len(search.conditions))
        if beam[0][2] > max(_WORTH_A_CONDITION * best[2], best[2] + luck):
            best = beam[0]
    return best


def _grow(
    search: _Search, departure: np.ndarray, parent: tuple[Rule, np.ndarray, float]
) -> list[tuple[Rule, np.ndarray, float]]:
    rule, held, score = parent
    sizes = search.masks @ held
    sums = search.masks @ (held * departure).astype(np.float32)
    total = float(held.sum())
    # A condition must cut something off, and leave enough rows.
    fit = (sizes >= search.smallest) & (sizes < total - 0.5)
    scores = np.where(fit, sums**2 / np.maximum(sizes, 1.0) / search.noise, 0.0)
    chosen = np.argsort(-scores, kind="stable")[:_BEAM]
    return [
        ((*rule, search.conditions[i]), held * search.masks[i], float(scores[i]))
        for i in chosen
        if scores[i] > score
    ]


def _measure(
    rules: list[Rule], features: Features, z: np.ndarray, target: float, level: float
) -> dict[str, Estimate]:
    held = [rule_holds(rule, features) for rule in rules]
    kept = [i for i, rows in enumerate(held) if rows.any()]
    if not kept:
        return {}
    totals = np.array([int(held[i].sum()) for i in kept])
    hits = np.array([int(z[held[i]].sum()) for i in kept])
    p_values = holm(binomial_p_value(hits, totals, target))
    low, high = clopper_pearson(hits, totals, confidence=sidak_confidence(level, len(kept)))
    shares = hits / totals
    risk = totals / len(z) * (shares - target) ** 2
    found = {}
    for k in np.argsort(-risk, kind="stable"):
        words = rule_in_words(rules[kept[k]], features)
        ends = (float(low[k]), float(high[k]))
        found[words] = _region(
            words, shares[k], ends, totals[k], totals[k] / len(z), risk[k], p_values[k], target, level
        )
    return found


def _region(
    words: str,
    share: float,
    ends: tuple[float, float],
    rows: int,
    mass: float,
    risk: float,
    p_value: float,
    target: float,
    level: float,
) -> Estimate:
    band = CoverageLaw(int(rows), 1.0 - target).share_interval(_NULL_LEVEL)
    sentence = (
        f"{words}: covers {100 * share:.0f} % [{100 * ends[0]:.0f}, {100 * ends[1]:.0f}], "
        f"wanted {100 * target:g} %, {100 * mass:.1f} % of rows"
    )
    return Estimate(
        name=words,
        value=float(share),
        std_error=math.sqrt(share * (1 - share) / rows),
        low=ends[0],
        high=ends[1],
        confidence=level,
        n=int(rows),
        p_value=float(p_value),
        alternative="two-sided",
        null_low=float(band.low),
        null_high=float(band.high),
        null_level=_NULL_LEVEL,
        method="rule found on other rows; Sidak Clopper-Pearson interval, Holm-adjusted binomial test",
        details={
            "mass": float(mass),
            "rows": int(rows),
            "excess_risk": float(risk),
            "side": "under" if share < target else "over",
            "sentence": sentence,
        },
    )


def _table(estimates: dict[str, Estimate], most: float) -> EstimateTable:
    kept = {words: e for words, e in estimates.items() if e.p_value is not None and e.p_value <= most}
    notes = [str(e.details["sentence"]) for e in kept.values()]
    if not kept:
        notes = [f"no region failed out of {len(estimates)} tested; that is no proof of coverage everywhere"]
    return EstimateTable(kept, title="Where coverage fails", notes=notes)


ENTRIES = (
    MetricEntry(
        function=failing_regions,
        question="everywhere",
        inputs=("X", "covered"),
        returns="table",
        direction="target",
        good="no region",
        bounds=(0.0, 1.0),
        null="covers 1 - alpha in the region, binomial on rows that did not choose it, Holm-adjusted",
        interval="Clopper-Pearson at the Sidak level on rows that did not choose the region",
        merge="gather",
        splits_rows=True,
        weighted=False,
        randomized=True,
    ),
)
