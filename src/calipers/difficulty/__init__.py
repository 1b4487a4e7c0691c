"""How hard a row is for a model: ease by input transformation, and bins of it."""

from calipers.difficulty.bins import DifficultyBins, uniform_mass_bins, uniform_mass_limits
from calipers.difficulty.easiness import ease, ease_from_outputs

__all__ = ["DifficultyBins", "ease", "ease_from_outputs", "uniform_mass_bins", "uniform_mass_limits"]


def __dir__() -> list[str]:
    return sorted(__all__)
