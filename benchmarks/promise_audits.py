"""How often audits accuse kept promises, and find broken ones: the tables of docs/guide/audit.md.

    python -m benchmarks.promise_audits clean --out clean.json --runs 200 --seconds 600
    python -m benchmarks.promise_audits planted --out planted.json --runs 16 --only "intervals|time"
    python -m benchmarks.promise_audits stated --out stated.json --runs 20
    python -m benchmarks.promise_audits codes --out codes.json --runs 20

``clean`` audits kept promises; ``planted`` finds the rows at which a fault is found in 80 % and 95 % of
audits; ``stated`` audits every fault at the rows that the guide states; ``codes`` is as ``planted``, for the
codes of `benchmarks.code_worlds`. Every audit has its own seed and is written down as it is done: a run that
was stopped, or reached its ``--seconds``, goes on where it ended. ``--only`` names promises, faults,
``promise|fault`` or codes. ``--rows`` is for clean audits.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.code_worlds import CODE_FAULTS, audit_code, has_code
from benchmarks.promise_worlds import KINDS, ROWS, audit_world, is_found

SIZES = (400, 600, 1000, 1500, 2500, 4000)
# A size at which fewer of the first quarter of the audits find the fault is given up; the last size is the
# first at which so many do.
GIVEN_UP, ENOUGH = 0.5, 0.97
WRITTEN_EVERY = 20.0
CODE = "code"


@dataclass(slots=True)
class Log:
    """Outcomes by world, in the order of seeds, kept in a file; and until when more are made."""

    path: Path
    until: float
    outcomes: dict[str, list[str]] = field(default_factory=dict)
    written: float = 0.0

    @classmethod
    def opened(cls, path: Path, seconds: float) -> Log:
        """What the file holds, if there is one."""
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return cls(path, time.monotonic() + seconds, known)

    def has_time(self) -> bool:
        """Whether another audit may begin."""
        return time.monotonic() < self.until

    def of(self, world: str) -> list[str]:
        """Outcomes of a world so far."""
        return self.outcomes.get(world, [])

    def add(self, world: str, outcome: str) -> None:
        """One more outcome of a world; the file follows at intervals."""
        self.outcomes.setdefault(world, []).append(outcome)
        if time.monotonic() - self.written > WRITTEN_EVERY:
            self.write()

    def write(self) -> None:
        """Put everything into the file, which is whole at any time."""
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.outcomes, indent=0), encoding="utf-8")
        part.replace(self.path)
        self.written = time.monotonic()


def clean_key(kind: str, rows: int) -> str:
    """The name of a world without a fault."""
    return f"{kind} | kept | {rows}"


def planted_key(kind: str, fault: str, rows: int) -> str:
    """The name of a world with a fault."""
    return f"{kind} | {fault} | {rows}"


def run_clean(log: Log, kinds: Iterable[str], runs: int, rows: int) -> None:
    """Audit kept promises, one seed of every kind after the other: what is there is balanced."""
    chosen = list(kinds)
    for seed in range(runs):
        for kind in chosen:
            if len(log.of(clean_key(kind, rows))) > seed:
                continue
            if not log.has_time():
                return
            found = audit_world(kind, None, rows, seed)
            codes = " ".join(f"{f.code}:{f.severity}" for f in found.faults)
            log.add(clean_key(kind, rows), f"{found.severity} {codes}".strip())


def run_planted(log: Log, kind: str, fault: str, runs: int, rows: int, *, give_up: bool) -> None:
    """Audit a broken promise, or the fault of a code, at some number of rows."""
    key = planted_key(kind, fault, rows)
    while len(log.of(key)) < runs and log.has_time():
        if give_up and len(log.of(key)) >= runs // 4 and share_found(log.of(key)) < GIVEN_UP:
            return
        seed = len(log.of(key))
        if kind == CODE:
            found = has_code(fault, audit_code(fault, rows, seed))
        else:
            found = is_found(kind, fault, audit_world(kind, fault, rows, seed))
        log.add(key, "found" if found else "missed")


def run_sizes(log: Log, kind: str, fault: str, runs: int) -> None:
    """Audit a broken promise at growing numbers of rows, until nearly all audits find it."""
    for rows in SIZES:
        run_planted(log, kind, fault, runs, rows, give_up=True)
        if share_found(log.of(planted_key(kind, fault, rows))) >= ENOUGH:
            return


def share_found(outcomes: list[str]) -> float:
    """Share of audits that found the fault; 0 of none."""
    return outcomes.count("found") / max(1, len(outcomes))


def clean_lines(log: Log, kinds: Iterable[str], rows: int) -> Iterator[str]:
    """By kind: audits with an issue, with any fault, and the codes."""
    yield "| promise | audits | with an issue | with any fault | codes of the issues |\n|---|---|---|---|---|"
    for kind in kinds:
        outcomes = log.of(clean_key(kind, rows))
        issues = [o for o in outcomes if o.startswith("issue")]
        codes = Counter(word for o in issues for word in o.split()[1:] if word.endswith(":issue"))
        told = ", ".join(f"{code.split(':')[0]} {n}" for code, n in sorted(codes.items())) or "-"
        faults = sum(not o.startswith("none") for o in outcomes)
        yield f"| {kind} | {len(outcomes)} | {len(issues)} | {faults} | {told} |"


def planted_lines(log: Log, cells: Iterable[tuple[str, str]]) -> Iterator[str]:
    """By cell: rows, audits and the share that found the fault."""
    yield "| promise | fault | rows: found of audits |\n|---|---|---|"
    for kind, fault in cells:
        sizes = sorted({*SIZES, CODE_FAULTS[fault].rows if kind == CODE else ROWS[kind, fault]})
        known = [(n, log.of(planted_key(kind, fault, n))) for n in sizes]
        told = ", ".join(f"{n}: {found.count('found')} of {len(found)}" for n, found in known if found)
        yield f"| {kind} | {fault} | {told or '-'} |"


def chosen_cells(only: list[str] | None) -> list[tuple[str, str]]:
    """Promises and faults that were named; all of them without names."""
    cells = [(kind, fault) for kind in KINDS for fault in KINDS[kind].codes]
    return [(k, f) for k, f in cells if not only or {k, f, f"{k}|{f}"} & set(only)]


def main(words: list[str] | None = None) -> int:
    """Run one of the four, and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("clean", "planted", "stated", "codes"))
    parser.add_argument("--out", type=Path, required=True, help="file of outcomes; an old one is continued")
    parser.add_argument("--runs", type=int, default=200, help="audits of each world")
    parser.add_argument("--rows", type=int, default=700, help="rows of clean audits")
    parser.add_argument("--only", nargs="*", help="promises, faults or promise|fault")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no audit after so long")
    options = parser.parse_args(words)
    log, cells = Log.opened(options.out, options.seconds), chosen_cells(options.only)
    if options.what == "codes":
        cells = [(CODE, code) for code in CODE_FAULTS if not options.only or code in options.only]
    kinds = list(dict.fromkeys(kind for kind, _ in cells))
    if options.what == "clean":
        run_clean(log, kinds, options.runs, options.rows)
    for kind, fault in cells if options.what != "clean" else ():
        if options.what in {"planted", "codes"}:
            run_sizes(log, kind, fault, options.runs)
        else:
            run_planted(log, kind, fault, options.runs, ROWS[kind, fault], give_up=False)
    log.write()
    lines = clean_lines(log, kinds, options.rows) if options.what == "clean" else planted_lines(log, cells)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
