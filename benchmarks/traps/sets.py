"""Prediction sets: the same rule for calibration and test rows, exact comparisons, any number of rows."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs
from benchmarks.stand_ins import Passes, as_matrix, puncc_predictor, random_probabilities
from benchmarks.traps.p_values import quiet
from benchmarks.traps.written import trap, within

ALPHA, LABELS = 0.1, 10


def split(n: int = 2000, m: int = 8000, labels: int = LABELS, flatness: float = 0.3) -> Inputs:
    """A model that knows the truth: calibration rows, test rows, and their labels."""
    P, y = random_probabilities(n + m, labels, seed=3, flatness=flatness)
    return {"P": P[:n], "y": y[:n], "test": P[n:], "truth": y[n:]}


def covered(sets: Any, truth: np.ndarray) -> Answers:
    sets = np.asarray(sets).astype(bool)
    return {"coverage": float(sets[np.arange(len(truth)), truth].mean())}


def our_sets(inputs: Inputs, score: Any, alpha: float = ALPHA, **options: Any) -> np.ndarray:
    from sklearn.frozen import FrozenEstimator

    from calipers.conformal import ConformalClassifier

    model = ConformalClassifier(FrozenEstimator(Passes(inputs["P"].shape[1])), nonconformity=score, **options)
    return model.conformalize(inputs["P"], inputs["y"]).predict_set(inputs["test"], alpha)


def mapie_sets(inputs: Inputs, score: str, params: dict[str, Any] | None = None) -> np.ndarray:
    from mapie.classification import SplitConformalClassifier

    model = SplitConformalClassifier(
        Passes(inputs["P"].shape[1]), confidence_level=1 - ALPHA, conformity_score=score, random_state=0
    )
    model.conformalize(inputs["P"], inputs["y"])
    return np.asarray(model.predict_set(inputs["test"], params)[1])[:, :, 0]


def torchcp_sets(inputs: Inputs, score: str, alpha: float = ALPHA, **options: Any) -> np.ndarray:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    predictor, scores, _ = torchcp_rooms()
    rule = getattr(scores, score)(score_type="identity", **options)
    model = predictor.SplitPredictor(rule, alpha=alpha, device=torch.device("cpu"))
    model.calculate_threshold(torch.from_numpy(inputs["P"]), torch.from_numpy(inputs["y"]), alpha)
    return model.predict_with_logits(torch.from_numpy(inputs["test"])).numpy()


def puncc_sets(inputs: Inputs, score: str, alpha: float = ALPHA, batch: int | None = None) -> np.ndarray:
    from deel.puncc import classification

    labels = inputs["P"].shape[1]
    model = getattr(classification, score)(puncc_predictor(labels), train=False)
    model.fit(X_calib=inputs["P"], y_calib=inputs["y"])
    test = inputs["test"]
    parts = [test] if batch is None else [test[i : i + batch] for i in range(0, len(test), batch)]
    return np.concatenate([as_matrix(model.predict(part, alpha=alpha)[1], labels) for part in parts])


def crepes_sets(inputs: Inputs, alpha: float = ALPHA) -> np.ndarray:
    from crepes import WrapClassifier

    model = WrapClassifier(Passes(inputs["P"].shape[1]))
    model.calibrate(inputs["P"], inputs["y"])
    return np.asarray(model.predict_set(inputs["test"], labels=False, confidence=1 - alpha, smoothing=False))


def sharp() -> Inputs:
    """A model whose first guess is right in about 93 %."""
    return split(flatness=0.03)


def coverage_trap(key: str, ours: Any, peers: dict[str, Any], inputs: Any = split) -> Any:
    """Coverage at alpha = 0.1 lies near 0.9: 0.02 is 2.7 standard deviations of a valid predictor's."""
    judged = {
        name: quiet(lambda i, f=f: covered(f(i), i["truth"])) for name, f in {"": ours, **peers}.items()
    }
    return trap(key, {"coverage": 1 - ALPHA}, judged.pop(""), judged, inputs=inputs, agree=within(0.02))


# Softmax that saturates: the threshold is within 1e-8 of 1, the exact rule keeps one label.


def saturated() -> Inputs:
    P = np.full((200, 50), 1e-10)
    P[:, 0] = 1 - 49e-10
    y = np.zeros(200, int)
    y[:30] = 1  # 15 % of the labels are not the certain one: the threshold is their score, 1 - 1e-10
    P[:30, 1] = 2e-10
    P[:30, 0] -= 1e-10
    test = np.full((1, 50), 1e-10)
    test[0, 0] = 1 - 49e-10
    return {"P": P, "y": y, "test": test}


def size(function: Any) -> Any:
    return lambda inputs: {"labels kept": int(np.asarray(function(inputs)).sum())}


# A predictor that is nearly always right, with deterministic SAPS: sets must not all be empty.


def accurate() -> Inputs:
    n = 4000
    P = np.full((n, 5), 0.001 / 4)
    P[:, 0] = 0.999
    y = np.zeros(n, int)
    y[::2000] = 1
    return {"P": P[:2000], "y": y[:2000], "test": P[2000:], "truth": y[2000:]}


