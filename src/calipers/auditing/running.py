"""``calipers.audit``: check the inputs, make the plan, run the checks, judge, collect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import RandomState
from calipers.auditing.checks import CHECKS
from calipers.auditing.material import Material, check_material
from calipers.auditing.plan import QuestionPlan, is_ready, plan_audit, what_to_add
from calipers.auditing.questions import QUESTIONS
from calipers.auditing.reading import Check, Picture, Reading
from calipers.auditing.result import Audit
from calipers.auditing.severity import judge_all
from calipers.exceptions import InputError
from calipers.results import Estimate, EstimateTable, Finding, severity_rank

LONGEST_DETAIL = 200

Progress = Callable[[str, int, int], None]

_OUTCOME_ORDER = {"fault": 0, "cannot_tell": 1, "clean": 2, "not_applicable": 3}


def audit(
    y_true: Any,
    *,
    probabilities: Any = None,
    p_values: Any = None,
    sets: Any = None,
    intervals: Any = None,
    X: Any = None,
    groups: Any = None,
    ease: Any = None,
    time: Any = None,
    alpha: Any = 0.1,
    n_calibration: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    confidence: float = 0.95,
    mute: Iterable[str] = (),
    name: str = "",
    source: str = "",
    progress: Progress | None = None,
) -> Audit:
    """Answer the six questions about stated uncertainty: what holds, what breaks, where, and the repair.

    Every finding carries its evidence, corrected for the number of tests of the audit; a healthy
    predictor gets a finding of severity "issue" in less than five audits of a hundred.

    Parameters
    ----------
    y_true : array of shape (n,)
        What happened: labels, or numbers with ``intervals``.
    probabilities : array of shape (n, K) or (n,), optional
        Stated probabilities; a vector is the positive class of two.
    p_values : array of shape (n, K), optional
        Conformal p-values of every label; sets at any alpha follow from them.
    sets : bool array of shape (n, K) or (n, K, L), optional
        Prediction sets, with a last axis for several alphas. Lists of labels, and a pair (point prediction,
        sets), are taken as MAPIE, crepes, puncc and TorchCP return them.
    intervals : array of shape (n, 2) or (n, 2, L), optional
        Prediction intervals, ends included. Also (lower, upper), (point prediction, lower, upper) and (point
        prediction, intervals).
    X : table of shape (n, d), optional
        Features, to find where coverage fails. Any dataframe or matrix.
    groups : array of shape (n,), optional
        A label per row whose coverage matters on its own.
    ease : array of shape (n,), model or its predict_proba, optional
        How easy each row is, from `calipers.difficulty.ease`; larger is easier. A model, or a function that
        predicts, is asked about X and copies with noise of a tenth of each feature's spread.
    time : array of shape (n,), optional
        When each row happened: numbers or dates. Drift is then looked for along it, not along the file.
    alpha : float or sequence of floats
        Allowed miscoverage.
    n_calibration : int, optional
        Rows the predictor was conformalised on. Its luck is then allowed for exactly.
    classes : sequence of K labels, optional
        The label of every column.
    sample_weight : array of shape (n,), optional
        Weights; a weight of 2 counts as two equal rows.
    random_state : int, Generator or None
        Splits and simulations follow from it.
    confidence : float
        Level of the intervals around estimates.
    mute : iterable of str
        Codes of checks to leave out.
    name, source : str
        How the predictor is called, and the file it came from; for the report.
    progress : callable, optional
        Called with (code, done, total) before every check.

    Returns
    -------
    Audit
        ``.findings``, ``.estimates``, ``.plan``, ``.to_html(path)``, ``.to_json()``, ``.to_markdown()``.

    Raises
    ------
    InputError
        For lengths that differ, missing values, impossible probabilities and the like.

    Notes
    -----
    A check is a fault when its p-value is at most 0.05 after Holm's correction over all tests of the
    audit, an issue when also the whole interval of its effect lies beyond a stated tolerance. Cost:
    O(n log n) but for the conditional checks, which fit a few classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=2000)
    >>> found = calipers.audit(y, intervals=np.tile([-1.2, 1.2], (2000, 1)), alpha=0.1, random_state=0)
    >>> print(found.faults[0])
    CAL101 issue: The intervals cover 76.5 % of the rows; 90 % was promised.
    """
    material = check_material(
        y_true, probabilities=probabilities, p_values=p_values, sets=sets, intervals=intervals, X=X,
        groups=groups, ease=ease, time=time, alpha=alpha, n_calibration=n_calibration, classes=classes,
        sample_weight=sample_weight, confidence=confidence, random_state=random_state,
    )  # fmt: skip
    return audit_material(material, mute=mute, name=name, source=source, progress=progress)


def audit_material(
    material: Material,
    *,
    mute: Iterable[str] = (),
    name: str = "",
    source: str = "",
    progress: Progress | None = None,
) -> Audit:
    """The audit of inputs that are already checked."""
    checks = without(CHECKS, mute)
    ready = [check for check in checks if is_ready(check, material)]
    readings: list[Reading] = []
    for done, check in enumerate(ready):
        if progress is not None:
            progress(check.code, done, len(ready))
        readings.extend(run_check(check, material))
    if progress is not None:
        progress("", len(ready), len(ready))
    return assemble(
        material, checks, ready, readings, plan=plan_audit(material, checks), name=name, source=source
    )


def assemble(
    material: Material,
    checks: Sequence[Check],
    ready: Sequence[Check],
    readings: Sequence[Reading],
    *,
    plan: tuple[QuestionPlan, ...],
    name: str,
    source: str,
    n_rows: int | None = None,
) -> Audit:
    """The audit from its readings: judged together, in order."""
    findings = [
        *_told_once(judge_all(readings, rows=n_rows or material.n)),
        *_not_run(checks, ready, material),
    ]
    return Audit(
        material=material,
        plan=plan,
        findings=tuple(sorted(findings, key=_order)),
        estimates=EstimateTable(_estimates(readings), title="Everything that was measured"),
        pictures=_pictures(readings),
        measured={
            question: tuple(e.name for r in readings if r.question == question for e in r.estimates)
            for question in QUESTIONS
        },
        name=name,
        source=source,
        n_rows=n_rows,
    )


def run_check(check: Check, material: Material) -> list[Reading]:
    """The readings of one check; of several alphas the one with most evidence per code."""
    if check.once is not None:
        return _named(check, _as_list(check.once(material)))
    if check.at_level is None:
        raise InputError(f"{check.code} has nothing to run.")
    per_level = [_as_list(check.at_level(material, level)) for level in material.levels]
    if len(per_level) == 1:
        return _named(check, per_level[0])
    merged = merge_levels([reading for readings in per_level for reading in readings], len(per_level))
    return _named(check, merged)


def _named(check: Check, readings: Sequence[Reading]) -> list[Reading]:
    """The readings with what was looked at, for the case that nothing is found."""
    return [replace(reading, subject=check.title) for reading in readings]


def merge_levels(readings: Sequence[Reading], n_levels: int) -> list[Reading]:
    """One reading per code: the level with the smallest p-value, corrected for the number of levels."""
    merged = []
    for code in dict.fromkeys(reading.code for reading in readings):
        same = [reading for reading in readings if reading.code == code]
        first = min(same, key=lambda r: (bool(r.not_applicable), 2.0 if r.p_value is None else r.p_value))
        p = None if first.p_value is None else min(1.0, first.p_value * n_levels)
        merged.append(
            replace(
                first,
                p_value=p,
                estimates=tuple(e for r in same for e in r.estimates),
                pictures=tuple(p for r in same for p in r.pictures),
                details=dict(first.details) | {"levels": n_levels},
            )
        )
    return merged


def _told_once(findings: Sequence[Finding]) -> list[Finding]:
    """CAL202 leaves the place to CAL203 where that is a finding of its own."""
    if not any(finding.code == "CAL203" and finding.outcome == "fault" for finding in findings):
        return list(findings)
    return [
        replace(finding, sentence=finding.sentence.removesuffix(str(finding.details.get("place", " "))))
        for finding in findings
    ]


def _as_list(readings: Reading | tuple[Reading, ...]) -> list[Reading]:
    return [readings] if isinstance(readings, Reading) else list(readings)


def without(checks: Sequence[Check], mute: Iterable[str]) -> list[Check]:
    """The checks but those that are muted; an unknown code is an error."""
    muted = {mute} if isinstance(mute, str) else set(mute)
    unknown = muted - {check.code for check in checks}
    if unknown:
        known = ", ".join(check.code for check in checks)
        raise InputError(f"mute must name checks, got {min(unknown)!r}; known are {known}.")
    return [check for check in checks if check.code not in muted]


def _not_run(checks: Sequence[Check], ready: Sequence[Check], material: Material) -> list[Finding]:
    return [
        Finding(
            code=check.code,
            title=check.title,
            question=check.question,
            outcome="not_applicable",
            sentence=what_to_add(check, material),
        )
        for check in checks
        if check not in ready
    ]


def _order(finding: Finding) -> tuple[int, int, str]:
    return _OUTCOME_ORDER[finding.outcome], -severity_rank(finding.severity), finding.code


def _estimates(readings: Iterable[Reading]) -> dict[str, Estimate]:
    return {e.name: _slim(e) for reading in readings for e in reading.estimates}


def _slim(estimate: Estimate) -> Estimate:
    """Without the details that hold something for every row: an audit is not a copy of its data."""
    kept = {
        key: value
        for key, value in estimate.details.items()
        if not isinstance(value, (list, tuple, np.ndarray)) or len(value) <= LONGEST_DETAIL
    }
    return estimate if len(kept) == len(estimate.details) else replace(estimate, details=kept)


def _pictures(readings: Iterable[Reading]) -> tuple[Picture, ...]:
    return tuple({p.name: p for reading in readings for p in reading.pictures}.values())
