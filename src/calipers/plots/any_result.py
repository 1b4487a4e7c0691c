"""One call for every result: an estimate, a table, a curve, a ranking, a picture or a whole audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calipers.exceptions import InputError
from calipers.plots.audit_pictures import plot_picture
from calipers.plots.critical_difference import plot_critical_difference
from calipers.plots.promises import plot_promises
from calipers.results import Curve, Estimate, EstimateTable, PromiseTable, RankComparison
from calipers.results.picture_data import curve_picture, plain_picture, table_picture


def plot(result: Any, *, ax: Any = None) -> Any:
    """Draw a result with matplotlib: its value, its error bar and the band of the null law.

    Parameters
    ----------
    result : Estimate, EstimateTable, Curve, RankComparison, PromiseTable, Audit, or a picture of an audit
        An audit is drawn as its table of promises and slices; its single pictures are in
        ``audit.pictures``.
    ax : matplotlib axes, optional
        Where to draw; new ones otherwise.

    Returns
    -------
    matplotlib axes
        With the drawing; nothing is shown or saved.

    Raises
    ------
    InputError
        For what is none of these.

    Notes
    -----
    Nothing is computed here. The pictures are those of the report, drawn from the same values. Grey is what
    a valid predictor would read, the dashed line is the promise.

    Examples
    --------
    >>> from calipers.metrics import coverage
    >>> from calipers.plots import plot
    >>> found = coverage([0.2, 0.4, 2.0], [[0.0, 1.0]] * 3, alpha=0.1)
    >>> ax = plot(found)                         # the same as found.plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['coverage']
    """
    if isinstance(result, Estimate):
        return plot_picture(table_picture({result.name: result}), ax=ax)
    if isinstance(result, EstimateTable):
        return plot_picture(table_picture(result, title=result.title), ax=ax)
    if isinstance(result, Curve):
        return plot_picture(curve_picture(result), ax=ax)
    if isinstance(result, RankComparison):
        return plot_critical_difference(result, ax=ax)
    if isinstance(result, PromiseTable):
        return plot_promises({"promises": result.to_dict()}, ax=ax)
    if hasattr(result, "curves") or (isinstance(result, Mapping) and "curves" in result):
        return plot_picture(plain_picture(result), ax=ax)
    document = result if isinstance(result, Mapping) else _document(result)
    if document.get("kind") == "Audit":
        return plot_promises(document, ax=ax)
    raise InputError(
        f"plot takes an Estimate, an EstimateTable, a Curve, a RankComparison, a PromiseTable, an Audit or "
        f"one of its pictures, got {type(result).__name__}."
    )


def _document(result: Any) -> Mapping[str, Any]:
    made = result.to_dict() if hasattr(result, "to_dict") else {}
    return made if isinstance(made, Mapping) else {}
