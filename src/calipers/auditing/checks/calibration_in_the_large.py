"""CAL509, calibration in the large: do stated probabilities, over all rows, come true as often as stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import ADD_PROBABILITIES, Check
from calipers.auditing.check_result import CheckResult
from calipers.auditing.checks.probabilities import QUESTION
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import FEW_CLUSTERS, PromiseRows, promise_rows
from calipers.auditing.severity import SERIOUS
from calipers.auditing.tolerances import COMMON, tolerance_at
from calipers.results import Estimate

CODE = "CAL509"


def in_the_large(m: Measurements, promise: Promise) -> CheckResult:
    """The mean of observed minus stated, over all rows."""
    base = CheckResult(code=CODE, title="calibration in the large", question=QUESTION)
    side = promise_rows(m, promise)
    if side is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    estimate = observed_minus_stated(m, promise, side)
    gap, low, high = (float(end or 0.0) for end in (estimate.value, estimate.low, estimate.high))
    side_found = "too high" if gap < 0 else "too low"
    averages = (
        f"{100 * float(side.promised.mean()):.1f} % stated on average and "
        f"{100 * float(side.kept.mean()):.1f} % happened"
    )
    return replace(
        base,
        title=f"probabilities are {side_found} on average",
        evidence=estimate,
        p_value=estimate.p_value,
        effect=abs(gap),
        effect_low=max(low, -high),
        effect_high=max(abs(low), abs(high)),
        tolerance=tolerance_at(float(side.promised.mean())),
        serious=SERIOUS * COMMON,
        fault=f"Over all rows the {promise.name} is {side_found}: {averages}.",
        clean=f"Over all rows the {promise.name} is right on average: {averages}.",
        repair=repair_snippets.calibrate(),
        rows_needed=int(np.ceil(len(side.kept) * ((high - low) / 2 / COMMON) ** 2)),
        estimates=(estimate,),
    )


def observed_minus_stated(m: Measurements, promise: Promise, side: PromiseRows) -> Estimate:
    """The share that came true less the mean probability, with its interval and the test against 0."""
    p = side.gap_p_value(m.generator(f"{CODE}{promise.key}"))
    low, high = side.gap_interval(m.confidence)
    how = "interval and test" if side.cluster is None else "test by signs of clusters, interval"
    return Estimate(
        name=f"observed minus stated ({promise.name})", value=side.gap, low=low, high=high,
        confidence=m.confidence, n=len(side.kept), p_value=p, alternative="two-sided",
        method=f"mean over rows, {how} for rows of a known range", reason=FEW_CLUSTERS if p is None else "",
        details={"null_subject": "probabilities that are right on average"},
    )  # fmt: skip


CHECKS = (
    Check(
        code=CODE,
        title="calibration in the large",
        question=QUESTION,
        needs=("probabilities",),
        add=ADD_PROBABILITIES,
        kinds=("probability",),
        slices="all rows",
        read=in_the_large,
        on_sample=True,
        tasks=("classification",),
    ),
)
