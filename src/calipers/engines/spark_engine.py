"""The same work on Spark: pieces are the elements of an RDD, states are merged in it, one is collected."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from calipers.arrays import import_optional
from calipers.engines.running import FAN_IN, Progress, States, absorb_piece, merged
from calipers.engines.sources import Piece
from calipers.exceptions import CalipersError

Numbered = tuple[int, States]

_SECONDS_BETWEEN_LOOKS = 0.1


class SparkEngine:
    """Runs on a Spark session: the one given, else the active one, else a local one.

    Parameters
    ----------
    session : pyspark.sql.SparkSession, optional
        An existing session; a classic one, because Spark Connect has no RDDs. Where none is at hand,
        ``spark-submit --master`` and PYSPARK_SUBMIT_ARGS say which cluster to join.

    Notes
    -----
    Calipers must be importable on the executors. Neighbouring states are merged there, in a tree whose shape
    depends on the number of pieces only; one state per pass reaches the driver. Spark repeats the tasks of a
    lost executor, so the answer does not change.
    """

    def __init__(self, session: Any = None) -> None:
        self.session = session if session is not None else _active_session()

    def reduce(self, pieces: Sequence[Piece], states: States, progress: Progress) -> States:
        """Absorb the pieces and merge their states on the executors."""
        context, n = self.session.sparkContext, len(pieces)
        shared, done, refused = context.broadcast(states), context.accumulator(0), _refusals(context)

        def absorb(numbered: tuple[int, Piece]) -> Numbered:
            number, piece = numbered
            try:
                return number, absorb_piece(piece, shared.value)
            except CalipersError as refusal:
                refused.add([refusal])  # a raised one would be tried again, and come back as pages of Java
                return number, {}
            finally:
                done.add(1)

        def look() -> None:
            if refused.value:
                raise refused.value[0]
            progress(min(n, done.value), n)

        rows = context.parallelize(list(enumerate(pieces)), n).map(absorb)
        left = n
        while left > 1:
            left = -(-left // FAN_IN)
            rows = rows.map(_under_group).partitionBy(left, int).mapPartitions(_merge_group)
        found: States
        try:
            ((_, found),) = _collect(context, rows, look)
        finally:
            shared.destroy()
        return found


def _under_group(numbered: Numbered) -> tuple[int, Numbered]:
    """A state under the number of its group of neighbours."""
    return numbered[0] // FAN_IN, numbered


def _merge_group(partition: Iterable[tuple[int, Numbered]]) -> Iterator[Numbered]:
    """The merged states of one group: they arrive in any order and are merged in that of their numbers."""
    members = sorted(partition, key=lambda member: member[1][0])
    return iter([(members[0][0], merged([states for _, (_, states) in members]))])


def _collect(context: Any, rows: Any, look: Callable[[], None]) -> Any:
    """The elements of an RDD, collected by a thread; this one shows progress and can be interrupted."""
    pyspark = import_optional("pyspark", purpose="Spark engines", install="calipers[spark]")
    group, outcome = f"calipers-{uuid4().hex}", list[Any]()

    def collect() -> None:
        context.setJobGroup(group, "calipers: absorb and merge", interruptOnCancel=True)
        try:
            outcome.append(rows.collect())
        except Exception as error:  # noqa: BLE001 - raised again where the caller waits
            outcome.append(error)

    thread = pyspark.InheritableThread(target=collect, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_SECONDS_BETWEEN_LOOKS)
            look()
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _refusals(context: Any) -> Any:
    """Where executors put what they refuse to read; seen here as soon as their task has ended."""
    pyspark = import_optional("pyspark", purpose="Spark engines", install="calipers[spark]")
    base: Any = pyspark.AccumulatorParam

    class Joined(base):
        def zero(self, value: list[CalipersError]) -> list[CalipersError]:
            return []

        def addInPlace(self, value1: list[CalipersError], value2: list[CalipersError]) -> list[CalipersError]:
            return value1 + value2

    return context.accumulator([], Joined())


def _active_session() -> Any:
    """The active session; else one of the master that Spark was told; else a local one."""
    sql = import_optional("pyspark.sql", purpose="Spark engines", install="calipers[spark]")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors must run this very Python
    if (active := sql.SparkSession.getActiveSession()) is not None:
        return active
    told = "PYSPARK_GATEWAY_PORT" in os.environ or "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    builder = sql.SparkSession.builder
    return (builder if told else builder.master("local[2]")).getOrCreate()
