"""What a repair gives back: something to apply to new rows, and the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import is_frame
from calipers.auditing.repair.changes import Change
from calipers.auditing.repair.choice import Trial
from calipers.auditing.repair.density_ratio import Shift
from calipers.auditing.repair.new_rows import rows_of_mapping, rows_of_table, table_columns
from calipers.auditing.repair.rule import RepairRule
from calipers.auditing.repair.saved_repair import parts_of_document, read_stored, stored_text, to_plain
from calipers.exceptions import InputError
from calipers.report import render_html, render_json, render_markdown
from calipers.report.page import framed
from calipers.report.text_formats import change_row
from calipers.results import Finding, severity_rank, write_atomically
from calipers.results.text_files import also_written

if TYPE_CHECKING:
    from calipers.auditing.audit_result import Audit

# Lines that `print` shows; everything is in the JSON and in the report.
_SHOWN_SLICES = 3
_SHOWN_TRIALS = 6
# From here on decimals say nothing.
_NO_DECIMALS = 1000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SavedRepair:
    """A repair without its evidence, as `load_repair` gives it.

    Parameters
    ----------
    rule : RepairRule
        What is done to the columns of any rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import calipers
    >>> from calipers.auditing import load_repair
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> found = calipers.audit(y, intervals=np.tile([-1.0, 1.0], (1000, 1)), random_state=0)
    >>> path = found.repair().save(pathlib.Path(tempfile.mkdtemp(), "repair.json"))
    >>> ends = load_repair(path).apply({"intervals": np.array([[-1.0, 1.0]])})["intervals"][0]
    >>> bool(-1.9 < ends[0] < -1.4 and 1.4 < ends[1] < 1.9)
    True
    """

    rule: RepairRule

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done, in words; empty when nothing is."""
        return self.rule.steps

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that `apply` reads."""
        return self.rule.needs

    @property
    def guarantee(self) -> str:
        """What holds for new rows that are exchangeable with the calibration rows."""
        return self.rule.guarantee

    def apply(self, predictions: Any) -> dict[str, Any]:
        """The repaired columns of new rows, under the names they came with.

        Parameters
        ----------
        predictions : mapping or table
            What the model states about the new rows, as it was audited: a mapping of arguments of
            `calipers.audit` (``{"intervals": ..., "X": ...}``), or a dataframe whose columns are found by
            name (``lower``, ``upper``, ``p_<class>``, ...). No outcomes are needed.

        Returns
        -------
        dict
            Only the columns that the repair changes.

        Raises
        ------
        InputError
            When a column that the repair needs is missing; ``needs`` lists them.
        """
        if self.rule.is_empty:
            return {}
        if is_frame(predictions):
            rows, roles = rows_of_table(predictions, self.rule)
            return table_columns(self.rule.apply(rows), roles, self.rule)
        if not isinstance(predictions, Mapping):
            raise InputError(
                "apply takes a mapping of the audited columns, such as {'intervals': ...}, or a table of "
                f"them, got {type(predictions).__name__}."
            )
        rows = rows_of_mapping(predictions, self.rule)
        new: dict[str, Any] = self.rule.apply(rows)
        if "probabilities" in new and np.ndim(predictions["probabilities"]) == 1:
            new["probabilities"] = new["probabilities"][:, 1]
        return new

    def save(self, path: Path | str) -> Path:
        """Write the repair as JSON: thresholds and knots, what it needs and what it guarantees; no code.

        Parameters
        ----------
        path : path
            The file; an existing one is replaced once the new one is complete.

        Returns
        -------
        Path
            The file that was written; `load_repair` reads it.
        """
        return write_atomically(path, saved_text(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'; '.join(self.steps) or 'changes nothing'})"


def saved_text(repair: SavedRepair) -> str:
    """What `SavedRepair.save` writes."""
    content = {
        "needs": list(repair.needs), "changes": list(repair.rule.changes), "guarantee": repair.guarantee,
        "steps": list(repair.steps), "rule": to_plain(repair.rule),
    }  # fmt: skip
    return stored_text(content)


def load_repair(path: Path | str) -> SavedRepair:
    """Read a repair that `Repair.save` wrote; no code of the file is run.

    Parameters
    ----------
    path : path
        The file, or a folder with a ``repair.json``.

    Returns
    -------
    SavedRepair
        Its ``apply`` gives what that of the saved one gives, bit for bit.

    Raises
    ------
    InputError
        For a file that is not a saved repair, was changed after it was written, or is of a later format.

    Examples
    --------
    >>> from calipers.auditing import load_repair
    >>> load_repair("missing.json")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: there is no repair at missing.json.
    """
    document = read_stored(path)
    rule = parts_of_document(document, path)
    if not isinstance(rule, RepairRule):
        raise InputError(f"{path} is not a saved repair.")
    return SavedRepair(rule=rule)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Repair(SavedRepair):
    """A repair to apply to new rows, and what it brought on rows that nothing was fitted or chosen on.

    Parameters
    ----------
    rule : RepairRule
        What is done to the columns of any rows.
    before, after : Audit
        Of the untouched rows, as they came and repaired.
    changes : tuple of Change
        Paired comparisons on those rows: all of them, every slice, the price in size.
    trials : tuple of Trial
        The candidates, compared on the selection rows.
    shift : Shift or None
        What was found about the features of new rows, where some were given.
    """

    before: Audit
    after: Audit
    changes: tuple[Change, ...]
    trials: tuple[Trial, ...] = ()
    shift: Shift | None = None

    @property
    def gone(self) -> tuple[str, ...]:
        """Codes of faults that were there before and are not after."""
        left = _severities(self.after.faults)
        return tuple(code for code in _severities(self.before.faults) if code not in left)

    @property
    def milder(self) -> tuple[str, ...]:
        """Codes of faults that remain with a lower severity."""
        return self._compared(lambda old, new: new < old)

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Codes of faults that remain as severe as they were, or more."""
        return self._compared(lambda old, new: new >= old)

    @property
    def new(self) -> tuple[str, ...]:
        """Codes of faults that were not there before."""
        old = _severities(self.before.faults)
        return tuple(code for code in _severities(self.after.faults) if code not in old)

    @property
    def left(self) -> tuple[Finding, ...]:
        """The faults of the repaired rows."""
        return self.after.faults

    def _compared(self, keep: Any) -> tuple[str, ...]:
        old, new = _severities(self.before.faults), _severities(self.after.faults)
        return tuple(code for code in old if code in new and keep(old[code], new[code]))

    def to_dict(self) -> dict[str, Any]:
        """The document of the audit after, with the repair added."""
        return self.after.to_dict() | {
            "repair": {
                "steps": list(self.steps),
                "needs": list(self.needs),
                "guarantee": self.guarantee,
                "gone": list(self.gone),
                "milder": list(self.milder),
                "unchanged": list(self.unchanged),
                "new": list(self.new),
                "left": [str(finding) for finding in self.left],
                "rows": self.after.rows,
                "before": self.before.to_dict()["verdict"],
                "faults_shown": "after",
                "changes": [change.to_dict() for change in self.changes],
                "candidates": [trial.to_dict() for trial in self.trials],
            }
            | ({} if self.shift is None else {"shift": self.shift.to_dict()})
        }

    def to_json(self, path: Path | str | None = None) -> str:
        """Everything as strict JSON; also written to the path when one is given."""
        return also_written(render_json(self.to_dict()), path)

    def to_markdown(self, path: Path | str | None = None) -> str:
        """A summary; also written to the path when one is given."""
        return also_written(render_markdown(self.to_dict()), path)

    def to_html(self, path: Path | str | None = None) -> str:
        """The report of the repaired rows, with before and after; also written to the path."""
        return also_written(render_html(self.to_dict()), path)

    def _repr_html_(self) -> str:
        return framed(self.to_html(), title="Calipers repair")

    def __str__(self) -> str:
        lines = [f"Repaired on other rows: {'; '.join(self.steps)}."]
        if not self.steps:
            lines = [f"Nothing was changed: no fault that can be repaired from {self._stated()}."]
        lines += [] if self.shift is None else [str(self.shift)]
        lines += [f"{_line(change)}" for change in self._shown()]
        lines += _trial_lines(self.trials)
        kinds = {"gone": self.gone, "milder": self.milder, "unchanged": self.unchanged, "new": self.new}
        said = [f"{name}: {', '.join(codes)}" for name, codes in kinds.items() if codes]
        lines.append(f"Faults {'; '.join(said) or 'none, before and after'}.")
        lines += [f"Left: {finding}" for finding in self.left]
        lines += [f"Guarantee: {self.guarantee}."] if self.steps else []
        return "\n".join(lines)

    def _stated(self) -> str:
        """What there was to repair, and what would have been needed."""
        given = self.before.data.given
        if self.rule.columns and self.rule.columns != ("sets",):
            return "these columns"
        if "quantiles" in given:
            return "quantiles (audit two of them as intervals to have those repaired)"
        return (
            f"{'sets' if 'sets' in given else 'covered'} alone (probabilities, p-values or intervals can be)"
        )

    def _shown(self) -> list[Change]:
        """All changes but for slices; of these the worst before and the worst after."""
        slices = [c for c in self.changes if c.measure.startswith("coverage of ")]
        worst = sorted(slices, key=lambda c: min(float(c.before), float(c.after)))[:_SHOWN_SLICES]
        return [c for c in self.changes if c not in slices or c in worst]

    def __repr__(self) -> str:
        return f"Repair({len(self.steps)} steps, {len(self.gone)} faults gone, {len(self.left)} left)"


def _severities(faults: tuple[Finding, ...]) -> dict[str, int]:
    """The worst severity of every code."""
    worst: dict[str, int] = {}
    for finding in faults:
        worst[finding.code] = max(worst.get(finding.code, 0), severity_rank(finding.severity))
    return worst


def _line(change: Change) -> str:
    measure, before, after, difference, verdict = change_row(change.to_dict())
    return f"{measure}: {before} before, {after} after, difference {difference}, {verdict}"


def _trial_lines(trials: tuple[Trial, ...]) -> list[str]:
    """The chosen candidates and the best of the others."""
    if not trials:
        return []
    order = sorted(trials, key=lambda t: (not t.chosen, t.shortfall, t.mean_size or 0.0))[:_SHOWN_TRIALS]
    lines = [f"{len(trials)} candidates were compared on {trials[-1].rows} selection rows:"]
    return lines + [f"  {'*' if t.chosen else ' '} {t}" for t in order]
