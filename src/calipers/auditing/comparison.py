"""``calipers.compare``: several predictors on the same rows, or several methods over many data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.auditing.measures import MEASURES, Measure, conditional_error
from calipers.auditing.result import Audit
from calipers.exceptions import InputError
from calipers.inference import holm, paired_difference
from calipers.report import (
    comparison_document,
    render_comparison,
    render_comparison_markdown,
    render_json,
)
from calipers.results import Estimate, write_atomically

if TYPE_CHECKING:
    from calipers.results import RankComparison

LEVEL = 0.05
FEWEST_DATA_SETS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measure over all predictors.

    Parameters
    ----------
    measure : str
        What was measured.
    target : float or None
        The value it should have; None when less is better.
    values : dict of Estimate
        Per predictor.
    differences : dict of Estimate
        "first - second" of every pair, paired by row; p-values corrected for all pairs and measures.
    winner : str or None
        The predictor that is significantly better than every other; None when noise could explain it.
    """

    measure: str
    target: float | None
    values: dict[str, Estimate]
    differences: dict[tuple[str, str], Estimate]
    winner: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the report."""
        return {
            "measure": self.measure,
            "target": self.target,
            "values": {name: estimate.to_dict() for name, estimate in self.values.items()},
            "differences": [
                {"first": first, "second": second, "estimate": estimate.to_dict()}
                for (first, second), estimate in self.differences.items()
            ],
            "winner": self.winner,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """Predictors side by side: what differs beyond noise, and what it costs.

    Parameters
    ----------
    names : tuple of str
        The predictors.
    lines : tuple of Line
        Every measure with its paired differences; empty over many data sets.
    rankings : dict of RankComparison
        Per measure the Friedman test and its post-hoc comparisons; empty on one data set.
    trade_off : dict
        Per predictor its mean size, its conditional error (how far coverage falls below the promise
        where it is worst) and whether no other predictor is better in both.
    rows : int
        Rows that all predictors share, or data sets.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> width = {"tight": 1.65, "wide": 2.5}
    >>> audits = {name: calipers.audit(y, intervals=np.tile([-w, w], (2000, 1)), random_state=0)
    ...           for name, w in width.items()}
    >>> {line.measure: line.winner for line in calipers.compare(audits).lines}["interval score"]
    'tight'
    """

    names: tuple[str, ...]
    lines: tuple[Line, ...]
    rankings: dict[str, RankComparison]
    trade_off: dict[str, dict[str, Any]]
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """The dictionary behind every form of the report."""
        return comparison_document(
            names=self.names,
            rows=self.rows,
            lines=[line.to_dict() for line in self.lines],
            rankings={name: _ranking(ranking) for name, ranking in self.rankings.items()},
            trade_off=self.trade_off,
        )

    def to_json(self, path: Path | str | None = None) -> str:
        """Everything as strict JSON; also written to the path when one is given."""
        return _written(render_json(self.to_dict()), path)

    def to_markdown(self, path: Path | str | None = None) -> str:
        """Tables for a pull request; also written to the path when one is given."""
        return _written(render_comparison_markdown(self.to_dict()), path)

    def to_html(self, path: Path | str | None = None) -> str:
        """One self-contained page; also written to the path when one is given."""
        return _written(render_comparison(self.to_dict()), path)

    def __str__(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.names)})"


def compare(audits: Mapping[str, Audit | Sequence[Audit]]) -> Comparison:
    """Compare predictors that were audited on the same rows, or methods over many data sets.

    A winner is named only where the difference is significant after correction for all pairs and
    measures; over many data sets methods are ranked by Friedman's test and its post-hoc comparisons.

    Parameters
    ----------
    audits : mapping of str to Audit, or to a list of Audits
        One audit per predictor, all about the same rows in the same order; or one list per method, whose
        i-th audit is about the i-th data set.

    Returns
    -------
    Comparison
        ``.lines``, ``.rankings``, ``.trade_off``, ``.to_html(path)``, ``.to_markdown()``, ``.to_json()``.

    Raises
    ------
    InputError
        With fewer than two predictors, rows that differ, or lists of different lengths.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> audits = {str(w): calipers.audit(y, intervals=np.tile([-w, w], (2000, 1)), random_state=0)
    ...           for w in (1.645, 1.646)}
    >>> calipers.compare(audits).lines[0].winner is None
    True
    """
    if not isinstance(audits, Mapping) or len(audits) < 2:
        raise InputError("compare needs a dictionary of at least two predictors.")
    if all(isinstance(found, Audit) for found in audits.values()):
        return _same_rows({str(name): found for name, found in audits.items() if isinstance(found, Audit)})
    lists = {str(name): _as_list(found, name) for name, found in audits.items()}
    lengths = {name: len(found) for name, found in lists.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise InputError(f"every method needs one audit per data set, got {found}.")
    return _many_sets(lists)


def _as_list(found: Any, name: Any) -> list[Audit]:
    items = list(found) if isinstance(found, Sequence) else [found]
    if not items or not all(isinstance(item, Audit) for item in items):
        raise InputError(f"{name} must be an Audit or a list of Audits, got {type(found).__name__}.")
    return items


def _same_rows(audits: dict[str, Audit]) -> Comparison:
    first_name, first = next(iter(audits.items()))
    for name, audit in audits.items():
        if audit.data.n != first.data.n or not np.array_equal(audit.data["y"], first.data["y"]):
            raise InputError(
                f"{first_name} and {name} were not audited on the same rows: their outcomes differ. "
                "For several data sets give a list of audits per method."
            )
        if audit.design.alphas[0] != first.design.alphas[0]:
            raise InputError(f"{first_name} and {name} must have the same alpha.")
    measured = [
        (measure, rows) for measure in MEASURES if (rows := _contributions(measure, audits)) is not None
    ]
    lines = _lines(measured, audits)
    return Comparison(
        names=tuple(audits),
        lines=lines,
        rankings={},
        trade_off=_trade_off(audits),
        rows=first.data.n,
    )


def _contributions(measure: Measure, audits: Mapping[str, Audit]) -> dict[str, np.ndarray] | None:
    rows = {name: measure.rows(audit.data) for name, audit in audits.items()}
    found = {name: values for name, values in rows.items() if values is not None}
    return found if len(found) == len(rows) else None


def _lines(
    measured: list[tuple[Measure, dict[str, np.ndarray]]], audits: Mapping[str, Audit]
) -> tuple[Line, ...]:
    first = next(iter(audits.values()))
    promised = 1.0 - first.design.alphas[0]
    options: dict[str, Any] = {"weights": first.data.weights, "confidence": first.design.confidence}
    pairs = list(combinations(audits, 2))
    raw = [
        [paired_difference(rows[a], rows[b], name=measure.name, **options) for a, b in pairs]
        for measure, rows in measured
    ]
    p_values = [np.nan if e.p_value is None else e.p_value for line in raw for e in line]
    adjusted = iter(holm(p_values).tolist() if p_values else [])
    lines = []
    for (measure, rows), line in zip(measured, raw, strict=True):
        corrected = {pair: _with_p(e, next(adjusted)) for pair, e in zip(pairs, line, strict=True)}
        target = promised if measure.has_target else None
        values = {name: measure.estimate(v, name=measure.name, **options) for name, v in rows.items()}
        winner = _winner(values, corrected, target)
        lines.append(
            Line(measure=measure.name, target=target, values=values, differences=corrected, winner=winner)
        )
    return tuple(lines)


def _with_p(estimate: Estimate, p: float) -> Estimate:
    from dataclasses import replace

    return replace(estimate, p_value=None if np.isnan(p) else p)


def _winner(
    values: dict[str, Estimate], differences: dict[tuple[str, str], Estimate], target: float | None
) -> str | None:
    """The best one, if it differs from each of the others beyond noise."""

    def badness(name: str) -> float:
        return float(values[name]) if target is None else abs(float(values[name]) - target)

    best = min(values, key=badness)
    for pair, difference in differences.items():
        if best in pair and not _differs(difference):
            return None
    return best


def _differs(difference: Estimate) -> bool:
    """Significant, or the same in every row and not zero: then there is no noise."""
    if difference.p_value is not None:
        return difference.p_value <= LEVEL
    return difference.std_error == 0 and difference.value not in (None, 0.0)


def _trade_off(audits: Mapping[str, Audit]) -> dict[str, dict[str, Any]]:
    points = {}
    for name, audit in audits.items():
        size = MEASURES[1].rows(audit.data)
        points[name] = {
            "size": None if size is None else float(np.average(size, weights=audit.data.weights)),
            "conditional_error": conditional_error(audit),
        }
    for name, point in points.items():
        point["efficient"] = _efficient(point, [other for key, other in points.items() if key != name])
    return points


def _efficient(point: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether no other point is at least as good in both and better in one; None when one is unknown."""
    mine = (point["size"], point["conditional_error"])
    if None in mine:
        return None
    rivals = [(other["size"], other["conditional_error"]) for other in others]
    return not any(
        None not in rival and rival[0] <= mine[0] and rival[1] <= mine[1] and rival != mine
        for rival in rivals
    )


