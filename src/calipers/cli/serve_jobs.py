"""Audits that run behind the local page: one thread, progress that can be asked for, bounded memory.

The last audits are kept for comparison, of older ones the report, packed; the oldest are forgotten.
"""

from __future__ import annotations

import gzip
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
MOST_AUDITS, MOST_REPORTS, MOST_WAITING, MOST_FILES = 8, 100, 20, 100
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
    verdict: dict[str, Any] | None = None
    page: bytes = b""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def move(self, code: str, done: int, total: int) -> None:
        """Called by the audit before every check."""
        with self.lock:
            self.code, self.done, self.total = code, done, total

    def state(self) -> dict[str, Any]:
        """What the page asks for while it waits."""
        with self.lock:
            return {
                "name": self.name,
                "state": "failed" if self.error else "finished" if self.verdict else "running",
                "code": self.code,
                "done": self.done,
                "total": self.total,
                "error": self.error,
                "verdict": self.verdict,
            }

    def finish(self, found: Audit) -> None:
        """Keep what was found, and its report packed."""
        page, verdict = gzip.compress(found.to_html().encode(), 6), found.to_dict()["verdict"]
        with self.lock:
            self.audit, self.page, self.verdict = found, page, verdict

    def report(self) -> str:
        """The report as a page; empty while there is none."""
        return gzip.decompress(self.page).decode() if self.page else ""


class Workshop:
    """The files the page knows by number, and the audits it has asked for."""

    def __init__(self, files: list[Path], settings: Settings) -> None:
        self.files = {str(i): path for i, path in enumerate(files)}
        self.names = {number: path.name for number, path in self.files.items()}
        self.settings = settings
        self.jobs: dict[str, Job] = {}
        self._pool = ThreadPoolExecutor(max_workers=1)

    def add(self, path: Path, name: str = "") -> str:
        """Make an uploaded file known under the name its owner gave it; its number."""
        number = str(len(self.files))
        self.files[number], self.names[number] = path, name or path.name
        return number

    def require_room(self) -> None:
        """Refuse one more upload where too many are kept."""
        if len(self.files) >= MOST_FILES:
            raise InputError(f"the page keeps {MOST_FILES} files; stop it and start it again for more.")

    def close(self) -> None:
        """Forget what waits; an audit that runs ends with its current work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def columns(self, number: str) -> dict[str, Any]:
        """Columns of a file and the role each one has by its name."""
        from calipers.cli.options import source_from

        path = self._file(number)
        try:
            source = source_from([path], self.settings)
            roles = next(source.opened()).roles.described()
        except CalipersError as error:
            raise InputError(self._named(error, number)) from None
        return {"roles": roles, "alpha": [float(a) for a in source.alpha]}

    def start(self, number: str, choices: Mapping[str, Any]) -> str:
        """Begin an audit; its identity."""
        path = self._file(number)
        settings = self.settings.over(checked_choices(choices))
        if sum(job.state()["state"] == "running" for job in self.jobs.values()) >= MOST_WAITING:
            raise InputError(f"{MOST_WAITING} audits are waiting already; let some of them finish first.")
        self._make_room()
        identity = secrets.token_urlsafe(9)
        job = self.jobs[identity] = Job(name=self.names[number])
        self._pool.submit(self._run, job, path, settings, number)
        return identity

    def _make_room(self) -> None:
        """Drop the oldest reports, and all but the last audits, which alone can be compared."""
        while len(self.jobs) >= MOST_REPORTS:
            del self.jobs[next(iter(self.jobs))]
        for job in [job for job in self.jobs.values() if job.audit is not None][: -MOST_AUDITS + 1]:
            with job.lock:
                job.audit = None

    def _named(self, error: Exception, number: str) -> str:
        """What went wrong, with the file called as its owner calls it."""
        path = self.files[number]
        return str(error).replace(str(path), self.names[number]).replace(path.name, self.names[number])

    def compare(self, identities: list[str]) -> str:
        """The page that compares finished audits of the same rows."""
        from calipers.auditing import compare

        audits = {}
        for identity in identities:
            job = self.jobs.get(identity)
            if job is None or job.audit is None:
                raise InputError(
                    f"only finished audits can be compared, of those the last {MOST_AUDITS}; run it again."
                )
            name = job.name if job.name not in audits else f"{job.name} ({identity[:4]})"
            audits[name] = job.audit
        return compare(audits).to_html()

    def _file(self, number: str) -> Path:
        if number not in self.files:
            raise InputError("there is no such file here; files are known by number.")
        return self.files[number]

    def _run(self, job: Job, path: Path, settings: Settings, number: str) -> None:
        from calipers.auditing import audit
        from calipers.cli.options import source_from

        try:
            source, seed = source_from([path], settings), settings.seed or 0
            found = audit(
                source=source.load(settings.max_rows, seed), alpha=source.alpha, random_state=seed,
                mute=settings.mute, name=job.name, origin=job.name, progress=job.move,
            )  # fmt: skip
            job.finish(found)
        except (CalipersError, OSError) as error:
            with job.lock:
                job.error = self._named(error, number)
        except Exception as error:  # noqa: BLE001 - the page must hear of a fault of ours too
            with job.lock:
                job.error = f"this is a fault in Calipers, not in your file: {type(error).__name__}"


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
