"""CAL6xx, what will it score next time: the next batch, and whether the rows drift."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy import stats

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks.over_time import plain_time, time_words, times_of
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.auditing.severity import LEVEL
from calipers.displays.curves import are_dates
from calipers.inference import normal_quantile
from calipers.inputs.rows import Rows
from calipers.metrics.probability_scores import score_rows
from calipers.performance import forecast_losses
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_end, format_number, format_share

QUESTION = "forecast"
# What the tests of drift ask about.
STEADY = "losses that do not change over time"
# Whose error it is without y_pred: that of the middle of the interval.
MIDPOINT = " of the midpoint"
# Losses that are shares of rows, shown as percentages.
SHARES = ("error rate", "share of misses")
ALPHA = 0.1
BATCH = 100
# Batches at which both ends of the interval are finite, with some to spare.
ENOUGH_BATCHES = 40
# How far the chance that a later row scores worse may lie from one half.
DRIFT = 0.03
# Change of the mean loss, as a share of it, that is not worth acting on.
TOLERATED_CHANGE = 0.1
CLEAR = 0.005
# Places at which a change is looked for, and rows that are shuffled in all.
_MOST_CUTS = 400
_SHUFFLED_ROWS = 8_000_000
# Dates of one change are told apart when their squared standardised differences lie farther apart.
_SAME_DATE = 6.0
_PIECES = 20
_ADVICE = (
    "refit the model on recent rows; for intervals calipers.conformal.AdaptiveConformal or a rolling "
    "calibration window follows the change."
)
# The order of a file may mean nothing: without a stated time it takes this much more evidence for a note.
UNTIMED = 20


def losses_of(rows: Rows) -> tuple[str, np.ndarray] | None:
    """The loss people ask about: as given, errors of the top label, absolute errors, or misses."""
    if rows.get("loss") is not None:
        return "loss", rows["loss"].astype(float)
    if rows.get("probabilities") is not None:
        return "error rate", (~rows["top_is_right"]).astype(float)
    intervals = rows.get("interval_at_level")
    if rows.get("y_pred") is not None:
        return "absolute error", rows["hardness"]
    if intervals is not None and np.isfinite(intervals).all():
        return f"absolute error{MIDPOINT}", rows["hardness"]
    covered = rows.get("covered")
    return None if covered is None else ("share of misses", (~covered).astype(float))


def _fine_losses(rows: Rows) -> np.ndarray:
    """A loss with few ties, for the test of drift: the Brier score where there are probabilities."""
    if rows.get("probabilities") is None or rows.get("loss") is not None:
        found = losses_of(rows)
        return np.empty(0) if found is None else found[1]
    # Scores that are equal in exact arithmetic must tie.
    return np.asarray(np.round(score_rows(rows)["brier_score"], 12))


def next_batch(m: Measurements, promise: None) -> CheckResult:
    """The mean loss of the next batch of rows, and whether losses change along the file."""
    timed = "time" in m.design.have
    title = "losses drift with time" if timed else "losses change along the file"
    base = CheckResult(
        code="CAL601", title=title, question=QUESTION, promise="forecast", slices="time" if timed else ""
    )
    if (rows := m.counted_rows()) is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    if (found := losses_of(rows)) is None:
        return replace(base, not_applicable="There is no loss to forecast. Add loss, or y_pred to y_true.")
    name, losses = found
    batch = int(min(BATCH, rows.n // ENOUGH_BATCHES))
    if batch < 1:
        reason = f"A forecast needs at least {ENOUGH_BATCHES} rows, got {rows.n}."
        return replace(base, not_applicable=reason, rows_needed=ENOUGH_BATCHES)
    if "cluster" in m.design.have:
        return replace(base, not_applicable="Rows of one cluster depend on each other: no test of drift.")
    forecast, came = _forecast(name, losses, batch, m.generator("CAL601")), m.counted_in_order()
    drift, change = _drift(came, m.confidence), change_of_mean(m, came, timed=timed)
    low, high = float(forecast.low or 0.0), float(forecast.high or 0.0)
    return replace(
        base,
        **_drift_result(drift, change, name, float(losses.mean()), m.confidence, timed=timed),
        clean=_clean_words(name, batch, (low, high), float(losses.mean())),
        estimates=(forecast, drift, change),
        pictures=(_picture(came, m.confidence),),
        rows=_rows_since(change) if timed else None,
        repair=repair_snippets.without_code(_ADVICE),
    )


def _clean_words(name: str, batch: int, ends: tuple[float, float], here: float) -> str:
    what = _article(_mean_of(name) if batch > 1 else name)
    return (
        f"The next {_rows_in_words(batch)} will have {what} between {_end(name, ends[0], 'low')} and "
        f"{_end(name, ends[1], 'high')}, with probability {format_share(1 - ALPHA, 0)}; it is "
        f"{_number(name, here)} here."
    )


def _rows_in_words(batch: int) -> str:
    return "row" if batch == 1 else f"{batch} rows"


def _forecast(name: str, losses: np.ndarray, batch: int, generator: np.random.Generator) -> Estimate:
    """The mean loss of the next batch from those of batches made at random of these rows."""
    order = generator.permutation(len(losses))[: batch * (len(losses) // batch)]
    means = losses[order].reshape(-1, batch).mean(axis=1)
    low, high = forecast_losses(means, ALPHA).interval()
    return Estimate(
        name=f"{name.removesuffix(MIDPOINT)} of the next {_rows_in_words(batch)}",
        value=float(losses.mean()), low=float(low), high=float(high), confidence=1 - ALPHA, n=len(losses),
        method=f"conformal interval from {len(means)} batches of {batch} rows in random order (Holland 2020)"
        + ("; errors are those of the midpoints of the intervals" if name.endswith(MIDPOINT) else ""),
    )  # fmt: skip


def _drift_result(
    drift: Estimate, change: Estimate, name: str, mean: float, confidence: float, *, timed: bool
) -> dict[str, Any]:
    """Evidence, effect and sentence of a change of the losses along the time or the file."""
    # Ranks see a small change of all losses, means a large change of a few: both are tests of one null.
    p = min(1.0, 2 * min(e.p_value if e.p_value is not None else 1.0 for e in (drift, change)))
    # Where both find a change its size in the unit of the loss says more than a chance.
    found_place = change.details["changed_at"] is not None
    by_mean = found_place and (change.p_value or 1.0) <= max(drift.p_value or 1.0, CLEAR)
    # What no test finds is sized by ranks, whose room depends on the rows alone.
    sized = by_mean and p <= LEVEL
    ranks = abs(float(drift) - 0.5), _distance(drift), DRIFT
    effect, low, tolerance = _mean_effect(change, max(1e-300, abs(mean))) if sized else ranks
    rows = int(drift.n or 0)
    room = _drift_room(rows, confidence)
    side = "later" if float(drift) > 0.5 else "earlier"
    return {
        "evidence": change if by_mean else drift,
        "p_value": min(1.0, p * (1 if timed else UNTIMED)),
        "details": {"loss": name},
        "effect": effect,
        "effect_low": low,
        "effect_high": None if sized else effect + room,
        "tolerance": tolerance,
        "rows_needed": int(np.ceil(rows * (room / DRIFT) ** 2)),
        # The order of a file need not mean anything: only a stated time makes it a fault.
        "cap": "issue" if timed else "note",
        "fault": _mean_fault(name, change, timed=timed) if by_mean else _fault(float(drift), timed=timed),
        "where": f"since {time_words(change.details['changed_at'])}"
        if timed and by_mean
        else f"{side} rows{'' if timed else ' of the file'}",
    }


def _drift_room(n: int, confidence: float) -> float:
    """Half-width of the chance that a later row scores worse; without drift its variance is 1/(3 n)."""
    return float(normal_quantile(confidence) / np.sqrt(3 * n))


def change_of_mean(m: Measurements, rows: Rows, *, timed: bool) -> Estimate:
    """Mean loss after the time at which it changed most, minus that before, along the time or the file.

    The place of the change is that of the largest standardised difference of means with a twentieth of the
    rows on either side; its p-value is that of shuffled losses.
    """
    found = losses_of(rows)
    losses = np.empty(0) if found is None else found[1]
    times = times_of(rows) if timed else np.arange(rows.n)
    order = np.argsort(times, kind="stable")
    ordered, along = losses[order], times[order]
    n, edge = len(ordered), max(2, len(ordered) // 20)
    cuts = np.arange(edge, n - edge + 1)
    cuts = cuts[along[cuts - 1] != along[np.minimum(cuts, n - 1)]] if timed else cuts
    cuts = cuts[:: max(1, len(cuts) // _MOST_CUTS)]
    base: dict[str, Any] = {
        "name": "change of the mean loss",
        "n": n,
        "method": "largest standardised difference of means before and after; interval and test by shuffled "
        "losses",
    }
    spread = float(np.std(ordered))
    if not len(cuts) or spread <= 1e-12 * max(1.0, float(np.abs(ordered).max(initial=0.0))):
        return Estimate(**base, value=0.0, p_value=1.0, alternative="two-sided", reason="losses do not vary",
                        details={"changed_at": None, "before": None, "after": None})  # fmt: skip
    scale = spread * np.sqrt(cuts * (n - cuts) / n)

    def departures(values: np.ndarray) -> np.ndarray:
        walk = np.cumsum(values - values.mean(axis=-1, keepdims=True), axis=-1)
        return np.asarray(np.abs(walk[..., cuts - 1]) / scale)

    own = departures(ordered)
    at = int(np.argmax(own))
    largest = _shuffled_largest(ordered, departures, m.generator("CAL601 shuffles"))
    p = _shuffled_p(largest, float(own[at]))
    before, after = ordered[: cuts[at]], ordered[cuts[at] :]
    gap = float(after.mean() - before.mean())
    error = float(spread * np.sqrt(1 / len(before) + 1 / len(after)))
    # The largest departure of shuffled losses is what the place was chosen by: the interval leaves 0 out when
    # the test rejects.
    rank = min(len(largest), int(np.ceil(m.confidence * (len(largest) + 1))))
    half = float(np.sort(largest)[rank - 1]) * error
    return Estimate(
        **base, value=gap, low=gap - half, high=gap + half, confidence=m.confidence,
        p_value=p, alternative="two-sided",
        details={
            "changed_at": plain_time(along[cuts[at]]), "before": float(before.mean()),
            "after": float(after.mean()), "null_subject": STEADY,
        },
    )  # fmt: skip


def _shuffled_largest(losses: np.ndarray, departures: Any, generator: np.random.Generator) -> np.ndarray:
    """The largest departure of losses in random order, many times."""
    draws = int(np.clip(_SHUFFLED_ROWS // len(losses), 99, 999))
    return np.array([departures(generator.permutation(losses)).max() for _ in range(draws)])


def _shuffled_p(largest: np.ndarray, seen: float) -> float:
    """Share of shuffles whose largest departure reaches the one seen; below that a sum of tails."""
    reached = int(np.count_nonzero(largest >= seen - 1e-9))
    p = (1 + reached) / (1 + len(largest))
    # Bonferroni over about 40 independent places is on the safe side of a maximum over correlated ones.
    return float(p if reached else min(p, 40 * 2 * stats.norm.sf(seen) + 1e-300))


def _mean_effect(change: Estimate, level: float) -> tuple[float, float, float]:
    """Change of the mean loss as a share of the mean, its lower end, and what is tolerated."""
    low, high = float(change.low or 0.0), float(change.high or 0.0)
    return abs(float(change)) / level, max(low, -high) / level, TOLERATED_CHANGE


def _mean_fault(name: str, change: Estimate, *, timed: bool) -> str:
    before, after = (_number(name, float(change.details[key])) for key in ("before", "after"))
    if timed:
        return (
            f"Since {time_words(change.details['changed_at'])} the {_mean_of(name)} is {after}; before it "
            f"was {before}. No forecast holds until this is understood."
        )
    return (
        f"The rows do not come in random order: from row {change.details['changed_at']} of the file on the "
        f"{_mean_of(name)} is {after}, before it is {before}. If their order means time, losses drift and no "
        "forecast holds (give the time to be sure); if the file was sorted, it means nothing."
    )


def dated_by(drift: Estimate, rows: Rows, inside: np.ndarray, since: Any) -> tuple[Estimate, str] | None:
    """A change of the mean loss with another date, and its sentence; None if that describes it clearly worse.

    ``inside`` are the rows from that date on. The squared standardised difference of means is twice the gain
    in log-likelihood: dates within `_SAME_DATE` of the best one may be the true one.
    """
    name, losses = losses_of(rows) or ("loss", np.zeros(rows.n))
    own = times_of(rows) >= drift.details["changed_at"]
    errors = [float(np.std(losses)) * np.sqrt(1 / part.sum() + 1 / (~part).sum()) for part in (own, inside)]
    before, after = float(losses[~inside].mean()), float(losses[inside].mean())
    gap, half = after - before, (float(drift) - float(drift.low or 0.0)) * errors[1] / errors[0]
    if (float(drift) / errors[0]) ** 2 - (gap / errors[1]) ** 2 > _SAME_DATE:
        return None
    details = dict(drift.details) | {"changed_at": plain_time(since), "before": before, "after": after}
    change = replace(drift, value=gap, low=gap - half, high=gap + half, details=details)
    return change, _mean_fault(name, change, timed=True)


def _rows_since(change: Estimate) -> Any:
    since = change.details.get("changed_at")
    return None if since is None else lambda rows: times_of(rows) >= since


def _fault(chance: float, *, timed: bool) -> str:
    if timed:
        return (
            f"Losses change with time: a later row scores worse than an earlier one with probability "
            f"{chance:.2f}. No forecast holds until this is understood."
        )
    return (
        "The rows do not come in random order: a row further down the file scores worse than one further up "
        f"with probability {chance:.2f}. If their order means time, losses drift and no forecast holds (give "
        "the time to be sure); if the file was sorted, it means nothing."
    )


def _number(name: str, value: float) -> str:
    return format_share(value) if name in SHARES else format_number(float(value))


def _end(name: str, value: float, side: Literal["low", "high"]) -> str:
    """An end of the interval that is promised: rounded outward."""
    if name not in SHARES:
        return format_end(float(value), side=side)
    tenths = 1000 * float(value)
    outward = np.ceil(tenths - 1e-9) if side == "high" else np.floor(tenths + 1e-9)
    return f"{outward / 10:.1f} %"


def _mean_of(name: str) -> str:
    """The loss of several rows: a share is a mean by itself."""
    return name if name in SHARES else f"mean {name}"


def _article(name: str) -> str:
    return ("an " if name[0] in "aeiou" else "a ") + name


def _drift(rows: Rows, confidence: float) -> Estimate:
    """Later half against earlier half, by ranks; under exchangeability their order is a coin's."""
    losses, later = _fine_losses(rows), later_rows(rows)
    test = stats.mannwhitneyu(losses[later], losses[~later], method="asymptotic")
    smaller = int(min(later.sum(), (~later).sum()))
    chance = float(test.statistic) / (smaller * (rows.n - smaller))
    # The error of a concordance probability is at most that of a proportion of the smaller half.
    error = float(np.sqrt(chance * (1 - chance) / smaller))
    half = normal_quantile(confidence) * error
    along = "by the stated time" if rows.get("time") is not None else "in the order of the file"
    return Estimate(
        name="chance that a later row scores worse", value=chance, std_error=error,
        low=max(0.0, chance - half), high=min(1.0, chance + half), confidence=confidence,
        n=rows.n, p_value=float(test.pvalue), alternative="two-sided",
        method=f"Mann-Whitney test of the later half of the rows against the earlier half, {along}",
        details={"null_subject": STEADY},
    )  # fmt: skip


