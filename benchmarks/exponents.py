"""``python -m benchmarks.exponents``: how the cost of every metric grows with rows and with labels.

CPU seconds of one call, best of a few, at 10^3, 10^4, 10^5 and 10^6 rows (`tests.contract.examples` gives the
arguments of every registered metric), and at 10, 100 and 1000 labels and 2000 rows for what reads tables. A
size whose call would take longer than a few seconds is left out. Stored in
``benchmarks/history/exponents.json``, after every metric; ``--only WORD,WORD`` measures some again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.store import HISTORY, machine, now
from benchmarks.summary import seconds

STORE = HISTORY / "exponents.json"
ROWS, LABELS, ROWS_OF_TABLES = (1_000, 10_000, 100_000, 1_000_000), (10, 100, 1_000), 2_000
LONGEST = 6.0  # seconds of one call
REPEATS, ENOUGH = 3, 0.3  # calls, and seconds after which no further one is made
# n log n between the two largest sizes, and what a busy machine adds to a ratio of two CPU times.
MOST = math.log10(10 * 6 / 5) + 0.13

Call = Callable[[], Any]
# What grows faster than that between the two largest sizes, and why.
_CACHE = "columns of a million rows no longer fit into the cache"
_THRESHOLD = (
    "counts too many for a table: an integral over up to 4096 coverages for each distinct size, whatever the "
    "number of rows"
)
STATED = {
    "t_cv": _THRESHOLD,
    "escv": _THRESHOLD,
    "t_ss": f"one sort, by order; {_CACHE}",
    "difficulty_concordance": f"twenty shuffled copies of all rows; {_CACHE}",
    "calibration_slope": f"some thirty passes; {_CACHE}",
    "ert": f"trees, n log n per level; {_CACHE}",
    "ert_table": f"trees, n log n per level; {_CACHE}",
    "aps": "K log K, one sort per row",
    "raps": "K log K, one sort per row",
    "saps": "K log K, one sort per row",
}


def metric_call(name: str, n: int) -> Call:
    """One call of a registered metric on its example of n rows."""
    from tests.contract.examples import EXAMPLES

    from calipers.metrics import metric_entry

    entry = metric_entry(name)
    data, options = EXAMPLES[name](np.random.default_rng(0), n)
    seeded = {"random_state": 0} if entry.randomized else {}
    return lambda: entry.function(**data, **options, **seeded)


def table_calls(labels: int) -> dict[str, Call]:
    """Calls that read a table with a column per label."""
    from calipers import conformal, metrics
    from calipers.difficulty import ease_from_outputs

    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(labels), size=ROWS_OF_TABLES)
    y, p, calibration = rng.integers(0, labels, len(P)), rng.random(P.shape), rng.random(len(P))
    known = {"classes": np.arange(labels)}
    return {
        "conformal_p_values": lambda: conformal.conformal_p_values(calibration, p),
        "aps": lambda: conformal.aps(P),
        "raps": lambda: conformal.raps(P),
        "saps": lambda: conformal.saps(P),
        "lac": lambda: conformal.lac(P),
        "coverage": lambda: metrics.coverage(y, p > 0.1, alpha=0.1, **known),
        "efficiency": lambda: metrics.efficiency(y, p, **known),
        "true_rank": lambda: metrics.true_rank(y, P, **known),
        "proper_scores": lambda: metrics.proper_scores(y, P, **known),
        "calibration_error, top label": lambda: metrics.calibration_error(y, P, random_state=0, **known),
        "ease": lambda: ease_from_outputs(P, [P[:, ::-1]]),
    }


def cost(call: Call) -> float:
    """CPU seconds of one call: the best of a few."""
    best, spent = math.inf, 0.0
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        own = time.process_time() - start
        best, spent = min(best, own), spent + own
        if spent > ENOUGH:
            break
    return max(best, 1e-7)


def costs(make: Callable[[int], Call], sizes: tuple[int, ...]) -> dict[str, float]:
    """The cost at every size that is not too long to wait for."""
    found: dict[str, float] = {}
    last = 0.0
    for size in sizes:
        if 12 * last > LONGEST:
            break
        last = found[str(size)] = cost(make(size))
    return found


def exponent(found: dict[str, float]) -> float:
    """Slope of log cost against log size between the two largest sizes; NaN for one size."""
    pairs = [(int(size), seconds) for size, seconds in found.items()][-2:]
    if len(pairs) < 2:
        return math.nan
    (m, first), (n, second) = pairs
    return math.log(second / first) / math.log(n / m)


def table(key: str) -> list[list[str]]:
    """The stored costs and exponents, a row per metric, with what is said of those that grow faster."""
    stored = load()
    sizes = ROWS if key == "rows" else LABELS
    head = ["metric", *(f"{size:,}" for size in sizes), "exponent", ""]
    body = []
    for name, found in sorted(stored.get(key, {}).items()):
        slope = exponent(found)
        shown = ["" if str(s) not in found else seconds(found[str(s)]) for s in sizes]
        body.append([name, *shown, "" if math.isnan(slope) else f"{slope:.2f}", STATED.get(name, "")])
    return [head, *body]


def load() -> dict[str, Any]:
    """The stored run; empty without one."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}


def main(arguments: list[str]) -> int:
    """Measure, store after every metric, print the table."""
    from calipers.metrics import metric_entries

    parser = argparse.ArgumentParser(prog="python -m benchmarks.exponents", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD,WORD")
    wanted = parser.parse_args(arguments).only.split(",")
    content = load() | {"date": now(), "machine": machine()}
    jobs = [("rows", e.name, lambda n, name=e.name: metric_call(name, n), ROWS) for e in metric_entries()]
    names = table_calls(LABELS[0])
    jobs += [("labels", name, lambda k, name=name: table_calls(k)[name], LABELS) for name in names]
    for key, name, make, sizes in jobs:
        if not any(word in name for word in wanted):
            continue
        found = costs(make, sizes)
        content.setdefault(key, {})[name] = found
        content["load"] = max(content.get("load", 0.0), round(os.getloadavg()[0], 1))
        STORE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"{key:7s} {name:32s} {exponent(found):6.2f}  {found}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
