"""How hard a row is for a model: ease by input transformation, and bins of it."""

from typing import TYPE_CHECKING, Any

from calipers.difficulty.easiness import ease, ease_from_outputs
from calipers.difficulty.uniform_mass import uniform_mass_bins, uniform_mass_limits

if TYPE_CHECKING:
    from calipers.difficulty.bins import DifficultyBins

__all__ = ["DifficultyBins", "ease", "ease_from_outputs", "uniform_mass_bins", "uniform_mass_limits"]


def __getattr__(name: str) -> Any:
    # The estimator needs scikit-learn, which the metrics that import this package do not.
    if name == "DifficultyBins":
        from calipers.difficulty.bins import DifficultyBins

        return DifficultyBins
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
