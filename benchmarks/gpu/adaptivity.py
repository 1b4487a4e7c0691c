"""Ease, T-CV, T-SS and the sets of four scores on one device: bytes moved over time, against its bandwidth.

Run it with torch installed, from the root of the repository::

    PYTHONPATH=src python -m benchmarks.gpu.adaptivity --device cuda --out adaptivity.json

The default size is the bar's: 40 000 rows, 1000 labels, 10 transformations, float32. With
``--rows 2000 --device cpu`` it works without a GPU. Every step is warmed up (compiled) first, then timed as
the best of several runs with the device synchronised. ``bytes`` counts what the step must read and write at
least once: the share of the bandwidth is therefore a lower bound of how busy the memory was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from calipers.conformal.score_table import score_rule
from calipers.difficulty import ease_from_outputs
from calipers.metrics import t_cv, t_ss
from calipers.metrics.adaptivity.binning import bin_by_ease
from calipers.metrics.adaptivity.ranks import rank_of_label

SCORES = ("lac", "aps", "raps", "saps")


def main() -> None:
    options = _options()
    found = report(
        torch.device(options.device), options.rows, options.labels, options.transforms, options.repeat
    )
    if options.out:
        Path(options.out).write_text(json.dumps(found, indent=2), encoding="utf-8")


def report(
    device: torch.device, rows: int = 40_000, labels: int = 1000, transforms: int = 10, repeat: int = 7
) -> dict[str, Any]:
    """Time and bytes of every step, printed and returned."""
    outputs = make_outputs(rows, labels, transforms, device)
    bandwidth = copy_bandwidth(device, repeat)
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "rows": rows,
        "labels": labels,
        "transforms": transforms,
        "copy bandwidth GB/s": bandwidth / 1e9,
        "steps": [],
    }
    for name, step, size in steps(*outputs):
        seconds = best_time(step, device, repeat)
        entry = {
            "step": name,
            "seconds": seconds,
            "bytes": size,
            "GB/s": size / seconds / 1e9,
            "share of copy bandwidth": size / seconds / bandwidth,
        }
        found["steps"].append(entry)
        share = entry["share of copy bandwidth"]
        print(f"{name:44s} {seconds * 1e3:9.3f} ms  {entry['GB/s']:8.1f} GB/s  {share:6.1%}")
    found["all steps seconds"] = sum(s["seconds"] for s in found["steps"] if not s["step"].startswith("("))
    print(f"all steps {found['all steps seconds'] * 1e3:.2f} ms; copy bandwidth {bandwidth / 1e9:.0f} GB/s")
    return found


def make_outputs(
    n: int, k: int, count: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Softmax outputs whose true label stands out less where the row is harder, and perturbed copies."""
    source = torch.Generator(device=device).manual_seed(0)
    hardness = torch.rand(n, 1, generator=source, device=device)
    labels = torch.randint(0, k, (n,), generator=source, device=device)
    logits = torch.randn(n, k, generator=source, device=device)
    logits[torch.arange(n, device=device), labels] += 9 * (1 - hardness[:, 0])
    transformed = torch.empty(count, n, k, device=device)
    for i in range(count):
        noise = torch.randn(n, k, generator=source, device=device)
        transformed[i] = torch.softmax(logits + (0.2 + hardness) * noise, dim=1)
    return torch.softmax(logits, dim=1), transformed, labels


def steps(
    clean: torch.Tensor, transformed: torch.Tensor, labels: torch.Tensor
) -> list[tuple[str, Callable[[], Any], int]]:
    """Name, what to run, and the bytes it cannot avoid moving."""
    n, k = clean.shape
    table = clean.numel() * clean.element_size()
    ease = ease_from_outputs(clean, transformed)
    ranks = rank_of_label(labels, clean)
    half = n // 2
    read = table * (len(transformed) + 1) + 4 * n
    found: list[tuple[str, Callable[[], Any], int]] = [
        ("ease (cosine)", lambda: ease_from_outputs(clean, transformed), read),
        ("rank of the true label", lambda: rank_of_label(labels, clean), table + 16 * n),
    ]
    for name in SCORES:
        step = partial(_sets, name, clean, labels, half)
        found += [(f"sets by {name}", step, table + n * k // 2)]
    sets = _sets("aps", clean, labels, half)
    size, covered = sets.sum(dim=1), sets[torch.arange(n - half, device=clean.device), labels[half:]]
    rank, score = ranks[half:], ease[half:]
    rows = n - half
    found += [
        ("sums over bins", lambda: bin_by_ease([covered, rank, size], score, 50), 40 * rows),
        ("(T-CV with interval and null law)", lambda: t_cv(covered, score, alpha=0.1), 16 * rows),
        ("(T-SS with interval and 99 permutations)", partial(_t_ss, rank, size, score), 24 * rows),
    ]
    return found


def _t_ss(rank: torch.Tensor, size: torch.Tensor, score: torch.Tensor) -> Any:
    return t_ss(rank, size, score, n_draws=99, random_state=0)


def _sets(name: str, P: torch.Tensor, labels: torch.Tensor, half: int) -> torch.Tensor:
    """Calibrate on the first half, predict the second, as the predictor does, without leaving the device."""
    rule = score_rule(name)
    scores = rule.at_labels(P[:half], labels[:half], None)
    rank = min(half, -(-(half + 1) * 9 // 10))
    threshold = torch.kthvalue(scores, rank).values
    if hasattr(rule, "sets"):
        limits = threshold.expand(P.shape[0] - half, 1)
        return rule.sets(P[half:], limits, None)[:, :, 0]
    return rule.matrix(P[half:], None) <= threshold


def copy_bandwidth(device: torch.device, repeat: int) -> float:
    """Bytes per second of a plain copy, read and write counted."""
    size = 1 << 28 if device.type == "cuda" else 1 << 24
    source = torch.zeros(size, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * size / best_time(lambda: target.copy_(source), device, repeat)


def best_time(step: Callable[[], Any], device: torch.device, repeat: int) -> float:
    """The shortest of several runs, after two that are not counted."""
    for _ in range(2):
        step()
    best = float("inf")
    for _ in range(repeat):
        _wait(device)
        start = time.perf_counter()
        step()
        _wait(device)
        best = min(best, time.perf_counter() - start)
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--transforms", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--out", default="")
    return parser.parse_args()


if __name__ == "__main__":
    main()
