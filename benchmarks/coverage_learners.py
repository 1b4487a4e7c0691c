"""Which learner of P(covered | x) recovers most of the excess risk, and at what cost.

    python -m benchmarks.coverage_learners --data DIR --out learners.csv
    python -m benchmarks.coverage_learners --out learners.csv --table

Every learner is fitted to n rows and evaluated on all others: on public regression sets (split 40 / 10 / 50,
a constant-width split-conformal predictor, at most 8 000 test rows) against what happened, in worlds with
known truth against the true coverage. Rows already in the file are not computed again. ``--label`` names the
default of another version, put on PYTHONPATH instead of this one.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ALPHA = 0.1
PUBLIC = ("concrete", "kin8nm", "power", "wine_white", "california", "bike", "bio")
WORLDS = ("one width", "corner", "xor", "logistic", "sound")
SIZES = (160, 400, 1600, 6400)
REPEATS = 4
HEADER = ("data", "n", "repeat", "learner", "l1", "l2", "kl", "seconds")
_MOST_ROWS = 16_000
_FRESH = 4000


class Case(NamedTuple):
    """Training rows first, then rows to evaluate; ``coverage`` is their true coverage, or what happened."""

    X: np.ndarray
    covered: np.ndarray
    n: int
    coverage: np.ndarray


def learners() -> dict[str, Any]:
    """What is compared; None is the default of `ert`."""
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    compared = {
        "default": None,
        "random forest": RandomForestClassifier(100, min_samples_leaf=5),
        "extra trees": ExtraTreesClassifier(100, min_samples_leaf=5),
        "boosting, early stop": HistGradientBoostingClassifier(
            max_leaf_nodes=8, l2_regularization=20.0, early_stopping=True, validation_fraction=0.2,
            n_iter_no_change=5,
        ),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    }  # fmt: skip
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        return compared
    return compared | {"LightGBM": "lightgbm"}


def public_case(name: str, n: int, repeat: int, data: Path) -> Case | None:
    """The test part of a public set in random order; None when it is too small."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from calipers.conformal import ConformalRegressor
    from calipers.datasets import load_regression
    from calipers.metrics import is_covered

    loaded = load_regression(name, data)
    order = np.random.default_rng(0).permutation(len(loaded.y))[:_MOST_ROWS]
    X, y = np.asarray(loaded.X, dtype=float)[order], loaded.y[order]
    order = np.random.default_rng(repeat).permutation(len(y))
    train, calibrate, test = np.split(order, [int(0.4 * len(y)), int(0.5 * len(y))])
    if len(test) < n + 100:
        return None
    model = ConformalRegressor(HistGradientBoostingRegressor(random_state=0)).fit(X[train], y[train])
    model.conformalize(X[calibrate], y[calibrate])
    covered = np.asarray(is_covered(y[test], model.predict_interval(X[test], alpha=ALPHA)))
    return Case(X[test], covered, n, covered[n:].astype(float))


def world_case(name: str, n: int, repeat: int) -> Case:
    """Rows of a world, and the true coverage of those to evaluate."""
    from scipy.special import expit

    from calipers.datasets import HeteroscedasticWorld, InteractionWorld

    rng, rows = np.random.default_rng([repeat, n]), n + _FRESH
    if name in ("corner", "xor"):
        X, covered, coverage = InteractionWorld(name, inside=0.6 if name == "corner" else 0.8).sample(
            rows, rng
        )
        return Case(X, covered, n, coverage[n:])
    if name == "logistic":
        X = rng.normal(size=(rows, 3))
        coverage = expit(2.42 + 0.8 * X[:, 0])
    else:
        world = HeteroscedasticWorld()
        X, _ = world.sample(rows, random_state=rng)
        ends = world.constant_intervals if name == "one width" else world.oracle_intervals
        coverage = world.coverage_at(X, ends(X, alpha=ALPHA))
    return Case(X, rng.random(rows) < coverage, n, coverage[n:])


