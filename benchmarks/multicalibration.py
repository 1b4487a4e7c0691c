"""Calibration in every slice on public data: repaired by Calipers, by MCGrad and by one isotonic map.

Run with ``python -m benchmarks.multicalibration --data FOLDER [--only NAME]``. A model that does not see the
attributes of the groups states probabilities of other rows. One half of them is repaired in each way, all are
compared on the other half: log loss, calibration of all rows, and the slice of at most two attributes that is
off most beyond its noise. MCGrad runs in its own environment (peers.toml), with the same features.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calipers
from benchmarks.environments import ROOT, build, clean_variables
from calipers.auditing.repair.recalibration import fit_multicalibrated
from calipers.datasets import load_adult, load_covtype
from calipers.inputs import check_features
from calipers.inputs.rows import Rows
from calipers.metrics import calibration_error, multicalibration_error

TRAIN, HALF = 5000, 10_000
FEWEST_SLICE_ROWS = 100


@dataclass
class Problem:
    """Stated probabilities, outcomes, features and attributes of both halves."""

    name: str
    X: np.ndarray
    y: np.ndarray
    stated: np.ndarray
    attributes: dict[str, np.ndarray]
    fit: slice
    test: slice


def fifths(values: np.ndarray) -> np.ndarray:
    """The fifth of every value, as text."""
    edges = np.quantile(values, [0.2, 0.4, 0.6, 0.8])
    return np.searchsorted(edges, values).astype(str)


def tables(name: str, folder: str) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], list[int]]:
    """Features, outcomes, attributes, and the columns that the model may see."""
    if name == "adult":
        data = load_adult(folder)
        features = check_features(data.X)
        attributes = {key: data.X[key].to_numpy().astype(str) for key in ("sex", "race")}
        attributes |= {
            "age": fifths(data.X["age"].to_numpy()),
            "hours": fifths(data.X["hours_per_week"].to_numpy()),
        }
        hidden = {"sex", "race", "relationship", "marital_status"}
        seen = [j for j, key in enumerate(features.names) if key not in hidden]
        return features.values, np.asarray(data.y).astype(int), attributes, seen
    data = load_covtype(folder)
    X, y = np.asarray(data.X, dtype=float), (np.asarray(data.y) == 2).astype(int)
    attributes = {"area": X[:, 10:14].argmax(axis=1).astype(str), "elevation": fifths(X[:, 0])}
    attributes |= {"slope": fifths(X[:, 2])}
    return X, y, attributes, list(range(10))


MODELS = {
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
    "naive Bayes": GaussianNB,
}


def problem(name: str, model: str, folder: str) -> Problem:
    """A model that does not see the attributes, and what it states about rows it was not trained on."""
    X, y, attributes, seen = tables(name, folder)
    X = np.where(np.isnan(X), -1.0, X)
    order = np.random.default_rng(0).permutation(len(y))
    own, rest = order[:TRAIN], order[TRAIN : TRAIN + 2 * HALF]
    stated = MODELS[model]().fit(X[np.ix_(own, seen)], y[own]).predict_proba(X[np.ix_(rest, seen)])[:, 1]
    stated = np.clip(stated, 1e-6, 1 - 1e-6)
    attributes = {key: values[rest] for key, values in attributes.items()}
    return Problem(
        f"{name}, {model}", X[rest], y[rest], stated, attributes, slice(None, HALF), slice(HALF, None)
    )


def table_of(p: Problem, rows: slice) -> pl.DataFrame:
    """The attributes of some rows."""
    return pl.DataFrame({key: values[rows] for key, values in p.attributes.items()})


def chosen_repair(p: Problem) -> tuple[np.ndarray, str]:
    """What `audit.repair()` takes by evidence; it keeps a fifth of the rows untouched."""
    given = {"probabilities": p.stated[p.fit], "X": p.X[p.fit], "groups": table_of(p, p.fit)}
    repair = calipers.audit(p.y[p.fit], **given, random_state=0).repair(held_out=0.2)
    words = next((t.name for t in repair.trials if t.chosen), "nothing to repair")
    asked = {"probabilities": p.stated[p.test], "X": p.X[p.test], "groups": table_of(p, p.test)}
    return np.asarray(repair.apply(asked).get("probabilities", p.stated[p.test])), words


def multicalibrated(p: Problem) -> np.ndarray:
    """The multicalibrated map by itself, from all rows of the half."""

    def rows(which: slice) -> Rows:
        both = np.column_stack([1 - p.stated[which], p.stated[which]])
        given = {"probabilities": both, "X": p.X[which], "groups": table_of(p, which), "y_true": p.y[which]}
        return Rows(given, classes=(0, 1))

    return np.asarray(fit_multicalibrated(rows(p.fit), np.random.default_rng(0)).apply(rows(p.test))[:, 1])


def isotonic(p: Problem) -> np.ndarray:
    """One map of scikit-learn for all rows."""
    fitted = IsotonicRegression(out_of_bounds="clip", y_min=1e-6, y_max=1 - 1e-6)
    return np.asarray(fitted.fit(p.stated[p.fit], p.y[p.fit]).predict(p.stated[p.test]))


def mcgrad(p: Problem) -> np.ndarray | None:
    """MCGrad with the attributes as categories and the features as numbers."""
    environment = build("mcgrad")
    if environment.python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "rows.npz", X=p.X, y=p.y, stated=p.stated, half=HALF, **p.attributes)
        script = ROOT / "benchmarks" / "multicalibration_peer.py"
        subprocess.run([environment.python, script, folder], check=True, env=clean_variables())
        return np.asarray(np.load(Path(folder) / "peer.npy"))


def worst_slice(p: Problem, stated: np.ndarray) -> tuple[str, float]:
    """The slice of one or two attributes that is off most beyond its noise, and by how much it is off."""
    attributes, y = {key: values[p.test] for key, values in p.attributes.items()}, p.y[p.test]
    worst: tuple[str, float, float] = ("", 0.0, -np.inf)
    for names in [*combinations(attributes, 1), *combinations(attributes, 2)]:
        labels = np.array([" ".join(row) for row in zip(*(attributes[key] for key in names), strict=True)])
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            if len(own) < FEWEST_SLICE_ROWS:
                continue
            gap = float(np.mean(y[own] - stated[own]))
            noise = float(np.sqrt(np.sum(stated[own] * (1 - stated[own]))) / len(own))
            if abs(gap) - noise > worst[2]:
                worst = (f"{'/'.join(names)}={label}", abs(gap), abs(gap) - noise)
    return worst[0], worst[1]


def log_loss(y: np.ndarray, stated: np.ndarray) -> float:
    """Mean logarithmic loss."""
    kept = np.clip(stated, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(y == 1, np.log(kept), np.log1p(-kept))))


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    names = [f"{name}, {model}" for name in ("adult", "covertype") for model in MODELS]
    print("| set, model | way | log loss | calibration error | worst slice off by | multicalibration error |")
    print("|---|---|---:|---:|---:|---:|")
    for name in [own for own in names if chosen.only in own]:
        p = problem(*name.split(", "), chosen.data)
        begin = time.process_time()
        repaired, words = chosen_repair(p)
        ways: dict[str, Any] = {"as stated": p.stated[p.test], "isotonic": isotonic(p)}
        ways |= {"MCGrad": mcgrad(p), "Calipers multicalibrated": multicalibrated(p)}
        ways[f"Calipers repair ({words})"] = repaired
        for way, stated in ways.items():
            if stated is None:
                print(f"| {name} | {way} | not installed | | | |", flush=True)
                continue
            y = p.y[p.test]
            marginal = float(calibration_error(y, stated, n_draws=1, random_state=0))
            multi = multicalibration_error(y, stated, table_of(p, p.test), random_state=0)
            place, off = worst_slice(p, stated)
            print(
                f"| {name} | {way} | {log_loss(y, stated):.4f} | {marginal:.4f} | {off:.3f} ({place}) "
                f"| {float(multi):.1f} (to {multi.null_high:.1f}) |", flush=True,
            )  # fmt: skip
        print(f"| {name} | {time.process_time() - begin:.0f} s | | | | |", flush=True)


if __name__ == "__main__":
    main()
