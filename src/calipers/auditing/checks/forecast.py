"""CAL6xx, what will it score next time: the next batch, and whether the rows drift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.measurements import NO_EXACT_TEST, Measurements
from calipers.displays.curves import are_dates
from calipers.inference import normal_quantile
from calipers.inputs.rows import Rows
from calipers.metrics.probability_scores import score_rows
from calipers.performance import forecast_losses
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_number

QUESTION = "forecast"
ALPHA = 0.1
BATCH = 100
# Batches at which both ends of the interval are finite, with some to spare.
ENOUGH_BATCHES = 40
# How far the chance that a later row scores worse may lie from one half.
DRIFT = 0.03
_PIECES = 20
# Nobody promised that the order of a file is random: without a time it takes more to be worth a note.
UNTIMED = 20


def losses_of(rows: Rows) -> tuple[str, np.ndarray]:
    """The loss people ask about: errors of the top label, absolute errors, or misses."""
    if rows.get("probabilities") is not None:
        return "error rate", (~rows["top_is_right"]).astype(float)
    if rows.task == "regression" and np.isfinite(rows["interval_at_level"]).all():
        return "absolute error", rows["hardness"]
    return "share of misses", (~rows["covered"]).astype(float)


def _fine_losses(rows: Rows) -> np.ndarray:
    """A loss with few ties, for the test of drift: the Brier score where there are probabilities."""
    if rows.get("probabilities") is None:
        return losses_of(rows)[1]
    # Scores that are equal in exact arithmetic must tie.
    return np.asarray(np.round(score_rows(rows)["brier_score"], 12))


def next_batch(m: Measurements, level: None) -> CheckResult:
    """The mean loss of the next batch of rows, and whether losses change along the file."""
    timed = "time" in m.design.have
    title = "losses drift with time" if timed else "losses change along the file"
    base = CheckResult(code="CAL601", title=title, question=QUESTION)
    if (rows := m.counted_rows()) is None:
        return replace(base, not_applicable=f"{NO_EXACT_TEST}.".capitalize())
    name, losses = losses_of(rows)
    batch = int(min(BATCH, rows.n // ENOUGH_BATCHES))
    if batch < 1:
        reason = f"A forecast needs at least {ENOUGH_BATCHES} rows, got {rows.n}."
        return replace(base, not_applicable=reason)
    order = m.generator("CAL601").permutation(rows.n)[: batch * (rows.n // batch)]
    means = losses[order].reshape(-1, batch).mean(axis=1)
    low, high = forecast_losses(means, ALPHA).interval()
    what = "row" if batch == 1 else f"{batch} rows"
    forecast = Estimate(
        name=f"{name} of the next {what}", value=float(losses.mean()), low=float(low), high=float(high),
        confidence=1 - ALPHA, n=rows.n,
        method=f"conformal interval from {len(means)} batches of {batch} rows in random order (Holland 2020)",
    )  # fmt: skip
    came = m.counted_in_order()
    drift = _drift(came, m.confidence)
    return replace(
        base,
        evidence=drift,
        p_value=None if drift.p_value is None else min(1.0, drift.p_value * (1 if timed else UNTIMED)),
        effect=abs(float(drift) - 0.5),
        effect_low=_distance(drift),
        tolerance=DRIFT,
        # The order of a file need not mean anything: only a stated time makes it a warning.
        cap="warning" if timed else "note",
        fault=_fault(float(drift), timed=timed),
        clean=f"The next {what} will have {_article(name)} between {_number(name, low)} and "
        f"{_number(name, high)}, with probability {100 * (1 - ALPHA):.0f} %; "
        f"it is {_number(name, float(losses.mean()))} here.",
        where=("later" if float(drift) > 0.5 else "earlier") + (" rows" if timed else " rows of the file"),
        estimates=(forecast, drift),
        pictures=(_picture(came, m.confidence),),
    )


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
    return format_number(float(value)) if name == "absolute error" else f"{100 * value:.1f} %"


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
    name, losses = losses_of(rows)
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
