"""Run states over a source: here, on a Dask cluster, or on Spark. Only states travel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from calipers.arrays import frame_columns, is_frame
from calipers.engines.memory import keep_freed_memory
from calipers.engines.sources import Piece, Source, at_levels
from calipers.exceptions import InputError, InputTypeError
from calipers.inference.state import Result, State
from calipers.inputs.files.readers import Stamp, file_stamp
from calipers.metrics.registry import metric_entry, metrics_of, state_of
from calipers.metrics.states.total_weight import WeightState
from calipers.results import Estimate, EstimateTable

States = dict[str, State]
Progress = Callable[[int, int], None]
Node = TypeVar("Node")

# Neighbouring states that are merged into one: few enough to lie side by side on a worker, enough that a
# million pieces are five levels.
FAN_IN = 16
# States of a pass, up to which a third thread is worth its memory.
_FEW_STATES = 5


class Engine(Protocol):
    """Something that absorbs every piece into fresh states and merges them."""

    def reduce(self, pieces: Sequence[Piece], states: States, progress: Progress) -> States:
        """The merged states of one pass."""


def absorb_piece(piece: Piece, states: States) -> States:
    """Fresh states that have seen one piece; what every worker does."""
    keep_freed_memory()
    own = {name: state.fresh() for name, state in states.items()}
    with named_file(piece) as reached:
        for block in piece.blocks():
            for state in own.values():
                state.absorb(block)
            reached.rows += block.n
    for state in own.values():
        state.settle()
        state.shed()
    return own


@dataclass
class _Reached:
    """Rows of a piece that are done."""

    rows: int = 0


@contextmanager
def named_file(piece: Piece) -> Iterator[_Reached]:
    """Refusals of rows of a file name it, and the row from which theirs are counted."""
    reached = _Reached()
    try:
        yield reached
    except (InputError, InputTypeError) as refusal:
        path, said = getattr(piece, "path", ""), str(refusal)
        start = getattr(piece, "start", 0) + reached.rows
        where = [path] if path not in said else []
        where += [f"counting from row {start}"] if path and start and " row " in said else []
        raise type(refusal)(": ".join([", ".join(where), said]) if where else said) from None


def merged(parts: Sequence[States]) -> States:
    """The first of neighbouring states with the others merged into it, from left to right."""
    total, *others = parts
    for part in others:
        for name, state in total.items():
            state.merge(part[name])
    return total


class MergeInOrder:
    """States of pieces merged as they come, in the shape of the tree; holds one state per level."""

    def __init__(self) -> None:
        self.levels: list[list[States]] = []
        self.done = 0

    def add(self, part: States) -> None:
        """The states of the next piece."""
        self.done += 1
        node, ended, level = part, self.done, 0
        while True:
            if level == len(self.levels):
                self.levels.append([])
            self.levels[level] = [merged([*self.levels[level], node])]
            if ended % FAN_IN:
                break
            (node,), self.levels[level] = self.levels[level], []
            ended, level = ended // FAN_IN, level + 1

    def root(self) -> States:
        """The states of all pieces."""
        return root_of(self.levels, merged)


class MergeTree(Generic[Node]):
    """Groups of `FAN_IN` neighbours are merged as soon as they are complete, level by level.

    Its shape depends on the number of leaves only. Every engine merges in this shape, each group from left to
    right, so they agree to the last bit, whatever the order in which groups are merged.

    Parameters
    ----------
    merge : callable
        Neighbouring nodes, in order, to the node above them.
    """

    def __init__(self, merge: Callable[[list[Node]], Node]) -> None:
        self.merge = merge
        self.levels: list[list[Node]] = []

    def add(self, node: Node, level: int = 0) -> None:
        """The next node of a level, the leaves' by default."""
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(node)
        if len(self.levels[level]) == FAN_IN:
            group, self.levels[level] = self.levels[level], []
            self.add(self.merge(group), level + 1)

    def root(self) -> Node:
        """The node above all leaves."""
        return root_of(self.levels, self.merge)


def root_of(levels: Sequence[list[Node]], merge: Callable[[list[Node]], Node]) -> Node:
    """The last, incomplete groups of all levels merged from the leaves up; a node alone is passed on."""
    carried: list[Node] = []
    for level in levels:
        group = [*level, *carried]
        carried = [merge(group)] if len(group) > 1 else group
    return carried[0]