def _many_sets(audits: dict[str, list[Audit]]) -> Comparison:
    from calipers.inference import compare_ranks

    n_sets = len(next(iter(audits.values())))
    if n_sets < FEWEST_DATA_SETS:
        raise InputError(f"ranks need at least {FEWEST_DATA_SETS} data sets, got {n_sets}.")
    rankings = {}
    for measure in MEASURES:
        table = _table(measure, audits)
        if table is not None:
            name = f"distance of {measure.name} from its target" if measure.has_target else measure.name
            rankings[name] = compare_ranks(table, list(audits))
    errors = [[conditional_error(audit) for audit in found] for found in audits.values()]
    if all(error is not None for found in errors for error in found):
        rankings["conditional error"] = compare_ranks(np.array(errors, dtype=float).T, list(audits))
    return Comparison(names=tuple(audits), lines=(), rankings=rankings, trade_off={}, rows=n_sets)


def _table(measure: Measure, audits: Mapping[str, Sequence[Audit]]) -> np.ndarray | None:
    """One number per data set and method; None when a method does not have it."""
    columns = []
    for found in audits.values():
        column = []
        for audit in found:
            rows = measure.rows(audit.data)
            if rows is None:
                return None
            mean = float(np.average(rows, weights=audit.data.weights))
            promised = 1.0 - audit.design.alphas[0]
            column.append(abs(mean - promised) if measure.has_target else mean)
        columns.append(column)
    return np.array(columns).T


def _ranking(ranking: RankComparison) -> dict[str, Any]:
    return {
        "names": list(ranking.names),
        "average_ranks": ranking.average_ranks.tolist(),
        "n_blocks": ranking.n_blocks,
        "p_value": ranking.p_value,
        "alpha": ranking.alpha,
        "post_hoc": ranking.post_hoc,
        "critical_difference": ranking.critical_difference,
        "adjusted": ranking.adjusted.tolist(),
        "shared_ranks": ranking.shared_ranks,
        "notes": list(ranking.notes),
    }


def _written(text: str, path: Path | str | None) -> str:
    if path is not None:
        write_atomically(path, text)
    return text
