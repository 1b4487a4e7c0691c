"""The rows of an audit into the states that its checks declare: all rows once, then what needs the sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calipers.auditing.check import Check, States
from calipers.auditing.measurements import Design, Measurements, state_key
from calipers.engines.running import Engine, run_states
from calipers.engines.sources import Piece
from calipers.inputs.rows import Rows
from calipers.metrics.states.column_view import ReadingAs
from calipers.metrics.states.sampling import Sample, SampleState

Progress = Callable[[str, int, int], None]


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
    done = run_states(states, pieces, engine, lambda n, total: show_progress(shown, what, n, total))
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


def show_progress(progress: Progress | None, what: str, done: int, total: int) -> None:
    """Report progress to the callback."""
    if progress is not None:
        progress(what, done, total)