def in_window(submit: Callable[[Piece], Any], pieces: Sequence[Piece], width: int) -> Iterator[States]:
    """Results in the order of the pieces, with at most ``width`` pieces under way: states do not pile up."""
    waiting: deque[Any] = deque()
    for piece in pieces:
        waiting.append(submit(piece))
        if len(waiting) >= width:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


class LocalEngine:
    """Threads on this machine; numpy and polars release the interpreter while they work.

    Parameters
    ----------
    n_workers : int, optional
        Threads. By default three, of which one reads while two compute; two where so many states are filled
        that the memory of a third would tell.
    """

    def __init__(self, n_workers: int | None = None) -> None:
        self.n_workers = n_workers

    def reduce(self, pieces: Sequence[Piece], states: States, progress: Progress) -> States:
        """Absorb pieces in a few threads, merge in the order of the pieces."""
        merger = MergeInOrder()
        for part in self.absorbed(pieces, states):
            merger.add(part)
            progress(merger.done, len(pieces))
        return merger.root()

    def absorbed(self, pieces: Sequence[Piece], states: States) -> Iterator[States]:
        """The states of every piece, in order."""
        workers = self.n_workers or (3 if len(states) <= _FEW_STATES else 2)
        with ThreadPoolExecutor(workers) as pool:
            yield from in_window(
                lambda piece: pool.submit(absorb_piece, piece, states), pieces, workers + 1
            )  # fmt: skip


def measure(
    source: Source,
    metrics: Iterable[str] = ("coverage",),
    *,
    alpha: Any = 0.1,
    confidence: float = 0.95,
    engine: str | Engine = "local",
    options: dict[str, dict[str, Any]] | None = None,
    progress: Progress | None = None,
) -> EstimateTable:
    """Measure metrics over any number of rows, in as many passes as they need.

    Parameters
    ----------
    source : ArraySource, FileSource or alike
        Where the rows lie.
    metrics : iterable of str
        Registered metrics that merge ("counts", "moments" or "passes" in `merge_rules`), "proper_scores",
        and, up to five million rows, any other.
    alpha : float
        Allowed miscoverage.
    confidence : float
        Level of the intervals.
    engine : {"local", "dask", "spark"} or object
        Where the work is done; an object with ``reduce`` is used as it is. "dask" uses the current
        client, "spark" the active session, and both start a local one when there is none.
    options : dict, optional
        Metric to its further keyword arguments.
    progress : callable, optional
        Called with (pieces done, pieces in all) during each pass.

    Returns
    -------
    EstimateTable
        One entry per metric; a metric that gives a table has its entries as ``metric.name``.

    Raises
    ------
    InputError
        For unknown metrics and rows that lack a column a metric needs.

    Notes
    -----
    Counts and ranks are exact for any split of the rows; means agree to rounding. Memory: one block per
    worker and the states, whatever the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.engines import ArraySource, measure
    >>> rng = np.random.default_rng(0)
    >>> rows = {"y_true": rng.normal(size=1000), "intervals": np.tile([-1.6, 1.6], (1000, 1))}
    >>> print(measure(ArraySource(rows, piece_rows=300), ["coverage"])["coverage"])
    coverage 0.911 [0.891, 0.928] at 95 %; a valid predictor would read 0.881 to 0.918 (p = 0.267)
    """
    chosen = dict.fromkeys(metrics)
    source, levels = at_levels(source, alpha)
    alpha = list(levels) if len(levels) > 1 else levels[0]
    pieces = source.pieces()
    with unchanging_files(pieces), naming_metrics(pieces, chosen):
        states: States = {
            name: state_of(
                name, alpha=alpha, confidence=confidence, **_stated_options(name, pieces, options or {})
            )
            for name in chosen
        }
        finished = run_states(states, pieces, engine_of(engine), progress or silent)
    return EstimateTable(_flat({name: finished[name].finish() for name in chosen}))


