"""p-values: counts over n + 1, ties with one draw per object, and a label kept when p > alpha."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs
from benchmarks.stand_ins import Passes, random_probabilities
from benchmarks.traps.written import trap
from benchmarks.worker import memory_mb, reset_peak

LABELS = 3


def _torch(inputs: Inputs, *names: str) -> list[Any]:
    import torch

    return [torch.from_numpy(np.asarray(inputs[name])) for name in names]


def _metrics() -> Any:
    from benchmarks.torchcp_parts import torchcp_rooms

    return torchcp_rooms()[2]


def nonconformist_classifier(inputs: Inputs, *, smoothing: bool, condition: Any = None) -> Any:
    from nonconformist.base import ClassifierAdapter
    from nonconformist.icp import IcpClassifier
    from nonconformist.nc import ClassifierNc, InverseProbabilityErrFunc

    adapter = ClassifierAdapter(Passes(inputs["P"].shape[1]))
    scorer = ClassifierNc(adapter, InverseProbabilityErrFunc())
    model = IcpClassifier(scorer, condition=condition, smoothing=smoothing)
    model.fit(inputs["P"], inputs["y"])
    model.calibrate(inputs["P"], inputs["y"])
    return model


# A label whose p-value is exactly alpha: its score is above all n calibration scores, p = 1 / (n + 1).


def boundary(n: int) -> Inputs:
    p, y = np.linspace(0.9, 0.5, n), np.arange(n) % 2
    P = np.where(y[:, None] == np.arange(2), p[:, None], 1 - p[:, None])
    test = np.array([[0.125, 0.875]])
    return {"P": P, "y": y, "scores": 1 - p, "test": test, "strange": 1 - test}


def boundary_ours(inputs: Inputs) -> Answers:
    from sklearn.frozen import FrozenEstimator

    from calipers.conformal import ConformalClassifier

    model = ConformalClassifier(FrozenEstimator(Passes(2))).conformalize(inputs["P"], inputs["y"])
    return {"labels kept": int(model.predict_set(inputs["test"], 1 / (len(inputs["y"]) + 1)).sum())}


def boundary_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalClassifier

    level = 1 - 1 / (len(inputs["y"]) + 1)
    model = ConformalClassifier().fit(inputs["scores"])
    found = model.predict_set(inputs["strange"], confidence=round(level, 6), smoothing=False)
    return {"labels kept": int(np.sum(found))}


def boundary_nonconformist(inputs: Inputs) -> Answers:
    model = nonconformist_classifier(inputs, smoothing=False)
    return {
        "labels kept": int(
            model.predict(inputs["test"], significance=1 / (len(inputs["y"]) + 1))[:, :2].sum()
        )
    }


def boundary_torchcp(inputs: Inputs) -> Answers:
    scores, strange = _torch(inputs, "scores", "strange")
    found = _metrics().pvalue_criterion_N(scores, strange, alpha=1 / (len(scores) + 1))
    return {"labels kept": int(found)}


def boundary_trap(key: str, n: int) -> Any:
    peers = {
        "crepes": boundary_crepes,
        "nonconformist": boundary_nonconformist,
        "torchcp": boundary_torchcp,
    }
    return trap(key, {"labels kept": 1}, boundary_ours, peers, inputs=boundary(n))


# Two labels of one object with the same score: one draw per object gives them the same p-value.


def tied() -> Inputs:
    P = np.tile([0.4, 0.4, 0.2], (20, 1))
    return {"P": P, "y": np.zeros(20, int), "scores": np.full(20, 0.6), "test": P[:4], "strange": 1 - P[:4]}


def equal(p: Any) -> Answers:
    p = np.asarray(p, dtype=float)
    return {"equal": bool((p[:, 0] == p[:, 1]).all())}


def tied_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import conformal_p_values

    return equal(conformal_p_values(inputs["scores"], inputs["strange"], smoothed=True, random_state=0))


def tied_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalClassifier

    return equal(ConformalClassifier().fit(inputs["scores"]).predict_p(inputs["strange"], smoothing=True))


def tied_torchcp(inputs: Inputs) -> Answers:
    return equal(_metrics().compute_p_values(*_torch(inputs, "scores", "strange"), smooth=True))


def tied_nonconformist(inputs: Inputs) -> Answers:
    model = nonconformist_classifier(inputs | {"y": np.arange(20) % 3}, smoothing=True)
    return equal(model.predict(inputs["test"]))


# Label-conditional p-values: of a label with rows, and of one without any.


def labelled() -> Inputs:
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(LABELS), 40)
    return {"P": P[:30], "y": np.arange(30) % 2, "test": P[30:]}  # label 2 has no row


def exact_labelled() -> Answers:
    inputs = labelled()
    own = 1 - inputs["P"][inputs["y"] == 0, 0]
    p = [(1 + sum(own >= 1 - z)) / (len(own) + 1) for z in inputs["test"][:, 0]]
    return {"p of label 0": np.array(p)}


def labelled_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import conformal_p_values, lac

    scores = np.take_along_axis(lac(inputs["P"]), inputs["y"][:, None], axis=1)[:, 0]
    p = conformal_p_values(scores, lac(inputs["test"]), calibration_labels=inputs["y"])
    return {"p of label 0": p[:, 0], "p of label 2": p[:, 2]}


def labelled_crepes(inputs: Inputs) -> Answers:
    from crepes import WrapClassifier

    model = WrapClassifier(Passes(LABELS))
    model.calibrate(inputs["P"], inputs["y"], class_cond=True)
    p = np.asarray(model.predict_p(inputs["test"], smoothing=False))
    return {"p of label 0": p[:, 0], "p of label 2": p[:, 2]}


def labelled_nonconformist(inputs: Inputs) -> Answers:
    model = nonconformist_classifier(inputs, smoothing=False, condition=lambda z: z[1])
    return {"p of label 0": model.predict(inputs["test"])[:, 0]}


def labelled_torchcp(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    predictor, score, _ = torchcp_rooms()
    model = predictor.ClassConditionalPredictor(
        score.LAC(score_type="identity"), device=torch.device("cpu"), model=torch.nn.Identity()
    )
    model.calculate_threshold(*_torch(inputs, "P", "y"), 0.1)
    return {"p of label 0": np.asarray(model.predict_p(_torch(inputs, "test")[0]))[:, 0]}


# The eleventh of eleven scores: p = 1 / 11 whether rows come at once or one by one.


def eleventh_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import conformal_p_values

    return {"p": float(conformal_p_values(inputs["scores"], inputs["last"])[0])}


def eleventh_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalClassifier

    model = ConformalClassifier().fit(inputs["scores"])
    strange = np.column_stack([inputs["last"], np.zeros(1)])
    found = model.predict_p_online(
        strange, np.array([0, 1]), np.array([0]), all_classes=False, smoothing=False
    )
    return {"p": float(np.ravel(found)[0])}


def grouped_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import conformal_p_values

    groups = {"calibration_groups": np.zeros(10, int), "test_groups": np.zeros(1, int)}
    return {"p": float(conformal_p_values(inputs["scores"], inputs["last"], **groups)[0])}


def grouped_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalClassifier

    model = ConformalClassifier().fit(inputs["scores"], bins=np.zeros(10, int))
    strange = np.column_stack([inputs["last"], np.zeros(1)])
    found = model.predict_p_online(
        strange, np.array([0, 1]), np.array([0]), bins=np.zeros(1, int), smoothing=False
    )
    return {"p": float(np.asarray(found)[0, 0])}


# Full conformal p-values are probabilities and do not change from call to call.


def bag() -> Inputs:
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    return {"X": rng.normal(size=(40, 2)) + 2 * y[:, None], "y": y, "Z": rng.normal(size=(20, 2))}


def sound(first: Any, second: Any) -> Answers:
    first, second = np.asarray(first, float), np.asarray(second, float)
    inside = bool(((first > 0) & (first <= 1)).all())
    return {"inside (0, 1]": inside, "repeatable": bool(np.array_equal(first, second))}


def full_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import TransductiveKNNClassifier

    model = TransductiveKNNClassifier(n_neighbors=5).fit(inputs["X"], inputs["y"])
    return sound(model.predict_p(inputs["Z"]), model.predict_p(inputs["Z"]))


def full_nonconformist(inputs: Inputs) -> Answers:
    from nonconformist.base import ClassifierAdapter
    from nonconformist.cp import TcpClassifier
    from nonconformist.nc import ClassifierNc
    from sklearn.neighbors import KNeighborsClassifier

    model = TcpClassifier(ClassifierNc(ClassifierAdapter(KNeighborsClassifier(5))), smoothing=False)
    model.fit(inputs["X"], inputs["y"])
    return sound(model.predict(inputs["Z"]), model.predict(inputs["Z"]))


# Peak memory of one call in units of its output.


def many() -> Inputs:
    P, y = random_probabilities(3000, 10)
    scores = 1 - np.take_along_axis(P, y[:, None], axis=1)[:1500, 0]
    return {"scores": scores, "strange": 1 - P[1500:]}


def memory_of(call: Any, output_bytes: int) -> Answers:
    call()
    reset_peak()
    before = memory_mb("VmRSS")
    call()
    return {"times the output": (memory_mb("VmHWM") - before) * 2**20 / output_bytes}


def memory_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import conformal_p_values

    return memory_of(
        lambda: conformal_p_values(inputs["scores"], inputs["strange"]), inputs["strange"].nbytes
    )


def memory_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalClassifier

    model = ConformalClassifier().fit(inputs["scores"])
    return memory_of(lambda: model.predict_p(inputs["strange"], smoothing=False), inputs["strange"].nbytes)


def memory_torchcp(inputs: Inputs) -> Answers:
    scores, strange = _torch(inputs, "scores", "strange")
    return memory_of(lambda: _metrics().compute_p_values(scores, strange), inputs["strange"].nbytes)


def at_most(exact: Answers, found: Answers) -> bool:
    return bool(float(found["times the output"]) <= float(exact["times the output"]))


ELEVEN = {"scores": np.linspace(0.1, 0.8, 10), "last": np.array([0.9])}


def quiet(function: Any) -> Any:
    """The function with warnings shut: they are not what is judged."""

    def run(inputs: Inputs) -> Answers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(inputs)

    return run


TASKS = [
    boundary_trap("p-value: exactly alpha = 0.1", 9),
    boundary_trap("p-value: exactly alpha = 0.05", 19),
    trap(
        "p-value: one draw per object",
        {"equal": True},
        tied_ours,
        {"crepes": tied_crepes, "torchcp": tied_torchcp, "nonconformist": tied_nonconformist},
        inputs=tied,
    ),
    trap(
        "p-value: label-conditional",
        exact_labelled(),
        labelled_ours,
        {
            "crepes": quiet(labelled_crepes),
            "nonconformist": labelled_nonconformist,
            "torchcp": quiet(labelled_torchcp),
        },
        inputs=labelled,
    ),
    trap(
        "p-value: a label never calibrated",
        {"p of label 2": np.ones(10)},
        labelled_ours,
        {"crepes": quiet(labelled_crepes)},
        inputs=labelled,
    ),
    trap(
        "p-value: the last of eleven",
        {"p": 1 / 11},
        eleventh_ours,
        {"crepes": eleventh_crepes},
        inputs=ELEVEN,
    ),
    trap(
        "p-value: the last of eleven in a group",
        {"p": 1 / 11},
        grouped_ours,
        {"crepes": grouped_crepes},
        inputs=ELEVEN,
    ),
    trap(
        "p-value: full conformal",
        {"inside (0, 1]": True, "repeatable": True},
        full_ours,
        {"nonconformist": full_nonconformist},
        inputs=bag,
    ),
    trap(
        "p-value: memory of one call",
        {"times the output": 3.0},
        memory_ours,
        {"crepes": memory_crepes, "torchcp": memory_torchcp},
        inputs=many,
        agree=at_most,
    ),
]
