"""What all displays share: a picture, its number, and the axes it was drawn on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from calipers.plots import plot_picture
from calipers.results import Curve, Estimate


class Display:
    """A measured curve that can be drawn.

    Parameters
    ----------
    curve : Curve
        What was measured, with its band and the band of the null law.
    picture : mapping
        How it is drawn: title, kind, reference and labels.
    estimate : Estimate or None
        The number that sums the curve up, with its test.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Of the last drawing.
    """

    def __init__(self, curve: Curve, picture: Mapping[str, Any], estimate: Estimate | None = None) -> None:
        self.curve = curve
        self.picture = dict(picture) | {"curves": [curve.to_dict()]}
        self.estimate = estimate

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on the axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        Display
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_ = plot_picture(self.picture, ax=ax)
        self.figure_ = self.ax_.figure
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.picture['title']!r}, {len(self.curve)} points)"


def picture_fields(
    title: str, kind: str, *, reference: float | None = None, labels: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The fields of a picture besides its curves."""
    return {
        "name": title, "question": "", "title": title, "caption": "", "kind": kind, "reference": reference,
        "labels": list(labels),
    }  # fmt: skip
