"""Successive audits over time: what was promised, whether it was kept, and since when it is not.

`keep_audit` writes one file per audit into a folder, `read_history` reads the folder. Files are plain JSON,
so that an ``audit.json`` of any other run can be put beside them.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from calipers.auditing.history_changes import Change, changes_between
from calipers.auditing.history_rows import contributions, keep_rows
from calipers.exceptions import InputError
from calipers.report.history import render_history
from calipers.report.page import framed
from calipers.report.text_formats import render_json
from calipers.results import write_atomically
from calipers.results.promise_table import ANSWERS, answer_of_finding
from calipers.results.serialization import decode
from calipers.results.text_files import also_written
from calipers.version import __version__

if TYPE_CHECKING:
    from calipers.auditing.audit_result import Audit

SCHEMA = 1
# How the file with what single rows contributed ends.
ROWS = ".parquet"
# Checks with a code for either side are one promise.
_ONE_PROMISE = {"CAL102": "CAL101", "CAL502": "CAL501"}
_NUMBERS = ("value", "low", "high", "std_error", "n", "p_value", "confidence")


@dataclass(frozen=True, slots=True)
class Run:
    """One audit of the history.

    Parameters
    ----------
    at : datetime
        When the audit was made: what the file says, else when the file was written. In UTC.
    file : str
        Its file.
    document : mapping
        The JSON of the audit.
    report : str, optional
        Its report, a file of the same folder, where there is one.
    rows : path, table or None
        What its rows contributed, or the file that says so.
    """

    at: dt.datetime
    file: str
    document: Mapping[str, Any]
    report: str | None = None
    rows: Path | pl.DataFrame | None = None

    def contributions(self) -> pl.DataFrame | None:
        """What its rows contributed, read now; None where that is not known."""
        if not isinstance(self.rows, Path):
            return self.rows
        try:
            return pl.read_parquet(self.rows)
        except (OSError, pl.exceptions.PolarsError):
            return None

    @property
    def faults(self) -> list[Mapping[str, Any]]:
        """Findings that are faults."""
        return [finding for finding in self.document["findings"] if finding["outcome"] == "fault"]

    def answers(self) -> dict[tuple[str, str], dict[str, Any]]:
        """(promise, slice) -> answer and numbers: of the table of promises, or of the checks without one."""
        rows = _rows(self.document.get("promises"))
        if rows:
            return {
                (str(row["promise"]), str(row["slice"])): {"answer": row["answer"], "code": row.get("code")}
                | {name: row.get(name) for name in _NUMBERS}
                for row in rows
            }
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for finding in self.document["findings"]:
            if finding["outcome"] != "not_applicable":
                evidence = finding["evidence"] or {}
                numbers = {name: evidence.get(name) for name in _NUMBERS}
                details = finding.get("details", {})
                said = answer_of_finding(finding["outcome"], finding["severity"], details)
                answer = {"answer": said, "code": finding["code"]}
                found[_ONE_PROMISE.get(finding["code"], finding["code"]), ""] = (
                    answer | numbers | {"title": finding["title"]}
                )
        return found

    def numbers(self) -> dict[str, Mapping[str, Any]]:
        """Name -> estimate."""
        return dict(self.document["estimates"])


@dataclass(frozen=True, slots=True)
class AuditHistory:
    """Audits in the order of their times.

    Parameters
    ----------
    runs : sequence of Run
        At least one.
    passed_over : dict
        File -> why it was not read.
    folder : str
        Where the files lie, as it was given.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from calipers import audit
    >>> from calipers.auditing import keep_audit, read_history
    >>> rng, folder = np.random.default_rng(0), tempfile.mkdtemp()
    >>> for share in (0.9, 0.8):
    ...     y = np.where(rng.random(1000) < share, 0.0, 2.0)
    ...     kept = keep_audit(audit(y, intervals=np.tile([-1.0, 1.0], (1000, 1)), random_state=0), folder)
    >>> read_history(folder).newly_broken()
    [('coverage of the intervals', 'all rows')]
    """

    runs: Sequence[Run]
    passed_over: Mapping[str, str]
    folder: str = ""

    def __repr__(self) -> str:
        first, last = self.runs[0].at, self.runs[-1].at
        return f"AuditHistory({len(self.runs)} audits, {first:%Y-%m-%d} to {last:%Y-%m-%d})"

    def changes(self, first: int = -2, second: int = -1) -> Change | None:
        """What changed between two runs; None when there is only one."""
        if len(self.runs) < 2:
            return None
        return _changes(self.runs[first], self.runs[second])

    def followed_by(self, run: Run) -> Change:
        """What changed from the last run to one that is not kept yet."""
        return _changes(self.runs[-1], run)

    def newly_broken(self) -> list[tuple[str, str]]:
        """Promises that the last run broke and the one before did not; all broken ones of a single run."""
        last = {key for key, point in self.runs[-1].answers().items() if point["answer"] == "broken"}
        if len(self.runs) == 1:
            return sorted(last)
        before = self.runs[-2].answers()
        return sorted(key for key in last if before.get(key, {}).get("answer") != "broken")

    def to_dict(self) -> dict[str, Any]:
        """Runs, promises and numbers over time, what changed last, files passed over; plain values."""
        change = self.changes()
        return {
            "schema": SCHEMA,
            "kind": "AuditHistory",
            "calipers": __version__,
            "folder": self.folder,
            "runs": [_run_line(run) for run in self.runs],
            "promises": _promises([run.answers() for run in self.runs]),
            "numbers": _series([run.numbers() for run in self.runs]),
            "change": None if change is None else change.to_dict(),
            "passed_over": dict(self.passed_over),
        }

    def to_json(self, path: Path | str | None = None) -> str:
        """The dictionary as JSON, written to ``path`` when one is given."""
        return also_written(render_json(self.to_dict()), path)

    def to_html(self, path: Path | str | None = None) -> str:
        """One page that needs no network, written to ``path`` when one is given."""
        return also_written(render_history(self.to_dict(), place=path), path)

    def _repr_html_(self) -> str:
        return framed(self.to_html(), title="Calipers history")


def _changes(before: Run, after: Run) -> Change:
    return changes_between(
        (before.answers(), before.numbers()),
        (after.answers(), after.numbers()),
        (before.contributions(), after.contributions()),
    )


def keep_audit(
    audit: Audit, folder: Path | str, *, fail_on: str = "issue", failed: bool = False, at: Any = None,
    report: bool = False,
) -> Path:  # fmt: skip
    """Put the JSON of an audit into the folder of a history, under the time it was made.

    Beside it, in parquet, what every row contributed (up to 200 000 rows, unweighted and independent), so
    that audits of the same rows are later compared in pairs.

    Parameters
    ----------
    audit : Audit
        The audit; its pictures are left out, they are in its report.
    folder : path
        Made if it does not exist.
    fail_on : str
        The threshold that was asked for.
    failed : bool
        Whether a fault reached it.
    at : datetime, optional
        When the audit was made; now unless given.
    report : bool
        Keep the report beside it under the same name, so that later reports link to it.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from calipers import audit
    >>> from calipers.auditing import keep_audit, read_history
    >>> folder, y = tempfile.mkdtemp(), np.random.default_rng(0).normal(size=300)
    >>> found = audit(y, intervals=np.tile([-1.6, 1.6], (300, 1)), random_state=0)
    >>> file = keep_audit(found, folder)
    >>> file.suffix
    '.json'
    """
    place, now = check_history(Path(folder)), at or dt.datetime.now(dt.UTC)
    place.mkdir(parents=True, exist_ok=True)
    document = json.loads(audit.to_json())
    for part in ("pictures", "history"):
        document.pop(part, None)
    document["kept"] = {"at": now.isoformat(), "fail_on": fail_on, "missed": failed}
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(document["about"]["source"] or "audit").stem)[:40]
    name = f"{now.astimezone(dt.UTC):%Y%m%dT%H%M%S%fZ}-{stem}"
    path, copies = place / f"{name}.json", 1
    while path.exists():
        path, copies = place / f"{name}-{copies}.json", copies + 1
    if report:
        audit.to_html(path.with_suffix(".html"))
    keep_rows(contributions(audit), path.with_suffix(ROWS))
    return write_atomically(path, json.dumps(document, allow_nan=False))


def check_history(folder: Path) -> Path:
    """The folder of a history, which may not be there yet; a file in its place is refused."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"the history must be a folder, got the file {folder}. Give another place.")
    return folder


