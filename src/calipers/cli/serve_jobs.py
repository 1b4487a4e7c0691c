"""Audits that run behind the local page: one thread, progress that can be asked for, bounded memory.

Finished audits lie in a `RunStore`: the last ones with their rows, older ones as documents.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calipers.cli.options import COLUMN_OPTIONS
from calipers.cli.serve_runs import Run, RunStore
from calipers.cli.settings import Settings
from calipers.exceptions import CalipersError, InputError
from calipers.fields import FIELDS, fields_of

if TYPE_CHECKING:
    from calipers.inputs.files.column_roles import Roles

# What the page may choose; everything else of the settings stays with the command line.
MOST_WAITING, MOST_FILES = 20, 100
_OPTION = re.compile(r"--([a-z][a-z-]*)")
_FIELDS_OF_THE_PAGE = {field.option: f'the field "{field.said}" below' for field in FIELDS} | {
    "sep": 'the field "separator of a text file" below',
    "alpha": 'the field "alpha"',
}
CHOICES = ("alpha", "n_calibration", "sep", *COLUMN_OPTIONS)


class StoppedError(CalipersError):
    """An audit that the user has ended."""


def step_words(code: str) -> str:
    """The question that a check belongs to; what else the audit does as it says it.

    Examples
    --------
    >>> step_words("CAL201"), step_words("all rows")
    ('Does it cover everywhere, and if not, where does it fail?', 'all rows')
    """
    from calipers.auditing.checks import CHECKS
    from calipers.auditing.questions import TITLES

    asked = next((check.question for check in CHECKS if check.code == code), None)
    return code if asked is None else TITLES[asked]


@dataclass(slots=True)
class Job:
    """One audit: where it stands, and what came out."""

    name: str
    done: int = 0
    total: int = 0
    step: str = ""
    error: str = ""
    verdict: dict[str, Any] | None = None
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def move(self, code: str, done: int, total: int) -> None:
        """Called by the audit before every check; ends it here when that was asked for."""
        with self.lock:
            self.step, self.done, self.total = step_words(code), done, total
            if self.stopped:
                raise StoppedError(f"{self.name}: the audit was stopped.")

    def stop(self) -> None:
        """End before the next check."""
        with self.lock:
            self.stopped = True

    def state(self) -> dict[str, Any]:
        """What the page requests while it waits."""
        with self.lock:
            return {
                "name": self.name,
                "state": "failed" if self.error else "finished" if self.verdict else "running",
                "step": self.step,
                "stopped": self.stopped,
                "done": self.done,
                "total": self.total,
                "error": self.error,
                "verdict": self.verdict,
            }


class Workshop:
    """The files the page knows by number, and the audits it has asked for."""

    def __init__(self, files: list[Path], settings: Settings, store: RunStore | None = None) -> None:
        self.files = {str(i): path for i, path in enumerate(files)}
        # The user's names: an upload lies under a name of ours.
        self.names = {str(i): path.name for i, path in enumerate(files)}
        self.store = RunStore() if store is None else store
        self.settings = settings
        self.jobs: dict[str, Job] = {}
        self._pool = ThreadPoolExecutor(max_workers=1)

    def add(self, path: Path, name: str = "") -> str:
        """Make an uploaded file known under the user's name for it; its number."""
        number = str(len(self.files))
        self.files[number] = path
        self.names[number] = name or path.name
        return number

    def runs(self) -> list[dict[str, Any]]:
        """Finished, failed and running audits, the oldest first; what a page shows after a reload."""
        done = [run.described() for run in self.store.runs.values()]
        others = [
            {"job": identity} | job.state()
            for identity, job in self.jobs.items()
            if identity not in self.store.runs
        ]
        return done + [state for state in others if state["state"] == "running"]

    def require_room(self) -> None:
        """Refuse one more upload where too many are kept."""
        if len(self.files) >= MOST_FILES:
            raise InputError(f"the page keeps {MOST_FILES} files; stop it and start it again for more.")

    def close(self) -> None:
        """Forget what waits; an audit that runs ends with its current work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def columns(self, number: str, choices: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Columns of a file and the role each one has, by its name or by choice; else what is missing."""
        from calipers.cli.options import source_from

        path = self._file(number)
        settings = self.settings.over(checked_choices(choices or {}))
        names = self._column_names(path, settings)
        try:
            source = source_from([path], settings)
            roles = next(source.opened()).roles
        except CalipersError as error:
            problem = in_their_words(error, path, self.names[number])
            if not names:
                raise InputError(problem) from None
            unknown = dict.fromkeys(names, "")
            return {"roles": unknown, "options": unknown, "alpha": [0.1], "problem": problem}
        # What is taken for nothing is shown too.
        known = dict.fromkeys(names, "left out") | roles.described()
        return {"roles": known, "options": _options(roles), "alpha": [float(a) for a in source.alpha]}

    def _column_names(self, path: Path, settings: Settings) -> tuple[str, ...]:
        """What the columns are called; none of a file that cannot be read."""
        from calipers.inputs.files.readers import open_file

        try:
            return open_file(str(path), separator=settings.separator()).columns
        except CalipersError:
            return ()

    def start(self, number: str, choices: Mapping[str, Any]) -> str:
        """Begin an audit; its identity."""
        path = self._file(number)
        settings = self.settings.over(checked_choices(choices))
        try:
            settings.alphas()
        except CalipersError as error:
            raise InputError(in_their_words(error, path, self.names[number])) from None
        if sum(job.state()["state"] == "running" for job in self.jobs.values()) >= MOST_WAITING:
            raise InputError(f"{MOST_WAITING} audits are waiting already; let some of them finish first.")
        self._make_room()
        identity = secrets.token_urlsafe(9)
        job = self.jobs[identity] = Job(name=self.names[number])
        self._pool.submit(self._run, identity, job, path, settings)
        return identity

    def stop(self, identity: str) -> None:
        """End an audit before its next check."""
        if identity not in self.jobs:
            raise InputError("there is no such audit here.")
        self.jobs[identity].stop()

    def _make_room(self) -> None:
        """Forget the oldest audits that have ended; those that finished lie in the store."""
        ended = [identity for identity, job in self.jobs.items() if job.state()["state"] != "running"]
        for identity in ended[: max(0, len(self.jobs) - MOST_FILES)]:
            del self.jobs[identity]

    def compare(self, identities: list[str]) -> str:
        """The page that compares finished audits: by tests on the same rows, else side by side."""
        from calipers.auditing import compare
        from calipers.report import render_comparison
        from calipers.report.side_by_side import render_side_by_side

        if len(identities) < 2:
            raise InputError("choose two finished audits or more to compare them.")
        runs: dict[str, Run] = {}
        for identity in identities:
            run = self.store.get(identity)
            runs[f"{run.number}. {run.name}"] = run
        documents = {name: run.document for name, run in runs.items()}
        links = {name: f"reports/{run.identity}" for name, run in runs.items()}
        audits = {name: run.audit for name, run in runs.items() if run.audit is not None}
        if len(audits) < len(runs):
            reason = "Audits from an earlier start have no rows here."
            return render_side_by_side(documents, reason=reason, links=links)
        try:
            return render_comparison(compare(audits).to_dict(), links=links)
        except CalipersError as error:
            return render_side_by_side(documents, reason=str(error), links=links)

    def _file(self, number: str) -> Path:
        if number not in self.files:
            raise InputError("there is no such file here; files are known by number.")
        return self.files[number]

    def _run(self, identity: str, job: Job, path: Path, settings: Settings) -> None:
        from calipers.auditing import audit
        from calipers.cli.options import source_from

        try:
            job.move("", 0, 0)  # it may have been stopped while it waited
            source, seed = source_from([path], settings), settings.seed or 0
            found = audit(
                source=source.load(settings.max_rows, seed), alpha=source.alpha, random_state=seed,
                mute=settings.mute, min_rows=settings.min_rows, name=job.name, origin=job.name,
                label_conditional=bool(settings.label_conditional), progress=job.move, **settings.losses(),
            )  # fmt: skip
        except (CalipersError, OSError) as error:
            with job.lock:
                job.error = in_their_words(error, path, job.name)
        except Exception as error:  # noqa: BLE001 - the page must hear of a fault of ours too
            with job.lock:
                job.error = f"this is a fault in Calipers, not in your file: {type(error).__name__}"
        else:
            run = self.store.add(identity, job.name, found)
            with job.lock:
                job.verdict = run.document["verdict"]


def _options(roles: Roles) -> dict[str, str]:
    """Column -> the field of the page that it is in."""
    made = {}
    for argument, columns in roles.columns.items():
        for (label, _), column in columns.items():
            fields = fields_of(argument)
            made[column] = next((f.option for f in fields if f.name == label), fields[0].option)
    return made


def in_their_words(error: Exception, path: Path, name: str) -> str:
    """The sentence of an error with the user's name of the file and the fields of the page.

    Examples
    --------
    >>> in_their_words(InputError("/t/x1.csv lacks it. Name it with --y."), Path("/t/x1.csv"), "a.csv")
    'a.csv lacks it. Name it with the field "outcome" below.'
    """
    said = str(error).replace(str(path), name).replace(path.name, name)
    return _OPTION.sub(lambda option: _FIELDS_OF_THE_PAGE.get(option[1], option[0]), said)


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
