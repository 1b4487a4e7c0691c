"""An audit at a glance: the table of promises and slices, one coloured cell per answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calipers.plots.axes import new_axes
from calipers.results import PromiseTable
from calipers.results.promise_table import ANSWER_MARKS, ANSWERS, NOT_QUITE, OF_QUESTIONS, slice_name

CELL_COLOURS = {
    "broken": "#f3b8b2", NOT_QUITE: "#fbdfa8", "cannot tell": "#d9cff0", "mostly kept": "#c9e2ec",
    "kept": "#b9dfcc", "measured only": "#ffffff", "not asked": "#eeeeee",
}  # fmt: skip


def plot_promises(document: Mapping[str, Any], *, ax: Any = None) -> Any:
    """Draw the answers of an audit: promises down, slices across.

    Parameters
    ----------
    document : mapping
        ``audit.to_dict()``. Without a table of promises the six questions are drawn.
    ax : matplotlib axes, optional
        Where to draw; new ones otherwise.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.plots.promises import plot_promises
    >>> rows = [{"promise": "sets", "slice": part, "answer": "kept"} for part in ("all rows", "groups")]
    >>> len(plot_promises({"promises": rows, "about": {}}).texts)
    2
    """
    grid = PromiseTable.of(document.get("promises") or _questions(document))
    rows, columns = len(grid.promises), len(grid.slices)
    ax = new_axes(ax, size=(max(4.0, 1.6 + 1.3 * columns), 1.4 + 0.55 * rows))
    for down, promise in enumerate(grid.promises):
        for across, part in enumerate(grid.slices):
            _draw_cell(ax, grid, promise, part, (across, down))
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(rows - 0.5, -0.5)
    ax.set_xticks(range(columns), [_broken_at_blanks(slice_name(part)) for part in grid.slices])
    ax.set_yticks(range(rows), grid.promises)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_title(document.get("verdict", {}).get("sentence", ""), fontsize=10)
    return ax


def _draw_cell(ax: Any, grid: PromiseTable, promise: str, part: str, at: tuple[int, int]) -> None:
    from matplotlib.patches import Rectangle

    cell = grid.cell(promise, part)
    answer = cell.shown
    place = (at[0] - 0.47, at[1] - 0.46)
    ax.add_patch(Rectangle(place, 0.94, 0.92, facecolor=CELL_COLOURS[answer], edgecolor="none"))
    # Shares can be read beside each other; a test statistic would be taken for one.
    is_share = cell.value is not None and 0.0 <= cell.value <= 1.0
    words = f"{ANSWER_MARKS[answer]} {grid.number(promise, part) if is_share else ''}".strip()
    ax.text(*at, words, ha="center", va="center", fontsize=9)


def _questions(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The six questions as a table of one slice, for documents without a table of promises."""
    said = [(q["title"], OF_QUESTIONS.get(q["answer"], q["answer"])) for q in document.get("questions", ())]
    return [
        {"promise": title, "slice": "answer"}
        | ({"answer": "broken", "severity": "warning"} if answer == NOT_QUITE else {"answer": answer})
        for title, answer in said
        if answer in (*ANSWERS, NOT_QUITE)
    ]


def _broken_at_blanks(name: str) -> str:
    """A long name on two lines."""
    if len(name) <= 12 or " " not in name:
        return name
    blanks = [i for i, letter in enumerate(name) if letter == " "]
    middle = min(blanks, key=lambda i: abs(i - len(name) / 2))
    return f"{name[:middle]}\n{name[middle + 1 :]}"
