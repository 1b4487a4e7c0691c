"""The pictures of an audit with matplotlib: the same curves as in its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.plots.axes import new_axes
from calipers.results.picture_data import (
    KINDS,
    has_diagonal,
    histogram_of,
    is_off,
    is_reliability,
    null_span,
    plain_picture,
    reference_words,
)

NULL_COLOUR, PROMISE_COLOUR, CHANGE_COLOUR, OFF_COLOUR = "0.87", "0.2", "#8a5700", "#b3261e"


def plot_picture(picture: Any, *, ax: Any = None) -> Any:
    """Draw one picture of an audit: lines with bands, points with error bars, labelled intervals, a plane.

    Parameters
    ----------
    picture : Picture or mapping
        An entry of ``audit.pictures`` or of ``audit.to_dict()["pictures"]``: title, kind, reference, labels
        and curves.
    ax : matplotlib axes, optional
        Where to draw; new ones otherwise.

    Returns
    -------
    matplotlib axes
        With the picture; nothing is shown or saved.

    Raises
    ------
    InputError
        For a kind of picture that is not known.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> from calipers.plots import plot_picture
    >>> y = np.random.default_rng(0).normal(size=400)
    >>> found = calipers.audit(y, intervals=np.tile([-1.6, 1.6], (400, 1)), random_state=0)
    >>> plot_picture(found.pictures[0]).get_ylabel()
    'absolute error of the midpoint'
    """
    picture = plain_picture(picture)
    if picture["kind"] not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {picture['kind']!r}.")
    axes = new_axes(ax)
    _DRAWN[picture["kind"]](axes, picture)
    axes.set_title(picture["title"])
    return axes


def _draw_curves(axes: Any, picture: Mapping[str, Any]) -> None:
    for curve in picture["curves"]:
        at = along(curve)
        _null_band(axes, curve, at)
        if picture["kind"] == "points":
            axes.errorbar(at, curve["y"], yerr=_errors(curve), fmt="o", label=_label(picture, curve))
            continue
        style = "steps-post" if curve["step"] else "default"
        (line,) = axes.plot(at, curve["y"], drawstyle=style, label=_label(picture, curve))
        if curve["low"] is not None and curve["high"] is not None:
            axes.fill_between(at, curve["low"], curve["high"], color=line.get_color(), alpha=0.2, linewidth=0)
    _promise(axes, picture)
    first = picture["curves"][0]
    axes.set_xlabel(first["x_label"])
    axes.set_ylabel(first["y_label"])
    _focus(axes, picture)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(fontsize="small")
    if first["details"].get("dates"):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _label(picture: Mapping[str, Any], curve: Mapping[str, Any]) -> str:
    """The name of a curve among others; a single one is what was measured."""
    return str(curve["name"]) if len(picture["curves"]) > 1 else "measured"


def _focus(axes: Any, picture: Mapping[str, Any]) -> None:
    """Since when, and until when, things are different."""
    focus = picture.get("focus") or {}
    if "since" not in focus:
        return
    dated = picture["curves"][0]["details"].get("dates")
    ends = [float(v) for v in (focus["since"], focus.get("until")) if v is not None]
    for i, end in enumerate(ends):
        place = np.float64(end).astype("datetime64[s]") if dated else end
        axes.axvline(place, color=CHANGE_COLOUR, linewidth=1.5, label=focus["words"] if i == 0 else None)


def along(curve: Mapping[str, Any]) -> np.ndarray:
    """The grid of a curve; dates where it counts seconds since 1970."""
    x = np.asarray(curve["x"], dtype=float)
    return x.astype("datetime64[s]") if curve["details"].get("dates") else x


def _null_band(axes: Any, curve: Mapping[str, Any], at: np.ndarray) -> None:
    if curve["null_low"] is None or curve["null_high"] is None:
        return
    axes.fill_between(
        at, curve["null_low"], curve["null_high"], color=NULL_COLOUR, label="a valid predictor", linewidth=0
    )


def _promise(axes: Any, picture: Mapping[str, Any]) -> None:
    """The dashed line of the promise: a level, or the diagonal above a histogram."""
    style = {"color": PROMISE_COLOUR, "linestyle": "--", "linewidth": 1}
    curve = picture["curves"][0]
    if picture["reference"] is not None:
        axes.axhline(picture["reference"], **style, label=reference_words(picture))
    if has_diagonal(curve):
        axes.axline((0, 0), slope=1, **style, label=reference_words(picture))
    if not is_reliability(curve):
        return
    if (histogram := histogram_of(curve)) is not None:
        edges, shares = histogram
        below = axes.twinx()
        below.bar(edges[:-1], shares, width=np.diff(edges), align="edge", color="0.6", alpha=0.35)
        below.set_ylim(0, 4 * max(shares))
        axes.fill_between([0], [0], color="0.6", alpha=0.35, linewidth=0, label="share of the rows")
        below.set_yticks([])


def _errors(curve: Mapping[str, Any]) -> np.ndarray | None:
    if curve["low"] is None or curve["high"] is None:
        return None
    y, low, high = (np.asarray(curve[key], dtype=float) for key in ("y", "low", "high"))
    return np.nan_to_num(np.maximum(0.0, [y - low, high - y]), posinf=0.0)


def _draw_intervals(axes: Any, picture: Mapping[str, Any]) -> None:
    curve = picture["curves"][0]
    rows = np.arange(len(curve["y"]))
    for row in range(len(rows)):
        _null_row(axes, curve, row)
    values, errors = np.asarray(curve["y"], dtype=float), _errors(curve)
    off = np.array([is_off(curve, row, picture["reference"]) for row in range(len(rows))], dtype=bool)
    for colour, mine in (("C0", ~off), (OFF_COLOUR, off)):
        if mine.any():
            bars = None if errors is None else errors[:, mine]
            axes.errorbar(values[mine], rows[mine], xerr=bars, fmt="o", color=colour)
    if picture["reference"] is not None:
        axes.axvline(picture["reference"], color=PROMISE_COLOUR, linestyle="--", linewidth=1)
    axes.set_yticks(rows, list(picture["labels"]) or [f"{v:g}" for v in curve["x"]])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(curve["y_label"])


def _null_row(axes: Any, curve: Mapping[str, Any], row: int) -> None:
    """The band of one interval's null law; a side without an end runs to the edge of the axes."""
    if (band := null_span(curve, row)) is not None:
        axes.fill_betweenx([row - 0.35, row + 0.35], *band, color=NULL_COLOUR, linewidth=0)


