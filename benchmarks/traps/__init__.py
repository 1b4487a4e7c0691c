"""Traps of the field: small inputs on which a released library has been seen to be wrong.

Each is a `Task` of one size whose exact answer is worked out by hand or by integer arithmetic. Its name is
its key in `CATALOGUE`, which says what is asked; every entry there has a task here and the other way round.
"""

from benchmarks.traps import conditional, habits, p_values, ranks, reliability, sets, slabs
from benchmarks.traps.catalogue import CATALOGUE

TASKS = [
    task for room in (ranks, p_values, sets, conditional, slabs, reliability, habits) for task in room.TASKS
]

__all__ = ["CATALOGUE", "TASKS"]
