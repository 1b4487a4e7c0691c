"""The pictures of an audit with matplotlib: the same curves as in its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.plots.axes import new_axes

_KINDS = ("line", "points", "intervals")


def plot_picture(picture: Mapping[str, Any], *, ax: Any = None) -> Any:
    """Draw one picture of an audit: lines with bands, points with error bars, or labelled intervals.

    Parameters
    ----------
    picture : mapping
        An entry of ``audit.to_dict()["pictures"]``: title, kind, reference, labels and curves.
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
    >>> plot_picture(found.to_dict()["pictures"][0]).get_ylabel()
    'absolute error'
    """
    if picture["kind"] not in _KINDS:
        raise InputError(f"kind must be one of {', '.join(_KINDS)}, got {picture['kind']!r}.")
    axes = new_axes(ax)
    if picture["kind"] == "intervals":
        _draw_intervals(axes, picture)
    else:
        _draw_curves(axes, picture)
    axes.set_title(picture["title"])
    return axes


def _draw_curves(axes: Any, picture: Mapping[str, Any]) -> None:
    for curve in picture["curves"]:
        style = "steps-post" if curve["step"] else "default"
        if curve["null_low"] is not None and curve["null_high"] is not None:
            axes.fill_between(
                curve["x"], curve["null_low"], curve["null_high"], color="0.85", label="healthy", linewidth=0
            )
        if picture["kind"] == "points":
            axes.errorbar(curve["x"], curve["y"], yerr=_errors(curve), fmt="o", label=curve["name"])
            continue
        (line,) = axes.plot(curve["x"], curve["y"], drawstyle=style, label=curve["name"])
        if curve["low"] is not None and curve["high"] is not None:
            axes.fill_between(
                curve["x"], curve["low"], curve["high"], color=line.get_color(), alpha=0.2, linewidth=0
            )
    if picture["reference"] is not None:
        axes.axhline(picture["reference"], color="0.2", linestyle="--", linewidth=1)
    axes.set_xlabel(picture["curves"][0]["x_label"])
    axes.set_ylabel(picture["curves"][0]["y_label"])
    if len(picture["curves"]) > 1:
        axes.legend()


def _errors(curve: Mapping[str, Any]) -> np.ndarray | None:
    if curve["low"] is None or curve["high"] is None:
        return None
    y = np.asarray(curve["y"])
    return np.array([y - np.asarray(curve["low"]), np.asarray(curve["high"]) - y])


def _draw_intervals(axes: Any, picture: Mapping[str, Any]) -> None:
    curve = picture["curves"][0]
    rows = np.arange(len(curve["y"]))
    axes.errorbar(curve["y"], rows, xerr=_errors(curve), fmt="o")
    if picture["reference"] is not None:
        axes.axvline(picture["reference"], color="0.2", linestyle="--", linewidth=1)
    axes.set_yticks(rows, list(picture["labels"]) or [f"{v:g}" for v in curve["x"]])
    axes.invert_yaxis()
    axes.set_xlabel(curve["y_label"])
