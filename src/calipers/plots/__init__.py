"""Results to axes: one file per question, matplotlib loaded on first use, nothing computed here."""

from calipers.plots.forecast import (
    plot_coverage_histogram,
    plot_forecast_bars,
    plot_interval_histograms,
    plot_learning_curves,
    plot_monitor,
    plot_width_histograms,
)

__all__ = [
    "plot_coverage_histogram",
    "plot_forecast_bars",
    "plot_interval_histograms",
    "plot_learning_curves",
    "plot_monitor",
    "plot_width_histograms",
]
