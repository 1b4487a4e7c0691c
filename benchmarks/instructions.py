"""Instruction counts of the hot kernels: they do not change when the machine is busy.

All kernels run in one process under ``valgrind --tool=callgrind``, which counts only while it is told to: not
the interpreter's start, not imports, not the first call of a kernel. Counts are kept in
``benchmarks/history/instructions.json`` and a rise is reported. They belong to one version of Python and
numpy: with another one, new counts replace the old.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import ROOT, clean_variables
from benchmarks.summary import text_table

STORE = ROOT / "benchmarks" / "history" / "instructions.json"
RISE = 0.05

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
    "full kNN, 300 + 20 x 10": (
        (
            "from calipers.conformal import TransductiveKNNClassifier as T; "
            "m = T(n_neighbors=5).fit(rng.random((300, 5)), np.arange(300) % 10); Z = rng.random((20, 5))"
        ),
        "m.predict_p(Z)",
    ),
    "calibration error, 20000": (
        "from calipers.metrics import calibration_error; f = rng.random(20000); y = rng.random(20000) < f",
        "calibration_error(y, f, random_state=0)",
    ),
    "isotonic fit, 20000": (
        "from calipers.calibration import IsotonicCalibrator as I; f = rng.random(20000); y = f**2 > 0.3 * f",
        "I().fit(f, y)",
    ),
    "coverage of intervals, 20000": (
        "from calipers.metrics import coverage; y = rng.random(20000); S = np.tile([0.0, 0.9], (20000, 1))",
        "coverage(y, S, alpha=0.1)",
    ),
    "T-CV, 20000": (
        "from calipers.metrics import t_cv; e = rng.random(20000); z = rng.random(20000) < 0.9",
        "t_cv(z, e, alpha=0.1)",
    ),
    "T-SS, 20000, 99 shuffles": (
        (
            "from calipers.metrics import t_ss; e = rng.random(20000); "
            "r = 1 + rng.poisson(4 * (1 - e)); s = 1 + rng.poisson(6 * (1 - e))"
        ),
        "t_ss(r, s, e, n_draws=99, random_state=0)",
    ),
    "isotonic prediction, 20000": (
        (
            "from calipers.calibration import IsotonicCalibrator as I; f = rng.random(20000); "
            "m = I().fit(f, rng.random(20000) < f)"
        ),
        "m.predict(f)",
    ),
    "worst slab, 500 x 4, 50 directions": (
        (
            "from calipers.metrics import worst_slab_coverage as w; "
            "X = rng.random((500, 4)); z = rng.random(500) < 0.9"
        ),
        "w(X, z, alpha=0.1, n_directions=50, random_state=0)",
    ),
}


def counted_program(kernels: dict[str, tuple[str, str]]) -> str:
    """A program that prepares every kernel, runs it once, and then once more when it is told to."""
    lines = ["import sys", "import numpy as np", "names = {}"]
    for prepare, call in kernels.values():
        start = f"import numpy as np; rng = np.random.default_rng(0); {prepare}"
        lines += [
            "names = {}",
            f"exec({start!r}, names)",
            f"call = compile({call!r}, 'kernel', 'exec')",
            "exec(call, names)",  # what is loaded on first use is not the kernel
            "print('ready', flush=True); sys.stdin.readline()",
            "exec(call, names)",
            "print('done', flush=True); sys.stdin.readline()",
        ]
    return "\n".join(lines)


def count(kernels: dict[str, tuple[str, str]]) -> dict[str, int | None]:
    """Instructions of one call of each kernel; None where it could not run."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        process = subprocess.Popen(
            [*command, sys.executable, "-c", counted_program(kernels)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
            env=clean_variables() | {"PYTHONHASHSEED": "0"},
        )  # fmt: skip
        with process:
            found = {name: count_next(process, out, i) for i, name in enumerate(kernels, start=1)}
    return found


def count_next(process: subprocess.Popen[str], out: Path, number: int) -> int | None:
    """Let the program run its next kernel with the counter on, and read what was counted."""
    assert process.stdin is not None
    assert process.stdout is not None
    for word, switch in (("ready", "on"), ("done", "off")):
        if process.stdout.readline().strip() != word:
            return None
        if switch == "off":
            control(process, "-d")  # writes the counts
        control(process, "-i", switch)
        if switch == "on":
            control(process, "-z")  # else the next counts are differences from the last
        process.stdin.write("\n")
        process.stdin.flush()
    written = out.with_name(f"{out.name}.{number}")
    totals = re.search(r"^(?:totals|summary): (\d+)", written.read_text(encoding="utf-8"), re.MULTILINE)
    return int(totals[1]) if totals else None


def control(process: subprocess.Popen[str], *words: str) -> None:
    """Talk to callgrind in a running process."""
    command = ["callgrind_control", *words, str(process.pid)]
    subprocess.run(command, capture_output=True, check=True)


def load() -> dict[str, Any]:
    """The stored counts and what they were made with."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {"with": "", "counts": {}}


def made_with() -> str:
    """What counts depend on."""
    return f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}"


def compare(found: dict[str, int | None], stored: dict[str, int]) -> tuple[list[list[str]], list[str]]:
    """The table of counts beside the stored ones, and the kernels that have become slower."""
    rows, slower = [["kernel", "instructions", "stored", "change"]], []
    for name, value in found.items():
        before = stored.get(name)
        change = "" if value is None or not before else f"{value / before - 1:+.1%}"
        rows.append([name, "could not run" if value is None else f"{value:,}", f"{before or 0:,}", change])
        if value is not None and before and value > before * (1 + RISE):
            slower.append(name)
    return rows, slower


def main() -> int:
    """Count, compare with the stored counts, store; exit 1 when a kernel has become slower."""
    if shutil.which("valgrind") is None:
        print(
            "instruction counts did not run: valgrind is missing (apt-get install valgrind)", file=sys.stderr
        )
        return 2
    stored = load()
    same = stored["with"] == made_with()
    before = stored["counts"] if same else {}
    found = count(KERNELS)
    rows, slower = compare(found, before)
    print(text_table(rows))
    if slower:
        print(f"slower than the stored counts: {', '.join(slower)}", file=sys.stderr)
        return 1
    counts = before | {name: value for name, value in found.items() if value is not None}
    STORE.parent.mkdir(parents=True, exist_ok=True)
    STORE.write_text(json.dumps({"with": made_with(), "counts": counts}, indent=1) + "\n", encoding="utf-8")
    return 0
