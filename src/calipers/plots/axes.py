"""The axes a plot draws on: the caller's, or new ones."""

from __future__ import annotations

from typing import Any

from calipers.arrays import import_optional


def new_axes(ax: Any = None, *, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_optional("matplotlib.pyplot", purpose="plots", install="calipers[plots]")
    return pyplot.subplots(figsize=size, layout="constrained")[1]
