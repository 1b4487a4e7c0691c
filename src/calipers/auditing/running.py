"""``calipers.audit``: rows into states, states into checks, checks into findings; in memory or streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.auditing.arguments import rows_of_arguments
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks import CHECKS
from calipers.auditing.measurements import SAMPLE_ROWS, Design, Level, Measurements, state_key
from calipers.auditing.plan import is_ready, plan_audit, what_to_add
from calipers.auditing.questions import QUESTIONS
from calipers.auditing.result import Audit
from calipers.auditing.severity import judge_all
from calipers.engines.running import Engine, engine_of, named_file, run_states, unchanging_files
from calipers.engines.sources import ArraySource, Piece, Source, at_levels
from calipers.exceptions import DeprecatedNameWarning, InputError, warn
from calipers.inputs import check_confidence, check_count
from calipers.inputs.rows import Rows
from calipers.metrics.states.at_level import AtLevel
from calipers.metrics.states.sampling import Sample, SampleState
from calipers.results import Estimate, EstimateTable, Finding, severity_rank

LONGEST_DETAIL = 200

Progress = Callable[[str, int, int], None]

_OUTCOME_ORDER = {"fault": 0, "cannot_tell": 1, "clean": 2, "not_applicable": 3}


def audit(
    y_true: Any = None,
    *,
    source: Any = None,
    engine: str | Engine | None = None,
    probabilities: Any = None,
    p_values: Any = None,
    sets: Any = None,
    intervals: Any = None,
    X: Any = None,
    groups: Any = None,
    ease: Any = None,
    time: Any = None,
    row_id: Any = None,
    alpha: Any = 0.1,
    n_calibration: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    confidence: float = 0.95,
    mute: Iterable[str] = (),
    name: str = "",
    origin: str = "",
    sample_rows: int = SAMPLE_ROWS,
    progress: Progress | None = None,
) -> Audit:
    """Answer the six questions about stated uncertainty: what holds, what breaks, where, and the repair.

    Every finding carries its evidence, corrected for the number of tests of the audit; a healthy
    predictor gets a finding of severity "issue" in less than five audits of a hundred.

    Parameters
    ----------
    y_true : array of shape (n,), optional
        What happened: labels, or numbers with ``intervals``. Leave it out when ``source`` has the rows.
    source : source, path or list of paths, optional
        Where the rows lie, instead of arrays: an `ArraySource` or `FileSource` of `calipers.engines`, or
        files and patterns such as ``logs/*.parquet``, which are streamed.
    engine : {"local", "dask", "spark"} or object, optional
        Where the work is done. By default in this process.
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
    row_id : array of shape (n,), optional
        A name per row, whole numbers or text; random draws then belong to the rows, in whatever order they
        come.
    alpha : float or sequence of floats
        Allowed miscoverage.
    n_calibration : int, optional
        Rows the predictor was conformalised on. Its luck is then allowed for exactly.
    classes : sequence of K labels, optional
        The label of every column.
    sample_weight : array of shape (n,), optional
        Weights. Whole numbers count equal rows; other weights are importance weights, for which there is no
        exact test.
    random_state : int, Generator or None
        Splits and simulations follow from it.
    confidence : float
        Level of the intervals around estimates.
    mute : iterable of str
        Codes of checks to leave out.
    name, origin : str
        How the predictor is called, and where its rows came from; for the report.
    sample_rows : int
        Up to so many rows, models are fitted and pictures drawn on all of them; beyond, on a stratified
        random sample of so many rows, at most half, and the models are evaluated on all others.
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
    audit, an issue when also the whole interval of its effect lies beyond a stated tolerance. Rows in memory
    and rows that are streamed go the same way: the numbers do not depend on it, nor on how rows are split.
    Cost: O(n log n) but for the conditional checks, which fit a few classifiers.

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
    if isinstance(source, str) and y_true is not None:
        warn("audit: a text as source beside y_true is now called origin.", DeprecatedNameWarning)
        source, origin = None, source
    seed = int(generator(random_state).integers(2**31))
    options: dict[str, Any] = {"mute": mute, "name": name, "origin": origin, "progress": progress}
    settings = {
        "seed": seed, "confidence": check_confidence(confidence), "sample_rows": sample_rows,
        "n_calibration": None if n_calibration is None else check_count(n_calibration, name="n_calibration"),
    }  # fmt: skip
    if source is None:
        rows = rows_of_arguments(
            y_true, probabilities=probabilities, p_values=p_values, sets=sets, intervals=intervals, X=X,
            groups=groups, ease=ease, time=time, row_id=row_id, alpha=alpha, classes=classes,
            sample_weight=sample_weight, seed=seed,
        )  # fmt: skip
        return audit_rows(rows, engine=engine, settings=settings, **options)
    given = {"y_true": y_true, "probabilities": probabilities, "p_values": p_values, "sets": sets}
    given |= {"intervals": intervals, "X": X, "groups": groups, "ease": ease, "time": time}
    if twice := [key for key, value in given.items() if value is not None]:
        raise InputError(f"give either source or arrays, got source and {twice[0]}.")
    found, alphas = at_levels(_source(source), alpha)
    if settings["n_calibration"] is None:
        settings["n_calibration"] = getattr(found, "n_calibration", None)
    if isinstance(found, ArraySource):
        options["rows"] = found.rows()
    return audit_pieces(found.pieces(), alphas, engine=engine, settings=settings, **options)


def audit_stream(source: Source, *, place: str = "", **options: Any) -> Audit:
    """The old name of ``audit(source=...)``.

    Parameters
    ----------
    source : source
        Where the rows lie.
    place : str
        Now called ``origin``.
    **options
        As in `audit`.

    Returns
    -------
    Audit
        As from `audit`.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from calipers.auditing import audit_stream
    >>> from calipers.engines import ArraySource
    >>> rows = ArraySource({"y_true": np.zeros(200), "intervals": np.tile([-1.0, 1.0], (200, 1))})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     audit_stream(rows, random_state=0).rows
    200
    """
    warn("audit_stream(source) is now audit(source=source).", DeprecatedNameWarning)
    return audit(source=source, origin=place, **options)


def _source(source: Any) -> Source:
    """The source itself, or the files that a text or a list of texts names."""
    from pathlib import Path

    from calipers.engines import FileSource

    if isinstance(source, (str, Path)):
        return FileSource(str(source), features=True)
    if isinstance(source, (list, tuple)):
        return FileSource([str(path) for path in source], features=True)
    found: Source = source
    return found


def audit_rows(
    rows: Rows, *, engine: str | Engine | None = None, settings: dict[str, Any], **options: Any
) -> Audit:
    """The audit of checked rows in memory."""
    source = ArraySource(rows.given, classes=rows.classes, alpha=rows.alphas)
    return audit_pieces(source.pieces(), rows.alphas, engine=engine, settings=settings, rows=rows, **options)


def audit_pieces(
    pieces: Sequence[Piece],
    alphas: tuple[float, ...],
    *,
    settings: dict[str, Any],
    engine: str | Engine | None = None,
    rows: Rows | None = None,
    mute: Iterable[str] = (),
    name: str = "",
    origin: str = "",
    progress: Progress | None = None,
) -> Audit:
    """The audit of pieces of rows, wherever they lie; ``rows`` are all of them when they are in memory."""
    checks, engine = without(CHECKS, mute), engine_of(engine or "local")
    with unchanging_files(pieces), named_file(pieces[0]):
        head = pieces[0].head()
        design = Design(n=sum(p.rows for p in pieces), alphas=alphas, head=head, **settings)
        ready = [check for check in checks if is_ready(check, design)]
    with unchanging_files(pieces):
        m = measure_rows(design, ready, pieces, engine, rows, progress)
    results: list[CheckResult] = []
    for done, check in enumerate(ready):
        _show(progress, check.code, done, len(ready))
        results.extend(run_check(check, m))
    _show(progress, "", len(ready), len(ready))
    return assemble(m, checks, ready, results, rows=rows, name=name, origin=origin)


def measure_rows(
    design: Design,
    ready: Sequence[Check],
    pieces: Sequence[Piece],
    engine: Engine,
    rows: Rows | None = None,
    progress: Progress | None = None,
) -> Measurements:
    """Fill the states that the checks declare: first those of all rows, then those made from the sample."""
    states = _level_states(ready, design, lambda check, level: check.states(design, level))
    if rows is None or not design.is_whole:
        size = design.n if design.is_whole else min(design.sample_rows, design.n // 2)
        origins = list(dict.fromkeys(piece.origin for piece in pieces))
        states["sample"] = SampleState(size, design.n, origins, design.seed)
    results = _finished(states, pieces, engine, progress, "all rows")
    sampled: Sample | None = results.pop("sample", None)
    arrived = _sample_rows(sampled, rows, design)
    order = np.argsort(arrived.keys(), kind="stable")
    m = Measurements(
        design=design,
        sample=arrived.take(order),
        arrival=np.argsort(order),
        n=_counted(arrived, design),
        results=results,
        threshold=1.0 if sampled is None else sampled.threshold,
    )
    further = _level_states(ready, design, lambda check, level: check.from_sample(m, level))
    if further:
        results |= _finished(further, pieces, engine, progress, "rows outside the sample")
    return m


def _level_states(ready: Sequence[Check], design: Design, states: Callable[[Check, Any], States]) -> States:
    """The states of all checks by key; what several checks call by one name is one state."""
    found: States = {}
    for check in ready:
        for level in (None,) if check.once else design.levels:
            for name, state in states(check, level).items():
                own = state if level is None else AtLevel(state, level.number)
                found.setdefault(state_key(name, level), own)
    return found


def _finished(
    states: States, pieces: Sequence[Piece], engine: Engine, progress: Progress | None, what: str
) -> dict[str, Any]:
    shown = progress if len(pieces) > 1 else None
    done = run_states(states, pieces, engine, lambda n, total: _show(shown, what, n, total))
    return {name: state.finish() for name, state in done.items()}


def _counted(arrived: Rows, design: Design) -> int:
    """Rows in all, each as often as its whole-number weight says."""
    counts = arrived.repetitions()
    return design.n if counts is None else round(float(counts.mean()) * design.n)


def _sample_rows(sample: Sample | None, rows: Rows | None, design: Design) -> Rows:
    """The sample as rows; all rows where they are in memory and few."""
    if sample is None:
        if rows is None:
            raise RuntimeError("streamed rows leave a sample")
        return rows
    found = Rows(sample.given, classes=sample.classes, alpha=design.alphas, conformal=design.head.conformal)
    found.remember("keys", sample.keys)
    return found


def _show(progress: Progress | None, what: str, done: int, total: int) -> None:
    if progress is not None:
        progress(what, done, total)


def assemble(
    m: Measurements,
    checks: Sequence[Check],
    ready: Sequence[Check],
    results: Sequence[CheckResult],
    *,
    rows: Rows | None,
    name: str,
    origin: str,
) -> Audit:
    """The audit from the results of its checks: judged together, in order."""
    findings = [*_told_once(judge_all(results, rows=m.n)), *_not_run(checks, ready, m.design)]
    return Audit(
        data=m.sample if rows is None else rows,
        design=m.design,
        plan=plan_audit(m.design, checks),
        findings=tuple(sorted(findings, key=_order)),
        estimates=EstimateTable(_estimates(results), title="Everything that was measured"),
        pictures=_pictures(results),
        measured={
            question: tuple(e.name for r in results if r.question == question for e in r.estimates)
            for question in QUESTIONS
        },
        sample_rows=m.sample.n,
        name=name,
        origin=origin,
    )


def run_check(check: Check, m: Measurements) -> list[CheckResult]:
    """The results of one check; of several alphas the one with most evidence per code."""
    levels: Sequence[Level | None] = (None,) if check.once else m.design.levels
    per_level = [_as_list(check.read(m, level)) for level in levels]  # type: ignore[arg-type]
    results = [result for found in per_level for result in found]
    if len(levels) > 1:
        results = merge_levels(results, len(levels))
    rows = {"sample_rows": m.sample.n} if check.on_sample and not m.design.is_whole else {}
    return [replace(r, subject=check.title, details=rows | dict(r.details)) for r in results]


def merge_levels(results: Sequence[CheckResult], n_levels: int) -> list[CheckResult]:
    """One result per code: the level with the smallest p-value, corrected for the number of levels."""
    merged = []
    for code in dict.fromkeys(result.code for result in results):
        same = [result for result in results if result.code == code]
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


def _as_list(results: CheckResult | Iterable[CheckResult]) -> list[CheckResult]:
    return [results] if isinstance(results, CheckResult) else list(results)


def without(checks: Sequence[Check], mute: Iterable[str]) -> list[Check]:
    """The checks but those that are muted; an unknown code is an error."""
    if not isinstance(mute, Iterable):
        raise InputError(f"mute must hold codes such as CAL201, got {repr(mute)[:60]}.")
    muted = {mute} if isinstance(mute, str) else {str(code) for code in mute}
    unknown = muted - {check.code for check in checks}
    if unknown:
        known = ", ".join(check.code for check in checks)
        raise InputError(f"mute must name checks, got {min(unknown)!r}; known are {known}.")
    return [check for check in checks if check.code not in muted]


def _not_run(checks: Sequence[Check], ready: Sequence[Check], design: Design) -> list[Finding]:
    return [
        Finding(
            code=check.code,
            title=check.title,
            question=check.question,
            outcome="not_applicable",
            sentence=what_to_add(check, design),
        )
        for check in checks
        if check not in ready
    ]


def _order(finding: Finding) -> tuple[int, int, str]:
    return _OUTCOME_ORDER[finding.outcome], -severity_rank(finding.severity), finding.code


def _estimates(results: Iterable[CheckResult]) -> dict[str, Estimate]:
    return {e.name: _slim(e) for result in results for e in result.estimates}


def _slim(estimate: Estimate) -> Estimate:
    """Without the details that hold something for every row: an audit is not a copy of its data."""
    kept = {
        key: value
        for key, value in estimate.details.items()
        if not isinstance(value, (list, tuple, np.ndarray)) or len(value) <= LONGEST_DETAIL
    }
    return estimate if len(kept) == len(estimate.details) else replace(estimate, details=kept)


def _pictures(results: Iterable[CheckResult]) -> tuple[Picture, ...]:
    return tuple({p.name: p for result in results for p in result.pictures}.values())