def evaluated(case: Case, learner: Any, repeat: int) -> dict[str, float]:
    """The excess risks of the learner fitted to the first n rows, on the others, and its CPU seconds."""
    from calipers.metrics import ert_table
    from calipers.metrics.conditional.losses import DISTANCES

    rows = np.arange(len(case.X))
    split = [(rows[: case.n], rows[case.n :])]
    start = time.process_time()
    table = ert_table(
        case.X, case.covered, alpha=ALPHA, classifier=learner, cv=split, null=None, random_state=repeat
    )
    seconds = time.process_time() - start
    h, target = table["l1"].details["predictions"][case.n :], np.full(len(case.coverage), 1 - ALPHA)
    risks = {
        loss: DISTANCES[loss].contributions(h, case.coverage, target).mean() for loss in ("l1", "l2", "kl")
    }
    return {loss: float(risk) for loss, risk in risks.items()} | {"seconds": seconds}


def compare(
    out: Path, data: Path | None, *, sizes: tuple[int, ...] = SIZES, repeats: int = REPEATS, label: str = ""
) -> None:
    """Append what is missing in the file, row by row; a label compares the default alone, under that name."""
    done = {tuple(row[key] for key in HEADER[:4]) for row in read(out)} if out.exists() else set()
    compared = {label: None} if label else learners()
    names = (*PUBLIC, *WORLDS) if data is not None else WORLDS
    with out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER)
        if not out.stat().st_size:
            writer.writeheader()
        for name, n, repeat in ((d, n, r) for d in names for n in sizes for r in range(repeats)):
            missing = [k for k in compared if (name, str(n), str(repeat), k) not in done]
            case = _case(name, n, repeat, data) if missing else None
            for key in missing if case is not None else ():
                risks = evaluated(case, compared[key], repeat)
                writer.writerow({"data": name, "n": n, "repeat": repeat, "learner": key, **risks})
                file.flush()


def _case(name: str, n: int, repeat: int, data: Path | None) -> Case | None:
    if name in WORLDS:
        return world_case(name, n, repeat)
    return None if data is None else public_case(name, n, repeat, data)


def read(out: Path) -> list[dict[str, str]]:
    """The rows of the file."""
    with out.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shares(rows: list[dict[str, str]], loss: str) -> Iterator[tuple[str, int, str, float, float]]:
    """Kind of data, n, learner: mean share of the largest risk of the data set, and mean CPU seconds.

    The largest is over learners and sizes, of means over repeats; negative risks count as 0.
    """
    cells: dict[tuple[str, int, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        cells[row["data"], int(row["n"]), row["learner"]].append((float(row[loss]), float(row["seconds"])))
    means = {key: np.mean(values, axis=0) for key, values in cells.items()}
    largest: dict[str, float] = defaultdict(float)
    for (data, _, _), (risk, _) in means.items():
        largest[data] = max(largest[data], float(risk))
    grouped: dict[tuple[str, int, str], list[tuple[float, float]]] = defaultdict(list)
    for (data, n, learner), (risk, seconds) in means.items():
        if data != "sound" and largest[data] > 0:
            kind = "worlds" if data in WORLDS else "public"
            grouped[kind, n, learner].append((max(0.0, float(risk)) / largest[data], float(seconds)))
    for (kind, n, learner), values in sorted(grouped.items()):
        share, seconds = np.mean(values, axis=0)
        yield kind, n, learner, float(share), float(seconds)


def table(rows: list[dict[str, str]]) -> str:
    """Shares of L1, L2 and KL and CPU seconds of a fit and its predictions, as a Markdown table."""
    lines = ["| data | n | learner | L1 | L2 | KL | seconds |", "|---|---|---|---|---|---|---|"]
    each = [{key[:3]: key[3:] for key in shares(rows, loss)} for loss in ("l1", "l2", "kl")]
    for key in each[0]:
        percent = " | ".join(f"{100 * part[key][0]:.0f} %" for part in each)
        lines.append(f"| {key[0]} | {key[1]} | {key[2]} | {percent} | {each[0][key][1]:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--label", default="")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        print(table(read(given.out)))
    else:
        compare(given.out, given.data, label=given.label)


if __name__ == "__main__":
    main()
