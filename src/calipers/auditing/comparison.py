"""``calipers.compare``: several predictors on the same rows, or several methods over many data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.auditing.audit_result import Audit
from calipers.auditing.comparison_lines import Line, make_lines, promises_of
from calipers.auditing.comparison_measures import MEASURES, SIZE, Measure
from calipers.auditing.comparison_tests import is_broken, promise_of
from calipers.auditing.slice_coverage import conditional_error
from calipers.exceptions import InputError
from calipers.report import (
    comparison_document,
    render_comparison,
    render_comparison_markdown,
    render_json,
)
from calipers.report.page import framed
from calipers.results.text_files import also_written

if TYPE_CHECKING:
    from calipers.results import RankComparison

FEWEST_DATA_SETS = 3
# Checks whose estimates stand in a comparison: coverage and the calibration error of the top label.
READ = ("CAL101", "CAL501")


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
        in the worst of groups, parts along difficulty and the rows with the lowest predicted coverage), and
        whether no other predictor is better in both. Only predictors that keep their promise count.
    rows : int
        Rows that all predictors share, or data sets.
    promises : dict
        Per predictor with sets or intervals its coverage, tested one-sided against the promise, whether that
        is broken, and a sentence if it is; empty over many data sets.

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
    promises: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The dictionary behind every form of the report."""
        return comparison_document(
            names=self.names,
            rows=self.rows,
            lines=[line.to_dict() for line in self.lines],
            rankings={name: _ranking(ranking) for name, ranking in self.rankings.items()},
            trade_off=self.trade_off,
            promises={
                name: found | {"coverage": found["coverage"].to_dict()}
                for name, found in self.promises.items()
            },
        )

    def to_json(self, path: Path | str | None = None) -> str:
        """Everything as strict JSON; also written to the path when one is given."""
        return also_written(render_json(self.to_dict()), path)

    def to_markdown(self, path: Path | str | None = None) -> str:
        """Tables for a pull request; also written to the path when one is given."""
        return also_written(render_comparison_markdown(self.to_dict()), path)

    def to_html(self, path: Path | str | None = None) -> str:
        """One self-contained page; also written to the path when one is given."""
        return also_written(render_comparison(self.to_dict()), path)

    def _repr_html_(self) -> str:
        return framed(self.to_html(), title="Calipers comparison")

    def __str__(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.names)})"


def compare(audits: Mapping[str, Audit | Sequence[Audit]]) -> Comparison:
    """Compare predictors that were audited on the same rows, or methods over many data sets.

    A winner is named only where the difference is significant after correction for all pairs and
    measures, and none that breaks its promise of coverage wins by sets or intervals; over many data sets
    methods are ranked by Friedman's test and its post-hoc comparisons.

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

    Notes
    -----
    Coverage is compared by its distance from the promise. Size is compared at matched coverage where there
    are intervals (scaled around their middles) or p-values (cut at another level), with the error of the
    threshold in the error bar; sets alone are compared as they are, and only where they cover equally often
    and the smaller ones give up, by an upper bound, less than one covered row per fifty labels saved. A
    promise counts as broken when a predictor that keeps it would cover so rarely in fewer than one of a
    hundred samples, ``n_calibration`` allowed for. Probabilities are compared by proper scores; calibration
    errors stand beside them. Over data sets, a method that breaks its promise on one is ranked last on it.

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


def checks_beside() -> list[str]:
    """Codes of the checks of an audit that a comparison does not read; muting them saves most of its time."""
    from calipers.auditing.checks import CHECKS

    return [check.code for check in CHECKS if check.code not in READ]


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
    promises = promises_of(audits)
    broken = [name for name, promise in promises.items() if promise["broken"]]
    return Comparison(
        names=tuple(audits),
        lines=make_lines(audits, broken),
        rankings={},
        trade_off=_trade_off(audits, broken),
        rows=first.data.n,
        promises=promises,
    )


def _trade_off(audits: Mapping[str, Audit], broken: Sequence[str]) -> dict[str, dict[str, Any]]:
    points: dict[str, dict[str, Any]] = {}
    for name, audit in audits.items():
        size = SIZE.rows(audit.data)
        points[name] = {
            "size": None if size is None else float(np.average(size, weights=audit.data.weights)),
            "conditional_error": conditional_error(audit.data, audit.design.seed),
            "broken": name in broken,
        }
    for name, point in points.items():
        rivals = [other for key, other in points.items() if key != name and key not in broken]
        point["efficient"] = False if name in broken else _efficient(point, rivals)
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
    errors = _errors(audits)
    if errors is not None:
        rankings["conditional error"] = compare_ranks(errors, list(audits))
    return Comparison(names=tuple(audits), lines=(), rankings=rankings, trade_off={}, rows=n_sets)


def _table(measure: Measure, audits: Mapping[str, Sequence[Audit]]) -> np.ndarray | None:
    """One number per data set and method, less is better; None when a method does not have it."""
    columns = []
    for found in audits.values():
        column = []
        for audit in found:
            rows = measure.rows(audit.data)
            if rows is None:
                return None
            column.append(_badness(measure, rows, audit))
        columns.append(column)
    return _last_where_broken(np.array(columns).T)


def _last_where_broken(table: np.ndarray) -> np.ndarray:
    """Infinite entries as equal finite ones beyond all others: rank tests take differences."""
    broken = np.isinf(table)
    largest = np.abs(table[~broken]).max(initial=1.0)
    return np.where(broken, 2.0 * largest, table)


def _badness(measure: Measure, rows: np.ndarray, audit: Audit) -> float:
    """The mean, or its distance from the target; infinite where the promise is broken."""
    promised = 1.0 - audit.design.alphas[0]
    if measure.of_prediction and is_broken(promise_of(audit), promised):
        return np.inf
    mean = float(np.average(rows, weights=audit.data.weights))
    return abs(mean - promised) if measure.has_target else mean


def _errors(audits: Mapping[str, Sequence[Audit]]) -> np.ndarray | None:
    """Conditional errors per data set and method; None when one is not known."""
    found = [[conditional_error(a.data, a.design.seed) for a in own] for own in audits.values()]
    known = all(error is not None for own in found for error in own)
    return np.array(found, dtype=float).T if known else None


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
