"""CAL6xx, what will it score next time: the next batch, and whether the rows drift."""

from __future__ import annotations

import numpy as np
from scipy import stats

from calipers.auditing.material import Material
from calipers.auditing.reading import Check, Picture, Reading
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


def losses_of(material: Material) -> tuple[str, np.ndarray]:
    """The loss people ask about: errors of the top label, absolute errors, or misses."""
    if material.probabilities is not None:
        return "error rate", (material.probabilities.argmax(axis=1) != material.y).astype(float)
    if material.task == "regression":
        ends = material.levels[0].prediction
        if np.isfinite(ends).all():
            return "absolute error", np.abs(material.y - ends.mean(axis=1))
    return "share of misses", (~material.levels[0].covered).astype(float)


def _fine_losses(material: Material) -> np.ndarray:
    """A loss with few ties, for the test of drift: the Brier score where there are probabilities."""
    if material.probabilities is None:
        return losses_of(material)[1]
    P = material.probabilities
    return np.asarray((P**2).sum(axis=1) - 2 * P[np.arange(material.n), material.y] + 1)


def next_batch(material: Material) -> Reading:
    """The mean loss of the next batch of rows, and whether losses change along the file."""
    name, losses = losses_of(material)
    batch = int(min(BATCH, material.n // ENOUGH_BATCHES))
    base = Reading(code="CAL601", title="losses drift along the rows", question=QUESTION)
    if batch < 1:
        reason = f"A forecast needs at least {ENOUGH_BATCHES} rows, got {material.n}."
        return Reading(code=base.code, title=base.title, question=QUESTION, not_applicable=reason)
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
    return Reading(
        code=base.code,
        title=base.title,
        question=QUESTION,
        evidence=drift,
        p_value=drift.p_value,
        effect=abs(float(drift) - 0.5),
        effect_low=_distance(drift),
        tolerance=DRIFT,
        cap="warning",
        fault=f"Losses change along the file: a row of the later half scores worse than one of the earlier "
        f"half with probability {float(drift):.2f}. If the order means time, no forecast holds until this is "
        "understood.",
        clean=f"The next {what} will have {_article(name)} between {_number(name, low)} and "
        f"{_number(name, high)}, with probability {100 * (1 - ALPHA):.0f} %; "
        f"it is {_number(name, float(losses.mean()))} here.",
        where="later rows" if float(drift) > 0.5 else "earlier rows",
        estimates=(forecast, drift),
        pictures=(curve,),
    )


def _number(name: str, value: float) -> str:
    return format_number(float(value)) if name == "absolute error" else f"{100 * value:.1f} %"


def _article(name: str) -> str:
    return ("an " if name[0] in "aeiou" else "a ") + name


def _drift(material: Material, name: str) -> tuple[Estimate, Picture]:
    """Later half against earlier half, by ranks; under exchangeability their order is a coin's."""
    losses = _fine_losses(material)
    half = material.n // 2
    test = stats.mannwhitneyu(losses[half:], losses[:half], method="asymptotic")
    chance = float(test.statistic) / (half * (material.n - half))
    # The error of a concordance probability is at most that of a proportion of the smaller half.
    error = float(np.sqrt(chance * (1 - chance) / half)) if half else float("nan")
    estimate = Estimate(
        name="chance that a later row scores worse", value=chance, std_error=error,
        low=max(0.0, chance - 1.959964 * error), high=min(1.0, chance + 1.959964 * error), confidence=0.95,
        n=material.n, p_value=float(test.pvalue), alternative="two-sided",
        method="Mann-Whitney test of the later half of the rows against the earlier half",
    )  # fmt: skip
    return estimate, _picture(losses_of(material)[1], name)


def _distance(drift: Estimate) -> float:
    """How far the interval lies from one half; negative when it holds it."""
    low, high = drift.low or 0.0, drift.high or 1.0
    return max(low - 0.5, 0.5 - high)


def _picture(losses: np.ndarray, name: str) -> Picture:
    pieces = [p for p in np.array_split(losses, min(_PIECES, len(losses))) if len(p) > 1]
    mean = np.array([p.mean() for p in pieces])
    half = np.array([1.959964 * p.std(ddof=1) / np.sqrt(len(p)) for p in pieces])
    curve = Curve(
        name=name, x=(np.arange(len(pieces)) + 0.5) / max(1, len(pieces)), y=mean, low=mean - half,
        high=mean + half, confidence=0.95, x_label="share of the file, from its first row", y_label=name,
        method="mean and normal interval per piece of the file",
    )  # fmt: skip
    return Picture(
        name="loss_along_the_file", question=QUESTION, title=f"{name.capitalize()} along the file",
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
