"""The same work on Spark: pieces are the elements of an RDD, states are reduced, tasks are retried."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from calipers.arrays import import_optional
from calipers.engines.running import Progress, States, absorb_piece, merge_in_order
from calipers.engines.sources import Piece

# Pieces per core and batch.
_PER_CORE = 2


class SparkEngine:
    """Runs on a Spark session: the one given, else the active one, else a local one.

    Parameters
    ----------
    session : pyspark.sql.SparkSession, optional
        An existing session.

    Notes
    -----
    Calipers must be importable on the executors. A lost executor's tasks are repeated by Spark; states are
    merged in the order of the pieces.
    """

    def __init__(self, session: Any = None) -> None:
        self.session = session if session is not None else _active_session()

    def reduce(self, pieces: Sequence[Piece], states: States, progress: Progress) -> States:
        """Absorb the pieces on the executors, merge here in order."""
        context = self.session.sparkContext
        shared = context.broadcast(states)
        rows = context.parallelize(list(pieces), len(pieces)).map(
            lambda piece: absorb_piece(piece, shared.value)
        )
        width = max(4, _PER_CORE * int(context.defaultParallelism))
        return merge_in_order(_in_batches(context, rows, len(pieces), width), len(pieces), progress)


def _in_batches(context: Any, rows: Any, n: int, width: int) -> Iterator[States]:
    """The states in the order of the pieces, so many pieces at a time: the driver never holds all of them."""
    for start in range(0, n, width):
        yield from context.runJob(rows, list, partitions=range(start, min(start + width, n)))


def _active_session() -> Any:
    sql = import_optional("pyspark.sql", purpose="Spark engines", install="calipers[spark]")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors must run this very Python
    builder = sql.SparkSession.getActiveSession() or sql.SparkSession.builder.master("local[2]")
    return builder if isinstance(builder, sql.SparkSession) else builder.getOrCreate()
