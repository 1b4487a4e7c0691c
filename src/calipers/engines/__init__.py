"""Where rows are read and states merged: here, out of core, on a cluster. No formula lives here."""

from typing import Any

from calipers.conformal.stored_scores import ConformalScores
from calipers.deprecation import moved_name
from calipers.engines.planning import RunPlan, plan_run
from calipers.engines.resuming import ResumableEngine
from calipers.engines.running import measure
from calipers.engines.sources import ArraySource, FileSource
from calipers.engines.unlabelled import estimate_without_labels
from calipers.inference.state import State
from calipers.inputs.rows import Rows
from calipers.metrics.registry import merge_rules, state_of

__all__ = [
    "ArraySource",
    "ConformalScores",
    "FileSource",
    "ResumableEngine",
    "Rows",
    "RunPlan",
    "State",
    "estimate_without_labels",
    "measure",
    "merge_rules",
    "plan_run",
    "state_of",
]

_MOVED = {"Block": ("calipers.inputs.rows", "Rows")}


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, _MOVED, gone_in="0.4")


def __dir__() -> list[str]:
    return sorted(__all__)
