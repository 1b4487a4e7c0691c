"""Audits that run behind the local page: one thread, progress that can be asked for, results kept."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calipers.cli.options import COLUMN_OPTIONS, Settings
from calipers.exceptions import CalipersError, InputError

if TYPE_CHECKING:
    from calipers.auditing import Audit

# What the page may choose; everything else of the settings stays with the command line.
CHOICES = ("alpha", "n_calibration", "sep", *COLUMN_OPTIONS)


@dataclass(slots=True)
class Job:
    """One audit: where it stands, and what came out."""

    name: str
    done: int = 0
    total: int = 0
    code: str = ""
    error: str = ""
    audit: Audit | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def move(self, code: str, done: int, total: int) -> None:
        """Called by the audit before every check."""
        with self.lock:
            self.code, self.done, self.total = code, done, total

    def state(self) -> dict[str, Any]:
        """What the page asks for while it waits."""
        with self.lock:
            finished = self.audit is not None or bool(self.error)
            return {
                "name": self.name,
                "state": "failed" if self.error else "finished" if finished else "running",
                "code": self.code,
                "done": self.done,
                "total": self.total,
                "error": self.error,
                "verdict": None if self.audit is None else self.audit.to_dict()["verdict"],
            }


class Workshop:
    """The files the page knows by number, and the audits it has asked for."""

    def __init__(self, files: list[Path], settings: Settings) -> None:
        self.files = {str(i): path for i, path in enumerate(files)}
        self.settings = settings
        self.jobs: dict[str, Job] = {}
        self._pool = ThreadPoolExecutor(max_workers=1)

    def add(self, path: Path) -> str:
        """Make an uploaded file known; its number."""
        number = str(len(self.files))
        self.files[number] = path
        return number

    def columns(self, number: str) -> dict[str, Any]:
        """Columns of a file and the role each one has by its name."""
        from calipers.cli.options import source_from

        source = source_from([self._file(number)], self.settings)
        return {"roles": next(source.opened()).roles.described(), "alpha": [float(a) for a in source.alpha]}

    def start(self, number: str, choices: Mapping[str, Any]) -> str:
        """Begin an audit; its identity."""
        path = self._file(number)
        settings = self.settings.over(checked_choices(choices))
        identity = secrets.token_urlsafe(9)
        job = self.jobs[identity] = Job(name=path.name)
        self._pool.submit(self._run, job, path, settings)
        return identity

    def compare(self, identities: list[str]) -> str:
        """The page that compares finished audits of the same rows."""
        from calipers.auditing import compare

        audits = {}
        for identity in identities:
            job = self.jobs.get(identity)
            if job is None or job.audit is None:
                raise InputError("only finished audits can be compared.")
            name = job.name if job.name not in audits else f"{job.name} ({identity[:4]})"
            audits[name] = job.audit
        return compare(audits).to_html()

    def _file(self, number: str) -> Path:
        if number not in self.files:
            raise InputError("there is no such file here; files are known by number.")
        return self.files[number]

    def _run(self, job: Job, path: Path, settings: Settings) -> None:
        from calipers.auditing import audit
        from calipers.cli.options import source_from

        try:
            source, seed = source_from([path], settings), settings.seed or 0
            found = audit(
                source=source.load(settings.max_rows, seed), alpha=source.alpha, random_state=seed,
                mute=settings.mute, name=path.name, origin=path.name, progress=job.move,
            )  # fmt: skip
        except (CalipersError, OSError) as error:
            with job.lock:
                job.error = str(error)
        except Exception as error:  # noqa: BLE001 - the page must hear of a fault of ours too
            with job.lock:
                job.error = f"this is a fault in Calipers, not in your file: {type(error).__name__}"
        else:
            with job.lock:
                job.audit = found


def checked_choices(choices: Mapping[str, Any]) -> dict[str, Any]:
    """What the page chose, as the settings take it; empty fields are left to the defaults."""
    unknown = sorted(set(choices) - set(CHOICES))
    if unknown:
        raise InputError(f"the page cannot choose {unknown[0]!r}.")
    given = {key: str(value).strip() for key, value in choices.items() if str(value).strip()}
    if "n_calibration" not in given:
        return given
    if not given["n_calibration"].isdigit():
        raise InputError(f"n_calibration must be a whole number, got {given['n_calibration']!r}.")
    return given | {"n_calibration": int(given["n_calibration"])}
