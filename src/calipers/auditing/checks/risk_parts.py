"""CAL603, CAL605, CAL606, CAL607: does the mean loss stay within its bound in every part of the rows.

The promise is about all rows, so a part that exceeds the bound is at most a warning. Where all rows together
exceed it (CAL602), parts are compared with their mean: what is wrong everywhere is told once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks.adaptive import EASE, measure_words, part_names, part_phrase, parts_of
from calipers.auditing.checks.over_time import time_span, time_words, times_of
from calipers.auditing.checks.regions import region_mask, smallest_mass
from calipers.auditing.checks.risk import PROMISE, QUESTION, checked_losses, mean_loss, risk_numbers
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.auditing.slices import FEWEST_ROWS, group_rows, memberships
from calipers.inference import sidak_confidence
from calipers.inputs import check_features
from calipers.inputs.derived_columns import attribute_names
from calipers.inputs.rows import Rows
from calipers.metrics.conditional.regions import largest_excess_rule
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_number

# Stretches of time and parts along difficulty, and the rows that each must have at least.
STRETCHES, PARTS, ROWS_PER_PART = 10, 5, 50
_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Some rows: where they are, as a label, as a place, after "mean loss" and at the start of a sentence."""

    label: str
    place: str
    named: str
    phrase: str
    mask: np.ndarray
    rows: Callable[[Rows], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of parts: its check, its words, and how it is made of the rows and their losses."""

    code: str
    title: str
    slices: str
    word: str
    clean: str
    nothing: str
    add: str
    parts: Callable[[Measurements, Rows, np.ndarray], list[Part]]

    def read(self, m: Measurements, promise: None) -> CheckResult:
        """The mean loss of every part against the bound."""
        base = CheckResult(
            code=self.code, title=self.title, question=QUESTION, promise=PROMISE, cap="warning"
        )
        if (found := checked_losses(m)) is None:
            return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
        rows, loss = found
        parts = [part for part in self.parts(m, rows, loss) if part.mask.sum() >= FEWEST_ROWS]
        if not parts:
            return replace(base, clean=self.clean, p_value=1.0, details={"bound": m.design.bound})
        if len(parts) == 1 and self.nothing:
            return replace(base, not_applicable=self.nothing)
        return self._compared(m, base, parts, rows, loss)

    def _compared(
        self, m: Measurements, base: CheckResult, parts: list[Part], rows: Rows, loss: np.ndarray
    ) -> CheckResult:
        null, cluster = max(float(m.design.bound or 0.0), float(loss.mean())), rows.get("cluster")
        together = sidak_confidence(m.confidence, len(parts))
        means = [
            mean_loss(
                m, loss[part.mask], None if cluster is None else np.asarray(cluster)[part.mask],
                name=f"mean loss {part.named}", confidence=together, null=null,
            )
            for part in parts
        ]  # fmt: skip
        at = int(np.argmin([e.p_value if e.p_value is not None else 1.0 for e in means]))
        worst, part = means[at], parts[at]
        p = None if worst.p_value is None else min(1.0, float(worst.p_value) * len(parts))
        own = replace(worst, p_value=p, confidence=m.confidence)
        numbers = risk_numbers(m, own, f"{part.phrase} the mean loss", null)
        if numbers["rows_needed"] is not None:
            numbers["rows_needed"] = int(np.ceil(numbers["rows_needed"] * rows.n / part.mask.sum()))
        if null > float(m.design.bound or 0.0):
            numbers["fault"] = f"{numbers['fault'][:-1]}, and all rows have {format_number(null)}."
        return replace(
            base, **numbers, clean=self.clean, where=part.place, rows=part.rows,
            pictures=(self._picture(m, parts, means),) if len(parts) > 1 else (),
        )  # fmt: skip

    def _picture(self, m: Measurements, parts: list[Part], means: list[Estimate]) -> Picture:
        order = list(range(len(means)))
        if self.slices == "groups":
            order = sorted(order, key=lambda k: -float(means[k]))[:_SHOWN]
        curve = Curve(
            name=f"mean loss by {self.word}", x=np.arange(len(order), dtype=float),
            y=np.array([float(means[k]) for k in order]), low=np.array([means[k].low or 0.0 for k in order]),
            high=np.array([means[k].high or 0.0 for k in order]), confidence=m.confidence, x_label=self.word,
            y_label="mean loss", method="intervals for rows of a known range that hold at once (Sidak)",
            details={"worse": "above"},
        )  # fmt: skip
        return Picture(
            name=f"{self.code}_loss_by_{self.word}".replace(" ", "_"), question=QUESTION,
            title=f"Mean loss by {self.word}", kind="intervals", caption="The line is the promised bound.",
            curves=(curve,), reference=m.design.bound, labels=tuple(parts[k].label for k in order),
        )  # fmt: skip

    def check(self, *needs: str) -> Check:
        """Its line in the table of checks."""
        return Check(
            code=self.code, title=f"mean loss by {self.word} against the bound", question=QUESTION,
            needs=("loss", "bound", *needs), add=self.add, once=True, slices=self.slices, read=self.read,
            on_sample=True,
        )  # fmt: skip


def _groups(m: Measurements, rows: Rows, loss: np.ndarray) -> list[Part]:
    named = memberships(rows["group_cell"], attribute_names(rows.given["groups"]))
    return [
        Part(
            label=label, place=f"group {label}", named=f"of group {label}", phrase=f"In group {label}",
            mask=mask,
            rows=partial(_in_group, label=label),
        )
        for label, mask, _ in named
    ]  # fmt: skip


def _in_group(rows: Rows, label: str) -> np.ndarray:
    return group_rows(rows, label)[0]


def _regions(m: Measurements, rows: Rows, loss: np.ndarray) -> list[Part]:
    """A rule found on each half of the rows, among the rows of the other half."""
    features, (one, other) = check_features(rows.given["X"]), _halves(m, rows, loss)
    found: list[Part] = []
    for searching, measuring in ((one, other), (other, one)):
        rule = largest_excess_rule(
            features.take(searching), loss[searching], min_mass=smallest_mass(len(loss))
        )
        if rule is not None:
            words, conditions = rule
            inside = np.zeros(rows.n, dtype=bool)
            inside[measuring] = region_mask(rows, conditions)[measuring]
            found.append(
                Part(
                    label=words, place=words, named=f"where {words}", phrase=f"Where {words}", mask=inside,
                    rows=partial(region_mask, conditions=conditions),
                )
            )  # fmt: skip
    return found


def _halves(m: Measurements, rows: Rows, loss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the rows, or of the clusters, whatever the order and the names of the rows."""
    rng, values = m.generator("risk regions"), check_features(rows.given["X"]).values
    order = rng.permutation(rows.n)
    order = np.lexsort((*values.T, loss))[order]
    if (cluster := rows.get("cluster")) is None:
        return order[: rows.n // 2], order[rows.n // 2 :]
    names, codes = np.unique(np.asarray(cluster), return_inverse=True)
    first = rng.permutation(len(names)) < len(names) // 2
    inside = first[codes.reshape(-1)][order]
    return order[inside], order[~inside]


def _along_difficulty(m: Measurements, rows: Rows, loss: np.ndarray) -> list[Part]:
    n_parts = int(np.clip(rows.n // ROWS_PER_PART, 2, PARTS))
    codes, n_found = parts_of(rows[EASE], n_parts, None)
    along = measure_words(m.design)
    return [
        Part(
            label=name, place=name, named=f"of the {name}", phrase=part_phrase(name, along),
            mask=codes == number,
            rows=partial(_in_part, number=number, n_parts=n_parts),
        )
        for number, name in enumerate(part_names(n_found))
    ]  # fmt: skip


def _in_part(rows: Rows, number: int, n_parts: int) -> np.ndarray:
    return np.asarray(parts_of(rows[EASE], n_parts, None)[0] == number)


def _over_time(m: Measurements, rows: Rows, loss: np.ndarray) -> list[Part]:
    times = times_of(rows)
    codes, n_found = parts_of(rows["time"], int(np.clip(rows.n // ROWS_PER_PART, 2, STRETCHES)), None)
    found = []
    for number in range(n_found):
        inside = codes == number
        first, last = times[inside].min(), times[inside].max()
        where = time_span(time_words(first), time_words(last))
        where = where[0].lower() + where[1:]
        found.append(
            Part(
                label=time_words(first), place=where, named=where, phrase=where.capitalize(), mask=inside,
                rows=partial(_between, first=first, last=last),
            )
        )  # fmt: skip
    return found


def _between(rows: Rows, first: Any, last: Any) -> np.ndarray:
    times = times_of(rows)
    return np.asarray((times >= first) & (times <= last))


FAMILIES = {
    "groups": Family(
        code="CAL603", title="a group exceeds the risk bound", slices="groups", word="group",
        clean="No group clearly exceeds the bound of the mean loss.",
        nothing="There is only one group; a comparison needs two.",
        add="Add groups to loss and bound.", parts=_groups,
    ),
    "X": Family(
        code="CAL605", title="a region exceeds the risk bound", slices="features", word="region",
        clean="No region of the features clearly exceeds the bound of the mean loss.", nothing="",
        add="Add X, the features, to loss and bound.", parts=_regions,
    ),
    "difficulty": Family(
        code="CAL606", title="a part along difficulty exceeds the risk bound", slices="difficulty",
        word="difficulty",
        clean="Neither hard nor easy rows clearly exceed the bound of the mean loss.",
        nothing="All rows are equally easy; there is nothing to compare.",
        add="Add ease to loss and bound.", parts=_along_difficulty,
    ),
    "time": Family(
        code="CAL607", title="a stretch of time exceeds the risk bound", slices="time", word="time",
        clean="At no time is the bound of the mean loss clearly exceeded.",
        nothing="All rows have one time; there is nothing to compare.",
        add="Add time to loss and bound.", parts=_over_time,
    ),
}  # fmt: skip
CHECKS = tuple(family.check(needed) for needed, family in FAMILIES.items())
