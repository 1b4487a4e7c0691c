"""Any number of rows: absorb blocks, merge states, finish; in process, out of core, on a cluster."""

from calipers.engines.block import Block
from calipers.engines.catalogue import merge_rules, state_of
from calipers.engines.planning import RunPlan, plan_run
from calipers.engines.running import measure
from calipers.engines.scoring import ConformalScores
from calipers.engines.sources import ArraySource, FileSource
from calipers.engines.state import State

__all__ = [
    "ArraySource",
    "Block",
    "ConformalScores",
    "FileSource",
    "RunPlan",
    "State",
    "measure",
    "merge_rules",
    "plan_run",
    "state_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
