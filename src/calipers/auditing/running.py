"""``calipers.audit``: rows into states, states into checks, checks into findings; in memory or streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.auditing.arguments import rows_of_arguments
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks import CHECKS
from calipers.auditing.evidence_pictures import evidence_pictures
from calipers.auditing.measurements import SAMPLE_ROWS, Design, Measurements, state_key
from calipers.auditing.plan import is_ready, plan_audit, what_to_add
from calipers.auditing.questions import QUESTIONS
from calipers.auditing.result import Audit
from calipers.auditing.settings import ask_about, check_bound, shown_seed
from calipers.auditing.severity import judge_all
from calipers.auditing.told_once import told_once
from calipers.engines.running import Engine, engine_of, named_file, run_states, unchanging_files
from calipers.engines.sources import ArraySource, Piece, Source, at_levels
from calipers.exceptions import DeprecatedNameWarning, InputError, warn
from calipers.inputs import check_confidence, check_count
from calipers.inputs.files import FilePiece
from calipers.inputs.rows import Rows
from calipers.metrics.states.reading_as import ReadingAs
from calipers.metrics.states.sampling import Sample, SampleState
from calipers.results import Estimate, EstimateTable, Finding, PromiseCell, PromiseTable, severity_rank

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
    covered: Any = None,
    size: Any = None,
    promised: Any = None,
    loss: Any = None,
    bound: float | None = None,
    loss_range: tuple[float, float] = (0, 1),
    quantiles: Any = None,
    quantile_levels: Any = None,
    pit: Any = None,
    y_pred: Any = None,
    time: Any = None,
    cluster: Any = None,
    row_id: Any = None,
    alpha: Any = 0.1,
    n_calibration: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
    confidence: float = 0.95,
    mute: Iterable[str] = (),
    min_rows: int | None = None,
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
    groups : array of shape (n,) or table of shape (n, G), optional
        A label per row whose promises must hold on their own; of several attributes also their intersections.
    ease : array of shape (n,), model or its predict_proba, optional
        How easy each row is, from `calipers.difficulty.ease`; larger is easier. A model, or a function that
        predicts, is asked about X and copies with noise of a tenth of each feature's spread.
    covered : bool array of shape (n,), optional
        Whether each promise came true, when that was found elsewhere: several outputs, several labels, text.
    size : array of shape (n,), optional
        Size of the predictions beside ``covered``.
    promised : array of shape (n,), optional
        The probability promised for ``covered``, row by row; 1 - alpha without it.
    loss : array of shape (n,), optional
        Loss of every row.
    bound : float, optional
        What the mean loss was promised not to exceed.
    loss_range : (float, float)
        Smallest and largest loss there can be; the test of the bound needs it.
    quantiles : array of shape (n, Q), optional
        Stated quantiles of the outcome, a column per level.
    quantile_levels : sequence of Q floats, optional
        Their levels; columns of a dataframe may state them (q_0.9).
    pit : array of shape (n,), optional
        Stated probability of an outcome up to the one that happened.
    y_pred : array of shape (n,), optional
        Point predictions, from which errors are measured.
    time : array of shape (n,), optional
        When each row happened: numbers or dates. Changes are then looked for along it, not along the file.
    cluster : array of shape (n,), optional
        Rows that depend on each other (of one patient, household, document) share a value; tests then
        use sums over clusters.
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
    min_rows : int, optional
        Fewest rows with which a check that finds no fault may say so; with fewer the answer is "cannot tell".
        By default it follows from the interval of each check, which must exclude a fault that matters.
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
    given_seed = shown_seed(random_state)
    seed = int(generator(given_seed).integers(2**31))
    options: dict[str, Any] = {
        "mute": mute, "name": name, "origin": origin, "progress": progress,
        "min_rows": None if min_rows is None else check_count(min_rows, name="min_rows"),
    }  # fmt: skip
    settings = {
        "seed": seed, "random_state": given_seed,
        "sample_rows": check_count(sample_rows, name="sample_rows"),
        "confidence": check_confidence(confidence),
        "n_calibration": None if n_calibration is None else check_count(n_calibration, name="n_calibration"),
        "bound": check_bound(bound, loss_range), "loss_range": (float(loss_range[0]), float(loss_range[1])),
    }  # fmt: skip
    if source is None:
        rows = rows_of_arguments(
            y_true, probabilities=probabilities, p_values=p_values, sets=sets, intervals=intervals, X=X,
            groups=groups, ease=ease, covered=covered, size=size, promised=promised, loss=loss,
            quantiles=quantiles, quantile_levels=quantile_levels, pit=pit, y_pred=y_pred, time=time,
            cluster=cluster, row_id=row_id, alpha=alpha, classes=classes, sample_weight=sample_weight,
            seed=seed,
        )  # fmt: skip
        ask_about(rows.alphas)
        return audit_rows(rows, engine=engine, settings=settings, **options)
    given = {"y_true": y_true, "probabilities": probabilities, "p_values": p_values, "sets": sets}
    given |= {"intervals": intervals, "X": X, "groups": groups, "ease": ease, "time": time}
    given |= {"covered": covered, "loss": loss, "quantiles": quantiles, "pit": pit, "cluster": cluster}
    if twice := [key for key, value in given.items() if value is not None]:
        raise InputError(f"give either source or arrays, got source and {twice[0]}.")
    found, alphas = at_levels(_source(source), alpha)
    ask_about(alphas)
    if settings["n_calibration"] is None:
        settings["n_calibration"] = getattr(found, "n_calibration", None)
    if bound is None and (own := getattr(found, "bound", None)) is not None:
        # As with alpha, the default gives way to what the source states itself.
        stated = getattr(found, "loss_range", None)
        ends = stated if stated is not None and tuple(loss_range) == (0, 1) else loss_range
        settings |= {"bound": check_bound(own, ends), "loss_range": (float(ends[0]), float(ends[1]))}
    if isinstance(found, ArraySource):
        options["rows"], options["columns"] = found.rows(), found.roles
    pieces = found.pieces()
    if isinstance(pieces[0], FilePiece):
        options["columns"] = pieces[0].roles.described()
    return audit_pieces(pieces, alphas, engine=engine, settings=settings, **options)


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
    min_rows: int | None = None,
    name: str = "",
    origin: str = "",
    columns: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """The audit of pieces of rows, wherever they lie; ``rows`` are all of them when they are in memory."""
    checks, engine = without(CHECKS, mute), engine_of("local" if engine is None else engine)
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
    made = assemble(m, checks, ready, results, rows=rows, min_rows=min_rows, name=name, origin=origin)
    return replace(made, columns=dict(columns or {}))


def measure_rows(
    design: Design,
    ready: Sequence[Check],
    pieces: Sequence[Piece],
    engine: Engine,
    rows: Rows | None = None,
    progress: Progress | None = None,
) -> Measurements:
    """Fill the states that the checks declare: first those of all rows, then those made from the sample."""
    states = _level_states(ready, design, lambda check, promise: check.states(design, promise))
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
    further = _level_states(ready, design, lambda check, promise: check.from_sample(m, promise))
    if further:
        results |= _finished(further, pieces, engine, progress, "rows outside the sample")
    return m


def _level_states(ready: Sequence[Check], design: Design, states: Callable[[Check, Any], States]) -> States:
    """The states of all checks by key; what several checks call by one name is one state."""
    found: States = {}
    for check in ready:
        for promise in (None,) if check.once else design.promises_of(check.kinds):
            for name, state in states(check, promise).items():
                own = state if promise is None else ReadingAs(state, promise.number, promise.reads)
                found.setdefault(state_key(name, promise), own)
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
    min_rows: int | None = None,
    name: str,
    origin: str,
) -> Audit:
    """The audit from the results of its checks: judged together, in order."""
    judged = judge_all(results, rows=m.n, min_rows=min_rows)
    chosen = leading(judged, results)
    told = told_once([_counted_once(judged[k], results) for k in chosen.values()], binary=len(m.classes) == 2)
    findings = [*told, *_not_run(checks, ready, m.design)]
    return Audit(
        data=m.sample if rows is None else rows,
        design=m.design,
        plan=plan_audit(m.design, checks),
        findings=tuple(sorted(findings, key=_order)),
        estimates=EstimateTable(_estimates(results), title="Everything that was measured"),
        pictures=(*_pictures(results), *evidence_pictures(m, findings)),
        measured={
            question: tuple(e.name for r in results if r.question == question for e in r.estimates)
            for question in QUESTIONS
        },
        sample_rows=m.sample.n,
        name=name,
        origin=origin,
        promises=PromiseTable(
            [_cell(finding, r) for finding, r in zip(judged, results, strict=True) if r.slices]
        ),
        selectors={code: results[k].rows for code, k in chosen.items() if judged[k].outcome == "fault"},
    )


def leading(judged: Sequence[Finding], results: Sequence[CheckResult]) -> dict[str, int]:
    """Code -> number of the finding that weighs most; all of them stand in the table of promises."""
    best: dict[str, int] = {}
    for number, finding in enumerate(judged):
        now = best.get(finding.code)
        if now is None or _weight(judged, results, number) > _weight(judged, results, now):
            best[finding.code] = number
    return best


def _counted_once(finding: Finding, results: Sequence[CheckResult]) -> Finding:
    """The finding with the number of promises it was chosen from."""
    subject = next(result.subject for result in results if result.code == finding.code)
    many = sum(result.subject == subject for result in results)
    return replace(finding, details=dict(finding.details) | {"levels": many}) if many > 1 else finding


def _weight(judged: Sequence[Finding], results: Sequence[CheckResult], number: int) -> tuple[int, int, float]:
    finding, p = judged[number], results[number].p_value
    return -_OUTCOME_ORDER[finding.outcome], severity_rank(finding.severity), -(2.0 if p is None else p)


def _cell(finding: Finding, result: CheckResult) -> PromiseCell:
    answers = {
        "fault": "broken",
        "clean": "kept",
        "cannot_tell": "cannot tell",
        "not_applicable": "not asked",
    }
    answer = "kept" if finding.severity == "note" else answers[finding.outcome]
    evidence = finding.evidence
    p = finding.details.get("p_adjusted")
    return PromiseCell(
        promise=result.promise, slice=result.slices, answer=answer,
        value=None if evidence is None else evidence.value, low=None if evidence is None else evidence.low,
        high=None if evidence is None else evidence.high, p_value=p if isinstance(p, float) else None,
        n=None if evidence is None else evidence.n, code=finding.code, where=finding.where or result.where,
    )  # fmt: skip


def run_check(check: Check, m: Measurements) -> list[CheckResult]:
    """The results of one check, for every promise it asks about."""
    results: list[CheckResult] = []
    rows = {"sample_rows": m.sample.n} if check.on_sample and not m.design.is_whole else {}
    for promise in (None,) if check.once else m.design.promises_of(check.kinds):
        results += [
            replace(
                result,
                subject=check.title,
                details=rows | dict(result.details),
                promise=result.promise or ("" if promise is None else promise.name),
                slices=result.slices or check.slices,
            )
            for result in _as_list(check.read(m, promise))  # type: ignore[arg-type]
        ]
    return results


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