def _stated_options(
    metric: str, pieces: Sequence[Piece], options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The options of a metric, with the levels that the columns of quantiles are named after."""
    own = dict(options.get(metric, {}))
    if "quantiles" in metric_entry(metric).inputs and "levels" not in own and pieces:
        table = pieces[0].head().given.get("quantiles")
        own |= {"levels": [float(level) for level in frame_columns(table)]} if is_frame(table) else {}
    return own


@contextmanager
def naming_metrics(pieces: Sequence[Piece], chosen: Iterable[str]) -> Iterator[None]:
    """Where a metric was refused for want of a column, the refusal names the metrics of these rows."""
    try:
        yield
    except InputError as refusal:
        try:
            head = pieces[0].head()
            names = [entry.name for entry in metrics_of(head)]
        except (InputError, IndexError):
            raise refusal from None
        asked = [metric_entry(name) for name in chosen if name not in names]
        lacks = [(e.name, name) for e in asked for name in e.inputs if head.get(name) is None]
        if not lacks:
            raise
        metric, column = lacks[0]
        said = f"{metric} needs {column}, which these rows do not have; {head.without(column)}"
        with named_file(pieces[0]):
            known = f" Metrics of these rows: {', '.join(names)}." if names else ""
            raise InputError(said + known) from None


def run_states(states: States, pieces: Sequence[Piece], engine: Engine, progress: Progress) -> States:
    """The states after as many passes over the pieces as they ask for."""
    finished: States = {}
    states = {"": WeightState(), **states}  # its verdict comes before anything is divided by the weight
    while states:
        seen = engine.reduce(wanted_pieces(pieces, states), states, progress)
        for name, state in seen.items():
            state.regain(states[name])
        following = {name: state.advance() for name, state in seen.items()}
        finished |= {name: state for name, state in seen.items() if following[name] is None}
        states = {name: state for name, state in following.items() if state is not None}
        pieces = [piece.checked() for piece in pieces]
    finished.pop("")
    return finished


@contextmanager
def unchanging_files(pieces: Sequence[Piece]) -> Iterator[None]:
    """Refuse an answer from files that were written to while they were read, pass after pass.

    Files with an address are not looked at again: their stores replace them as a whole, and asking costs a
    request each.
    """
    before = _stamps(pieces)
    try:
        yield
    except Exception:
        _require_unchanged(before)  # rows that no earlier pass has seen break anything, anywhere
        raise
    _require_unchanged(before)


def _stamps(pieces: Sequence[Piece]) -> dict[str, Stamp | None]:
    # Rows in memory have no path; an empty one would be the working folder, where anybody may write.
    paths = dict.fromkeys(str(getattr(piece, "path", "")) for piece in pieces)
    return {path: file_stamp(path) for path in paths if path}


def _require_unchanged(before: dict[str, Stamp | None]) -> None:
    for path, stamp in before.items():
        if file_stamp(path) != stamp:
            raise InputError(f"{path} changed while it was read. Run again when nothing writes to it.")


def wanted_pieces(pieces: Sequence[Piece], states: States) -> Sequence[Piece]:
    """The pieces with the columns that some state of this pass looks at."""
    needs = [state.needs for state in states.values()]
    known = [columns for columns in needs if columns is not None]
    return pieces if len(known) < len(needs) else [piece.only(frozenset().union(*known)) for piece in pieces]


def engine_of(engine: str | Engine) -> Engine:
    """The engine of that name, or the object itself."""
    if not isinstance(engine, str):
        if not hasattr(engine, "reduce"):
            raise InputError(
                f'engine must be "local", "dask", "spark" or an engine, got {repr(engine)[:60]}.'
            )
        return engine
    if engine == "local":
        return LocalEngine()
    if engine == "dask":
        from calipers.engines.dask_engine import DaskEngine

        return DaskEngine()
    if engine == "spark":
        from calipers.engines.spark_engine import SparkEngine

        return SparkEngine()
    raise InputError(f'engine must be "local", "dask" or "spark", got {engine!r}.')


def silent(done: int, total: int) -> None:
    """No progress shown."""


def _flat(results: dict[str, Result]) -> dict[str, Estimate]:
    flat: dict[str, Estimate] = {}
    for name, result in results.items():
        if isinstance(result, Estimate):
            flat[name] = result
        else:
            flat |= {f"{name}.{key}": estimate for key, estimate in result.items()}
    return flat
