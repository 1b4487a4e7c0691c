"""Results to axes: one call for every result, matplotlib loaded on first use, nothing computed here."""

from calipers.plots.any_result import plot
from calipers.plots.audit_pictures import plot_picture
from calipers.plots.critical_difference import plot_critical_difference
from calipers.plots.difficulty import plot_along_ease
from calipers.plots.forecast import (
    plot_coverage_histogram,
    plot_forecast_bars,
    plot_interval_histograms,
    plot_learning_curves,
    plot_monitor,
    plot_width_histograms,
)

__all__ = [
    "plot",
    "plot_along_ease",
    "plot_coverage_histogram",
    "plot_critical_difference",
    "plot_forecast_bars",
    "plot_interval_histograms",
    "plot_learning_curves",
    "plot_monitor",
    "plot_picture",
    "plot_width_histograms",
]


def __dir__() -> list[str]:
    return sorted(__all__)
