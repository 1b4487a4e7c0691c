"""What is drawn, as plain values: the one dictionary behind the report's SVG and the plots.

A picture has a name, a title, a caption, a kind, a reference (the promise), labels and curves:

- "line": curves over a grid with their bands; "points": points with error bars over a grid;
- "intervals": one labelled interval per row;
- "plane": cells of two features, coloured by how far they lie from the reference.

A picture of a fault may have a focus, what the fault is about in it: {"label": name of an interval}, or
{"since": place on the grid, "until": place or None, "words": what is written there}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calipers.results.curve import Curve
from calipers.results.estimate import Estimate

KINDS = ("line", "points", "intervals", "plane")
HISTOGRAM_BINS = 20
_FIELDS = ("name", "question", "title", "caption", "kind", "reference", "labels", "curves")


def curve_picture(curve: Curve, *, title: str = "") -> dict[str, Any]:
    """A picture of one curve."""
    return _picture(curve.name, title or curve.name, "line", [curve.to_dict()])


def table_picture(
    estimates: Mapping[str, Estimate], *, title: str = "", reference: float | None = None
) -> dict[str, Any]:
    """One interval per estimate, with the band of its null law behind it.

    Examples
    --------
    >>> from calipers.results import Estimate
    >>> table_picture({"ERT": Estimate(name="ERT", value=0.02, low=0.01, high=0.03)})["labels"]
    ['ERT']
    """
    kept = {name: e for name, e in estimates.items() if e.value is not None and np.isfinite(e.value)}
    columns: dict[str, Any] = {
        key: np.array([_number(getattr(e, key)) for e in kept.values()])
        for key in ("value", "low", "high", "null_low", "null_high")
    }
    values = columns.pop("value")
    bands: dict[str, Any] = {key: v if np.isfinite(v).any() else None for key, v in columns.items()}
    levels = {e.confidence for e in kept.values()}
    curve = Curve(
        name=title, x=np.arange(len(kept), dtype=float), y=values, y_label="value",
        confidence=levels.pop() if len(levels) == 1 else None, **bands,
    )  # fmt: skip
    made = _picture(title, title, "intervals", [curve.to_dict()], list(kept))
    return made | {"reference": reference}


def plain_picture(picture: Any) -> dict[str, Any]:
    """The dictionary of a picture, given that or an object with the same fields."""
    if isinstance(picture, Mapping):
        return dict(picture)
    fields = {key: getattr(picture, key) for key in _FIELDS}
    return fields | {
        "labels": list(picture.labels),
        "curves": [curve.to_dict() for curve in picture.curves],
    }


def is_reliability(curve: Mapping[str, Any]) -> bool:
    """Whether a curve sets observed frequencies against stated ones, so that the diagonal is the promise."""
    return bool(curve["x_label"] == "stated probability" and curve["y_label"] == "observed frequency")


def has_diagonal(curve: Mapping[str, Any]) -> bool:
    """Whether the promise of a curve is that its points lie on the diagonal."""
    return is_reliability(curve) or bool(curve["details"].get("diagonal"))


def histogram_of(curve: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Edges and shares of the rows along a curve that knows the share of rows up to each of its points.

    Examples
    --------
    >>> curve = {"x": [0.1, 0.9], "details": {"mass": [0.25, 1.0]}}
    >>> edges, shares = histogram_of(curve)
    >>> shares[[2, 18]].tolist()
    [0.25, 0.75]
    """
    mass = curve["details"].get("mass")
    if mass is None or len(mass) != len(curve["x"]):
        return None
    edges = np.linspace(0.0, 1.0, HISTOGRAM_BINS + 1)
    at = np.clip(np.searchsorted(edges, np.asarray(curve["x"], dtype=float), side="right") - 1, 0, None)
    shares = np.bincount(
        np.minimum(at, HISTOGRAM_BINS - 1), weights=np.diff(mass, prepend=0.0), minlength=HISTOGRAM_BINS
    )
    return edges, shares


def null_span(curve: Mapping[str, Any], row: int) -> tuple[float, float] | None:
    """Both ends of the null band of one interval, for drawing; None without a band.

    A one-sided band that has no lower end begins at 0, or at the smallest number of its row.

    Examples
    --------
    >>> curve = {"y": [0.2], "low": [0.1], "high": [0.3], "null_low": None, "null_high": [0.05]}
    >>> null_span(curve, 0)
    (0.0, 0.05)
    """
    low, high = (
        np.nan if curve[key] is None else float(curve[key][row]) for key in ("null_low", "null_high")
    )
    if np.isnan(low) and np.isnan(high):
        return None
    known = [float(curve[key][row]) for key in ("y", "low", "high") if curve[key] is not None]
    finite = [v for v in (*known, low, high) if np.isfinite(v)]
    return min([0.0, *finite]) if np.isnan(low) else low, max(finite) if np.isnan(high) else high


def is_off(curve: Mapping[str, Any], row: int, reference: float | None) -> bool:
    """Whether a whole interval lies on a wrong side of the promise: below it, for losses above, or either.

    Examples
    --------
    >>> curve = {"low": [0.7, 0.85], "high": [0.8, 0.95], "details": {}}
    >>> is_off(curve, 0, 0.9), is_off(curve, 1, 0.9)
    (True, False)
    """
    if reference is None or curve["low"] is None or curve["high"] is None:
        return False
    details = curve.get("details") or {}
    above, below = float(curve["low"][row]) > reference, float(curve["high"][row]) < reference
    if details.get("two_sided"):
        return above or below
    return above if details.get("worse") == "above" else below


def reference_words(picture: Mapping[str, Any]) -> str:
    """What the dashed line is: a promise, nothing at all, or the mean that a loss is compared with."""
    if str(picture["name"]).startswith("loss_"):
        return "mean of all rows"
    return "no difference" if picture["reference"] == 0.0 else "the promise"


def _picture(
    name: str, title: str, kind: str, curves: list[dict[str, Any]], labels: list[str] | None = None
) -> dict[str, Any]:
    return {
        "name": name, "question": "", "title": title, "caption": "", "kind": kind, "reference": None,
        "labels": labels or [], "curves": curves,
    }  # fmt: skip


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
