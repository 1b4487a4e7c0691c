"""How a number runs along the ease: one line per predictor or model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calipers.plots.axes import new_axes
from calipers.results import Curve


def plot_along_ease(curves: Mapping[str, Curve], *, ax: Any = None, title: str = "") -> Any:
    """Curves over bins of ease, hardest at the left, with their bands.

    Parameters
    ----------
    curves : mapping of name to Curve
        x the bin or its mean ease, y the mean rank, size or coverage of the bin.
    ax : matplotlib axes, optional
        Where to draw; new ones otherwise.
    title : str
        Drawn above.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.plots import plot_along_ease
    >>> from calipers.results import Curve
    >>> curve = Curve(name="rank", x=[1, 2, 3], y=[3.0, 2.0, 1.0], x_label="bin of ease", y_label="mean rank")
    >>> len(plot_along_ease({"model": curve}).lines)
    1
    """
    ax = new_axes(ax)
    for name, curve in curves.items():
        (line,) = ax.plot(curve.x, curve.y, marker="o", markersize=3, linewidth=1.2, label=name)
        if curve.low is not None and curve.high is not None:
            ax.fill_between(curve.x, curve.low, curve.high, color=line.get_color(), alpha=0.15, linewidth=0)
        if curve.null_low is not None and curve.null_high is not None:
            ax.fill_between(curve.x, curve.null_low, curve.null_high, color="0.6", alpha=0.25, linewidth=0)
    first = next(iter(curves.values()), None)
    if first is not None:
        ax.set_xlabel(first.x_label)
        ax.set_ylabel(first.y_label)
    if len(curves) > 1:
        ax.legend(fontsize=8, frameon=False)
    ax.set_title(title, fontsize=10)
    ax.grid(alpha=0.25)
    return ax