def later_rows(rows: Rows) -> np.ndarray:
    """Which rows belong to the later half; rows of one time stay together. Without time: by the file."""
    if (time := rows.get("time")) is not None:
        middle = np.quantile(time, 0.5, method="inverted_cdf")
        for later in (time > middle, time >= middle):
            if 0 < later.sum() < rows.n:
                return np.asarray(later)
    return np.arange(rows.n) >= rows.n // 2


def _distance(drift: Estimate) -> float:
    """How far the interval lies from one half; negative when it holds it."""
    low, high = drift.low or 0.0, drift.high or 1.0
    return max(low - 0.5, 0.5 - high)


def _picture(rows: Rows, confidence: float) -> Picture:
    name, losses = losses_of(rows) or ("loss", np.zeros(rows.n))
    time = rows.get("time")
    timed, along = time is not None, "the file" if time is None else "time"
    order = np.arange(rows.n) if time is None else np.argsort(time, kind="stable")
    parts = [p for p in np.array_split(order, min(_PIECES, len(order))) if len(p) > 1]
    pieces = [losses[p] for p in parts]
    share = (np.arange(len(pieces)) + 0.5) / max(1, len(pieces))
    centres = share if time is None else np.array([np.median(time[p]) for p in parts])
    dated = time is not None and are_dates(time)
    mean = np.array([p.mean() for p in pieces])
    half = np.array([normal_quantile(confidence) * p.std(ddof=1) / np.sqrt(len(p)) for p in pieces])
    curve = Curve(
        name=name, x=centres / 1e6 if dated else centres, y=mean, low=mean - half,
        high=mean + half, confidence=confidence, x_label="time" if timed else
        "share of the file, from its first row", y_label=name,
        method=f"mean and normal interval per piece along {along}", details={"dates": dated},
    )  # fmt: skip
    return Picture(
        name="loss_along_the_file", question=QUESTION, title=f"{name.capitalize()} along {along}",
        caption="Without drift the pieces scatter around one level.", kind="points", curves=(curve,),
        reference=float(losses.mean()),
    )  # fmt: skip


CHECKS = (
    Check(
        code="CAL601",
        title="forecast and drift",
        question=QUESTION,
        needs=(),
        add="Add what was predicted.",
        once=True,
        read=next_batch,
        on_sample=True,
    ),
)
