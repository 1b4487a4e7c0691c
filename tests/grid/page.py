"""Write the page "what holds where" of the site from the recorded grid: ``python -m tests.grid.page``."""

from __future__ import annotations

import re
from pathlib import Path

from tests.grid.promises import PROMISES
from tests.grid.readings import INTERVAL_BAR, SIZE_BARS, Count
from tests.grid.regimes import Regime
from tests.grid.running import Records, read_records

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "what-holds-where.md"
COLUMNS = (
    "to 20 rows", "to 200", "2000", "20 000", "near-perfect", "hopeless", "uneven", "few events", "ties", "constant",
    "whole weights", "importance weights", "float32", "clusters", "calibration rows",
)  # fmt: skip
# Tests that no metric can have with importance weights; they are not counted as missing.
RULED_OUT = "weights that are not whole numbers are importance weights"

TEXT = """# What holds where

*For those who rely on an interval, a test or a guarantee: in which worlds it was simulated, and how it did there.*

Every interval, test and guarantee of Calipers is simulated in worlds whose truth is known: {cells} cells, each a
promise in a regime. This page is written by `python -m tests.grid.page` from the recorded grid;
`python3 dev.py test --slow tests/grid` runs all of it again (finished cells are kept in the folder named by
`CALIPERS_GRID_CACHE`; `CALIPERS_GRID_RUNS=10` gives every cell 10 runs, for a quick look), and a few runs of every
promise are part of every test run.

The bars: an interval at 95 % holds the truth in at least {bar:.0f} % of the runs, a test of a true null rejects in
at most {size05:.0f} % at the level 5 % and {size01:.1f} % at 1 %, a guarantee holds as often as it says, all beyond
Monte-Carlo error (a tail of 0.001; a cell has {fewest} to {most} runs, more where the first did not decide).

| what | how many | lowest or highest | missed bars |
|---|---|---|---|
{summary}

{missing} of {asked} promised numbers ({share:.1f} %) are not given in more than half of the runs of their cell; the
list at the end says why. Tests with importance weights, for which there is no exact law, are not counted.

## The table

A pair such as `96 · 4` says that intervals (or the guarantee) held in 96 % of the runs and that the test rejected in
4 % at the level 5 %; the worst key and cell of each regime is shown, `–` where nothing is promised, `none` where no
number is given. "promised" is 95 unless a guarantee names another probability. Columns: sound models with that many
rows; 200 to 2000 rows where the model hardly ever errs, knows nothing, or errs by different amounts in different
places (with heavy tails); 0.2 to 10 expected events; scores, sizes or groups that tie or are constant; weights;
single precision; clusters of five rows, of which half share place and luck; 19 or 200 calibration rows.

| promise | promised | {header} |
|---|---|{rule}|
{rows}

## No number, and why

{reasons}
"""


def column_of(regime: Regime) -> str:
    """The column of a regime: its form, its rarity, its calibration rows, its model, or its rows."""
    if regime.form != "plain":
        return regime.form
    if regime.events is not None:
        return "few events"
    if regime.n_calibration:
        return "calibration rows"
    if regime.model != "sound":
        return regime.model
    return next(name for name, most in zip(COLUMNS, (20, 200, 2000, 10**9), strict=False) if regime.n <= most)


def counts_of(records: Records) -> list[tuple[str, Regime, str, Count]]:
    """Promise, regime, key and counts of every key of every recorded cell."""
    return [
        (name, regime, key, Count.from_json(stored))
        for name, promise in PROMISES.items()
        for regime in promise.regimes
        for key, stored in records.get(name, {}).get(regime.name, {}).items()
    ]


def entry(counts: list[Count]) -> str:
    """The worst share that holds and the worst size of some keys."""
    held = [count.held / count.intervals for count in counts if count.intervals]
    sizes = [count.rejected[0.05] / count.tests for count in counts if count.tests]
    if not held and not sizes:
        return "none" if any(count.no_interval or count.no_test for count in counts) else "–"
    words = [f"{100 * min(held):.0f}" if held else "–", *([f"{100 * max(sizes):.0f}"] if sizes else [])]
    text = " · ".join(words)
    return f"**{text}**" if any(count.failures() for count in counts) else text


