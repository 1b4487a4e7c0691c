"""CAL205, coverage given the true class: described, and tested only where it was promised.

Even a perfect predictor does not cover 1 - alpha of every true class: the class is not known when the set is
made, and a rare one is often mistaken for a common one. So the shares are listed without a test, unless
``label_conditional`` declares that thresholds were found class by class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.compared_parts import QUESTION, Wording, compare_parts
from calipers.auditing.measurements import Design, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.slices import FEWEST_ROWS, Parts
from calipers.auditing.table_states import table_of
from calipers.inference import ShareCounts
from calipers.inputs.rows import Rows
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_count, format_share

CODE, TITLE = "CAL205", "a true class is under-covered"
NOT_PROMISED = "even a perfect predictor does not cover every true class equally often: no test"
# Kind of the promise -> what is counted, at the start of a sentence.
_COUNTED = {
    "coverage": "The {noun} cover",
    "stated": "The {noun} cover",
    "probability": "The top label is right in",
}


def class_table(design: Design, promise: Promise) -> States:
    """Kept and broken promises of every true class."""
    return {"true classes": table_of("covered", "codes")}


def by_true_class(m: Measurements, promise: Promise) -> CheckResult:
    """Share of kept promises in every true class."""
    base = CheckResult(code=CODE, title=TITLE, question=QUESTION)
    if promise.kind == "probability" and len(m.classes) == 2:
        return replace(base, not_applicable="Given the class nothing is uncertain about its own probability.")
    kept, codes, weights = m.result("true classes", promise)
    counts = ShareCounts.of(kept, weights, codes.astype(np.int64), len(m.classes))
    enough = np.flatnonzero(counts.effective >= FEWEST_ROWS)
    if len(enough) < 2:
        return replace(
            base,
            not_applicable=f"Fewer than two classes have {FEWEST_ROWS} rows; there is nothing to compare.",
        )
    labels = tuple(f"class {m.classes[k]}" for k in enough)
    parts = Parts(counts=counts.take(enough), labels=labels, kind="group")
    if m.design.label_conditional and promise.kind == "coverage":
        return _tested(m, promise, parts, enough)
    few = bool(np.any((counts.totals > 0) & (counts.effective < FEWEST_ROWS)))
    return _described(m, promise, parts, base, few=few)


def _described(
    m: Measurements, promise: Promise, parts: Parts, base: CheckResult, *, few: bool
) -> CheckResult:
    """The shares of all classes, and the two that differ most in words; ``few``: some have too few rows."""
    low, high = parts.intervals(m.confidence)
    worst, best = int(np.argmin(parts.shares)), int(np.argmax(parts.shares))
    evidence = Estimate(
        name=f"smallest share of a true class{promise.tag} ({promise.name})",
        value=float(parts.shares[worst]), low=float(low[worst]), high=float(high[worst]),
        confidence=m.confidence, n=float(parts.counts.effective[worst]), reason=NOT_PROMISED,
        method=f"share of rows; Clopper-Pearson intervals that hold for {len(parts.labels)} classes at once "
        "(Sidak)",
        details={
            "hits": parts.hits.tolist(), "rows": parts.rows.tolist(), "labels": list(parts.labels)
        },
    )  # fmt: skip
    ends = "between " + " and ".join(
        f"{format_share(float(parts.shares[at]))} of {format_count(parts.rows[at])} rows in "
        f"{parts.labels[at]}"
        for at in (worst, best)
    )
    if parts.shares[worst] == parts.shares[best]:
        ends = f"{format_share(float(parts.shares[worst]))} of every true class"
    return replace(
        base,
        evidence=evidence,
        clean=f"{_COUNTED[promise.kind].format(noun=promise.noun)} {ends}. Nothing was promised "
        "about single true classes."
        + (f" Classes of fewer than {FEWEST_ROWS} rows are left out." if few else ""),
        where=parts.labels[worst],
        estimates=(evidence,),
        pictures=(_picture(parts, (low, high), promise, m.confidence),),
        details={"alpha": promise.alpha, "descriptive": True},
    )


def _tested(m: Measurements, promise: Promise, parts: Parts, enough: np.ndarray) -> CheckResult:
    """The classes compared as groups are, where coverage of every class was promised."""
    wording = Wording(
        code=CODE, title=TITLE, question=QUESTION, repair=repair_snippets.by_group(m.task, promise.alpha),
        phrase=lambda label: f"In {label}",
    )  # fmt: skip
    result = compare_parts(m, promise, parts, wording, codes=lambda rows: class_rows(rows, enough))
    at = result.details["part"]
    evidence = result.evidence and replace(
        result.evidence,
        name=f"coverage of {parts.labels[at]}{promise.tag}",
        details=dict(result.evidence.details) | {"null_subject": "a predictor that covers all classes alike"},
    )
    below = float(parts.shares[at]) < promise.promised
    return replace(
        result,
        title=TITLE if below else "coverage differs between true classes",
        evidence=evidence,
        estimates=() if evidence is None else (evidence,),
        clean="No true class is clearly covered less often than the others.",
        where=f"{parts.labels[at]}{promise.tag}",
        pictures=(_picture(parts, parts.intervals(m.confidence), promise, m.confidence),),
        rows=lambda rows: class_rows(rows, enough[at : at + 1])[0],
    )


def class_rows(rows: Rows, codes: Sequence[int] | np.ndarray) -> list[np.ndarray]:
    """Which rows belong to the classes of these columns."""
    return [np.asarray(rows["codes"] == code) for code in codes]


def _picture(parts: Parts, ends: tuple[Any, Any], promise: Promise, confidence: float) -> Picture:
    order = np.argsort(parts.shares, kind="stable")
    curve = Curve(
        name=f"{promise.name} by class", x=np.arange(len(order), dtype=float), y=parts.shares[order],
        low=ends[0][order], high=ends[1][order], confidence=confidence, x_label="true class",
        y_label="share of rows", method="Clopper-Pearson, Sidak-corrected",
        details={"rows": parts.rows[order]},
    )  # fmt: skip
    return Picture(
        name=f"{CODE}_by_class_{promise.key}", question=QUESTION,
        title=f"By true class: {promise.name}",
        caption="The class is not known when a prediction is made, so differences are not a fault unless "
        "coverage was promised class by class.", kind="intervals", curves=(curve,),
        reference=None if promise.per_row else promise.promised,
        labels=tuple(parts.labels[k] for k in order),
    )  # fmt: skip


CHECKS = (
    Check(
        code=CODE,
        title="coverage of true classes",
        question=QUESTION,
        needs=(),
        add="Add sets, p_values or probabilities.",
        kinds=("coverage", "stated", "probability"),
        slices="label",
        states=class_table,
        read=by_true_class,
        tasks=("classification",),
    ),
)
