"""CAL203, where does coverage fail: rules on the features, found on one half, measured on the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.compared_parts import QUESTION, is_foreseen, stated_inside
from calipers.auditing.measurements import Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import PromiseRows
from calipers.auditing.tolerances import (
    PART_TOLERANCE,
    interval_of,
    rows_for,
    rows_with,
    tolerance_at,
)
from calipers.inputs import check_features
from calipers.inputs.rows import Rows
from calipers.metrics import failing_regions
from calipers.metrics.conditional.conditions import rows_that_satisfy
from calipers.metrics.conditional.regions import best_rule
from calipers.metrics.conditional.streamed_excess_risk import FEWEST_MISSES
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent, format_rows, format_share

CODE, TITLE = "CAL203", "a region is under-covered"
# Rows that a region should hold, and the smallest and largest share of all rows that it must.
_FEWEST_ROWS, _LEAST, _MOST = 60, 0.02, 0.05
# A rule that was measured on other rows is preferred when its p-value is at most this.
SUSPECT = 0.05
# A rule in words, and its conditions: column, sign, bound or category.
Region = tuple[str, list[tuple[str, str, object]]]
# Whose reading the null band of a region is, where all rows together are below the promise.
FLAT = "a predictor whose coverage does not depend on the features"
NO_WEIGHTS = (
    "A region is tested by counting rows that count once each; with weights there is no exact test of it. "
    "Audit without weights, or name the region as a group."
)


def by_regions(m: Measurements, promise: Promise) -> CheckResult:
    """The worst region that a search on one half of the rows finds, measured on the other half."""
    base = CheckResult(code=CODE, title=TITLE, question=QUESTION)
    if promise.per_row or "cluster" in m.design.have:
        return replace(base, not_applicable="The worst region is named with CAL202.")
    if m.sample.is_weighted:
        return replace(base, not_applicable=NO_WEIGHTS)
    misses = int(np.count_nonzero(~m.rows_at(promise)["covered"]))
    if misses < 2 * FEWEST_MISSES:
        said = f"{format_rows(misses)} missed: too few to search for regions."
        needed = rows_with(2 * FEWEST_MISSES, promise.alpha, m.n, misses)
        return replace(base, not_applicable=said, rows_needed=needed)
    under = regions_below(m, promise)
    clean = "No region of the features is clearly covered less often than the rest."
    if not under:
        return replace(base, p_value=1.0, clean=clean)
    return _result(m, promise, worst_rule(under), under, clean)


def smallest_mass(rows: int) -> float:
    """The share of the rows that a region must hold: with few rows small ones are mostly noise.

    Examples
    --------
    >>> smallest_mass(600), smallest_mass(2000), smallest_mass(10_000)
    (0.05, 0.03, 0.02)
    """
    return min(_MOST, max(_LEAST, _FEWEST_ROWS / max(1, rows)))


def regions_below(m: Measurements, promise: Promise) -> dict[str, Estimate]:
    """Rule -> coverage of the regions found to lie below all rows; searched once for every check."""
    return m.kept(f"regions{promise.tag}", lambda: _search(m, promise))


def deviating_region(
    m: Measurements, promise: Promise, side: PromiseRows
) -> tuple[Region, Estimate | None] | None:
    """The region in which a promise is kept least well, and what rows that did not choose it confirm of it.

    What is too much is a fault of probabilities and quantiles, not of coverage.
    """
    measured = clearest_region(m, promise, side)
    if measured is not None and (measured.p_value or 1.0) <= SUSPECT:
        return (measured.name, measured.details["conditions"]), measured
    found = best_rule(
        check_features(side.rows.given["X"]), side.kept, _allowed(promise, side),
        min_mass=smallest_mass(len(side.kept)), below=not promise.two_sided,
    )  # fmt: skip
    return None if found is None else (found, None)


def clearest_region(m: Measurements, promise: Promise, side: PromiseRows) -> Estimate | None:
    """Of the regions that one half of the rows finds the one that the other half confirms best."""
    table = failing_regions(
        check_features(side.rows.given["X"]), side.kept, alpha=_allowed(promise, side),
        min_mass=smallest_mass(len(side.kept)), keep="all", cluster=side.cluster, confidence=m.confidence,
        random_state=m.generator(f"{CODE}{promise.key}"),
    )  # fmt: skip
    return min(table.values(), key=lambda found: found.p_value or 1.0, default=None)


def _allowed(promise: Promise, side: PromiseRows) -> float | np.ndarray:
    return 1.0 - side.expected if promise.per_row else float(1.0 - side.expected[0])


def described_region(m: Measurements, promise: Promise) -> tuple[Region, bool] | None:
    """The region of low coverage and whether other rows confirm it; else what describes all rows best."""
    under = regions_below(m, promise)
    if under:
        rule = worst_rule(under)
        if (under[rule].p_value or 1.0) <= SUSPECT:
            return (rule, under[rule].details["conditions"]), True
    covered = m.rows_at(promise)["covered"]
    alpha = 1.0 - min(promise.promised, float(covered.mean()))
    if alpha == 1.0:
        return None
    found = best_rule(m.features, covered, alpha, min_mass=smallest_mass(len(covered)), below=True)
    return None if found is None else (found, False)


def region_mask(rows: Rows, conditions: list[tuple[str, str, object]]) -> np.ndarray:
    """Which rows lie in a region."""
    return rows_that_satisfy(conditions, check_features(rows.given["X"]))


def worst_rule(under: dict[str, Estimate]) -> str:
    """The region with most evidence against it."""
    return min(under, key=lambda key: (under[key].p_value or 1.0, float(under[key])))


def _search(m: Measurements, promise: Promise) -> dict[str, Estimate]:
    # Regions are compared with what all rows reach: a wrong level is the first question, not this one.
    covered = m.rows_at(promise)["covered"]
    reference = 1.0 - min(promise.promised, float(covered.mean()))
    if reference == 1.0:  # nothing is covered anywhere: no region lies below the rest
        return {}
    table = failing_regions(
        m.features, covered, alpha=reference, min_mass=smallest_mass(len(covered)), keep="all",
        confidence=m.confidence, random_state=m.generator(f"{CODE}{promise.tag}"),
    )  # fmt: skip
    return {rule: found for rule, found in table.items() if float(found) < 1.0 - reference}


def _result(
    m: Measurements, promise: Promise, rule: str, under: dict[str, Estimate], clean: str
) -> CheckResult:
    found = under[rule]
    low, high = interval_of(found)
    rows, tolerance = float(found.n or 0), PART_TOLERANCE * tolerance_at(promise.alpha)
    owed = min(promise.promised, float(m.rows_at(promise)["covered"].mean()))
    inside = m.rows_at(promise).take(region_mask(m.sample, found.details["conditions"]))
    foreseen = inside.n > 0 and is_foreseen(stated_inside(inside), promise, high)
    subject = {} if owed == promise.promised else {"null_subject": FLAT}
    evidence = Estimate(
        **(
            found.to_dict()
            | {"name": f"coverage where {rule}{promise.tag}", "details": dict(found.details) | subject}
        )
    )
    return CheckResult(
        code=CODE,
        title=TITLE,
        question=QUESTION,
        evidence=evidence,
        p_value=found.p_value,
        effect=owed - float(found),
        effect_low=owed - high,
        effect_high=owed - low,
        tolerance=tolerance,
        fault=f"Where {rule} the {m.noun} cover {format_share(float(found))} of {rows:.0f} held-out "
        f"rows; {format_percent(promise.promised)} was promised.",
        clean=clean,
        where=f"{rule}{promise.tag}",
        cap="warning" if foreseen else "issue",
        repair=repair_snippets.by_group(m.task, promise.alpha),
        rows_needed=int(np.ceil(m.n * rows_for(promise.alpha, tolerance, m.confidence) / max(1.0, rows))),
        estimates=(evidence,),
        pictures=(_picture(under, promise, m.confidence),),
        rows=lambda rows: region_mask(rows, found.details["conditions"]),
        details={
            "alpha": promise.alpha,
            "regions": list(under),
            "shortfall": promise.promised - float(found),
        },
    )


def _picture(under: dict[str, Estimate], promise: Promise, confidence: float) -> Picture:
    shown = sorted(under, key=lambda rule: float(under[rule]))
    ends = np.array([interval_of(under[rule]) for rule in shown])
    curve = Curve(
        name=f"coverage by region{promise.tag}", x=np.arange(len(shown), dtype=float),
        y=np.array([float(under[rule]) for rule in shown]), low=ends[:, 0], high=ends[:, 1],
        confidence=confidence, x_label="region", y_label="coverage",
        method="rules found on one half of the rows, coverage of the other half, simultaneous intervals",
    )  # fmt: skip
    return Picture(
        name=f"coverage_by_region{promise.tag}".replace(" ", "_"), question=QUESTION,
        title=f"Regions with low coverage{promise.tag}",
        caption="Rules found on one half of the rows and measured on the other; the line is the promise. The "
        "table has the rules in full.", kind="intervals", curves=(curve,), reference=promise.promised,
        labels=tuple(shown),
    )  # fmt: skip


CHECKS = (
    Check(
        code=CODE,
        title="regions of the features",
        question=QUESTION,
        needs=("X",),
        add="Add X, the features of the rows, to find where promises fail.",
        slices="features",
        read=by_regions,
        on_sample=True,
    ),
)
