"""The audit as a whole: six questions about rows with 20 features and 10 classes. No peer does this job."""

from __future__ import annotations

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task

N_CLASSES, N_FEATURES, N_CALIBRATION = 10, 20, 5000


def prepare(n: int) -> Inputs:
    """A linear model that knows the truth, conformalised on rows of its own."""
    from calipers.conformal import conformal_p_values, lac

    rng = np.random.default_rng(0)
    rows = n + N_CALIBRATION
    X = rng.normal(size=(rows, N_FEATURES))
    logits = X @ rng.normal(size=(N_FEATURES, N_CLASSES)) * 0.5
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    y = (rng.random((rows, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, N_CLASSES - 1)
    scores = lac(P[:N_CALIBRATION])[np.arange(N_CALIBRATION), y[:N_CALIBRATION]]
    return {
        "y": y[N_CALIBRATION:],
        "P": P[N_CALIBRATION:],
        "p_values": conformal_p_values(scores, lac(P[N_CALIBRATION:])),
        "X": X[N_CALIBRATION:],
        "groups": rng.integers(0, 8, n),
        "ease": P[N_CALIBRATION:].max(axis=1),
    }


def ours(inputs: Inputs) -> Answers:
    """All six questions."""
    import calipers

    found = calipers.audit(
        inputs["y"], probabilities=inputs["P"], p_values=inputs["p_values"], X=inputs["X"],
        groups=inputs["groups"], ease=inputs["ease"], n_calibration=N_CALIBRATION, random_state=0,
    )  # fmt: skip
    return {
        "coverage": float(found.estimates["coverage"]),
        "questions": sum(plan.answered for plan in found.plan),
    }


def by_counting(inputs: Inputs) -> Answers:
    """Covered rows: those whose own label has a p-value above 0.1, counted in whole numbers of 1/5001."""
    own = inputs["p_values"][np.arange(len(inputs["y"])), inputs["y"]]
    return {
        "coverage": float((np.rint(own * (N_CALIBRATION + 1)) * 10 > N_CALIBRATION + 1).mean()),
        "questions": 6,
    }


def prepare_repair(n: int) -> Inputs:
    """The same rows stated by a model that is too sure of itself."""
    inputs = prepare(n)
    sharp = inputs["P"] ** 1.5
    return inputs | {"P": sharp / sharp.sum(axis=1, keepdims=True)}


def repair(inputs: Inputs) -> Answers:
    """An audit of probabilities and its repair."""
    import calipers

    found = calipers.audit(
        inputs["y"], probabilities=inputs["P"], X=inputs["X"], groups=inputs["groups"], random_state=0
    )
    return {"recalibrated": int(found.repair().rule.probability_map is not None)}


def by_making(inputs: Inputs) -> Answers:
    """They are miscalibrated by construction."""
    return {"recalibrated": 1}


TASKS = (
    Task(
        name="repair",
        sizes=(1_000, 10_000, 100_000),
        prepare=prepare_repair,
        ours=repair,
        exact=by_making,
        bar="an audit of 10 000 rows x 20 features x 10 classes and its repair within 20 s",
    ),
    Task(
        name="audit",
        sizes=(10_000, 100_000, 1_000_000),
        prepare=prepare,
        ours=ours,
        exact=by_counting,
        bar="100 000 x 20 features x 10 classes, six questions, under 30 s; 1e6 rows under 3 min and 4 GB",
        quick=True,
    ),
)