def not_empty(function: Any) -> Any:
    return lambda inputs: {"empty sets": float((np.asarray(function(inputs)).sum(axis=1) == 0).mean())}


# A class with four calibration rows beside one with many.


def rare() -> Inputs:
    P, _ = random_probabilities(204, 2, seed=9)
    y = np.concatenate([np.zeros(200, int), np.ones(4, int)])
    return {"P": P, "y": y, "test": P[:6]}


def rare_ours(inputs: Inputs) -> Answers:
    found = our_sets(inputs, "lac", label_conditional=True)
    return {"rare label in": float(found[:, 1].mean())}


def rare_puncc(inputs: Inputs) -> Answers:
    return {"rare label in": float(puncc_sets(inputs, "ClasswiseLAC")[:, 1].mean())}


def rare_torchcp(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    predictor, scores, _ = torchcp_rooms()
    model = predictor.ClassConditionalPredictor(scores.LAC(score_type="identity"), device=torch.device("cpu"))
    model.calculate_threshold(torch.from_numpy(inputs["P"]), torch.from_numpy(inputs["y"]), ALPHA)
    found = model.predict_with_logits(torch.from_numpy(inputs["test"])).numpy()
    return {"rare label in": float(found[:, 1].mean())}


# Draws shared by calibration row i and test row i: with equal rows the share covered is then always k / n.


def repeated() -> Inputs:
    P = np.tile([0.5, 0.3, 0.2], (300, 1))
    return {"P": P, "y": np.arange(300) % 3, "test": P}


def own_share(sets: Any, y: np.ndarray) -> float:
    return float(np.asarray(sets)[np.arange(len(y)), y].mean())


def independent(coverages: list[float]) -> Answers:
    return {"draws differ": len(set(coverages)) > 1}


def repeated_ours(inputs: Inputs) -> Answers:
    draws = (our_sets(inputs, "aps", randomized=True, random_state=seed) for seed in range(5))
    return independent([own_share(sets, inputs["y"]) for sets in draws])


def repeated_mapie(inputs: Inputs) -> Answers:
    from mapie.classification import SplitConformalClassifier

    shares = []
    for seed in range(5):
        model = SplitConformalClassifier(
            Passes(3), confidence_level=0.9, conformity_score="aps", random_state=seed
        )
        model.conformalize(inputs["P"], inputs["y"])
        sets = model.predict_set(inputs["test"], {"include_last_label": "randomized"})[1]
        shares.append(own_share(np.asarray(sets)[:, :, 0], inputs["y"]))
    return independent(shares)


# The share of rows kept for tuning or calibration is the one asked for.


def share_ours(inputs: Inputs) -> Answers:
    from sklearn.dummy import DummyClassifier

    from calipers.conformal import ConformalClassifier

    model = ConformalClassifier(DummyClassifier(strategy="prior"), calibration_size=0.2, random_state=0)
    model.fit(inputs["P"], inputs["y"])
    return {"share": float(model.calibration_.sizes.sum() / len(inputs["y"]))}


def share_mapie(inputs: Inputs) -> Answers:
    from mapie.classification import SplitConformalClassifier
    from mapie.conformity_scores import RAPSConformityScore

    model = SplitConformalClassifier(
        Passes(LABELS),
        confidence_level=0.9,
        conformity_score=RAPSConformityScore(size_raps=0.2),
        random_state=0,
    )
    model.conformalize(inputs["P"], inputs["y"])
    tuned = model._mapie_classifier.conformity_score_function_.y_raps_no_enc
    return {"share": len(tuned) / len(inputs["y"])}


# A score does not change what it is given.


def untouched_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import margin

    P = inputs["P"].copy()
    margin(P)
    return {"input unchanged": bool(np.array_equal(P, inputs["P"]))}


def untouched_torchcp(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    P = torch.from_numpy(inputs["P"].copy())
    torchcp_rooms()[1].Margin(score_type="identity")(P, torch.from_numpy(inputs["y"]))
    return {"input unchanged": bool(np.array_equal(P.numpy(), inputs["P"]))}


def untouched_nonconformist(inputs: Inputs) -> Answers:
    from nonconformist.nc import MarginErrFunc

    P = inputs["P"].copy()
    MarginErrFunc().apply(P, inputs["y"])
    return {"input unchanged": bool(np.array_equal(P, inputs["P"]))}


# How many labels are kept on average: the count of labels with p > alpha, by integer comparison.


def exact_size() -> Answers:
    inputs = split(300, 500, 6)
    scores = np.sort(1 - inputs["P"][np.arange(300), inputs["y"]])
    # rank ceil(301 * 0.9) = 271
    return {"mean size": float(((1 - inputs["test"]) <= scores[270]).sum(axis=1).mean())}


def mean_size(function: Any) -> Any:
    return quiet(lambda inputs: {"mean size": float(np.asarray(function(inputs)).sum(axis=1).mean())})


def cloned(build: Any) -> Any:
    def run(_: Inputs) -> Answers:
        from sklearn.base import clone

        clone(build())
        return {"clones": True}

    return run


def our_estimator() -> Any:
    from calipers.conformal import ConformalClassifier

    return ConformalClassifier()


def mapie_estimator() -> Any:
    from mapie.classification import SplitConformalClassifier

    return SplitConformalClassifier(Passes(2))


def crepes_estimator() -> Any:
    from crepes import WrapClassifier

    return WrapClassifier(Passes(2))


def nonconformist_estimator() -> Any:
    from nonconformist.base import ClassifierAdapter
    from nonconformist.icp import IcpClassifier
    from nonconformist.nc import ClassifierNc
    from sklearn.naive_bayes import GaussianNB

    return IcpClassifier(ClassifierNc(ClassifierAdapter(GaussianNB())))


def silent(function: Any) -> Any:
    """The function with its printing kept away."""

    def run(inputs: Inputs) -> Answers:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(inputs)

    return run


def small_batches() -> Inputs:
    return split(1000, 600)


TASKS = [
    coverage_trap(
        "set: coverage of deterministic SAPS",
        lambda i: our_sets(i, "saps"),
        {"torchcp": lambda i: torchcp_sets(i, "SAPS", weight=0.2, randomized=False)},
        sharp,
    ),
    trap(
        "set: deterministic SAPS of a nearly perfect model",
        {"empty sets": 0.0},
        quiet(not_empty(lambda i: our_sets(i, "saps"))),
        {"torchcp": quiet(not_empty(lambda i: torchcp_sets(i, "SAPS", weight=0.2, randomized=False)))},
        inputs=accurate,
    ),
    coverage_trap(
        "set: coverage of APS as it comes",
        lambda i: our_sets(i, "aps"),
        {
            "mapie": lambda i: mapie_sets(i, "aps"),
            "puncc": lambda i: puncc_sets(i, "APS"),
            "torchcp": lambda i: torchcp_sets(i, "APS"),
        },
    ),
    coverage_trap(
        "set: coverage of APS without its last label",
        lambda i: our_sets(i, "aps", randomized=True, random_state=0),
        {"mapie": lambda i: mapie_sets(i, "aps", {"include_last_label": False})},
    ),
    coverage_trap(
        "set: coverage of deterministic RAPS",
        lambda i: our_sets(i, "raps"),
        {"torchcp": lambda i: torchcp_sets(i, "RAPS", penalty=0.01, kreg=1, randomized=False)},
    ),
    trap(
        "set: a threshold within 1e-8 of 1",
        {"labels kept": 1},
        quiet(size(lambda i: our_sets(i, "lac", 0.2))),
        {
            "mapie": quiet(size(lambda i: mapie_sets(i, "lac"))),
            "crepes": quiet(size(lambda i: crepes_sets(i, 0.2))),
            "torchcp": quiet(size(lambda i: torchcp_sets(i, "LAC", 0.2))),
        },
        inputs=saturated,
    ),
    trap(
        "set: APS in batches of two rows",
        {"coverage": 0.9},
        lambda i: covered(our_sets(i, "aps"), i["truth"]),
        {"puncc": silent(lambda i: covered(puncc_sets(i, "APS", batch=2), i["truth"]))},
        inputs=small_batches,
        agree=within(0.06),
    ),
    trap(
        "set: a single test row",
        {"coverage": 0.9},
        lambda i: covered(our_sets(i, "aps"), i["truth"]),
        {"puncc": silent(lambda i: covered(puncc_sets(i, "APS", batch=1), i["truth"]))},
        inputs=small_batches,
        agree=within(0.06),
    ),
    trap(
        "set: a class with four calibration rows",
        {"rare label in": 1.0},
        quiet(rare_ours),
        {"puncc": silent(rare_puncc), "torchcp": quiet(rare_torchcp)},
        inputs=rare,
    ),
    trap(
        "set: draws of calibration and test rows",
        {"draws differ": True},
        quiet(repeated_ours),
        {"mapie": quiet(repeated_mapie)},
        inputs=repeated,
    ),
    trap(
        "set: rows kept for tuning",
        {"share": 0.2},
        quiet(share_ours),
        {"mapie": quiet(share_mapie)},
        inputs=split,
    ),
    trap(
        "set: a score leaves its input alone",
        {"input unchanged": True},
        untouched_ours,
        {"torchcp": untouched_torchcp, "nonconformist": untouched_nonconformist},
        inputs=lambda: split(20, 20),
    ),
    trap(
        "set: mean number of labels",
        exact_size(),
        mean_size(lambda i: our_sets(i, "lac")),
        {
            "mapie": mean_size(lambda i: mapie_sets(i, "lac")),
            "crepes": mean_size(crepes_sets),
            "puncc": mean_size(lambda i: puncc_sets(i, "LAC")),
            "torchcp": mean_size(lambda i: torchcp_sets(i, "LAC")),
        },
        inputs=lambda: split(300, 500, 6),
    ),
    trap(
        "set: a predictor can be cloned",
        {"clones": True},
        cloned(our_estimator),
        {
            "mapie": cloned(mapie_estimator),
            "crepes": cloned(crepes_estimator),
            "nonconformist": cloned(nonconformist_estimator),
        },
    ),
]
