"""Finished audits of the local page: kept in memory, and in a folder when the user names one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calipers.exceptions import InputError
from calipers.report import render_html, render_json, render_markdown
from calipers.results import write_atomically
from calipers.results.serialization import decode, encode

if TYPE_CHECKING:
    from calipers.auditing import Audit

SCHEMA, KIND = 1, "CalipersRun"
# Audits whose rows stay in memory, to be compared and saved, and runs in all.
MOST_AUDITS, MOST_RUNS = 8, 100
_IDENTITY = re.compile(r"[\w-]{8,40}")
# Ending of a download -> its media type.
DOWNLOADS = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished audit under the name of the user's file.

    Parameters
    ----------
    identity, name, when : str
        How the page asks for it, the user's name for the file, and when it was finished.
    document : dict
        ``Audit.to_dict()``.
    number : int
        Its place among all audits of the page, from 1.
    audit : Audit or None
        The audit itself; None when the run comes from a folder.
    """

    identity: str
    name: str
    when: str
    document: dict[str, Any]
    number: int = 0
    audit: Audit | None = None

    def described(self) -> dict[str, Any]:
        """What the list of runs shows."""
        return {
            "job": self.identity,
            "number": self.number,
            "name": self.name,
            "when": self.when,
            "state": "finished",
            "verdict": self.document["verdict"],
            "rows": self.document["about"]["rows"],
            "alphas": list(self.document["about"]["alphas"]),
            "has_rows": self.audit is not None,
        }

    def download(self, ending: str) -> str:
        """The run in one of its forms."""
        if ending == "html":
            return render_html(self.document)
        if ending == "json":
            return render_json(self.document)
        if ending == "md":
            return render_markdown(self.document)
        return self._rows()

    def _rows(self) -> str:
        """A line per row: its number, whether it was covered, and which findings are about it."""
        import polars as pl

        if self.audit is None:
            raise InputError("the rows of a run from an earlier start are not kept; run the audit again.")
        data = self.audit.data
        columns: dict[str, Any] = {"row": range(data.n)}
        for name in ("covered", "top_is_right"):
            if (column := data.get(name)) is not None:
                columns[name] = column
        if (rows_of := getattr(self.audit, "rows_of", None)) is not None:
            columns |= {code: rows_of(code) for code in dict.fromkeys(f.code for f in self.audit.faults)}
        return str(pl.DataFrame(columns).write_csv())


class RunStore:
    """Runs by identity, the newest last.

    Parameters
    ----------
    folder : Path or None
        Where runs are kept between starts; None keeps them in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.runs: dict[str, Run] = {}
        if folder is not None:
            if folder.exists() and not folder.is_dir():
                raise InputError(f"--keep must be a folder, got the file {folder}. Give another place.")
            folder.mkdir(parents=True, exist_ok=True)
            for run in sorted(filter(None, map(_read, folder.glob("*.json"))), key=lambda run: run.when):
                self.runs[run.identity] = replace(run, number=len(self.runs) + 1)
        self._count = len(self.runs)

    def add(self, identity: str, name: str, audit: Audit) -> Run:
        """Keep a finished audit."""
        when = datetime.now(UTC).isoformat(timespec="seconds")
        self._count += 1
        run = Run(
            identity=identity, name=name, when=when, document=audit.to_dict(), number=self._count, audit=audit
        )
        self.runs[identity] = run
        self._make_room()
        if self.folder is not None:
            stored = {
                "schema": SCHEMA,
                "kind": KIND,
                "name": name,
                "when": when,
                "document": encode(run.document),
            }
            write_atomically(self.folder / f"{identity}.json", json.dumps(stored, allow_nan=False))
        return run

    def remove(self, identity: str) -> None:
        """Forget an audit, in the folder too."""
        self.get(identity)
        del self.runs[identity]
        if self.folder is not None:
            (self.folder / f"{identity}.json").unlink(missing_ok=True)

    def _make_room(self) -> None:
        """Forget the rows of all but the last audits, and the oldest audits altogether."""
        for identity, run in list(self.runs.items())[:-MOST_AUDITS]:
            if run.audit is not None:
                self.runs[identity] = replace(run, audit=None)
        while len(self.runs) > MOST_RUNS:
            del self.runs[next(iter(self.runs))]

    def get(self, identity: str) -> Run:
        """The run, or an error that says it is not there."""
        if identity not in self.runs:
            raise InputError("there is no such finished audit here.")
        return self.runs[identity]


def _read(place: Path) -> Run | None:
    """A run that an earlier start kept; None for any other file."""
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        if stored["kind"] != KIND or stored["schema"] != SCHEMA or not _IDENTITY.fullmatch(place.stem):
            return None
        document = decode(stored["document"])
        run = Run(identity=place.stem, name=str(stored["name"]), when=str(stored["when"]), document=document)
        run.described()
        render_html(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return run


def download_name(name: str, ending: str) -> str:
    """The name of a download: that of the user's file with another ending, letters that headers can carry.

    Examples
    --------
    >>> download_name('my "rows".csv', "md")
    'my rows.md'
    """
    stem = re.sub(r"[^\w .-]", "", Path(name).stem, flags=re.ASCII).strip() or "audit"
    return f"{stem}.{ending}"
