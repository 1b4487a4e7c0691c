"""How hard a row is for a model: ease by input transformation, and bins of it."""

from calipers.difficulty.bins import uniform_mass_bins, uniform_mass_limits

__all__ = ["uniform_mass_bins", "uniform_mass_limits"]
