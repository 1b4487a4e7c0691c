"""CIFAR-10H: the conditional coverage of an image can be counted, because 50 people labelled it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.progress import Progress

from calipers.conformal import conformal_quantile, lac
from calipers.datasets import load_cifar10_human
from calipers.metrics import ert_table
from studies.caching import remembered
from studies.conditional.rows import Row

ALPHA = 0.1
HEADER = (
    "model",
    "rows",
    "ert_l1",
    "ert_l2",
    "l2_error",
    "naive_l2",
    "direct_l2",
    "direct_error",
    "coverage",
)


def human_coverage(
    data: Path | None, models: tuple[str, ...], rows: int, folder: Path | None, progress: Progress
) -> list[Row]:
    """ERT of sets for labels drawn from the human law, beside the coverage counted directly."""
    found: list[Row] = []
    for name in progress.track(models, description="CIFAR-10H (d)"):
        outputs = load_cifar10_human(data, models=[name])
        if outputs.human_counts is not None:
            found.append(
                remembered(folder, _human, name, outputs.probabilities[name], outputs.human_counts, rows)
            )
    return found


def _human(name: str, probabilities: np.ndarray, human_counts: np.ndarray, rows: int) -> Row:
    rng = np.random.default_rng(0)
    order = rng.permutation(len(probabilities))[:rows]
    P, counts = probabilities[order], human_counts[order]
    drawn = _draw(counts, rng)
    fit, test = np.arange(len(P) // 2), np.arange(len(P) // 2, len(P))
    threshold = conformal_quantile(lac(P)[fit, drawn[fit]], ALPHA)
    sets = lac(P)[test] <= threshold
    covered = sets[np.arange(len(test)), drawn[test]]
    table = ert_table(P[test], covered, alpha=ALPHA, losses=("l1", "l2"), null=None, random_state=0)
    naive, direct, error = direct_excess(sets, counts[test])
    return {
        "model": name, "rows": len(test), "ert_l1": float(table["l1"]), "ert_l2": float(table["l2"]),
        "l2_error": float(table["l2"].std_error or 0.0), "naive_l2": naive, "direct_l2": direct,
        "direct_error": error, "coverage": float(covered.mean()),
    }  # fmt: skip


def direct_excess(sets: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    """Mean squared distance of an image's coverage from the target: as counted, and without the votes' noise.

    With c the share of m votes inside the set, ``(c - t)^2`` exceeds the truth by the variance of c, which
    ``c (1 - c) / (m - 1)`` estimates without bias.
    """
    votes = counts.sum(axis=1)
    share = (counts * sets).sum(axis=1) / votes
    squared = (share - (1 - ALPHA)) ** 2
    clean = squared - share * (1 - share) / (votes - 1)
    return float(squared.mean()), float(clean.mean()), float(clean.std(ddof=1) / np.sqrt(len(clean)))


def _draw(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    cumulative = np.cumsum(counts, axis=1)
    ticket = rng.integers(0, cumulative[:, -1])
    return np.asarray((ticket[:, None] >= cumulative).sum(axis=1))
