"""What a run over many rows will cost: bytes read, states moved, passes, time; before it is started."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from calipers.engines.running import FAN_IN
from calipers.exceptions import InputError
from calipers.inference.state import State
from calipers.inputs import check_count
from calipers.inputs.block_sizes import PIECE_ROWS

# States may weigh this share of the bytes read before larger pieces are worth their while.
LIGHT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The cost of a run.

    Parameters
    ----------
    n_rows, passes, pieces : int
        Rows, passes over them, and pieces of work per pass.
    piece_rows : int
        Rows per piece.
    bytes_read, bytes_moved : float
        From storage in all passes; of states, from the worker that has one to the one that merges it.
    bytes_to_driver : float
        The part of them that reaches the process which started the run.
    seconds : float
        Of reading, absorbing and merging on all workers.
    """

    n_rows: int
    passes: int
    pieces: int
    piece_rows: int
    bytes_read: float
    bytes_moved: float
    bytes_to_driver: float
    seconds: float


def plan_run(
    n_rows: float,
    *,
    row_bytes: float,
    state_bytes: float,
    passes: int = 1,
    piece_rows: int | None = None,
    seconds_per_row: float = 0.0,
    merge_seconds: float = 0.0,
    workers: int = 1,
) -> RunPlan:
    """What a run over so many rows costs.

    Parameters
    ----------
    n_rows : float
        Rows, such as 1e9.
    row_bytes : float
        Bytes of the columns that are read, per row, as stored.
    state_bytes : float
        Bytes of one state; see `state_size`.
    passes : int
        Passes over the rows.
    piece_rows : int, optional
        Rows per piece; by default so many that the states weigh a hundredth of what is read.
    seconds_per_row : float
        Of one worker for one pass, measured.
    merge_seconds : float
        Of one merge, measured.
    workers : int
        Workers that read at the same time.

    Returns
    -------
    RunPlan

    Notes
    -----
    Reading: passes * n_rows * row_bytes. Moving: every state once to the worker that merges it with its
    neighbours, 16 at a time, level by level, and the last one to the driver: about 16 / 15 states per piece
    and pass. Time: reading and absorbing shared by the workers; a level of the tree takes as many turns as
    it has groups per worker. Memory does not depend on the rows: a worker holds a part of a piece and its
    states, a merger 16 states and their sum.

    Examples
    --------
    >>> from calipers.engines import plan_run
    >>> plan = plan_run(1e9, row_bytes=44, state_bytes=4.2e6, passes=2)
    >>> plan.pieces, plan.bytes_read / 1e9, round(plan.bytes_moved / plan.bytes_read, 3)
    (60, 88.0, 0.006)
    """
    rows, passes = int(n_rows), check_count(passes, name="passes")
    if rows < 1 or row_bytes <= 0:
        raise InputError(f"n_rows and row_bytes must be positive, got {n_rows} and {row_bytes}.")
    step = piece_rows or light_piece(row_bytes, state_bytes)
    pieces = math.ceil(rows / step)
    reading = passes * rows * seconds_per_row / check_count(workers, name="workers")
    levels = tree_levels(pieces)
    turns = sum(math.ceil(math.ceil(n / FAN_IN) / workers) * (min(n, FAN_IN) - 1) for n in levels)
    return RunPlan(
        n_rows=rows,
        passes=passes,
        pieces=pieces,
        piece_rows=step,
        bytes_read=passes * rows * row_bytes,
        bytes_moved=passes * (sum(levels) - lone_states(levels) + 1) * state_bytes,
        bytes_to_driver=passes * state_bytes,
        seconds=reading + passes * turns * merge_seconds,
    )


def tree_levels(pieces: int) -> list[int]:
    """States on every level of the tree of mergers, leaves first; the root is not counted.

    Examples
    --------
    >>> from calipers.engines.planning import tree_levels
    >>> tree_levels(60_000)
    [60000, 3750, 235, 15]
    """
    levels = []
    while pieces > 1:
        levels.append(pieces)
        pieces = math.ceil(pieces / FAN_IN)
    return levels


def lone_states(levels: Sequence[int]) -> int:
    """Levels whose last group has one member: it is passed on, not moved."""
    return sum(n % FAN_IN == 1 for n in levels)


def light_piece(row_bytes: float, state_bytes: float) -> int:
    """Rows per piece at which a state weighs at most a hundredth of the piece; a multiple of the usual piece.

    Examples
    --------
    >>> from calipers.engines.planning import light_piece
    >>> light_piece(44, 1000), light_piece(44, 4.2e6)
    (1048576, 16777216)
    """
    wanted = max(1.0, state_bytes / (LIGHT * row_bytes) / PIECE_ROWS)
    return PIECE_ROWS * int(2 ** math.ceil(math.log2(wanted)))


def state_size(state: State) -> int:
    """Bytes of a state on its way between machines.

    Examples
    --------
    >>> from calipers.engines import state_of
    >>> from calipers.engines.planning import state_size
    >>> state_size(state_of("coverage")) < 1000
    True
    """
    return len(pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL))
