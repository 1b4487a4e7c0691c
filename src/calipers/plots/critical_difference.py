"""Which methods differ: the critical-difference diagram."""

from __future__ import annotations

from typing import Any

from calipers.exceptions import InputError
from calipers.plots.axes import new_axes
from calipers.results import RankComparison


def plot_critical_difference(comparison: RankComparison, *, ax: Any = None, title: str = "") -> Any:
    """Average ranks on a line, best at the left; a bar joins methods that do not differ.

    Parameters
    ----------
    comparison : RankComparison
        From `calipers.inference.compare_ranks`.
    ax : matplotlib axes, optional
        Where to draw; new ones otherwise.
    title : str
        Drawn above the line.

    Returns
    -------
    matplotlib axes

    Raises
    ------
    InputError
        When there are too few blocks to tell any two methods apart: the diagram would show nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import compare_ranks
    >>> from calipers.plots import plot_critical_difference
    >>> values = np.random.default_rng(0).normal(size=(20, 3)) + [0, 0, 2]
    >>> len(plot_critical_difference(compare_ranks(values, ["a", "b", "c"])).texts) >= 3
    True
    """
    if not comparison.can_differ:
        raise InputError(
            f"{comparison.n_blocks} blocks cannot tell {len(comparison.names)} methods apart "
            f"({comparison.post_hoc} at {comparison.alpha:g}): the diagram needs more blocks."
        )
    k = len(comparison.names)
    rows = -(-k // 2)
    ax = new_axes(ax, size=(7.0, 1.6 + 0.32 * rows + 0.16 * len(comparison.cliques)))
    bars = 0.28 * len(comparison.cliques)
    ax.plot([1, k], [0, 0], color="black", linewidth=1)
    for rank in range(1, k + 1):
        ax.plot([rank, rank], [0, 0.15], color="black", linewidth=1)
        ax.text(rank, 0.22, str(rank), ha="center", va="bottom", fontsize=9)
    for place, i in enumerate(comparison.order):
        _label(ax, comparison, i, place, rows, bars)
    for level, clique in enumerate(comparison.cliques):
        ends = [float(comparison.average_ranks[i]) for i in (clique[0], clique[-1])]
        height = -0.2 - 0.28 * level
        ax.plot([ends[0] - 0.04, ends[1] + 0.04], [height, height], color="tab:red", linewidth=4, alpha=0.8)
    if comparison.critical_difference is not None:
        _ruler(ax, comparison.critical_difference)
    ax.set_xlim(0.4 - 0.16 * k, k + 0.6 + 0.16 * k)
    ax.set_ylim(-0.6 - bars - 0.42 * rows, 1.3)
    ax.set_axis_off()
    ax.set_title(title or "average rank, 1 is best", fontsize=10)
    return ax


def _label(ax: Any, comparison: RankComparison, i: int, place: int, rows: int, bars: float) -> None:
    """A line from the rank down and out to the name: the better half to the left, the rest to the right."""
    k, rank = len(comparison.names), float(comparison.average_ranks[i])
    left = place < rows
    depth = -0.35 - bars - 0.42 * (place if left else k - 1 - place)
    end = 0.9 if left else k + 0.1
    ax.plot([rank, rank, end], [0, depth, depth], color="0.35", linewidth=1)
    ax.plot([rank], [0], marker="o", markersize=4, color="tab:blue")
    name = comparison.names[i]
    text, gap, side = (
        (f"{name}  {rank:.2f}", -0.05, "right") if left else (f"{rank:.2f}  {name}", 0.05, "left")
    )
    ax.text(end + gap, depth, text, ha=side, va="center", fontsize=10)


def _ruler(ax: Any, length: float) -> None:
    ax.plot([1, 1 + length], [0.85, 0.85], color="tab:red", linewidth=2)
    ax.text(1 + length / 2, 0.95, f"critical difference {length:.2f}", ha="center", va="bottom", fontsize=8)
