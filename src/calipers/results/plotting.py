"""The one door from a result to its picture: matplotlib and `calipers.plots` are loaded when it is opened."""

from __future__ import annotations

from typing import Any


class Plotted:
    """Gives a result its method ``plot``."""

    __slots__ = ()

    def plot(self, *, ax: Any = None) -> Any:
        """Draw this result with matplotlib; see `calipers.plots.plot`.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new ones otherwise.

        Returns
        -------
        matplotlib axes
        """
        from calipers.plots import plot

        return plot(self, ax=ax)
