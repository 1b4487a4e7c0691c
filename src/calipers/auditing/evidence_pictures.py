"""Pictures that belong to single findings: the failing region in its plane, a class's reliability.

They are drawn from the sample after the findings are known, so that no picture is made for a check that
found nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calipers.auditing.check_result import Picture
from calipers.auditing.measurements import Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import promise_rows
from calipers.inference import normal_quantile
from calipers.metrics import reliability_curve
from calipers.results import Curve, Finding

CELLS, TENTHS = 14, 10
FEWEST_IN_CELL = 5
MOST_DRAWN_ROWS = 20_000
# The plane shows the middle of each feature; the outermost rows would stretch it.
_SHOWN = (0.005, 0.995)


def evidence_pictures(m: Measurements, findings: Iterable[Finding]) -> tuple[Picture, ...]:
    """One picture per finding that has a better one than its check draws."""
    faults = [finding for finding in findings if finding.outcome == "fault"]
    made = [picture for finding in faults for picture in _of_finding(m, finding)]
    return tuple(made)


def _of_finding(m: Measurements, finding: Finding) -> Sequence[Picture]:
    if finding.code == "CAL203" and m.sample.get("X") is not None:
        return _plane(m, finding)
    if finding.code == "CAL503":
        return _class_reliability(m, finding)
    if finding.code in ("CAL202", "CAL505"):
        return _by_prediction(m, finding)
    return ()


def _level(m: Measurements, alpha: float | None) -> Promise | None:
    return next((level for level in m.design.levels if alpha is None or level.alpha == alpha), None)


def _plane(m: Measurements, finding: Finding) -> Sequence[Picture]:
    """Coverage over cells of two numeric features of the rule, and the region as a frame."""
    level = _level(m, finding.details.get("alpha"))
    evidence = {} if finding.evidence is None else finding.evidence.details
    conditions = evidence.get("conditions", ())
    columns = list(dict.fromkeys(name for name, kind, _ in conditions if kind in ("<=", ">")))
    numeric = [n for n, c in zip(m.features.names, m.features.categories, strict=True) if c is None]
    columns += [name for name in numeric if name not in columns]
    if level is None or not conditions or len(columns) < 2:
        return ()
    x, y = (m.features.values[:, m.features.names.index(name)] for name in columns[:2])
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < CELLS**2 or not (np.ptp(x[known]) and np.ptp(y[known])):
        return ()
    covered = m.rows_at(level)["covered"][known]
    curve = _cells(columns[:2], (x[known], y[known]), covered, conditions)
    return [
        Picture(
            name=f"CAL203_plane{level.tag}".replace(" ", "_"), question="everywhere",
            title=f"Where coverage fails{level.tag}",
            caption="Coverage of cells of two features; redder is less than promised, the frame is the rule.",
            kind="plane", curves=(curve,), reference=level.promised,
        )
    ]  # fmt: skip


def _cells(
    names: Sequence[str], columns: tuple[np.ndarray, np.ndarray], covered: np.ndarray, conditions: Any
) -> Curve:
    ends = [[float(end) for end in np.quantile(column, _SHOWN)] for column in columns]
    edges = [np.linspace(low, high, CELLS + 1) for low, high in ends]
    inside = [
        np.clip(np.searchsorted(edge, column, side="right") - 1, 0, CELLS - 1)
        for edge, column in zip(edges, columns, strict=True)
    ]
    cell = inside[1] * CELLS + inside[0]
    rows = np.bincount(cell, minlength=CELLS**2)
    hits = np.bincount(cell, weights=covered, minlength=CELLS**2)
    kept = np.flatnonzero(rows >= FEWEST_IN_CELL)
    at = (kept % CELLS, kept // CELLS)
    centres = [0.5 * (edge[1:] + edge[:-1]) for edge in edges]
    region = [end for edge, name in zip(edges, names, strict=True) for end in _ends(name, edge, conditions)]
    return Curve(
        name="coverage", x=centres[0][at[0]], y=centres[1][at[1]], x_label=names[0], y_label=names[1],
        method=f"share of covered rows of cells with {FEWEST_IN_CELL} rows or more",
        details={
            "x_edges": edges[0], "y_edges": edges[1], "x_cell": at[0], "y_cell": at[1],
            "value": hits[kept] / rows[kept], "rows": rows[kept], "value_label": "coverage", "region": region,
        },
    )  # fmt: skip


def _ends(name: str, edges: np.ndarray, conditions: Any) -> tuple[float, float]:
    """The part of an axis that the rule allows."""
    low, high = float(edges[0]), float(edges[-1])
    for column, kind, value in conditions:
        if column == name and kind == ">":
            low = max(low, float(value))
        if column == name and kind == "<=":
            high = min(high, float(value))
    return low, max(low, high)


def _by_prediction(m: Measurements, finding: Finding) -> Sequence[Picture]:
    """What happened minus what was stated, in tenths by what a model of the features predicts of it."""
    told = finding.details.get("promise")
    named = [p for p in m.design.promises if p.per_row and not p.parts and p.name == told]
    side = promise_rows(m, named[0]) if named else None
    predicted = {} if finding.evidence is None else finding.evidence.details
    if side is None or len(predicted.get("predictions", ())) != len(side.kept):
        return ()
    lift, gap = np.asarray(predicted["predictions"]) - side.promised, side.kept - side.promised
    parts = np.array_split(np.argsort(lift, kind="stable"), min(TENTHS, len(lift)))
    x, y = (np.array([values[part].mean() for part in parts]) for values in (lift, gap))
    noise = np.array([np.sqrt(side.design_effect * gap[part].var() / len(part)) for part in parts])
    half = normal_quantile(m.confidence) * noise
    curve = Curve(
        name="observed minus stated", x=x, y=y, low=y - half, high=y + half, confidence=m.confidence,
        x_label="predicted minus stated, by a model fitted on other rows", y_label="observed minus stated",
        method="tenths of the rows by out-of-fold prediction, normal intervals",
        details={"rows": np.array([len(part) for part in parts])},
    )  # fmt: skip
    return [
        Picture(
            name=f"{finding.code}_by_prediction", question=finding.question,
            title="Observed against predicted error of what was stated",
            caption="Rows sorted by how far a model of their features expects what was stated to be off, in "
            "tenths. If the features tell nothing the points scatter around the line; points that rise are a "
            "fault.",
            kind="points", curves=(curve,), reference=0.0,
        )
    ]  # fmt: skip


def _class_reliability(m: Measurements, finding: Finding) -> Sequence[Picture]:
    """Stated against observed for the class that is off."""
    details = {} if finding.evidence is None else finding.evidence.details
    label = details.get("class", m.classes[-1])
    if label not in m.classes:
        return ()
    at, rows = m.classes.index(label), m.sample
    if rows.n > MOST_DRAWN_ROWS:
        rows = rows.take(m.shuffled("reliability")[:MOST_DRAWN_ROWS])
    stated = np.clip(rows["probabilities"][:, at].astype(float), 0.0, 1.0)
    curve = reliability_curve(
        (rows["y"] == at).astype(int), stated, sample_weight=rows.weights,
        random_state=m.generator("class reliability"),
    )  # fmt: skip
    return [
        Picture(
            name="CAL503_reliability", question="probabilities",
            title=f"Class {label}: stated against observed",
            caption="How often the class happens, against its stated probability; the grey band is where a "
            "calibrated model's curve would lie, the bars are the stated probabilities.",
            kind="line", curves=(curve,),
        )
    ]  # fmt: skip
