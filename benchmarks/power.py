"""How often tests find faults of a known size, at fixed points: one version of the package against another.

    python -m benchmarks.power --out new.json --runs 400
    PYTHONPATH=OTHER/src:. python -m benchmarks.power --out old.json --runs 400
    python -m benchmarks.power --table old.json new.json

Every run has its own seed, so that two versions see the same samples; points already in the file with as many
runs are not computed again. ``--only`` names the tests to run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

ALPHA, LEVEL = 0.1, 0.05
PValue = Callable[[np.random.Generator, int, int], float]


class Point(NamedTuple):
    """A test, a fault, how many rows show it, and the p-value of one sample."""

    test: str
    fault: str
    n: int
    p_value: PValue

    @property
    def key(self) -> str:
        """Its name in the file."""
        return f"{self.test} | {self.fault} | {self.n}"


def t_cv_slope(low: float) -> PValue:
    """T-CV where coverage rises along the ease, from ``low`` to as far above the target."""

    def p_value(rng: np.random.Generator, n: int, seed: int) -> float:
        from calipers.metrics import t_cv

        ease = rng.random(n)
        covered = rng.random(n) < low + 2 * (1 - ALPHA - low) * ease
        return float(t_cv(covered, ease, alpha=ALPHA, n_bins=20, random_state=seed).p_value)

    return p_value


def t_cv_hole(coverage: float) -> PValue:
    """T-CV where the hardest twentieth of the rows is covered less."""

    def p_value(rng: np.random.Generator, n: int, seed: int) -> float:
        from calipers.metrics import t_cv

        ease = rng.random(n)
        covered = rng.random(n) < np.where(ease < 0.05, coverage, 1 - ALPHA)
        return float(t_cv(covered, ease, alpha=ALPHA, n_bins=20, random_state=seed).p_value)

    return p_value


def ert_logistic(slope: float) -> PValue:
    """ERT where the logit of coverage rises along one of three features."""
    centre = ndtri((np.arange(4000) + 0.5) / 4000)
    at = brentq(lambda a: expit(a + slope * centre).mean() - (1 - ALPHA), 0, 10)

    def p_value(rng: np.random.Generator, n: int, seed: int) -> float:
        from calipers.metrics import ert

        X = rng.normal(size=(n, 3))
        covered = rng.random(n) < expit(at + slope * X[:, 0])
        return float(ert(X, covered, alpha=ALPHA, n_repeats=1, random_state=seed).p_value)

    return p_value


def ert_corner(coverage: float) -> PValue:
    """ERT where coverage is less in one of four corners of two of three features."""

    def p_value(rng: np.random.Generator, n: int, seed: int) -> float:
        from calipers.metrics import ert

        X = rng.normal(size=(n, 3))
        corner = (X[:, 0] > 0) & (X[:, 1] > 0)
        covered = rng.random(n) < np.where(corner, coverage, (1 - ALPHA - 0.25 * coverage) / 0.75)
        return float(ert(X, covered, alpha=ALPHA, n_repeats=1, random_state=seed).p_value)

    return p_value


def calibration(true_probability: Callable[[np.ndarray], np.ndarray]) -> PValue:
    """The sup-interval calibration error of uniform scores."""

    def p_value(rng: np.random.Generator, n: int, seed: int) -> float:
        from calipers.metrics import calibration_error

        f = rng.random(n)
        y = (rng.random(n) < true_probability(f)).astype(int)
        return float(calibration_error(y, f, pos_label=1, random_state=seed).p_value)

    return p_value


def regions(coverage: float) -> PValue:
    """Failing regions where a fifth of the rows is covered less: the smallest adjusted p-value."""

    def p_value(rng: np.random.Generator, n: int, seed: int) -> float:
        from calipers.metrics import failing_regions

        X = rng.uniform(0, 10, size=(n, 3))
        covered = rng.random(n) < np.where(X[:, 1] > 8, coverage, 1 - ALPHA)
        table = failing_regions(X, covered, alpha=ALPHA, keep="all", random_state=seed)
        return min((float(e.p_value) for e in table.values() if e.p_value is not None), default=1.0)

    return p_value


POINTS = (
    Point("T-CV", "coverage rises from 0.86 to 0.94 along the ease", 2000, t_cv_slope(0.86)),
    Point("T-CV", "coverage rises from 0.80 to 1.00 along the ease", 500, t_cv_slope(0.80)),
    Point("T-CV", "hardest twentieth covered 0.75", 2000, t_cv_hole(0.75)),
    Point("ERT", "logit of coverage rises by 0.8 per standard deviation", 200, ert_logistic(0.8)),
    Point("ERT", "logit of coverage rises by 0.6 per standard deviation", 500, ert_logistic(0.6)),
    Point("ERT", "one corner of four covered 0.80", 600, ert_corner(0.80)),
    Point("calibration error", "probabilities 0.04 too low", 1000,
          calibration(lambda f: np.minimum(f + 0.04, 1))),
    Point("calibration error", "0.12 too high from 0.6 to 0.8", 1000,
          calibration(lambda f: f - 0.12 * ((f > 0.6) & (f < 0.8)))),
    Point("calibration error", "slope 0.8 of the log-odds", 1000,
          calibration(lambda f: expit(0.8 * logit(f)))),
    Point("failing regions", "a fifth of the rows covered 0.80", 1000, regions(0.80)),
    Point("failing regions", "a fifth of the rows covered 0.70", 400, regions(0.70)),
)  # fmt: skip


def rejections(point: Point, runs: int) -> list[int]:
    """Whether each run rejects at 5 %."""
    words = [ord(letter) for letter in point.key]
    return [
        int(point.p_value(np.random.default_rng([*words, run]), point.n, run) <= LEVEL) for run in range(runs)
    ]


def measure(path: Path, runs: int, only: list[str] | None) -> None:
    """Run the points and keep their rejections, run by run."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for point in POINTS:
        if (only and point.test not in only) or len(found.get(point.key, ())) >= runs:
            continue
        found[point.key] = rejections(point, runs)
        path.write_text(json.dumps(found), encoding="utf-8")
        print(f"{point.key}: {np.mean(found[point.key]):.3f} of {runs}", flush=True)


def table(old: Path, new: Path) -> str:
    """Both versions on the runs that they share; the difference has the error of pairs."""
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (old, new))
    lines = ["| test | fault | rows | runs | before | now | now - before |", "|---|---|---|---|---|---|---|"]
    for point in POINTS:
        if point.key not in before or point.key not in after:
            continue
        runs = min(len(before[point.key]), len(after[point.key]))
        a, b = (np.array(found[point.key][:runs]) for found in (before, after))
        error = (b - a).std() / np.sqrt(runs)
        lines.append(
            f"| {point.test} | {point.fault} | {point.n} | {runs} | {a.mean():.3f} | {b.mean():.3f} "
            f"| {(b - a).mean():+.3f} ± {error:.3f} |"
        )
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    """Measure, or print the table of two files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="file of the rejections")
    parser.add_argument("--runs", type=int, default=400, help="samples per point")
    parser.add_argument("--only", nargs="*", help="tests to run")
    parser.add_argument("--table", type=Path, nargs=2, metavar=("OLD", "NEW"), help="compare two files")
    chosen = parser.parse_args(words)
    if chosen.out is not None:
        measure(chosen.out, chosen.runs, chosen.only)
    if chosen.table is not None:
        print(table(*chosen.table))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
