"""A repair of stated uncertainty: chosen by evidence, evaluated on untouched rows, kept as data.

`Repair` is what ``audit.repair()`` gives; `load_repair` reads a saved one; `RepairedClassifier` and
`RepairedRegressor` put one behind a fitted model.
"""

from calipers.auditing.repair.models import RepairedClassifier, RepairedRegressor
from calipers.auditing.repair.repair_result import Repair, SavedRepair, load_repair

__all__ = ["Repair", "RepairedClassifier", "RepairedRegressor", "SavedRepair", "load_repair"]


def __dir__() -> list[str]:
    return sorted(__all__)
