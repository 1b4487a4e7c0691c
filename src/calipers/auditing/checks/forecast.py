"""CAL6xx, what will it score next time: the next batch, and whether the rows drift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from calipers.auditing.material import Material
from calipers.auditing.reading import Check, Picture, Reading
from calipers.inference import normal_quantile
from calipers.metrics.row_scores import absolute_error_rows, brier_rows, stated_probability, zero_one_rows
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


def losses_of(material: Material) -> tuple[str, np.ndarray]:
    """The loss people ask about: errors of the top label, absolute errors, or misses."""
    if material.probabilities is not None:
        return "error rate", np.asarray(zero_one_rows(material.y, material.probabilities.argmax(axis=1)))
    if material.task == "regression":
        ends = material.levels[0].prediction
        if np.isfinite(ends).all():
            return "absolute error", np.asarray(absolute_error_rows(material.y, ends.mean(axis=1)))
    return "share of misses", (~material.levels[0].covered).astype(float)


def _fine_losses(material: Material) -> np.ndarray:
    """A loss with few ties, for the test of drift: the Brier score where there are probabilities."""
    if material.probabilities is None:
        return losses_of(material)[1]
    P = material.probabilities
    return np.asarray(brier_rows(P, stated_probability(P, material.y)))


def next_batch(material: Material) -> Reading:
    """The mean loss of the next batch of rows, and whether losses change along the file."""
    name, losses = losses_of(material)
    batch = int(min(BATCH, material.n // ENOUGH_BATCHES))
    timed = material.time is not None
    title = "losses drift with time" if timed else "losses change along the file"
    base = Reading(code="CAL601", title=title, question=QUESTION)
    if batch < 1:
        reason = f"A forecast needs at least {ENOUGH_BATCHES} rows, got {material.n}."
        return replace(base, not_applicable=reason)
    order = material.generator("CAL601").permutation(material.n)[: batch * (material.n // batch)]
    means = losses[order].reshape(-1, batch).mean(axis=1)
    low, high = forecast_losses(means, ALPHA).interval()
    what = "row" if batch == 1 else f"{batch} rows"
    forecast = Estimate(
        name=f"{name} of the next {what}", value=float(losses.mean()), low=float(low), high=float(high),
        confidence=1 - ALPHA, n=material.n,
        method=f"conformal interval from {len(means)} batches of {batch} rows in random order (Holland 2020)",
    )  # fmt: skip
    drift, curve = _drift(material, name)
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
        pictures=(curve,),
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


def _drift(material: Material, name: str) -> tuple[Estimate, Picture]:
    """Later half against earlier half, by ranks; under exchangeability their order is a coin's."""
    losses, later = _fine_losses(material), later_rows(material)
    test = stats.mannwhitneyu(losses[later], losses[~later], method="asymptotic")
    smaller = int(min(later.sum(), (~later).sum()))
    chance = float(test.statistic) / (smaller * (material.n - smaller))
    # The error of a concordance probability is at most that of a proportion of the smaller half.
    error = float(np.sqrt(chance * (1 - chance) / smaller))
    half = normal_quantile(material.confidence) * error
    along = "by the stated time" if material.time is not None else "in the order of the file"
    estimate = Estimate(
        name="chance that a later row scores worse", value=chance, std_error=error,
        low=max(0.0, chance - half), high=min(1.0, chance + half), confidence=material.confidence,
        n=material.n, p_value=float(test.pvalue), alternative="two-sided",
        method=f"Mann-Whitney test of the later half of the rows against the earlier half, {along}",
    )  # fmt: skip
    return estimate, _picture(material, name)


def later_rows(material: Material) -> np.ndarray:
    """Which rows belong to the later half; rows of one time stay together. Without time: by the file."""
    if material.time is not None:
        middle = np.quantile(material.time, 0.5, method="inverted_cdf")
        for later in (material.time > middle, material.time >= middle):
            if 0 < later.sum() < material.n:
                return np.asarray(later)
    return np.arange(material.n) >= material.n // 2


def _distance(drift: Estimate) -> float:
    """How far the interval lies from one half; negative when it holds it."""
    low, high = drift.low or 0.0, drift.high or 1.0
    return max(low - 0.5, 0.5 - high)


def _picture(material: Material, name: str) -> Picture:
    timed, losses = material.time is not None, losses_of(material)[1]
    if material.time is not None:
        losses = losses[np.argsort(material.time, kind="stable")]
    along = "time" if timed else "the file"
    pieces = [p for p in np.array_split(losses, min(_PIECES, len(losses))) if len(p) > 1]
    mean = np.array([p.mean() for p in pieces])
    z = normal_quantile(material.confidence)
    half = np.array([z * p.std(ddof=1) / np.sqrt(len(p)) for p in pieces])
    curve = Curve(
        name=name, x=(np.arange(len(pieces)) + 0.5) / max(1, len(pieces)), y=mean, low=mean - half,
        high=mean + half, confidence=material.confidence, y_label=name,
        x_label="share of the rows, earliest first" if timed else "share of the file, from its first row",
        method=f"mean and normal interval per piece along {along}",
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
        once=next_batch,
    ),
)
