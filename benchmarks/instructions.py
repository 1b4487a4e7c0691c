"""Instruction counts of the hot kernels: they do not change when the machine is busy.

Each kernel runs twice under ``valgrind --tool=callgrind``, once and three times inside the process;
half the difference is the count of one call, without interpreter start and imports. Counts are kept in
``benchmarks/results/instructions.json`` and a rise above 5 % is reported.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

from benchmarks.environments import ROOT, clean_variables

STORE = ROOT / "benchmarks" / "results" / "instructions.json"
TOLERANCE = 1.05

# Name -> code that prepares, code that is counted.
KERNELS = {
    "conformal_p_values, 2000 x 2000 x 10": (
        "from calipers.conformal import conformal_p_values; c = rng.random(2000); t = rng.random((2000, 10))",
        "conformal_p_values(c, t)",
    ),
    "aps scores, 2000 x 100": (
        "from calipers.conformal import aps; P = rng.dirichlet(np.ones(100), 2000)",
        "aps(P)",
    ),
    "calibration error, 20000": (
        "from calipers.metrics import calibration_error; f = rng.random(20000); y = rng.random(20000) < f",
        "calibration_error(y, f, random_state=0)",
    ),
    "coverage of intervals, 20000": (
        "from calipers.metrics import coverage; y = rng.random(20000); S = np.tile([0.0, 0.9], (20000, 1))",
        "coverage(y, S, alpha=0.1)",
    ),
}


def count(prepare: str, call: str) -> int | None:
    """Instructions of one call, or None when the kernel cannot be run."""
    totals = []
    for repeats in (1, 3):
        start = "import numpy as np; rng = np.random.default_rng(0)"
        code = f"{start}; {prepare}\nfor _ in range({repeats}): {call}"
        command = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            sys.executable,
            "-c",
            code,
        ]
        variables = clean_variables() | {"PYTHONHASHSEED": "0"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables, cwd=ROOT)
        found = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or found is None:
            print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
            return None
        totals.append(int(found[1]))
    return (totals[1] - totals[0]) // 2


def main() -> int:
    """Count, compare with the stored counts, store; exit 1 when a kernel has become slower."""
    if shutil.which("valgrind") is None:
        print("instruction counts need valgrind: apt-get install valgrind", file=sys.stderr)
        return 2
    stored = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
    slower = False
    for name, (prepare, call) in KERNELS.items():
        found = count(prepare, call)
        before = stored.get(name)
        change = "" if not (found and before) else f"{found / before - 1:+.1%}"
        print(f"{name:45} {found if found is not None else 'could not run':>15}  {change}")
        slower |= bool(found and before and found > before * TOLERANCE)
        if found is not None:
            stored[name] = found if before is None else min(found, before)
    STORE.parent.mkdir(parents=True, exist_ok=True)
    STORE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return 1 if slower else 0