def _draw_plane(axes: Any, picture: Mapping[str, Any]) -> None:
    """Cells of two features, coloured by coverage, and the rule as a frame."""
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.patches import Rectangle

    curve, details = picture["curves"][0], picture["curves"][0]["details"]
    x_edges, y_edges = np.asarray(details["x_edges"]), np.asarray(details["y_edges"])
    values = np.full((len(y_edges) - 1, len(x_edges) - 1), np.nan)
    values[details["y_cell"], details["x_cell"]] = details["value"]
    promised = picture["reference"]
    norm = TwoSlopeNorm(promised, vmin=min(np.nanmin(values), promised - 0.01), vmax=1.0)
    drawn = axes.pcolormesh(x_edges, y_edges, values, cmap="RdYlGn", norm=norm)
    axes.figure.colorbar(drawn, ax=axes, label=details["value_label"])
    left, right, low, high = details["region"]
    axes.add_patch(
        Rectangle((left, low), right - left, high - low, fill=False, edgecolor="black", linewidth=2)
    )
    axes.set_xlabel(curve["x_label"])
    axes.set_ylabel(curve["y_label"])


_DRAWN = {
    "line": _draw_curves,
    "points": _draw_curves,
    "intervals": _draw_intervals,
    "plane": _draw_plane,
}
