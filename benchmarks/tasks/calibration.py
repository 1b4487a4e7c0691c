"""Repairing probabilities: isotonic regression, its prediction, and Venn-Abers."""

from __future__ import annotations

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
    return {"values": blocks.values, "lower": blocks.lower}


def scikit_learn_fit(inputs: Inputs) -> Answers:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(out_of_bounds="clip").fit(inputs["p"], inputs["y"])
    # It keeps both ends of every block; the first place of each value is its lower end.
    values, first = np.unique(model.y_thresholds_, return_index=True)
    return {"values": values, "lower": model.X_thresholds_[first]}


def identical(ours: Answers, theirs: Answers) -> bool:
    return all(np.array_equal(ours[key], theirs[key]) for key in ours)


def one_sort(inputs: Inputs) -> Answers:
    return {"sorted": np.sort(inputs["p"])}


def isotonic_round_trip(inputs: Inputs) -> Answers:
    from calipers.calibration import IsotonicCalibrator

    return {"calibrated": IsotonicCalibrator().fit_predict(inputs["p"], inputs["y"])}


def scikit_learn_round_trip(inputs: Inputs) -> Answers:
    from sklearn.isotonic import IsotonicRegression

    return {"calibrated": IsotonicRegression(out_of_bounds="clip").fit_transform(inputs["p"], inputs["y"])}


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
        agree=identical,
        bar=BAR,
    ),
    Task(
        name="isotonic fit, scores of three digits",
        sizes=SIZES,
        prepare=rounded_scores,
        ours=isotonic_fit,
        peers={"scikit-learn": scikit_learn_fit},
        limit=one_sort,
        agree=identical,
        bar=BAR,
    ),
    Task(
        name="isotonic fit and prediction",
        sizes=SIZES,
        prepare=distinct_scores,
        ours=isotonic_round_trip,
        peers={"scikit-learn": scikit_learn_round_trip},
        limit=one_sort,
        agree=identical,
        bar="faster than scikit-learn, identical values",
    ),
]
