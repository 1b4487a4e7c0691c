"""``python -m benchmarks.small_calls``: metrics that are called in a loop, on few rows.

CPU milliseconds of one call (the least of many, in one process, with all checks, interval and test), beside
the bare numpy work where there is some, and the aim. One thread: others that wait for work count as busy.
Stored in ``benchmarks/history/small_calls.json``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402 - after the number of threads is set

from benchmarks.store import HISTORY, machine, now  # noqa: E402

STORE = HISTORY / "small_calls.json"
SECONDS = 1.5  # spent on each call
Call = Callable[[], Any]
# Call -> rows and the most milliseconds it should take.
AIMS = {
    "coverage": (100, 0.1),
    "coverage(n_calibration=)": (100, 0.4),
    "conformal_p_values, K = 10": (100, 0.1),
    "efficiency": (100, 0.4),
    "t_cv": (100, 0.3),
    "t_ss": (100, 2.0),
    "difficulty_concordance, groups of 50": (100, 20.0),
    "t_cv, ties": (10_000, 10.0),
    "calibration_error": (10_000, 25.0),
}
# What a call that misses its aim is made of, by profile.
REASONS = {
    "difficulty_concordance, groups of 50": (
        "a half is the product with 199 shuffles, a third draws 10 000 random halves of the rows"
    ),
    "calibration_error": "a half walks along 999 samples of coins, a third draws them",
    "efficiency": "the moments of twelve columns are a half, their exact intervals a third, checks the rest",
    "t_cv": "the bins are a third, intervals and the exact law a half, checks the rest",
    "t_cv, ties": "a half draws 9999 times the covered rows of every run of ties, a quarter adds them up",
    "t_ss": "a third shuffles 999 times, a quarter are the correlations of the shuffles",
}


def calls(rows: int) -> dict[str, tuple[Call, Call | None]]:
    """Every call on that many rows, and the bare numpy work behind it."""
    from calipers import metrics
    from calipers.conformal import conformal_p_values

    rng = np.random.default_rng(0)
    ease, y, ends = rng.random(rows), rng.random(rows), np.tile([0.0, 0.9], (rows, 1))
    p, labels, scores = rng.random((rows, 10)), rng.integers(0, 10, rows), rng.random(rows)
    covered, tied = rng.random(rows) < 0.9, np.round(ease, 2)
    ranks, size = 1 + rng.poisson(3 * (1 - ease)), 1 + rng.poisson(5 * (1 - ease))
    step, classes = max(1, rows // 50), np.arange(10)

    def bare_t_cv() -> Any:
        hits = covered[np.argsort(ease)].astype(float)
        return np.abs(np.add.reduceat(hits, np.arange(0, rows, step)) / step - 0.9).max()

    return {
        "coverage": (
            lambda: metrics.coverage(y, ends, alpha=0.1),
            lambda: np.mean((y >= ends[:, 0]) & (y <= ends[:, 1])),
        ),
        "coverage(n_calibration=)": (lambda: metrics.coverage(y, ends, alpha=0.1, n_calibration=500), None),
        "conformal_p_values, K = 10": (
            lambda: conformal_p_values(scores, p),
            lambda: (rows + 1 - np.searchsorted(np.sort(scores), p)) / (rows + 1),
        ),
        "efficiency": (lambda: metrics.efficiency(labels, p, alpha=0.1, classes=classes), None),
        "t_cv": (lambda: metrics.t_cv(covered, ease, alpha=0.1), bare_t_cv),
        "t_cv, ties": (lambda: metrics.t_cv(covered, tied, alpha=0.1), None),
        "t_ss": (lambda: metrics.t_ss(ranks, size, ease, random_state=0), None),
        "difficulty_concordance, groups of 50": (
            lambda: metrics.difficulty_concordance(ranks, size, group_size=50, random_state=0),
            None,
        ),
        "calibration_error": (lambda: metrics.calibration_error(y < ease, ease, random_state=0), None),
    }


def milliseconds(call: Call) -> float:
    """CPU time of one call: the least of as many as fit; whoever shares the machine adds to the others."""
    call()
    times: list[int] = []
    while sum(times) < SECONDS * 1e9 and len(times) < 2_000:
        start = time.process_time_ns()
        call()
        times.append(time.process_time_ns() - start)
    return min(times) / 1e6


def load() -> dict[str, Any]:
    """The stored run; empty without one."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}


def table() -> list[list[str]]:
    """Every call with its aim, and what those that miss it are made of."""
    head = ["call", "rows", "CPU", "bare numpy", "aim", "", "profile"]
    body = []
    for name, found in load().get("calls", {}).items():
        rows, aim = AIMS[name]
        bare = "" if found["bare"] is None else f"{found['bare']:.3g} ms"
        is_met = found["ours"] <= aim
        words = "" if is_met else REASONS.get(name, "no profile yet")
        verdict = "met" if is_met else "**unmet**"
        body.append([name, f"{rows:,}", f"{found['ours']:.3g} ms", bare, f"{aim:g} ms", verdict, words])
    return [head, *body]


def main() -> int:
    """Measure and store."""
    content: dict[str, Any] = {"date": now(), "machine": machine(), "calls": {}}
    made = {rows: calls(rows) for rows in {rows for rows, _ in AIMS.values()}}
    for name, (rows, aim) in AIMS.items():
        ours, bare = made[rows][name]
        found = {"ours": milliseconds(ours), "bare": None if bare is None else milliseconds(bare)}
        content["calls"][name] = found
        print(f"{name:40s} {rows:6d} rows {found['ours']:8.3f} ms, aim {aim:g}", flush=True)
    content["load"] = round(os.getloadavg()[0], 1)
    STORE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
