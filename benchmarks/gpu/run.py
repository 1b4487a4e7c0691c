"""``python3 dev.py bench --gpu``: the kernels on GPU arrays against bare device primitives and two CPU cores.

For each job: our time on the device, the time of the primitives nobody can avoid (one sort, one search,
one cumulative sum, one read), and our own time on two CPU cores (numpy). Ranks must be identical on
both. Without a GPU the same script runs on the CPU at small sizes, to test itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "2")

import numpy as np  # noqa: E402 - after the number of threads is set

from benchmarks.store import HISTORY, now  # noqa: E402

STORE = HISTORY / "gpu.json"

CPU_SHARE = 20  # the CPU runs a twentieth of the rows; its time is scaled up, all these jobs are row by row
# Calls of each at least, and until both together took this long.
REPEATS, SECONDS = 20, 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """One comparison: inputs by size, our call, the bare primitives, how to compare the answers."""

    name: str
    make: Callable[[int], dict[str, np.ndarray]]
    size: int
    small: int
    ours: Callable[[dict[str, Any]], Any]
    bare: Callable[[dict[str, Any]], Any]
    exact: bool = True


def p_value_inputs(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"calibration": rng.random(n), "test": rng.random((n, min(1000, n)))}


def p_values(x: dict[str, Any]) -> Any:
    from calipers.conformal import conformal_p_values

    return conformal_p_values(x["calibration"], x["test"])


def bare_p_values(x: dict[str, Any]) -> Any:
    import torch

    ordered = torch.sort(x["calibration"]).values
    return torch.searchsorted(ordered, x["test"]).double() / (len(ordered) + 1)


def probability_inputs(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    P = rng.random((n, min(1000, n)), dtype=np.float32) ** 8
    return {"P": P / P.sum(axis=1, keepdims=True)}


def scores_by(score: str) -> Callable[[dict[str, Any]], Any]:
    def run(x: dict[str, Any]) -> Any:
        from calipers import conformal

        return getattr(conformal, score)(x["P"])

    return run


def bare_scores(x: dict[str, Any]) -> Any:
    import torch

    ordered, order = torch.sort(x["P"], dim=1, descending=True)
    total = torch.cumsum(ordered, dim=1, dtype=torch.float64)
    return torch.empty_like(total).scatter_(1, order, total)


def sets_by(score: str) -> Callable[[dict[str, Any]], Any]:
    """Sets the way `ConformalClassifier` makes them, with its check of the probabilities."""

    def run(x: dict[str, Any]) -> Any:
        from calipers.arrays import namespace
        from calipers.conformal.score_table import score_rule
        from calipers.inputs import check_probabilities

        P = check_probabilities(x["P"])
        xp = namespace(P)
        limits = xp.full((int(P.shape[0]), 1), 0.9, dtype=xp.float64, device=P.device)
        return score_rule(score).sets(P, limits, None)[:, :, 0]

    return run


def bare_sets(x: dict[str, Any]) -> Any:
    import torch

    ordered = torch.sort(x["P"], dim=1, descending=True).values
    size = (torch.cumsum(ordered, dim=1) <= 0.9).sum(dim=1, keepdim=True)
    return x["P"] >= torch.take_along_dim(ordered, torch.clamp(size - 1, min=0), dim=1)


def score_inputs(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    f = rng.random(n)
    return {"f": f, "y": rng.random(n) < f}


def calibration(x: dict[str, Any]) -> Any:
    from calipers.metrics import calibration_error

    return float(calibration_error(x["y"], x["f"], random_state=0))


def bare_calibration(x: dict[str, Any]) -> Any:
    import torch

    f, order = torch.sort(x["f"])
    walk = torch.cumsum(torch.take(x["y"].double(), order) - f, dim=0)
    return float(torch.max(walk) - torch.min(walk)) / len(f)


def criteria_inputs(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    k = min(1000, n)
    return {"y": rng.integers(0, k, n), "p": rng.random((n, k), dtype=np.float32)}


def criteria(x: dict[str, Any]) -> Any:
    from calipers.metrics import efficiency

    return {
        name: float(e) for name, e in efficiency(x["y"], x["p"], classes=np.arange(x["p"].shape[1])).items()
    }


def bare_read(x: dict[str, Any]) -> Any:
    return float(x["p"].sum())


def adaptivity_inputs(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    return {
        "covered": rng.random(n) < 0.9,
        "ease": rng.random(n),
        "size": rng.integers(1, 9, n).astype(float),
    }


def t_cv(x: dict[str, Any]) -> Any:
    from calipers.metrics import t_cv as measure

    return float(measure(x["covered"], x["ease"], alpha=0.1))


def t_ss(x: dict[str, Any]) -> Any:
    from calipers.metrics import t_ss as measure

    return float(measure(x["size"] + 1, x["size"], x["ease"], random_state=0))


def bare_ease_sort(x: dict[str, Any]) -> Any:
    import torch

    _, order = torch.sort(x["ease"])
    return torch.cumsum(torch.take(x["covered"].double(), order), dim=0)


def coverage_of(x: dict[str, Any]) -> Any:
    from calipers.metrics import coverage

    return float(coverage(x["y"], x["p"] > 0.1, alpha=0.1, classes=np.arange(x["p"].shape[1])))


JOBS = [
    Job("p-values, 20k x 20k x 1000", p_value_inputs, 20_000, 300, p_values, bare_p_values),
    Job("APS sets, 50k x 1000", probability_inputs, 50_000, 300, sets_by("aps"), bare_sets),
    Job("RAPS sets, 50k x 1000", probability_inputs, 50_000, 300, sets_by("raps"), bare_sets),
    Job("SAPS sets, 50k x 1000", probability_inputs, 50_000, 300, sets_by("saps"), bare_sets),
    Job("APS scores, 50k x 1000", probability_inputs, 50_000, 300, scores_by("aps"), bare_scores),
    Job("RAPS scores, 50k x 1000", probability_inputs, 50_000, 300, scores_by("raps"), bare_scores),
    Job("SAPS scores, 50k x 1000", probability_inputs, 50_000, 300, scores_by("saps"), bare_scores),
    Job("calibration error, 1e8", score_inputs, 100_000_000, 20_000, calibration, bare_calibration),
    Job("ten criteria, 50k x 1000", criteria_inputs, 50_000, 300, criteria, bare_read, exact=False),
    Job("T-CV, 1e7", adaptivity_inputs, 10_000_000, 5_000, t_cv, bare_ease_sort),
    Job("T-SS, 20k, 999 shuffles", adaptivity_inputs, 20_000, 5_000, t_ss, bare_ease_sort),
    Job("coverage of sets, 50k x 1000", criteria_inputs, 50_000, 300, coverage_of, bare_read),
]


def device_seconds(calls: Sequence[Callable[[], Any]], device: str) -> list[float]:
    """Best time of each call, in turns, the device emptied before and after.

    The calls take milliseconds and the host that launches their kernels has its moods: the best of many.
    """
    import torch

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    best, spent, repeat = [float("inf")] * len(calls), 0.0, 0
    while repeat <= REPEATS or spent < SECONDS:
        for k, call in enumerate(calls):
            wait()
            start = time.perf_counter()
            call()
            wait()
            seconds = time.perf_counter() - start
            best[k] = min(best[k], seconds) if repeat else best[k]  # the first call warms up
            spent += seconds
        repeat += 1
    return best


def same(left: Any, right: Any) -> bool:
    """Answers of both devices are equal: bit for bit where they count, to rounding where they add."""
    if isinstance(left, dict):
        return all(np.isclose(left[key], right[key], rtol=1e-4) for key in left)
    if isinstance(left, float):
        return bool(np.isclose(left, right, rtol=1e-9))
    return bool((left.cpu().numpy() == np.asarray(right)).all())


def measure(job: Job, device: str) -> dict[str, Any]:
    """Times and agreement of one job."""
    import torch

    size = job.size if device == "cuda" else job.small
    host = job.make(size)
    there = {name: torch.from_numpy(value).to(device) for name, value in host.items()}
    ours, bare = device_seconds([lambda: job.ours(there), lambda: job.bare(there)], device)
    small = job.make(max(job.small, size // CPU_SHARE))
    job.ours(job.make(job.small))  # imports what the first call on the host needs
    start = time.perf_counter()
    on_cpu = job.ours(small)
    cpu = (time.perf_counter() - start) * size / max(job.small, size // CPU_SHARE)
    moved = {name: torch.from_numpy(value).to(device) for name, value in small.items()}
    row = {"job": job.name, "device": device, "rows": size, "ours_ms": 1e3 * ours, "bare_ms": 1e3 * bare}
    row |= {"over_bare": ours / bare, "cpu_ms": 1e3 * cpu, "times_cpu": cpu / ours}
    return row | {"same": same(job.ours(moved), on_cpu)}


def main() -> int:
    """Measure every job and print the table; a run on a GPU is stored in the history."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(2)
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    rows = []
    for job in JOBS:
        if words and not any(word in job.name for word in words):
            continue
        row = measure(job, device)
        rows.append(row)
        print(
            f"{row['job']:32} ours {row['ours_ms']:9.2f} ms  bare {row['bare_ms']:9.2f} ms "
            f"({row['over_bare']:5.2f}x)  "
            f"two cores {row['cpu_ms']:10.0f} ms ({row['times_cpu']:6.0f}x)  same {row['same']}",
            flush=True,
        )
    if device == "cuda" and not words:
        from benchmarks.gpu.adaptivity import report

        keep(rows, report(torch.device(device)))
    elif device == "cpu":
        print("no CUDA device: a self-test at small sizes on the CPU, not stored", file=sys.stderr)
    return 0 if all(row["same"] for row in rows) else 1


def keep(rows: list[dict[str, Any]], chain: dict[str, Any]) -> None:
    """Store a run: in the file CALIPERS_GPU_OUT names, else in the history."""
    place = Path(os.environ.get("CALIPERS_GPU_OUT", STORE))
    content = {
        "date": now(),
        "device": chain["device"],
        "torch": chain["torch"],
        "rows": rows,
        "chain": chain,
    }
    place.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