def table(found: list[tuple[str, Regime, str, Count]]) -> str:
    """One row per promise."""
    rows = []
    for name in PROMISES:
        own = [(column_of(regime), count) for promise, regime, _, count in found if promise == name]
        if not own:
            continue
        levels = sorted({count.level for _, count in own if count.level is not None})
        promised = ", ".join(f"{100 * level:g}" for level in levels) or "95"
        entries = [[count for column, count in own if column == wanted] for wanted in COLUMNS]
        cells = [entry(counts) if counts else "–" for counts in entries]
        rows.append(f"| `{name}` | {promised} | {' | '.join(cells)} |")
    return "\n".join(rows)


def summary(found: list[tuple[str, Regime, str, Count]]) -> str:
    """Intervals, guarantees and tests: how many, the worst of them, missed bars."""
    counts = [count for *_, count in found]
    plain = [c for c in counts if c.intervals and c.level is None]
    promised = [c for c in counts if c.intervals and c.level is not None]
    tested = [c for c in counts if c.tests]
    lines = [
        ("intervals at 95 %", plain, "holds", f"{100 * min(c.held / c.intervals for c in plain):.1f} % hold"),
        ("guarantees", promised, "holds",
         f"{100 * min(c.held / c.intervals - (c.level or 0) for c in promised):+.1f} points from what was promised"),
        *((f"tests at {100 * level:g} %", tested, f"at {level:g},",
           f"{100 * max(c.rejected[level] / c.tests for c in tested):.1f} % reject") for level in SIZE_BARS),
    ]  # fmt: skip
    return "\n".join(
        f"| {kind} | {len(own)} | {worst} | {sum(word in line for c in own for line in c.failures())} |"
        for kind, own, word, worst in lines
    )


def missing_numbers(found: list[tuple[str, Regime, str, Count]]) -> tuple[int, int, dict[str, set[str]]]:
    """Promised numbers, those that are missing in more than half of the runs, and why."""
    asked = missing = 0
    why: dict[str, set[str]] = {}
    for name, regime, _, count in found:
        reason = max(count.reasons, key=lambda text: count.reasons[text], default="")
        for given, absent in ((count.intervals, count.no_interval), (count.tests, count.no_test)):
            if not given + absent or (
                absent > given and RULED_OUT in reason and given is not count.intervals
            ):
                continue
            asked += 1
            if absent > given:
                missing += 1
                plain = re.sub(r"\d+(\.\d+)?", "…", reason)
                why.setdefault(f"`{name}`: {plain}", set()).add(regime.name)
    return asked, missing, why


def runs_of_cells(found: list[tuple[str, Regime, str, Count]]) -> list[int]:
    """Runs of every cell in which something was asked: those of the key that was asked for most often."""
    runs: dict[tuple[str, str], int] = {}
    for name, regime, _, count in found:
        cell = (name, regime.name)
        runs[cell] = max(runs.get(cell, 0), count.runs)
    return [most for most in runs.values() if most]


def page(records: Records) -> str:
    """The text of the page."""
    found = counts_of(records)
    asked, missing, why = missing_numbers(found)
    runs = runs_of_cells(found)
    reasons = "\n".join(f"- {reason} ({'; '.join(sorted(where))})" for reason, where in why.items())
    return TEXT.format(
        cells=len(runs), fewest=min(runs), most=max(runs),
        bar=100 * INTERVAL_BAR, size05=100 * SIZE_BARS[0.05], size01=100 * SIZE_BARS[0.01],
        summary=summary(found), missing=missing, asked=asked, share=100 * missing / max(asked, 1),
        header=" | ".join(COLUMNS), rule="---|" * (len(COLUMNS) - 1) + "---", rows=table(found), reasons=reasons,
    )  # fmt: skip


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(read_records()), encoding="utf-8")
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
