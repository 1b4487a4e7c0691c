"""Commands on malformed files: an exit code, and one sentence where it is 2."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

from calipers.cli import main
from calipers.exceptions import CalipersWarning
from tests.fuzz.calls import Tally
from tests.fuzz.malformed_files import malformed

COMMANDS = (
    ["audit", "--quiet"],
    ["measure", "--quiet"],
    ["calibrate", "--quiet", "--out", "calibrated", "--force"],
)


def fuzz_file(folder: Path, seed: int, tally: Tally) -> None:
    """One file through one command."""
    place = malformed(folder, seed)
    command = COMMANDS[0] if seed % 8 else COMMANDS[1 + seed // 8 % 2]
    words = [word if word != "calibrated" else str(folder / word) for word in command]
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as seen,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        code = main([words[0], str(place), *words[1:]])
    lines = err.getvalue().strip().splitlines()
    leaked = [w for w in seen if not issubclass(w.category, CalipersWarning)]
    wrong = ""
    if code not in {0, 1, 2, 3}:
        wrong = f"exit {code}: {lines[-2] if len(lines) > 1 else lines}"
    elif code == 2 and (len(lines) != 1 or not lines[0].startswith("calipers: ")):
        wrong = f"not one sentence: {lines[:2]}"
    elif leaked:
        wrong = f"{leaked[0].category.__name__}: {leaked[0].message}"
    elif "\x1b" in out.getvalue() + err.getvalue():
        wrong = "an escape sequence reached the terminal"
    tally.outcomes["foreign" if wrong else f"exit {code}"] += 1
    if wrong:
        tally.failures.setdefault((f"{command[0]} {place.name}", wrong[:40]), f"seed {seed}: {wrong[:300]}")
    place.unlink()
