"""Full conformal prediction with nearest neighbours, tangent distance, and the size of the USPS study."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task

LABELS = 10


def prepare_bag(n: int, k: int) -> Inputs:
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, LABELS, n), rng.integers(0, LABELS, 100)
    centres = rng.normal(size=(LABELS, 10))
    X, Z = rng.normal(size=(n, 10)) + centres[y], rng.normal(size=(100, 10)) + centres[z]
    return {"X": X, "y": y, "Z": Z, "k": k}


def ours(inputs: Inputs) -> Answers:
    from calipers.conformal import TransductiveKNNClassifier

    model = TransductiveKNNClassifier(n_neighbors=int(inputs["k"]))
    return {"p": model.fit(inputs["X"], inputs["y"]).predict_p(inputs["Z"])}


def online_cp(inputs: Inputs) -> Answers:
    from online_cp.classifiers import ConformalNearestNeighboursClassifier

    class NoSmoothing:  # its p-values are always smoothed; tau = 1 gives the deterministic ones
        def uniform(self, low: float, high: float) -> float:
            return high

    model = ConformalNearestNeighboursClassifier(k=int(inputs["k"]), label_space=np.arange(LABELS))
    model.rnd_gen = NoSmoothing()
    model.learn_initial_training_set(inputs["X"], inputs["y"])
    rows = [model.predict(z, return_p_values=True)[1] for z in inputs["Z"]]
    return {"p": np.array([[row[label] for label in range(LABELS)] for row in rows])}


def nonconformist(inputs: Inputs) -> Answers:
    """Full conformal prediction with another score, the share of votes: timed, not compared."""
    from nonconformist.base import ClassifierAdapter
    from nonconformist.cp import TcpClassifier
    from nonconformist.nc import ClassifierNc
    from sklearn.neighbors import KNeighborsClassifier

    scorer = ClassifierNc(ClassifierAdapter(KNeighborsClassifier(int(inputs["k"]))))
    model = TcpClassifier(scorer, smoothing=False)
    model.fit(inputs["X"], inputs["y"])
    return {"p of votes": model.predict(inputs["Z"])}


def from_the_definition(inputs: Inputs) -> Answers:
    """For the first ten objects and every label: put the object into the bag, score every member, count."""
    X, y, k = inputs["X"], inputs["y"], int(inputs["k"])
    p = np.empty((10, LABELS))
    for i, z in enumerate(inputs["Z"][:10]):
        bag = np.vstack([X, z])
        D = np.sqrt(((bag[:, None] - bag) ** 2).sum(axis=2))
        np.fill_diagonal(D, np.inf)
        for label in range(LABELS):
            same = np.append(y, label)[:, None] == np.append(y, label)
            near = np.sort(np.where(same, D, np.inf), axis=1)[:, :k].sum(axis=1)
            far = np.sort(np.where(same, np.inf, D), axis=1)[:, :k].sum(axis=1)
            scores = near / far
            p[i, label] = (scores >= scores[-1] * (1 - 1e-12)).mean()
    return {"p": p}


def distances_and_selection(inputs: Inputs) -> Answers:
    """Every distance, and the K smallest of every row: nobody has the neighbours for less."""
    from scipy.spatial.distance import cdist

    X, k = inputs["X"], int(inputs["k"])
    nearest = [np.partition(cdist(rows, X), k - 1, axis=1)[:, :k] for rows in (X, inputs["Z"])]
    return {"sum": sum(part.sum() for part in nearest)}


def identical(mine: Answers, theirs: Answers) -> bool:
    """The exact ones are those of the first ten objects."""
    mine, theirs = (np.asarray(answers["p"])[:10] for answers in (mine, theirs))
    return bool(np.abs(mine - theirs).max() < 1e-12)


def prepare_images(n: int) -> Inputs:
    """Smooth random strokes of ten kinds on 16 x 16 pixels."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:16, :16] - 7.5
    labels = rng.integers(0, LABELS, n)
    bend, angle = 0.1 * np.cos(labels) + 0.01 * rng.normal(size=n), labels + 0.1 * rng.normal(size=n)
    across = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    along = np.cos(angle)[:, None, None] * y - np.sin(angle)[:, None, None] * x
    images = np.exp(-((across - bend[:, None, None] * along**2) ** 2) / 4) + 0.05 * rng.normal(
        size=(n, 16, 16)
    )
    return {"images": images.reshape(n, -1), "labels": labels}


def tangent(inputs: Inputs) -> Answers:
    from calipers.conformal import tangent_distances

    return {"sum": tangent_distances(inputs["images"]).sum()}


def products_alone(inputs: Inputs) -> Answers:
    """The matrix products of half the pairs: eight vectors per image."""
    stack = np.tile(inputs["images"], (8, 1))
    half = stack[: len(stack) // 2]
    return {"sum": sum(float((half[i : i + 256] @ stack.T).sum()) for i in range(0, len(half), 256))}


def six_families(inputs: Inputs) -> Answers:
    """The work of ``python3 dev.py study efficiency`` on images of the same number and size."""
    from studies.efficiency.digits import Digits, normalise
    from studies.efficiency.matrices import METRICS, MatrixStore
    from studies.efficiency.predictors import neighbour_p_values
    from studies.progress import study_progress

    X, y = inputs["images"], inputs["labels"]
    n = len(X) * 7291 // 9298
    digits = Digits(normalise(X[:n]), normalise(X[n:]), X[:n], X[n:], y[:n], y[n:])
    with tempfile.TemporaryDirectory() as folder, study_progress() as progress:
        store = MatrixStore(digits, Path(folder))
        for metric in METRICS:
            store.compute(metric, progress)
        p = neighbour_p_values(digits, store, 50, seed=0, progress=progress)
    return {"mean": float(np.mean([family.mean() for family in p.values()]))}


TASKS = [
    *(
        Task(
            name=f"full kNN, K = {k}",
            sizes=(250, 500, 1000),
            prepare=lambda n, k=k: prepare_bag(n, k),
            ours=ours,
            peers={"online-cp": online_cp, "nonconformist": nonconformist},
            limit=distances_and_selection,
            exact=from_the_definition,
            agree=identical,
            bar="n = 1000, 100 test objects, 10 labels: 100x faster than online-cp, identical p-values",
        )
        for k in (1, 5)
    ),
    Task(
        name="tangent distances",
        sizes=(256, 512, 1024),
        prepare=prepare_images,
        ours=tangent,
        limit=products_alone,
        bar="within 5x of the matrix products it needs",
    ),
    Task(
        name="USPS study",
        sizes=(600, 2400, 9298),
        prepare=prepare_images,
        ours=six_families,
        bar="298 predictors: under 15 minutes and 6 GB on two cores",
        quick=False,
    ),
]
