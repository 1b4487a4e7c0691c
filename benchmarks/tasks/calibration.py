"""Repairing probabilities: isotonic regression, its prediction, and Venn-Abers."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task


def distinct_scores(n: int) -> Inputs:
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return {"p": p, "y": (rng.random(n) < p**2).astype(np.int64)}


def rounded_scores(n: int) -> Inputs:
    inputs = distinct_scores(n)
    return inputs | {"p": np.round(inputs["p"], 3)}


def isotonic_fit(inputs: Inputs) -> Answers:
    from calipers.calibration import IsotonicCalibrator

    blocks = IsotonicCalibrator().fit(inputs["p"], inputs["y"]).blocks_
    return signed({"values": blocks.values, "lower": blocks.lower})


def scikit_learn_fit(inputs: Inputs) -> Answers:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(out_of_bounds="clip").fit(inputs["p"], inputs["y"])
    # It keeps both ends of every block; the first place of each value is its lower end.
    values, first = np.unique(model.y_thresholds_, return_index=True)
    return signed({"values": values, "lower": model.X_thresholds_[first]})


def signed(answers: Answers) -> Answers:
    """With a check sum of every bit: two libraries with the same one gave identical numbers."""
    total = 0
    for value in answers.values():
        total = zlib.crc32(np.ascontiguousarray(value, dtype=float), total)
    return answers | {"check sum": total}


def by_integers(inputs: Inputs) -> Answers:
    """Pool adjacent violators in whole numbers: blocks of first score, events and rows."""
    order = np.argsort(inputs["p"], kind="stable")
    scores, first = np.unique(inputs["p"][order], return_index=True)
    events = np.add.reduceat(inputs["y"][order], first).tolist()
    rows = np.diff(np.append(first, len(order))).tolist()
    blocks: list[list[Any]] = []
    for score, hits, count in zip(scores.tolist(), events, rows, strict=True):
        blocks.append([score, hits, count])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][2] >= blocks[-1][1] * blocks[-2][2]:
            _, hits_above, rows_above = blocks.pop()
            blocks[-1][1] += hits_above
            blocks[-1][2] += rows_above
    return {
        "values": np.array([hits / count for _, hits, count in blocks]),
        "lower": np.array([score for score, _, _ in blocks]),
    }


def every_row(inputs: Inputs) -> Answers:
    """The same, spread over the rows."""
    blocks = by_integers(inputs)
    place = np.searchsorted(blocks["lower"], inputs["p"], side="right") - 1
    return {"calibrated": blocks["values"][place]}


def the_same_blocks(exact: Answers, found: Answers) -> bool:
    """Equal to the whole-number fit, up to the rounding of a mean."""
    return all(
        np.shape(exact[key]) == np.shape(found[key])
        and np.allclose(exact[key], found[key], rtol=1e-12, atol=0)
        for key in exact
    )


def one_sort(inputs: Inputs) -> Answers:
    """The outcomes in the order of the scores."""
    return {"sorted": inputs["y"][np.argsort(inputs["p"])]}


def isotonic_round_trip(inputs: Inputs) -> Answers:
    from calipers.calibration import IsotonicCalibrator

    return signed({"calibrated": IsotonicCalibrator().fit_predict(inputs["p"], inputs["y"])})


def scikit_learn_round_trip(inputs: Inputs) -> Answers:
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(out_of_bounds="clip").fit_transform(inputs["p"], inputs["y"])
    return signed({"calibrated": fitted})


SIZES = (10_000, 100_000, 1_000_000)
BAR = "isotonic fit at 1e6 rows at least 2x faster than scikit-learn's IsotonicRegression, identical values"

TASKS = [
    Task(
        name="isotonic fit, distinct scores",
        sizes=SIZES,
        prepare=distinct_scores,
        ours=isotonic_fit,
        peers={"scikit-learn": scikit_learn_fit},
        limit=one_sort,
        exact=by_integers,
        agree=the_same_blocks,
        bar=BAR,
    ),
    Task(
        name="isotonic fit, scores of three digits",
        sizes=SIZES,
        prepare=rounded_scores,
        ours=isotonic_fit,
        peers={"scikit-learn": scikit_learn_fit},
        limit=one_sort,
        exact=by_integers,
        agree=the_same_blocks,
        bar=BAR,
    ),
    Task(
        name="isotonic fit and prediction",
        sizes=SIZES,
        prepare=distinct_scores,
        ours=isotonic_round_trip,
        peers={"scikit-learn": scikit_learn_round_trip},
        limit=one_sort,
        exact=every_row,
        agree=the_same_blocks,
        bar="faster than scikit-learn, identical values",
    ),
]
