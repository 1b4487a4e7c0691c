"""An audit of any number of rows: numbers from sums over all of them, the rest from a stratified sample.

Coverage, groups, sizes, criteria, difficulty and calibration are measured on every row, by the states of
`calipers.engines`. What needs rows side by side (rules, forecasts, pictures) looks at a stratified sample.
Models of coverage are fitted to the sample and evaluated on all other rows. The readings then go through the
same sentences, codes and rules of severity as those of an audit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.auditing.checks import CHECKS
from calipers.auditing.checks.adaptive import PARTS, ROWS_PER_PART
from calipers.auditing.checks.narrow import matching_threshold
from calipers.auditing.material import Material, check_material
from calipers.auditing.plan import is_ready, plan_audit
from calipers.auditing.reading import Check, Reading
from calipers.auditing.result import Audit
from calipers.auditing.running import Progress, assemble, run_check, without
from calipers.auditing.streamed_checks import FROM_ALL_ROWS, Lake
from calipers.conformal import lac
from calipers.engines.block import Block
from calipers.engines.calibration import CalibrationOptions, CalibrationState
from calipers.engines.catalogue import state_of
from calipers.engines.classwise import ClasswiseState
from calipers.engines.counts import CountState
from calipers.engines.ease import EaseRangeState
from calipers.engines.levelled import AtLevel, RivalState, WidthState
from calipers.engines.running import Engine, States, engine_of, named_file, run_states, unchanging_files
from calipers.engines.sampling import Sample, SampleState
from calipers.engines.sources import Piece, Source
from calipers.engines.streamed_excess_risk import FEWEST_MISSES, ExcessRiskState, fit_fold_models
from calipers.inputs import check_alphas, check_confidence
from calipers.metrics import t_cv, t_ss

# Rows kept for what needs rows; more change little (`failing_regions` looks at 40 000 in memory).
SAMPLE_ROWS = 40_000
_MOST_SHUFFLED = 20_000_000


def audit_stream(
    source: Source,
    *,
    alpha: Any = 0.1,
    n_calibration: int | None = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
    engine: str | Engine = "local",
    sample_rows: int = SAMPLE_ROWS,
    mute: Iterable[str] = (),
    name: str = "",
    place: str = "",
    progress: Progress | None = None,
) -> Audit:
    """Answer the six questions about any number of rows, in files or on a cluster.

    Parameters
    ----------
    source : FileSource, ArraySource or alike
        Where the rows lie; ``features=True`` for the questions about features.
    alpha : float or sequence of floats
        Allowed miscoverage.
    n_calibration : int, optional
        Rows the predictor was conformalised on.
    confidence : float
        Level of the intervals around estimates.
    random_state : int, Generator or None
        The sample, splits and simulations follow from it.
    engine : {"local", "dask", "spark"} or object
        Where the work is done.
    sample_rows : int
        Rows of the stratified sample; at most half of all rows.
    mute : iterable of str
        Codes of checks to leave out.
    name, place : str
        How the predictor is called, and where it was read; for the report.
    progress : callable, optional
        Called with (what, done, total).

    Returns
    -------
    Audit
        As from `calipers.audit`; its ``n_rows`` counts all rows, its ``material`` is the sample.

    Notes
    -----
    The same numbers as in memory for counts, ranks and means over all rows. Checks that look at the sample
    say so in ``details["sample_rows"]``. Passes over the rows: three or four, and one for
    the models fitted to the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.auditing import audit_stream
    >>> from calipers.engines import ArraySource
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> rows = ArraySource({"y_true": y, "intervals": np.tile([-1.2, 1.2], (2000, 1))}, piece_rows=300)
    >>> print(audit_stream(rows, alpha=0.1, random_state=0).faults[0])
    CAL101 issue: The intervals cover 76.5 % of the rows; 90 % was promised.
    """
    levels, _ = check_alphas(alpha)
    alphas = tuple(float(a) for a in levels)
    seed = int(generator(random_state).integers(2**31))
    pieces: Sequence[Piece] = source.pieces()
    job = _Job(
        pieces=pieces, n=sum(piece.rows for piece in pieces), alphas=alphas, seed=seed,
        confidence=check_confidence(confidence), n_calibration=n_calibration, engine=engine_of(engine),
        sample_rows=sample_rows, progress=progress,
    )  # fmt: skip
    with unchanging_files(pieces):
        return _audit(job, mute=mute, name=name, place=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What an audit of a lake was asked for."""

    pieces: Sequence[Piece]
    n: int
    alphas: tuple[float, ...]
    seed: int
    confidence: float
    n_calibration: int | None
    engine: Engine
    sample_rows: int
    progress: Progress | None

    def rng(self, purpose: str) -> np.random.Generator:
        """The generator an audit in memory has for this purpose."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def run(self, states: States, what: str) -> dict[str, Any]:
        """The finished states, by name."""
        moved = self.progress

        def show(done: int, total: int) -> None:
            if moved is not None:
                moved(what, done, total)

        finished = run_states(states, self.pieces, self.engine, show)
        return {name: state.finish() for name, state in finished.items()}


def _audit(job: _Job, *, mute: Iterable[str], name: str, place: str) -> Audit:
    checks = without(CHECKS, mute)
    with named_file(job.pieces[0]):
        states = _first_states(job, job.pieces[0].head())
    found = job.run(states, "all rows")
    sample: Sample = found["sample"]
    material = _material(job, sample)
    lake = Lake(material=material, n=sample.n_rows, found=found)
    found |= _fitted_states(job, lake, sample)
    ready = [check for check in checks if is_ready(check, material)]
    readings: list[Reading] = []
    for done, check in enumerate(ready):
        if job.progress is not None:
            job.progress(check.code, done, len(ready))
        own = FROM_ALL_ROWS.get(check.code)
        readings += _of_sample(check, material) if own is None else own(check, lake)
    return assemble(
        material, checks, ready, readings, plan=plan_audit(material, checks), name=name, source=place,
        n_rows=sample.n_rows,
    )  # fmt: skip


def _of_sample(check: Check, material: Material) -> list[Reading]:
    """The readings of a check that looks at the sample, and says so."""
    said = {"sample_rows": material.n}
    return [replace(r, details=dict(r.details) | said) for r in run_check(check, material)]


def _material(job: _Job, sample: Sample) -> Material:
    given = {
        name: np.asarray(v) if name != "X" else v for name, v in sample.given.items() if name != "row_id"
    }
    material = check_material(
        given.pop("y_true"), **given, alpha=job.alphas, n_calibration=job.n_calibration,
        classes=sample.classes if "intervals" not in given else None, confidence=job.confidence,
        random_state=0,
    )  # fmt: skip
    return replace(material, seed=job.seed)


def _first_states(job: _Job, head: Block) -> States:
    """Everything that is measured on all rows."""
    origins = list(dict.fromkeys(piece.origin for piece in job.pieces))
    states: States = {
        "sample": SampleState(min(job.sample_rows, max(1, job.n // 2)), job.n, origins, job.seed)
    }
    classification = head.get("intervals") is None
    if head.get("covered") is not None:
        for level in range(len(job.alphas)):
            made = _level_states(job, head, level, classification)
            states |= {f"{key}@{level}": AtLevel(state, level) for key, state in made.items()}
    if head.get("probabilities") is not None and head.get("codes") is not None:
        states |= _probability_states(job, head["probabilities"].shape[1])
    return states


def _level_states(job: _Job, head: Block, level: int, classification: bool) -> States:
    states: States = {}
    states["counts"] = CountState(_columns, ("covered", "size") if classification else ("covered",), {})
    if not classification:
        states["widths"] = WidthState()
    if head.get("groups") is not None:
        states["groups"] = CountState(_columns, ("covered", "groups"), {})
    if head.get("p_values") is not None:
        states["efficiency"] = state_of("efficiency", alpha=job.alphas[level], confidence=job.confidence)
    if classification and head.get("ranks") is not None:
        states["ranks"] = CountState(_columns, ("hardness", "size"), {})
    if head.get("difficulty") is not None:
        states |= _difficulty_states(job, head, level, classification)
    return states


def _difficulty_states(job: _Job, head: Block, level: int, classification: bool) -> States:
    parts = next(parts for parts, rows in PARTS if job.n >= rows)
    by_ease = partial(EaseRangeState, ease="difficulty")
    coverage = {
        "alpha": job.alphas[level],
        "n_bins": int(np.clip(job.n // ROWS_PER_PART, 2, 50)),
        "n_calibration": job.n_calibration,
        "confidence": job.confidence,
        "n_draws": 999,
        "random_state": job.rng("t_cv"),
    }
    states: States = {
        "parts": by_ease(part_counts, ("covered", "empty", "difficulty"), {"n_bins": parts}),
        "t_cv": by_ease(t_cv, ("covered", "difficulty"), coverage),
    }
    if classification and head.get("hardness") is not None:
        sizes = {
            "n_bins": int(np.clip(job.n // ROWS_PER_PART, 3, 50)),
            "confidence": job.confidence,
            "n_permutations": int(np.clip(_MOST_SHUFFLED // job.n, 99, 999)),
            "random_state": job.rng("t_ss"),
        }
        states["t_ss"] = by_ease(t_ss, ("hardness", "size", "difficulty"), sizes)
    return states


def _probability_states(job: _Job, n_classes: int) -> States:
    def options(purpose: str) -> CalibrationOptions:
        return CalibrationOptions(confidence=job.confidence, random_state=job.rng(purpose))

    classwise = ClasswiseState(options("CAL503"), "max")
    return {
        "top": CalibrationState(options("CAL501"), column="top"),
        "right": CountState(_columns, ("top_is_right",), {}),
        "classes": CalibrationState(options("CAL503"), column=1) if n_classes == 2 else classwise,
    }


def _fitted_states(job: _Job, lake: Lake, sample: Sample) -> dict[str, Any]:
    """What is fitted to the sample and evaluated on all other rows."""
    states: States = {}
    material = lake.material
    for number, level in enumerate(material.levels):
        misses = int(np.count_nonzero(~level.covered))
        if material.features is not None and misses >= 2 * FEWEST_MISSES:
            ensemble = fit_fold_models(sample, level.covered, level.alpha, job.seed)
            state = ExcessRiskState(ensemble, job.seed, confidence=job.confidence)
            states[f"excess_risk@{number}"] = AtLevel(state, number)
        if material.probabilities is not None and material.task == "classification":
            scores = lac(material.probabilities)
            threshold = matching_threshold(scores, material.y, level.covered)
            states[f"rival@{number}"] = AtLevel(RivalState.against(threshold, sample, job.seed), number)
    if not states:
        return {}
    evaluated = run_states(states, job.pieces, job.engine, _shown(job.progress, "evaluated rows"))
    return {name: state.finish() for name, state in evaluated.items()} | {
        f"evaluated@{name.split('@')[1]}": state.state  # type: ignore[attr-defined]
        for name, state in evaluated.items()
        if name.startswith("excess_risk")
    }


def _shown(progress: Progress | None, what: str) -> Callable[[int, int], None]:
    def show(done: int, total: int) -> None:
        if progress is not None:
            progress(what, done, total)

    return show


def _columns(*columns: np.ndarray, sample_weight: np.ndarray) -> Any:
    """Distinct rows and how often each occurs, as they are."""
    return (*columns, sample_weight)


def part_counts(
    covered: np.ndarray, empty: np.ndarray, ease: np.ndarray, *, sample_weight: np.ndarray, n_bins: int
) -> Any:
    """Covered, all and empty rows of equal parts along the ease, hardest first; ties stay together."""
    order = np.argsort(ease, kind="stable")
    mass = np.cumsum(sample_weight[order])
    # The value at rank ceil(q n), as the inverted distribution function has it.
    at = np.searchsorted(mass, np.ceil(np.round(np.arange(1, n_bins) / n_bins * mass[-1], 9)), side="left")
    codes = np.searchsorted(np.unique(ease[order][at]), ease, side="left")
    _, tight = np.unique(codes, return_inverse=True)
    part = tight.reshape(-1)
    columns = (sample_weight * covered, sample_weight, sample_weight * empty)
    return tuple(np.bincount(part, weights=column) for column in columns)
