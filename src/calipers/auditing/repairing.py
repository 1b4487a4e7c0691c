"""``audit.repair()``: learn a repair on some rows, try it on rows it has not seen, say what it brought."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calipers.auditing.checks.adaptive import parts_of
from calipers.auditing.checks.features import pick_worst
from calipers.auditing.measurements import Design
from calipers.auditing.measures import BRIER_SCORE, LOG_LOSS
from calipers.auditing.remedies import Grouping, groups_for, needs_design, recalibrate, reconformalise
from calipers.auditing.result import Audit
from calipers.exceptions import InputError
from calipers.inference import mean_estimate, normal_quantile, paired_difference
from calipers.inputs import check_features, check_fraction
from calipers.inputs.row_keys import draws
from calipers.inputs.rows import Rows
from calipers.report import render_html, render_json, render_markdown
from calipers.results import Estimate, severity_rank, write_atomically

FEWEST_ROWS = 200
# Of the rows that are not held out, for learning groups; thresholds need more rows than edges do.
DESIGN_SHARE = 0.4
COVERAGE_CODES = {"CAL101", "CAL102", "CAL103", "CAL201", "CAL202", "CAL203", "CAL301", "CAL401", "CAL402"}
PROBABILITY_CODES = {"CAL501", "CAL502", "CAL503"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure before and after, on the untouched rows.

    Parameters
    ----------
    measure : str
        What was measured.
    target : float or None
        The value it should have; None when less is better.
    before, after : Estimate
        On the same rows.
    difference : Estimate
        after - before, paired.
    is_size : bool
        Whether it is a size, which is neither good nor bad by itself.
    """

    measure: str
    target: float | None
    before: Estimate
    after: Estimate
    difference: Estimate
    is_size: bool = False

    @property
    def verdict(self) -> str:
        """better, worse, or "no change beyond noise"; never better inside the noise.

        A size by itself is neither: too small covers too little. It is "larger" or "smaller". A change
        across the target that ends about as far from it as before is "past the target".
        """
        d = self.difference
        if self.is_size and d.std_error == 0 and float(d) != 0:
            return (
                "larger" if float(d) > 0 else "smaller"
            )  # by the same amount in every row: there is no noise
        if d.low is None or d.high is None or d.low <= 0 <= d.high:
            return "no change beyond noise"
        if self.is_size:
            return "larger" if float(d) > 0 else "smaller"
        if self.target is None:
            return "better" if float(d) < 0 else "worse"
        before, after = float(self.before) - self.target, float(self.after) - self.target
        if before * after < 0 and abs(before + after) <= self._noise_of_sum():
            return "past the target"
        return "better" if abs(after) < abs(before) else "worse"

    def _noise_of_sum(self) -> float:
        """Radius of the interval of before + after, whose variance is 2 (var + var) - var(difference)."""
        errors = [e.std_error or 0.0 for e in (self.before, self.after, self.difference)]
        spread = math.sqrt(max(0.0, 2 * (errors[0] ** 2 + errors[1] ** 2) - errors[2] ** 2))
        return normal_quantile(self.difference.confidence or 0.95) * spread

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the report."""
        return {
            "measure": self.measure,
            "target": self.target,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "difference": self.difference.to_dict(),
            "verdict": self.verdict,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Repair:
    """What was done, and what it brought on rows it has not seen.

    Parameters
    ----------
    steps : tuple of str
        What was done, in words; empty when there was nothing to repair or no way to.
    before, after : Audit
        Of the untouched rows, as they came and repaired.
    changes : tuple of Change
        Paired comparisons on those rows.
    """

    steps: tuple[str, ...]
    before: Audit
    after: Audit
    changes: tuple[Change, ...]

    @property
    def gone(self) -> tuple[str, ...]:
        """Codes of faults that were there before and are not after."""
        left = {finding.code for finding in self.after.faults}
        return tuple(finding.code for finding in self.before.faults if finding.code not in left)

    @property
    def milder(self) -> tuple[str, ...]:
        """Codes of faults that remain with a lower severity."""
        left = {finding.code: severity_rank(finding.severity) for finding in self.after.faults}
        return tuple(f.code for f in self.before.faults if left.get(f.code, 9) < severity_rank(f.severity))

    def to_dict(self) -> dict[str, Any]:
        """The document of the audit after, with the repair added."""
        return self.after.to_dict() | {
            "repair": {
                "steps": list(self.steps),
                "gone": list(self.gone),
                "milder": list(self.milder),
                "rows": self.after.rows,
                "before": self.before.to_dict()["verdict"],
                "changes": [change.to_dict() for change in self.changes],
            }
        }

    def to_json(self, path: Path | str | None = None) -> str:
        """Everything as strict JSON; also written to the path when one is given."""
        return _written(render_json(self.to_dict()), path)

    def to_markdown(self, path: Path | str | None = None) -> str:
        """A summary; also written to the path when one is given."""
        return _written(render_markdown(self.to_dict()), path)

    def to_html(self, path: Path | str | None = None) -> str:
        """The report of the repaired rows, with before and after; also written to the path."""
        return _written(render_html(self.to_dict()), path)

    def __str__(self) -> str:
        if not self.steps:
            return "Nothing was changed: no fault that can be repaired from these columns."
        lines = [f"Repaired on other rows: {'; '.join(self.steps)}."]
        lines += [
            f"{c.measure}: {float(c.before):.3f} before, {float(c.after):.3f} after, {c.verdict}"
            for c in self.changes
        ]
        milder = f" Milder: {', '.join(self.milder)}." if self.milder else ""
        lines.append(f"Faults gone: {', '.join(self.gone) or 'none'}.{milder}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Repair({len(self.steps)} steps, {len(self.gone)} faults gone)"


def repair_audit(audit: Audit, *, held_out: float = 0.5) -> Repair:
    """Repair on a random part of the rows, compare on the rest.

    Parameters
    ----------
    audit : Audit
        Its faults say what to repair.
    held_out : float
        Share of the rows that stays untouched.

    Returns
    -------
    Repair
        Before and after on the untouched rows, with paired intervals.

    Raises
    ------
    InputError
        With fewer than 200 rows.
    """
    from calipers.auditing.running import audit_rows

    rows, design = audit.data, audit.design
    if rows.n < FEWEST_ROWS:
        raise InputError(f"a repair needs at least {FEWEST_ROWS} rows, got {rows.n}.")
    share = check_fraction(held_out, name="held_out", meaning="It is the share of rows that stays untouched")
    untouched = _random_part(rows, "repair", design, share)
    codes = {finding.code for finding in audit.faults}
    before_rows, rest = rows.take(untouched), rows.take(~untouched)
    repaired, steps, n_calibration = _apply(rest, before_rows, design, codes)

    def again(part: Rows, words: str, n_calibration: int | None) -> Audit:
        settings = {
            "seed": design.seed, "confidence": design.confidence, "sample_rows": design.sample_rows,
            "n_calibration": n_calibration,
        }  # fmt: skip
        return audit_rows(part, settings=settings, name=f"{audit.name} {words}", origin=audit.origin)

    before = again(before_rows, "before", design.n_calibration)
    after = again(repaired, "repaired", n_calibration) if steps else before
    changes = _changes(before_rows, repaired, design, codes) if steps else ()
    return Repair(steps=steps, before=before, after=after, changes=changes)


def _random_part(rows: Rows, purpose: str, design: Design, share: float) -> np.ndarray:
    """A random part of the rows, as a mask; the draws belong to the rows."""
    order = np.argsort(draws(rows.keys(), purpose, design.seed), kind="stable")
    part = np.zeros(rows.n, dtype=bool)
    part[order[: math.ceil(share * rows.n)]] = True
    return part


def _apply(
    rest: Rows, new: Rows, design: Design, codes: set[str]
) -> tuple[Rows, tuple[str, ...], int | None]:
    """The untouched rows with repaired predictions, what was done, and rows that conformalised them."""
    steps, n_calibration = [], design.n_calibration
    if codes & PROBABILITY_CODES and rest.get("probabilities") is not None:
        probabilities, words = recalibrate(rest, new)
        learnt, _ = recalibrate(rest, rest)
        new, rest = new.replace(probabilities=probabilities), rest.replace(probabilities=learnt)
        steps.append(f"probabilities recalibrated ({words})")
    if codes & COVERAGE_CODES and design.levels:
        learn, grouping = _grouped(rest, new, design, codes)
        conformal = reconformalise(learn, new, grouping)
        if conformal is not None:
            new, n_calibration = conformal, learn.n
            steps.append(f"conformalised again on {learn.n} rows ({grouping.words})")
    return new, tuple(steps), n_calibration


def _grouped(rest: Rows, new: Rows, design: Design, codes: set[str]) -> tuple[Rows, Grouping]:
    """Rows that conformalise, and the groups; groups that must be learnt are learnt on other rows."""
    if not needs_design(codes, rest):
        return rest, groups_for(codes, design, {"design": rest, "learn": rest, "apply_to": new})
    first = _random_part(rest, "design", design, DESIGN_SHARE)
    parts = {"design": rest.take(first), "learn": rest.take(~first), "apply_to": new}
    return parts["learn"], groups_for(codes, design, parts)


def _changes(before: Rows, after: Rows, design: Design, codes: set[str]) -> tuple[Change, ...]:
    changes = []
    if design.levels:
        changes += _coverage_changes(before, after, design, codes)
    if codes & PROBABILITY_CODES:
        for measure in (BRIER_SCORE, LOG_LOSS):
            old, new = measure.rows(before), measure.rows(after)
            if old is not None and new is not None:
                change = _change(
                    measure.name, None, old, new, before.weights,
                    confidence=design.confidence, estimate=measure.estimate,
                )  # fmt: skip
                changes.append(change)
    return tuple(changes)


def _coverage_changes(before: Rows, after: Rows, design: Design, codes: set[str]) -> list[Change]:
    promised, level = design.levels[0].promised, design.confidence
    old, new = before["covered"], after["covered"]
    changes = [_change("coverage", promised, old, new, before.weights, confidence=level)]
    for words, rows in _worst_parts(before, design, codes):
        weights = None if before.weights is None else before.weights[rows]
        changes.append(
            _change(f"coverage of {words}", promised, old[rows], new[rows], weights, confidence=level)
        )
    sizes = before["size"].astype(float), after["size"].astype(float)
    finite = np.isfinite(sizes[0]) & np.isfinite(sizes[1])
    if finite.any():
        name = "mean width" if before.task == "regression" else "mean size"
        weights = None if before.weights is None else before.weights[finite]
        changes.append(
            _change(name, None, sizes[0][finite], sizes[1][finite], weights, confidence=level, is_size=True)
        )
    return changes


def _worst_parts(before: Rows, design: Design, codes: set[str]) -> list[tuple[str, np.ndarray]]:
    """The part of the untouched rows that each fault is about."""
    parts = []
    covered = before["covered"]
    if "CAL201" in codes and (groups := before.get("groups")) is not None:
        labels = np.unique(groups)
        worst = labels[int(np.argmin([covered[groups == label].mean() for label in labels]))]
        parts.append((f"group {worst}", groups == worst))
    if "CAL202" in codes and before.get("X") is not None:
        features, rng = check_features(before.given["X"]), design.generator("worst part")
        half = _random_part(before, "worst part", design, 0.5)
        picked = np.zeros(before.n, dtype=bool)
        for train, test in ((half, ~half), (~half, half)):
            if len(np.unique(covered[train])) == 2:
                picked[test] = pick_worst(features, covered, train, test, rng)
        if picked.any():
            parts.append(("the fifth marked as risky", picked))
    if codes & {"CAL401", "CAL402"} and (ease := before.get("difficulty")) is not None:
        codes_of_rows, n_parts = parts_of(ease.astype(float), 5)
        shares = [covered[codes_of_rows == part].mean() for part in range(n_parts)]
        worst = int(np.argmin(shares))
        parts.append((f"part {worst + 1} of {n_parts} along difficulty", codes_of_rows == worst))
    return parts


def _change(
    name: str,
    target: float | None,
    before: np.ndarray,
    after: np.ndarray,
    weights: np.ndarray | None,
    *,
    confidence: float,
    is_size: bool = False,
    estimate: Callable[..., Estimate] = mean_estimate,
) -> Change:
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    options: dict[str, Any] = {"weights": weights, "confidence": confidence}
    return Change(
        measure=name,
        target=target,
        before=estimate(old, name=name, **options),
        after=estimate(new, name=name, **options),
        difference=paired_difference(new, old, name=f"change of {name}", **options),
        is_size=is_size,
    )


def _written(text: str, path: Path | str | None) -> str:
    if path is not None:
        write_atomically(path, text)
    return text
