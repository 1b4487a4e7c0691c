"""Measure and draw in one call, in scikit-learn's manner: ``Display.from_predictions(...)``.

A display holds the measured curve (``curve``), its number (``estimate``) and, once drawn, ``ax_`` and
``figure_``. The drawing is that of `calipers.plots`, which knows results only; measuring is done here.
"""

from calipers.displays.coverage import CoverageDisplay
from calipers.displays.difficulty import DifficultyDisplay
from calipers.displays.reliability import ReliabilityDisplay
from calipers.displays.time import TimeDisplay

__all__ = ["CoverageDisplay", "DifficultyDisplay", "ReliabilityDisplay", "TimeDisplay"]


def __dir__() -> list[str]:
    return sorted(__all__)
