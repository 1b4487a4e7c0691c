"""``audit.repair()``: candidates compared on some rows, fitted on others, evaluated on the rest."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing.audit_result import Audit
from calipers.auditing.measurements import Design as AuditDesign
from calipers.auditing.repair.candidates import Design, candidates, has_choice, learn_design
from calipers.auditing.repair.changes import Change, coverage_changes, probability_changes
from calipers.auditing.repair.choice import ChoiceRows, Trial, choose_map, choose_thresholds, slices_of
from calipers.auditing.repair.density_ratio import look_for_shift
from calipers.auditing.repair.repair_result import Repair
from calipers.auditing.repair.rule import REPAIRABLE, RepairRule
from calipers.exceptions import InputError, UnseenGroupWarning
from calipers.inputs import check_fraction
from calipers.inputs.row_keys import draws
from calipers.inputs.rows import Rows
from calipers.performance import effective_sample_size

FEWEST_ROWS = 200
# Weighted rows are written out to at most so many.
MOST_ROWS = 10_000_000
# Of the rows that are not held out, for learning partitions and scores and for the choice; the others
# conformalise. The larger share where that leaves enough of them. Above the limit a choice hardly changes.
CHOICE_SHARES, CALIBRATION_ROWS = (1 / 2, 2 / 3), 600
MOST_CHOICE_ROWS = 10_000
# Where rows are drawn to be like new ones: at which share their ratio is cut, and the fewest to audit.
RATIO_CUT, FEWEST_AUDITED = 0.99, 100
COVERAGE_CODES = {
    "CAL101", "CAL102", "CAL103", "CAL201", "CAL202", "CAL203", "CAL204", "CAL301", "CAL302",
    "CAL401", "CAL402",
}  # fmt: skip
PROBABILITY_CODES = {"CAL501", "CAL502", "CAL503", "CAL504", "CAL505", "CAL506", "CAL508", "CAL509"}


def repair_audit(audit: Audit, *, held_out: float = 0.5, X_new: Any = None) -> Repair:
    """Choose and fit a repair on a random part of the rows, compare on the rest.

    Parameters
    ----------
    audit : Audit
        Its faults say what to repair.
    held_out : float
        Share of the rows that stays untouched.
    X_new : table of features, optional
        Of rows that the repair is for. Where they differ from the audited ones, thresholds and the comparison
        count rows by the estimated likelihood ratio.

    Returns
    -------
    Repair
        To apply to new rows; before and after on the untouched rows, with paired intervals.

    Raises
    ------
    InputError
        With fewer than 200 rows.
    """
    rows, design = _unweighted(audit.data, audit.design), audit.design
    if rows.n < FEWEST_ROWS:
        kept = " that were drawn by their weights" if audit.data.is_weighted else ""
        raise InputError(f"a repair needs at least {FEWEST_ROWS} rows, got {rows.n}{kept}.")
    share = check_fraction(held_out, name="held_out", meaning="It is the share of rows that stays untouched")
    untouched = _random_part(rows, "repair", design, share)
    test_rows, rest = rows.take(untouched), rows.take(~untouched)
    # Importance weights leave an audit without exact tests: the drawn rows say what is wrong.
    untested = audit.data.is_weighted and audit.data.repetitions() is None
    asked = _again(audit, rest, "drawn", design.n_calibration) if untested else audit
    codes = {finding.code for finding in asked.faults}
    shift = None if X_new is None else look_for_shift(rest, X_new, design.generator("shift"))
    rule, trials, learnt = _chosen(rest, design, codes, shift.new_rows if shift and shift.found else None)
    audited = test_rows
    if shift is not None and learnt is not None and learnt.ratio is not None:
        audited, test_rows = _like_the_new(test_rows, learnt, design), learnt.weighted(test_rows)
        effective = effective_sample_size(test_rows.weights)
        shift = replace(shift, effective_rows=effective, audited_rows=audited.n)
    before = _again(audit, audited, "before", design.n_calibration)
    after = before
    changes: tuple[Change, ...] = ()
    if not rule.is_empty:
        after = _again(audit, rule.repaired(audited), "repaired", _calibration_rows(rule, design))
        changes = _changes(test_rows, rule.repaired(test_rows), rule, learnt, design)
    return Repair(
        rule=rule, before=before, after=after, changes=changes, trials=tuple(trials), shift=shift
    )  # fmt: skip


def _unweighted(rows: Rows, design: AuditDesign) -> Rows:
    """Rows that count once each and are distributed as the weighted ones.

    Thresholds and maps fitted to rows that count alike would be right for those, not for the weighted rows
    that the audit is about. Whole numbers are repeated rows; rows of other weights are kept with a
    probability in proportion to them.
    """
    if not rows.is_weighted:
        return rows
    if rows.repetitions() is not None:
        return rows.written_out(MOST_ROWS)
    weights = np.asarray(rows.weights)
    return rows.take(draws(rows.keys(), "weights", design.seed) * weights.max() < weights).replace(
        sample_weight=None
    )


def _like_the_new(rows: Rows, learnt: Design, design: AuditDesign) -> Rows:
    """Rows kept with a probability in proportion to the ratio, which are distributed like the new ones.

    Weights would leave an audit without exact tests; they stay where too few rows would be kept. The ratio is
    cut at its 99 % point: the few rows above it would ask for most of the others to be dropped.
    """
    if learnt.ratio is None:
        return rows
    ratio = learnt.ratio.of(rows)
    kept = draws(rows.keys(), "thinning", design.seed) * np.quantile(ratio, RATIO_CUT) < ratio
    return rows.take(kept) if kept.sum() >= FEWEST_AUDITED else learnt.weighted(rows)


def _again(audit: Audit, rows: Rows, words: str, n_calibration: int | None) -> Audit:
    from calipers.auditing.run_audit import audit_rows

    design = audit.design
    settings = {
        "seed": design.seed, "confidence": design.confidence, "sample_rows": design.sample_rows,
        "n_calibration": n_calibration, "label_conditional": design.label_conditional, "quick": True,
    }  # fmt: skip
    name = f"{audit.name}, {words}".removeprefix(", ")
    return audit_rows(rows, settings=settings, name=name, origin=audit.origin)


def _calibration_rows(rule: RepairRule, design: AuditDesign) -> int | None:
    return design.n_calibration if rule.n_calibration is None else rule.n_calibration


def _random_part(rows: Rows, purpose: str, design: AuditDesign, share: float) -> np.ndarray:
    """A random part of the rows, as a mask; the draws belong to the rows."""
    order = np.argsort(draws(rows.keys(), purpose, design.seed), kind="stable")
    chosen = np.zeros(rows.n, dtype=bool)
    chosen[order[: math.ceil(share * rows.n)]] = True
    return chosen


def _chosen(
    rest: Rows, design: AuditDesign, codes: set[str], new_rows: Rows | None
) -> tuple[RepairRule, list[Trial], Design | None]:
    """The rule, the candidates it was chosen from, and the partitions that were learnt."""
    rule = RepairRule(
        rest.task, tuple(float(a) for a in rest.alphas), tuple(str(label) for label in design.classes),
        tuple(name for name in REPAIRABLE if name in rest.given),
    )  # fmt: skip
    trials: list[Trial] = []
    # Coverage that holds here does not hold for rows with other features.
    broken = bool(codes & COVERAGE_CODES) or new_rows is not None
    conformal = broken and bool(design.levels) and _has_scores(rest)
    if conformal and not has_choice(rest):
        return _one_threshold(rule, rest, design), [], None
    choosing = _random_part(rest, "choice", design, _choice_share(rest.n))
    choice, calibration = rest.take(choosing), rest.take(~choosing)
    if codes & PROBABILITY_CODES and rest.get("probabilities") is not None:
        # Rows that conformalise must not have fitted the map of probabilities.
        fit = choice if conformal else rest
        few = _random_part(fit, "map", design, min(1.0, MOST_CHOICE_ROWS / fit.n))
        map_, trials = choose_map(fit.take(few), fit, design.generator("recalibration"))
        rule = replace(rule, probability_map=map_)
    if not conformal:
        return rule, trials, None
    if rule.probability_map is not None:
        choice, calibration = (
            part.replace(probabilities=rule.probability_map.apply(part)) for part in (choice, calibration)
        )
    rule, more, learnt = _conformalised(rule, choice, calibration, design, codes, new_rows)
    return rule, [*trials, *more], learnt


def _choice_share(n: int) -> float:
    """The share of n rows that is kept for the choice."""
    least, most = CHOICE_SHARES
    return min(max(least, min(most, 1 - CALIBRATION_ROWS / n)), MOST_CHOICE_ROWS / n)


def _one_threshold(rule: RepairRule, rest: Rows, design: AuditDesign) -> RepairRule:
    """The only candidate, from all rows: where nothing is chosen none are kept for the choice."""
    rng = design.generator("thresholds")
    (only,) = candidates(learn_design(rest, rng), rest)
    scores = [only.score.of_outcomes(rest, level) for level in range(len(rule.alphas))]
    return replace(rule, score=only.score, thresholds=only.fit(rest, scores, rng))


def _has_scores(rows: Rows) -> bool:
    """Whether there is something to put a threshold on: sets alone state no order of the labels."""
    return rows.task == "regression" or rows.get("probabilities") is not None or "p_values" in rows.given


def _conformalised(
    rule: RepairRule,
    choice: Rows,
    calibration: Rows,
    design: AuditDesign,
    codes: set[str],
    new_rows: Rows | None,
) -> tuple[RepairRule, list[Trial], Design]:
    """The winner among the candidates, with thresholds from rows that had no part in the choice."""
    rng = design.generator("thresholds")
    half = _random_part(choice, "learn", design, 0.5)
    halves = choice.take(half), choice.take(~half)
    # Each half is learnt from, and compared on what the other has learnt.
    parts = [ChoiceRows(learn_design(a, rng, new_rows), b) for a, b in (halves, halves[::-1])]
    with warnings.catch_warnings():
        # A rare group may be in one part of the selection rows and not in another: nothing is stated by that.
        warnings.simplefilter("ignore", UnseenGroupWarning)
        names, trials = choose_thresholds(parts, rule, rng, codes=codes, n_calibration=calibration.n)
    learnt = learn_design(choice, rng, new_rows)
    ready = {candidate.name: candidate for candidate in candidates(learnt, calibration)}
    for winner in (ready[name] for name in names if name in ready):
        scores = [winner.score.of_outcomes(calibration, level) for level in range(len(rule.alphas))]
        if (thresholds := winner.fit(calibration, scores, rng)) is not None:
            chosen = [replace(trial, chosen=trial.name == winner.name) for trial in trials]
            return replace(rule, score=winner.score, thresholds=thresholds), chosen, learnt
    return rule, trials, learnt


def _changes(
    before: Rows, after: Rows, rule: RepairRule, learnt: Design | None, design: AuditDesign
) -> tuple[Change, ...]:
    changes: list[Any] = []
    if design.levels:
        partitions = [] if learnt is None else learnt.slices()
        changes += coverage_changes(before, after, slices_of(before, partitions), design.confidence)
    if rule.probability_map is not None:
        changes += probability_changes(before, after, design.confidence)
    return tuple(changes)
