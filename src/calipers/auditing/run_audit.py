"""``calipers.audit``: rows into states, states into checks, checks into findings; in memory or streamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import RandomState
from calipers.auditing.arguments import require_statement, rows_of_arguments
from calipers.auditing.assembly import assemble
from calipers.auditing.audit_result import Audit
from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult
from calipers.auditing.checks import CHECKS
from calipers.auditing.filled_states import Progress, measure_rows, show_progress
from calipers.auditing.measurements import SAMPLE_ROWS, Design, Measurements
from calipers.auditing.plan import is_ready
from calipers.auditing.promise import Promise
from calipers.auditing.settings import ask_about, check_bound, check_settings
from calipers.deprecation import warn_deprecated
from calipers.engines.running import Engine, engine_of, named_file, unchanging_files
from calipers.engines.sources import ArraySource, Piece, Source, at_levels
from calipers.exceptions import InputError
from calipers.inputs import check_count
from calipers.inputs.files import FilePiece
from calipers.inputs.rows import Rows


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
    label_conditional: bool = False,
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
    label_conditional : bool
        Whether coverage was promised for every true class (thresholds class by class). Without it coverage by
        true class is described, not tested: even a perfect predictor does not keep it.
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
        warn_deprecated("audit: a text as source beside y_true is now called origin", "0.4")
        source, origin = None, source
    arrays = {
        "y_true": y_true, "probabilities": probabilities, "p_values": p_values, "sets": sets,
        "intervals": intervals, "X": X, "groups": groups, "ease": ease, "covered": covered, "size": size,
        "promised": promised, "loss": loss, "quantiles": quantiles, "quantile_levels": quantile_levels,
        "pit": pit, "y_pred": y_pred, "time": time, "cluster": cluster, "row_id": row_id, "classes": classes,
        "sample_weight": sample_weight,
    }  # fmt: skip
    settings = check_settings(
        random_state=random_state, sample_rows=sample_rows, confidence=confidence,
        n_calibration=n_calibration, label_conditional=label_conditional, bound=bound, loss_range=loss_range,
    )  # fmt: skip
    options: dict[str, Any] = {
        "engine": engine, "mute": mute, "name": name, "origin": origin, "progress": progress,
        "min_rows": None if min_rows is None else check_count(min_rows, name="min_rows"),
    }  # fmt: skip
    if source is None:
        rows = rows_of_arguments(**arrays, alpha=alpha, seed=settings["seed"])
        ask_about(rows.alphas)
        return audit_rows(rows, settings=settings, **options)
    if beside := [key for key, value in arrays.items() if value is not None]:
        raise InputError(f"give either source or arrays, got source and {beside[0]}.")
    return _audit_source(_source(source), alpha, settings=settings, **options)


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
    warn_deprecated("audit_stream(source) is now audit(source=source)", "0.4")
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


def _audit_source(source: Source, alpha: Any, *, settings: dict[str, Any], **options: Any) -> Audit:
    """The audit of a source; what it states itself takes the place of defaults."""
    found, alphas = at_levels(source, alpha)
    ask_about(alphas)
    if settings["n_calibration"] is None:
        settings["n_calibration"] = getattr(found, "n_calibration", None)
    if settings["bound"] is None and (own := getattr(found, "bound", None)) is not None:
        stated = getattr(found, "loss_range", None)
        ends = stated if stated is not None and settings["loss_range"] == (0, 1) else settings["loss_range"]
        settings |= {"bound": check_bound(own, ends), "loss_range": (float(ends[0]), float(ends[1]))}
    if isinstance(found, ArraySource):
        options["rows"], options["columns"] = found.rows(), found.roles
    pieces = found.pieces()
    if isinstance(pieces[0], FilePiece):
        options["columns"] = pieces[0].roles.described()
    return audit_pieces(pieces, alphas, settings=settings, **options)


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
        require_statement(head.given, columns or {})
        design = Design(n=sum(p.rows for p in pieces), alphas=alphas, head=head, **settings)
        ready = [check for check in checks if is_ready(check, design)]
    with unchanging_files(pieces):
        m = measure_rows(design, ready, pieces, engine, rows, progress)
    results: list[CheckResult] = []
    for done, check in enumerate(ready):
        show_progress(progress, check.code, done, len(ready))
        results.extend(run_check(check, m))
    show_progress(progress, "", len(ready), len(ready))
    made = assemble(m, checks, ready, results, rows=rows, min_rows=min_rows, name=name, origin=origin)
    return replace(made, columns=dict(columns or {}))


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
            for result in _read(check, m, promise)
        ]
    return results


def _read(check: Check, m: Measurements, promise: Promise | None) -> list[CheckResult]:
    """The results for a promise; of one that has parts that of the worst part, corrected for their number."""
    if promise is None or not promise.parts:
        return _as_list(check.read(m, promise))  # type: ignore[arg-type]
    results = [
        replace(result, details=dict(result.details) | {"single_promise": part.name})
        for part in promise.parts
        for result in _read(check, m, part)
    ]
    worst = min(results, key=lambda r: np.inf if r.p_value is None else r.p_value)
    if worst.p_value is None:
        return [worst]
    p = min(1.0, len(results) * worst.p_value)
    room = max((r.effect_high for r in results if r.effect_high is not None), default=None)
    worst = replace(worst, p_value=p, effect_high=room)
    if (own := worst.evidence) is None:
        return [worst]
    own = replace(own, p_value=p, method=f"{own.method}; corrected for {len(results)} classes")
    return [replace(worst, evidence=own, estimates=(own, *worst.estimates[1:]))]


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
