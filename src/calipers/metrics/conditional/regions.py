"""Where coverage fails: readable rules, found on one part of the rows and estimated on another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference import ShareCounts, holm, sidak_confidence
from calipers.inputs import (
    Features,
    check_confidence,
    check_count,
    check_features,
    check_fraction,
    check_same_length,
)
from calipers.metrics.conditional.conditions import (
    Condition,
    Rule,
    all_conditions,
    conditions_of,
    rule_holds,
    rule_in_words,
    simplified,
)
from calipers.metrics.conditional.row_split import REPETITIONS_ARE_SPLIT, random_split
from calipers.metrics.entry import MetricEntry
from calipers.metrics.promised_rows import PromisedRows, check_one_threshold, check_promised_rows
from calipers.metrics.states.row_arguments import ROW_ARGUMENTS
from calipers.metrics.strata_null import StrataNull, one_stratum, share_fields
from calipers.results import Estimate, EstimateTable

_BEAM = 12
# A longer rule must explain this much more than the one it grew from.
_WORTH_A_CONDITION = 1.15
_MOST_SEARCHED = 20_000
_MOSTLY_NEW = 0.8
# Rows that promised with certainty have no noise; a region of such rows alone is not divided by 0.
_NO_NOISE = 1e-6
# Regions that explain less than this many standard errors on the searching part are not worth a test.
_WORTH_A_TEST = 2.5


@dataclass(frozen=True, slots=True)
class _Search:
    """The searching part: condition masks, variance of a row (of each, where they differ), options."""

    conditions: list[Condition]
    masks: np.ndarray
    noise: float | np.ndarray
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
    n_calibration: int | None = None,
    sample_weight: Any = None,
    cluster: Any = None,
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
    alpha : float or array of shape (n,)
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row (``1 - p`` for probabilities).
    min_mass : float
        Smallest share of the rows a region may hold.
    max_conditions : int
        Longest rule.
    max_regions : int
        Most regions to test.
    search_size : float
        Share of the rows that choose the rules; the others measure them.
    keep : {"significant", "all"}
        Regions whose adjusted p-value is at most 1 - confidence, or every region that was measured.
    n_calibration : int, optional
        Rows the predictor was conformalised on, behind its one threshold.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    cluster : array of shape (n,), optional
        Rows of one cluster depend on each other; a cluster lies in one part.
    confidence : float
        Level at which all intervals hold together.
    random_state : int, Generator or None
        Source of the two parts.

    Returns
    -------
    EstimateTable
        Rule in words -> `Estimate` of its coverage. The p-value is adjusted for the number of regions
        tested (Holm), the interval is Clopper-Pearson at the Sidak level. ``details``: "mass" (share of the
        rows), "rows", "excess_risk" (mass times squared gap), "side", "sentence", "conditions" (column,
        sign and value), and "promised" with an alpha per row.

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
    rules the measuring rows are fresh, so tests and intervals are exact binomial ones (beta-binomial with
    ``n_calibration``, of unequal trials with an alpha per row, of cluster sums with ``cluster``).

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
    features = check_features(X)
    check_same_length(X=X, covered=covered)
    rows, columns = check_promised_rows(
        covered, alpha=alpha, sample_weight=sample_weight, cluster=cluster, X=features.values
    )
    features, n = replace(features, values=columns["X"]), rows.count
    level, n_behind = check_confidence(confidence), check_one_threshold(n_calibration)
    share = check_fraction(search_size, name="search_size", meaning="It is the share of rows that search")
    mass = check_fraction(min_mass, name="min_mass", meaning="It is the smallest share of rows in a region")
    if keep not in ("significant", "all"):
        raise InputError(f'keep must be "significant" or "all", got {keep!r}.')
    if n < 20:
        raise InputError(f"failing_regions needs at least 20 rows, got {n}.")
    rng = generator(random_state)
    cut = min(max(int(share * n), 10), n - 10)
    split = random_split(features, rows, cut, rng, most=_MOST_SEARCHED)
    rules = list(
        _promise_rules(
            features.take(split.search), split.searched, mass,
            check_count(max_conditions, name="max_conditions"), check_count(max_regions, name="max_regions"),
        )
    )  # fmt: skip
    regions = _regions_with_rows(rules, features.take(split.measure), split.measured, n_behind)
    stated = {rule_in_words(rule, features): conditions_of(rule, features) for rule in rules}
    estimates = [
        replace(e, details=dict(e.details) | {"conditions": stated[e.name]})
        for e in _measure(regions, float(split.measured.mass.sum()), level, rng)
    ]
    return _table(estimates, 1.0 - level if keep == "significant" else None)


def best_rule(
    features: Features, covered: np.ndarray, alpha: float | np.ndarray, *, min_mass: float, below: bool
) -> tuple[str, list[tuple[str, str, object]]] | None:
    """The rule that explains most of a dependence on the features, in words and as conditions, or None.

    All rows search and none measures: for a dependence that another test has found, and only has to be
    described. ``below`` asks for a region that is covered less often than promised.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import check_features
    >>> from calipers.metrics.conditional.regions import best_rule
    >>> X = np.arange(200.0)[:, None]
    >>> best_rule(check_features(X), X[:, 0] < 125, 0.4, min_mass=0.05, below=True)
    ('x0 > 124', [('x0', '>', 124.0)])
    """
    rows, columns = check_promised_rows(covered, alpha=alpha, X=features.values)
    known = replace(features, values=columns["X"]).take(np.arange(min(len(rows), _MOST_SEARCHED)))
    rows = rows.take(np.arange(len(known)))
    for rule in _promise_rules(known, rows, min_mass, 3, 8):
        held = rule_holds(rule, known)
        if not below or float(np.sum(rows.covered[held] - rows.target[held])) < 0:
            return rule_in_words(rule, features), conditions_of(rule, features)
    return None


def largest_excess_rule(
    features: Features, values: np.ndarray, *, min_mass: float
) -> tuple[str, list[tuple[str, str, object]]] | None:
    """The rule whose rows lie most clearly above the mean of all values, in words and as conditions, or None.

    All rows search and none measures: the excess must be measured on others.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import check_features
    >>> from calipers.metrics.conditional.regions import largest_excess_rule
    >>> X = np.arange(200.0)[:, None]
    >>> largest_excess_rule(check_features(X), (X[:, 0] > 149) * 3.0, min_mass=0.05)
    ('x0 > 149', [('x0', '>', 149.0)])
    """
    known = features.take(np.arange(min(len(features), _MOST_SEARCHED)))
    departure = values[: len(known)] - values[: len(known)].mean()
    spread = float(np.mean(departure**2))
    if spread == 0:
        return None
    for rule in _find_rules(known, departure, spread, min_mass, 3, 8):
        if float(np.sum(departure[rule_holds(rule, known)])) > 0:
            return rule_in_words(rule, features), conditions_of(rule, features)
    return None


def _promise_rules(
    features: Features, rows: PromisedRows, mass: float, most_conditions: int, most_regions: int
) -> Iterator[Rule]:
    target = rows.target
    variance = target * (1.0 - target) * rows.noise
    noise = float(variance[0]) if rows.promised is None and rows.weights is None else variance
    departure = rows.mass * (rows.covered - target)
    return _find_rules(features, departure, noise, mass, most_conditions, most_regions)


def _find_rules(
    features: Features,
    departure: np.ndarray,
    noise: float | np.ndarray,
    mass: float,
    most_conditions: int,
    most_regions: int,
) -> Iterator[Rule]:
    conditions = all_conditions(features)
    if not conditions:
        return
    masks = np.stack([c.holds(features) for c in conditions]).astype(np.float32)
    n = len(departure)
    known = noise if isinstance(noise, float) else noise.astype(np.float32)
    search = _Search(conditions, masks, known, max(5.0, mass * n), most_conditions)
    departure, fresh = departure.astype(np.float32), np.ones(n, dtype=np.float32)
    n_found = 0
    for _ in range(2 * most_regions):
        rule, held, score = _best_rule(search, fresh * departure, fresh)
        if score < _WORTH_A_TEST**2 or n_found == most_regions:
            return
        inside = rule_holds(rule, features)
        # A rule that mostly repeats earlier ones would tell nothing new; its rows are laid aside anyhow.
        if held.sum() >= _MOSTLY_NEW * inside.sum():
            n_found += 1
            yield simplified(rule)
        fresh = fresh * (1 - held)


def _best_rule(
    search: _Search, departure: np.ndarray, everyone: np.ndarray
) -> tuple[Rule, np.ndarray, float]:
    """Beam search among the given rows for the rule that explains most, in squared standard errors."""
    best: tuple[Rule, np.ndarray, float] = ((), everyone, 0.0)
    beam = [best]
    for _ in range(search.most_conditions):
        grown = _grown(search, departure, beam)
        if not grown:
            break
        grown.sort(key=lambda found: -found[2])
        beam = [
            ((*rule, search.conditions[i]), held * search.masks[i], score)
            for (rule, held, _), i, score in grown[:_BEAM]
        ]
        # The luckiest of M useless conditions adds about 2 log M.
        added = len(beam[0][0]) - max(1, len(best[0]))
        luck = 2.0 * added * math.log(len(search.conditions))
        if beam[0][2] > max(_WORTH_A_CONDITION * best[2], best[2] + luck):
            best = beam[0]
    return best


def _grown(
    search: _Search, departure: np.ndarray, beam: list[tuple[Rule, np.ndarray, float]]
) -> list[tuple[tuple[Rule, np.ndarray, float], int, float]]:
    """The best conditions to add to each rule: the rule, the number of the condition, the new score.

    Sums over the rows of all conditions and rules are one product of matrices.
    """
    held = np.stack([rows for _, rows, _ in beam])
    sizes = search.masks @ held.T
    sums = search.masks @ (held * departure).T
    if isinstance(search.noise, float):
        squares = sums**2 / np.maximum(sizes, 1.0) / search.noise
    else:
        squares = sums**2 / np.maximum(search.masks @ (held * search.noise).T, _NO_NOISE)
    # A condition must cut something off, and leave enough rows.
    fit = (sizes >= search.smallest) & (sizes < held.sum(axis=1) - 0.5)
    scores = np.where(fit, squares, 0.0)
    chosen = np.argsort(-scores, axis=0, kind="stable")[:_BEAM]
    return [
        (parent, int(i), float(scores[i, k]))
        for k, parent in enumerate(beam)
        for i in chosen[:, k]
        if scores[i, k] > parent[2]
    ]


def _regions_with_rows(
    rules: list[Rule], features: Features, rows: PromisedRows, n_calibration: int | None
) -> dict[str, StrataNull]:
    """Rule in words -> its rows among the measuring ones, where there are some."""
    regions = {}
    for rule in rules:
        held = np.flatnonzero(rule_holds(rule, features))
        if held.size:
            words = rule_in_words(rule, features)
            regions[words] = one_stratum(rows.take(held), n_calibration, words)
    return regions


def _measure(
    regions: dict[str, StrataNull], mass: float, level: float, rng: np.random.Generator
) -> list[Estimate]:
    """Estimates of all regions, by how much of the excess risk each explains."""
    found = []
    for words, null in regions.items():
        counts = ShareCounts.of(null.rows.covered, null.rows.weights)
        if null.clusters is not None:
            counts = replace(counts, independent=null.clusters.independent_rows(counts.shares))
        tested = share_fields(null, float(counts.shares[0]), "two-sided", rng)
        found.append((words, null, counts, tested))
    tests = [k for k, (*_, tested) in enumerate(found) if tested]
    adjusted = holm(np.array([found[k][3]["p_value"] for k in tests])) if tests else np.empty(0)
    for k, p_value in zip(tests, adjusted, strict=True):
        found[k][3]["p_value"] = float(p_value)
    confidence = sidak_confidence(level, max(len(found), 1))
    estimates = [
        _region(words, null, counts, tested, mass, level, confidence) for words, null, counts, tested in found
    ]
    return sorted(estimates, key=lambda e: -e.details["excess_risk"])


def _region(
    words: str,
    null: StrataNull,
    counts: ShareCounts,
    tested: dict[str, Any],
    mass: float,
    level: float,
    each: float,
) -> Estimate:
    share, target = float(counts.shares[0]), float(null.target[0])
    low, high = (float(end[0]) for end in counts.interval(each))
    part, promised = float(counts.totals[0]) / mass, null.rows.promised is not None
    wanted = f"{100 * target:.4g}" if promised else f"{100 * target:g}"
    sentence = (
        f"{words}: covers {100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}], "
        f"wanted {wanted} %, {100 * part:.1f} % of rows"
    )
    return Estimate(
        name=words,
        value=share,
        std_error=float(counts.std_errors[0]),
        low=low,
        high=high,
        confidence=level,
        n=round(counts.n) if counts.whole else counts.n,
        method="rule found on other rows; Sidak Clopper-Pearson interval, Holm-adjusted binomial test",
        reason=null.no_test,
        details={
            "mass": part,
            "rows": len(null.rows) if null.rows.weights is None else float(counts.totals[0]),
            "excess_risk": part * (share - target) ** 2,
            "side": "under" if share < target else "over",
            "sentence": sentence,
        }
        | ({"promised": target} if promised else {}),
        **tested,
    )


def _table(estimates: list[Estimate], most: float | None) -> EstimateTable:
    """The regions with a p-value of at most ``most``, or all of them."""
    kept = [e for e in estimates if most is None or (e.p_value is not None and e.p_value <= most)]
    notes = [str(e.details["sentence"]) for e in kept]
    if not kept:
        notes = [f"no region failed out of {len(estimates)} tested; that does not prove coverage everywhere"]
        notes += sorted({e.reason for e in estimates if e.reason})
    return EstimateTable({e.name: e for e in kept}, title="Where coverage fails", notes=notes)


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
        row_arguments=ROW_ARGUMENTS,
        scaled=REPETITIONS_ARE_SPLIT,
        weighted=True,
        randomized=True,
    ),
)
