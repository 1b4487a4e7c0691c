"""CAL204 and CAL506: is every promise kept at all times, and if not, since when."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.compared_parts import QUESTION
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import FEW_CLUSTERS, PromiseRows, promise_rows, without_a_chance_to_miss
from calipers.auditing.severity import SERIOUS
from calipers.auditing.tolerances import COMMON, tolerance_at
from calipers.displays.curves import are_dates
from calipers.inference import clopper_pearson, normal_quantile, sidak_confidence
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs.rows import Rows
from calipers.metrics import change_over_time
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent, format_share

# Kind of the promise -> code, title and question of a change.
_FAULTS = {
    "coverage": ("CAL204", "coverage changes over time", QUESTION),
    "stated": ("CAL204", "coverage changes over time", QUESTION),
    "probability": ("CAL506", "calibration changes over time", "probabilities"),
    "quantile": ("CAL506", "calibration of quantiles changes over time", "probabilities"),
}
# The place of the change was chosen among many; intervals around it are as wide as those of so many.
_PLACES = 10
# A stretch of time may miss the promise by this many tolerances of the whole before action is called for.
TIME_TOLERANCE = 1.5
_PIECES = 20
FEWEST_ROWS = 40
# Date, hour and minute, and seconds that are not 0.
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::00(?:\.0*)?(?![\d.])|(:\d\d(?:\.\d+)?))?")


def over_time(m: Measurements, promise: Promise) -> CheckResult:
    """The largest departure of a promise over windows of time, and the shares before and after it began."""
    code, title, question = _FAULTS[promise.kind]
    base: dict[str, Any] = {"code": code, "title": title, "question": question}
    side = promise_rows(m, promise)
    if side is None:
        return CheckResult(**base, not_applicable=NO_EXACT_TEST_SENTENCE)
    if (certain := without_a_chance_to_miss(CheckResult(**base), promise, side)) is not None:
        return certain
    if len(side.kept) < FEWEST_ROWS:
        said = f"A change over time needs {FEWEST_ROWS} rows, got {len(side.kept)}."
        return CheckResult(**base, not_applicable=said, rows_needed=FEWEST_ROWS)
    times = times_of(side.rows)
    if len(np.unique(times)) < 2:
        return CheckResult(**base, not_applicable="All rows have one time; there is nothing to compare.")
    change = change_over_time(
        side.kept, times, alpha=1.0 - side.promised if promise.per_row else promise.alpha,
        n_draws=promise.n_draws, random_state=m.generator(f"{code}{promise.key}"),
    )  # fmt: skip
    p = change.p_value if side.cluster is None else _clustered(m, promise, side)
    picture = _picture(m, promise, side, times, base)
    since = plain_time(change.details.get("changed_at"))
    if since is None:
        ends = _gap(side, np.ones(len(side.kept), dtype=bool), m.confidence)[1]
        return CheckResult(
            **base, p_value=p, effect_high=max(abs(ends[0]), abs(ends[1])), **_tolerances(promise, side),
            clean=_clean(promise), pictures=(picture,),
        )  # fmt: skip
    calibrate = question == "probabilities"
    return CheckResult(
        **base, **_numbers(m, promise, side, change, p), clean=_clean(promise),
        where=f"since {time_words(since)}",
        repair=repair_snippets.calibrate()
        if calibrate
        else repair_snippets.since(m.task, promise.alpha, f"on {time_words(since)}"),
        pictures=(picture,), rows=lambda rows: _after(rows, change),
    )  # fmt: skip


def times_of(rows: Rows) -> np.ndarray:
    """Times as they were given: numbers, or dates to the day where all are whole days."""
    given = np.asarray(rows.given["time"]).reshape(-1)
    if given.dtype.kind not in "MOUS":
        return rows["time"]
    dates = rows["time"].astype(np.int64).astype("datetime64[us]")
    for unit in ("D", "s"):
        if np.array_equal(dates.astype(f"datetime64[{unit}]").astype("datetime64[us]"), dates):
            return dates.astype(f"datetime64[{unit}]")
    return dates


def plain_time(value: Any) -> Any:
    """A time as it is written: whole numbers without a point, dates as they are."""
    if not isinstance(value, (float, int, np.number)):
        return value
    return int(value) if float(value).is_integer() else float(value)


def time_words(value: Any) -> str:
    """A time in a sentence: date and time of day with a blank between them, seconds only where there are any.

    Examples
    --------
    >>> time_words(np.datetime64("2026-05-16T12:24:00")), time_words("2026-05-16T00:00:00"), time_words(3.0)
    ('2026-05-16 12:24', '2026-05-16 00:00', '3')
    """
    return _ISO.sub(lambda t: f"{t[1]} {t[2]}{t[3] or ''}", str(plain_time(value)))


def time_span(first: str, last: str) -> str:
    """A stretch of time at the start of a sentence.

    Examples
    --------
    >>> time_span("2026-05-16", "2026-06-02"), time_span("2026-05", "2026-05")
    ('From 2026-05-16 to 2026-06-02', 'At 2026-05')
    """
    return f"At {first}" if first == last else f"From {first} to {last}"


def _after(rows: Rows, change: Estimate) -> np.ndarray:
    """Rows from the change on, up to its end where it passed."""
    times, until = times_of(rows), change.details.get("until")
    inside = times >= change.details["changed_at"]
    return np.asarray(inside if until is None else inside & (times <= until))


def _tolerances(promise: Promise, side: PromiseRows) -> dict[str, Any]:
    common = COMMON if promise.per_row else tolerance_at(promise.alpha)
    return {
        "tolerance": TIME_TOLERANCE * tolerance_at(float(side.promised.mean())),
        "serious": SERIOUS * TIME_TOLERANCE * common,
    }


def _clean(promise: Promise) -> str:
    return f"The {promise.noun} show no clear change over time in how well they keep their promise."


def _clustered(m: Measurements, promise: Promise, side: PromiseRows) -> float | None:
    """P-value of the largest sum of residuals up to any time, by signs of clusters."""
    order = np.argsort(times_of(side.rows), kind="stable")
    ends = np.flatnonzero(np.append(np.diff(side.rows["time"][order]) != 0, False))
    if not len(ends):
        return None
    share = (ends + 1) / len(order)
    scale = np.sqrt(share * (1 - share))

    def largest(residuals: np.ndarray) -> np.ndarray:
        walk = np.cumsum(residuals[:, order], axis=1)
        bridge = walk[:, ends] - share * walk[:, -1:]
        # Near the ends the scale is no smaller than that of twentieths, so that few rows do not decide.
        return np.asarray((np.abs(bridge) / np.maximum(scale, 0.2)).max(axis=1))

    return side.sign_test(largest, m.generator(f"time signs {promise.key}"))


def _numbers(
    m: Measurements, promise: Promise, side: PromiseRows, change: Estimate, p: float | None
) -> dict[str, Any]:
    after = _after(side.rows, change)
    together = sidak_confidence(m.confidence, _PLACES)
    (before_gap, before_ends), (after_gap, after_ends) = (
        _gap(side, mask, together) for mask in (~after, after)
    )
    worst = after_gap if promise.two_sided or after_gap < before_gap else before_gap
    ends = after_ends if promise.two_sided or after_gap < before_gap else before_ends
    if promise.two_sided and abs(before_gap) > abs(after_gap):
        worst, ends = before_gap, before_ends
    effect, low = (abs(worst), max(ends[0], -ends[1])) if promise.two_sided else (-worst, -ends[1])
    shares = [float(side.kept[mask].mean()) for mask in (~after, after)]
    means = [float(side.promised[mask].mean()) for mask in (~after, after)]
    evidence = Estimate(
        **(change.to_dict() | {"name": f"change over time in standard errors ({promise.name})", "p_value": p}
           | ({} if p is not None else {"reason": FEW_CLUSTERS}))
    )  # fmt: skip
    return {
        "evidence": evidence,
        "p_value": p,
        "effect": float(effect),
        "effect_low": float(low),
        "effect_high": float(max(abs(ends[0]), abs(ends[1]))),
        **_tolerances(promise, side),
        "fault": _sentence(promise, change, shares, means),
        "estimates": (evidence,),
        "details": {
            "alpha": promise.alpha,
            "shortfall": float(-worst),
            "changed_at": str(plain_time(change.details["changed_at"])),
        },
    }


def _gap(side: PromiseRows, mask: np.ndarray, confidence: float) -> tuple[float, tuple[float, float]]:
    """Kept minus promised in some rows, with its interval."""
    rows, effect = int(mask.sum()), side.design_effect
    if not rows:
        return 0.0, (-1.0, 1.0)
    hits, promised = float(side.kept[mask].sum()), float(side.promised[mask].mean())
    low, high = clopper_pearson(hits / effect, rows / effect, confidence=confidence)
    return hits / rows - promised, (float(low) - promised, float(high) - promised)


def _sentence(promise: Promise, change: Estimate, shares: list[float], means: list[float]) -> str:
    since, until = (
        None if change.details.get(key) is None else time_words(change.details[key])
        for key in ("changed_at", "until")
    )
    when = f"Since {since}" if since is None or until is None else time_span(since, until)
    rest = "before" if until is None else "otherwise"
    if promise.kind == "quantile":
        return (
            f"{when} {format_share(shares[1])} of the outcomes lie at or below the stated "
            f"{format_percent(promise.promised)} quantile, {rest} {format_share(shares[0])}."
        )
    if not promise.per_row:
        return (
            f"{when} the {promise.noun} cover {format_share(shares[1])}, {rest} "
            f"{format_share(shares[0])}; {format_percent(promise.promised)} was promised."
        )
    return (
        f"{when} {format_share(means[1])} were stated and {format_share(shares[1])} happened; {rest} "
        f"{format_share(means[0])} and {format_share(shares[0])} ({promise.name})."
    )


def _picture(
    m: Measurements, promise: Promise, side: PromiseRows, times: np.ndarray, base: dict[str, Any]
) -> Picture:
    shown = "outcomes at or below the quantile" if promise.kind == "quantile" else "coverage"
    what = "observed minus stated" if promise.per_row else shown
    order = np.argsort(side.rows["time"], kind="stable")
    pieces = [piece for piece in np.array_split(order, _PIECES) if len(piece)]
    gaps = [_gap(side, np.isin(np.arange(len(order)), piece), m.confidence) for piece in pieces]
    shift = 0.0 if promise.per_row else promise.promised
    centres = np.array([np.median(side.rows["time"][piece]) for piece in pieces])
    dated = are_dates(side.rows["time"])
    noise = np.array([np.sqrt(np.sum(t * (1 - t))) / len(t) for t in (side.promised[p] for p in pieces)])
    band = normal_quantile(NULL_LEVEL) * np.sqrt(side.design_effect) * noise
    curve = Curve(
        name=f"{promise.name} over time",
        x=centres / 1e6 if dated else centres,
        y=np.array([gap + shift for gap, _ in gaps]), low=np.array([ends[0] + shift for _, ends in gaps]),
        high=np.array([ends[1] + shift for _, ends in gaps]), confidence=m.confidence, x_label="time",
        y_label=what, null_level=NULL_LEVEL,
        null_low=np.maximum(shift - band, -1.0), null_high=np.minimum(shift + band, 1.0),
        method="pieces of equally many rows, Clopper-Pearson; normal band of kept promises",
        details={"dates": dated, "rows": np.array([len(piece) for piece in pieces])},
    )  # fmt: skip
    return Picture(
        name=f"{base['code']}_over_time_{promise.key}", question=base["question"],
        title=f"{what.capitalize()} over time{promise.tag}", kind="points", curves=(curve,), reference=shift,
        caption="Pieces of equally many rows, earliest first; at the line the promise is kept.",
        labels=tuple(time_words(times[piece[len(piece) // 2]]) for piece in pieces),
    )  # fmt: skip


_ADD = "Add time: when each row happened, to see whether promises are kept at all times."
CHECKS = (
    Check(
        code="CAL204",
        title="coverage over time",
        question=QUESTION,
        needs=("time",),
        add=_ADD,
        kinds=("coverage", "stated"),
        slices="time",
        read=over_time,
        on_sample=True,
    ),
    Check(
        code="CAL506",
        title="calibration over time",
        question="probabilities",
        needs=("time",),
        add=_ADD,
        kinds=("probability", "classes", "quantile"),
        slices="time",
        read=over_time,
        on_sample=True,
    ),
)