def read_history(folder: Path | str) -> AuditHistory:
    """The audits of a folder, the oldest first; files that are not audits are named and skipped.

    Parameters
    ----------
    folder : path
        Holds ``*.json`` files that `keep_audit` or `Audit.to_json` wrote.

    Returns
    -------
    AuditHistory

    Raises
    ------
    InputError
        When the folder does not exist or holds no audit.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from calipers import audit
    >>> from calipers.auditing import keep_audit, read_history
    >>> folder, y = tempfile.mkdtemp(), np.random.default_rng(0).normal(size=300)
    >>> found = audit(y, intervals=np.tile([-1.6, 1.6], (300, 1)), random_state=0)
    >>> file = keep_audit(found, folder)
    >>> len(read_history(folder).runs)
    1
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"the history must be a folder of audits, {place} is not a folder.")
    runs: list[Run] = []
    passed_over: dict[str, str] = {}
    for file in sorted(place.glob("*.json")):
        try:
            runs.append(_read(file, passed_over))
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            passed_over[file.name] = _why(error)
    if not runs:
        told = f" ({len(passed_over)} other files were passed over)" if passed_over else ""
        raise InputError(f"{place} holds no audits{told}. Keep them with calipers audit --history {place}.")
    return AuditHistory(sorted(runs, key=lambda run: (run.at, run.file)), passed_over, str(folder))


def _read(file: Path, passed_over: dict[str, str]) -> Run:
    document = decode(json.loads(file.read_text(encoding="utf-8")))
    if not isinstance(document, dict) or document.get("kind") != "Audit":
        raise ValueError("it is not the JSON of an audit")
    kept = document.get("kept") or {}
    at = dt.datetime.fromisoformat(kept["at"]) if "at" in kept else None
    if at is None:
        at = dt.datetime.fromtimestamp(file.stat().st_mtime, dt.UTC)
    at = at.astimezone(dt.UTC) if at.tzinfo else at.replace(tzinfo=dt.UTC)
    run = Run(at, file.name, document, _report_beside(file), _rows_beside(file, passed_over))
    # A file that lacks what the page needs is found out here, not halfway through.
    AuditHistory([run], {}, "").to_html()
    return run


def _report_beside(file: Path) -> str | None:
    """The page of the same name; a name that is not text cannot stand in a page."""
    page = file.with_suffix(".html")
    readable = page.name.isprintable() and page.is_file()
    return page.name if readable else None


def _rows_beside(file: Path, passed_over: dict[str, str]) -> Path | None:
    """The file with what its rows contributed; a damaged one is named and passed over."""
    rows = file.with_suffix(ROWS)
    if not rows.is_file():
        return None
    try:
        pl.read_parquet_schema(rows)
    except (OSError, pl.exceptions.PolarsError):
        passed_over[rows.name] = "it is not parquet"
        return None
    return rows


def _why(error: Exception) -> str:
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return f"it is not JSON ({error})"
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror})"
    if isinstance(error, ValueError):
        return str(error)
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return "it is damaged: a value is of another kind than an audit has"


def _rows(table: Any) -> list[Mapping[str, Any]]:
    """Rows of the table of promises: a list of rows, or columns by name."""
    if isinstance(table, Mapping):
        names = list(table)
        return [dict(zip(names, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return list(table or ())


def _run_line(run: Run) -> dict[str, Any]:
    kept, about = run.document.get("kept") or {}, run.document["about"]
    return {
        "at": run.at.isoformat(),
        "file": run.file,
        "report": run.report,
        "source": about["source"],
        "rows": about["rows"],
        "counts": run.document["verdict"]["counts"],
        "verdict": run.document["verdict"]["sentence"],
        "faults": [
            {"code": f["code"], "severity": f["severity"], "sentence": f["sentence"]} for f in run.faults
        ],
        "fail_on": kept.get("fail_on"),
        "missed": kept.get("missed"),
    }


def _promises(answers: Sequence[Mapping[tuple[str, str], Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Every promise and slice over time, those broken now first."""
    keys = dict.fromkeys(key for run in answers for key in run)
    lines = []
    for promise, part in keys:
        points = [
            {"run": number} | dict(run[promise, part])
            for number, run in enumerate(answers)
            if (promise, part) in run
        ]
        broken = [point["run"] for point in points if point["answer"] == "broken"]
        lines.append(
            {
                "promise": promise,
                "slice": part,
                "title": points[-1].get("title") or "",
                "now": points[-1]["answer"] if points[-1]["run"] == len(answers) - 1 else "not asked",
                "first_broken": broken[0] if broken else None,
                "broken_since": _since(points),
                "times_broken": len(broken),
                "points": points,
            }
        )
    order = {answer: place for place, answer in enumerate(ANSWERS)}
    return sorted(lines, key=lambda line: (order.get(line["now"], len(order)), -line["times_broken"]))


def _since(points: Sequence[Mapping[str, Any]]) -> int | None:
    """Run since which the promise has been broken in every run; None when it is not broken now."""
    since = None
    for point in reversed(points):
        if point["answer"] != "broken":
            break
        since = point["run"]
    return since


def _series(numbers: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Every estimate over time, those of most runs first."""
    names = dict.fromkeys(name for run in numbers for name in run)
    keys = (*_NUMBERS, "null_low", "null_high")
    lines = [
        {
            "name": name,
            "points": [
                {"run": number} | {key: run[name].get(key) for key in keys}
                for number, run in enumerate(numbers)
                if name in run
            ],
        }
        for name in names
    ]
    return sorted(lines, key=lambda line: -len(line["points"]))
