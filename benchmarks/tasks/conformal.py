"""p-values, scores and prediction sets of split-conformal classification."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task
from benchmarks.stand_ins import Passes, as_matrix, puncc_predictor, random_probabilities

LEVELS = (0.05, 0.1, 0.2)
LARGEST_TENSOR = 3000  # rows: TorchCP's p-values fill 9 GiB at 10 000


def prepare_probabilities(n: int, labels: int) -> Inputs:
    P, y = random_probabilities(2 * n, labels)
    return {"cal": P[:n], "y": y[:n], "test": P[n:], "truth": y[n:], "labels": labels}


# p-values: n calibration rows x n test rows x 10 labels


def scores(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    cal = 1 - np.take_along_axis(inputs["cal"], inputs["y"][:, None], axis=1)[:, 0]
    return cal, 1 - inputs["test"]


def our_p_values(inputs: Inputs) -> Answers:
    from calipers.conformal import conformal_p_values

    return {"p": conformal_p_values(*scores(inputs), smoothed=True, random_state=0)}


def our_label_p_values(inputs: Inputs) -> Answers:
    from calipers.conformal import conformal_p_values

    labels = {"calibration_labels": inputs["y"]}
    return {"p": conformal_p_values(*scores(inputs), **labels, smoothed=True, random_state=0)}


def bare_search(inputs: Inputs) -> Answers:
    cal, test = scores(inputs)
    n, tau = len(cal), np.random.default_rng(0).random((len(test), 1))
    cal = np.sort(cal)
    left, right = np.searchsorted(cal, test), np.searchsorted(cal, test, side="right")
    return {"p": (n - right + tau * (right - left + 1)) / (n + 1)}


def bare_label_search(inputs: Inputs) -> Answers:
    cal, test = scores(inputs)
    tau, p = np.random.default_rng(0).random(len(test)), np.empty(test.shape)
    for k in range(test.shape[1]):
        own, column = np.sort(cal[inputs["y"] == k]), np.ascontiguousarray(test[:, k])
        left, right = np.searchsorted(own, column), np.searchsorted(own, column, side="right")
        p[:, k] = (len(own) - right + tau * (right - left + 1)) / (len(own) + 1)
    return {"p": p}


def crepes_p_values(inputs: Inputs) -> Answers:
    from crepes import ConformalClassifier

    cal, test = scores(inputs)
    return {"p": ConformalClassifier().fit(cal).predict_p(test, smoothing=True, seed=0)}


def crepes_label_p_values(inputs: Inputs) -> Answers:
    from crepes import WrapClassifier

    model = WrapClassifier(Passes(int(inputs["labels"])))
    model.calibrate(inputs["cal"], inputs["y"], class_cond=True)
    return {"p": model.predict_p(inputs["test"], smoothing=True, seed=0)}


def nonconformist_model(inputs: Inputs, condition: Any = None) -> Any:
    from nonconformist.base import ClassifierAdapter
    from nonconformist.icp import IcpClassifier
    from nonconformist.nc import ClassifierNc, InverseProbabilityErrFunc

    adapter = ClassifierAdapter(Passes(int(inputs["labels"])))
    model = IcpClassifier(ClassifierNc(adapter, InverseProbabilityErrFunc()), condition=condition)
    model.fit(inputs["cal"], inputs["y"])
    model.calibrate(inputs["cal"], inputs["y"])
    return model


def nonconformist_p_values(inputs: Inputs) -> Answers:
    return {"p": nonconformist_model(inputs).predict(inputs["test"])}


def nonconformist_label_p_values(inputs: Inputs) -> Answers:
    return {"p": nonconformist_model(inputs, condition=lambda z: z[1]).predict(inputs["test"])}


def torchcp_p_values(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    if len(inputs["cal"]) > LARGEST_TENSOR:
        raise MemoryError("needs 9 GiB at this size, not run")
    cal, test = (torch.from_numpy(x) for x in scores(inputs))
    return {"p": torchcp_rooms()[2].compute_p_values(cal, test, smooth=True).numpy()}


def rank_bounds(inputs: Inputs, *, by_label: bool) -> Answers:
    """The step of every p-value, tau = 0 and tau = 1, by counting comparisons without sorting."""
    cal, test = scores(inputs)
    low, high = np.empty(test.shape), np.empty(test.shape)
    for k in range(test.shape[1]):
        own = cal[inputs["y"] == k] if by_label else cal
        for rows in np.array_split(np.arange(len(test)), max(1, len(test) // 500)):
            column = test[rows, k][:, None]
            above, equal = (own > column).sum(axis=1), (own == column).sum(axis=1)
            low[rows, k], high[rows, k] = above, above + equal + 1
        low[:, k] /= len(own) + 1
        high[:, k] /= len(own) + 1
    return {"p": np.stack([low, high])}


def in_its_step(exact: Answers, found: Answers) -> bool:
    """Smoothing draws differ, but every p-value lies in the step its counts allow."""
    low, high = np.asarray(exact["p"])
    p = np.asarray(found["p"], float)
    return bool(((p >= low - 1e-6) & (p <= high + 1e-6)).all())  # TorchCP answers in single precision


def out_of_step(exact: Answers, found: Answers) -> float:
    """How far a p-value lies outside the step its counts allow."""
    low, high = np.asarray(exact["p"])
    p = np.asarray(found["p"], float)
    return float(np.maximum(low - p, p - high).max())


# Sets at three levels: n + n rows x 100 labels


def our_sets(score: str) -> Any:
    def run(inputs: Inputs) -> Answers:
        from sklearn.frozen import FrozenEstimator

        from calipers.conformal import ConformalClassifier

        model = ConformalClassifier(FrozenEstimator(Passes(int(inputs["labels"]))), nonconformity=score)
        model.conformalize(inputs["cal"], inputs["y"])
        return judged(model.predict_set(inputs["test"], LEVELS), inputs)

    return run


def judged(sets: np.ndarray, inputs: Inputs) -> Answers:
    """The sets, and how often they cover at each level."""
    own = np.asarray(sets)[np.arange(len(inputs["truth"])), inputs["truth"]].astype(float)
    return {"sets": np.asarray(sets, dtype=bool), "coverage": np.atleast_1d(own.mean(axis=0))}


def mapie_sets(score: str) -> Any:
    def run(inputs: Inputs) -> Answers:
        from mapie.classification import SplitConformalClassifier

        model = SplitConformalClassifier(
            Passes(int(inputs["labels"])),
            confidence_level=[1 - a for a in LEVELS],
            conformity_score=score,
            prefit=True,
            random_state=0,
        )
        model.conformalize(inputs["cal"], inputs["y"])
        return judged(model.predict_set(inputs["test"])[1], inputs)

    return run


def puncc_sets(score: str) -> Any:
    def run(inputs: Inputs) -> Answers:
        from deel.puncc import classification

        options = {"lambd": 0.01, "k_reg": 1} if score == "raps" else {}
        labels = int(inputs["labels"])
        model = getattr(classification, score.upper())(puncc_predictor(labels), train=False, **options)
        model.fit(X_calib=inputs["cal"], y_calib=inputs["y"])
        levels = [as_matrix(model.predict(inputs["test"], alpha=a)[1], labels) for a in LEVELS]
        return judged(np.stack(levels, axis=2), inputs)

    return run


def exact_threshold(own: np.ndarray, alpha: float) -> float:
    """The order statistic by rational arithmetic and a full sort."""
    rank = math.ceil((len(own) + 1) * (1 - Fraction(str(alpha))))
    return float(np.sort(own)[rank - 1])


def exact_scores(P: np.ndarray, score: str) -> np.ndarray:
    """LAC, and deterministic APS, RAPS and SAPS, row by row from their definitions."""
    if score == "lac":
        return 1 - P
    found = np.empty(P.shape)
    for row, p in enumerate(P):
        order = np.argsort(-p, kind="stable")
        r = np.arange(1, len(p) + 1)
        if score == "saps":
            values = np.where(r == 1, p[order[0]], p[order[0]] + 0.2 * (r - 1))
        else:
            values = np.cumsum(p[order]) + (0.01 * np.maximum(0, r - 1) if score == "raps" else 0)
        found[row, order] = values
    return found


def exact_sets(score: str, levels: tuple[float, ...]) -> Any:
    def run(inputs: Inputs) -> Answers:
        own = exact_scores(inputs["cal"], score)[np.arange(len(inputs["y"])), inputs["y"]]
        test = exact_scores(inputs["test"], score)
        sets = np.stack([test <= exact_threshold(own, a) for a in levels], axis=2)
        return judged(sets if len(levels) > 1 else sets[:, :, 0], inputs)

    return run


def same_sets(mine: Answers, theirs: Answers) -> bool:
    """The same labels, but for a few that rounding of a cumulative sum moves across the threshold."""
    return bool(np.mean(np.asarray(mine["sets"]) == np.asarray(theirs["sets"])) > 0.999)


def valid(exact: Answers, found: Answers) -> bool:
    """Peers randomise in their own way: their sets need not be the same, only cover what they promise.

    The coverage of n test rows after n calibration rows strays by sqrt(2 alpha (1 - alpha) / n).
    """
    alpha, n = np.array(LEVELS), len(exact["sets"])
    off = np.abs(np.ravel(found["coverage"]) - (1 - alpha))
    return same_sets(exact, found) or bool((off < 4 * np.sqrt(2 * alpha * (1 - alpha) / n)).all())


# Ranked scores and sets at one level: n + n rows x 1000 labels, single precision as networks give it


def prepare_many_labels(n: int) -> Inputs:
    inputs = prepare_probabilities(n, 1000)
    return inputs | {"cal": inputs["cal"].astype(np.float32), "test": inputs["test"].astype(np.float32)}


def our_ranked_sets(score: str) -> Any:
    def run(inputs: Inputs) -> Answers:
        from functools import partial

        from sklearn.frozen import FrozenEstimator

        from calipers import conformal

        options = {"raps": {"penalty": 0.01, "k_reg": 1}}.get(score, {})
        rule = partial(getattr(conformal, score), **options)
        model = conformal.ConformalClassifier(FrozenEstimator(Passes(1000)), nonconformity=rule)
        model.conformalize(inputs["cal"], inputs["y"])
        return judged(model.predict_set(inputs["test"], 0.1), inputs)

    return run


def torchcp_ranked_sets(score: str) -> Any:
    def run(inputs: Inputs) -> Answers:
        import torch

        from benchmarks.torchcp_parts import torchcp_rooms

        predictors, rules, _ = torchcp_rooms()
        shared = {"score_type": "identity", "randomized": False}
        function = {
            "aps": lambda: rules.APS(**shared),
            "raps": lambda: rules.RAPS(penalty=0.01, kreg=1, **shared),
            "saps": lambda: rules.SAPS(weight=0.2, **shared),
        }[score]()
        predictor = predictors.SplitPredictor(function, alpha=0.1, device=torch.device("cpu"))
        predictor.calculate_threshold(torch.from_numpy(inputs["cal"]), torch.from_numpy(inputs["y"]))
        return judged(predictor.predict_with_logits(torch.from_numpy(inputs["test"])).numpy(), inputs)

    return run


TASKS = [
    Task(
        name="p-values, smoothed",
        sizes=(1_000, 3_000, 10_000),
        prepare=lambda n: prepare_probabilities(n, 10),
        ours=our_p_values,
        peers={
            "crepes": crepes_p_values,
            "nonconformist": nonconformist_p_values,
            "torchcp": torchcp_p_values,
        },
        limit=bare_search,
        exact=lambda inputs: rank_bounds(inputs, by_label=False),
        agree=in_its_step,
        distance=out_of_step,
        bar="within 1.5x of a bare sort and search, 50x faster than crepes, memory below 3x the output",
    ),
    Task(
        name="p-values, label-conditional",
        sizes=(1_000, 3_000, 10_000),
        prepare=lambda n: prepare_probabilities(n, 10),
        ours=our_label_p_values,
        peers={"crepes": crepes_label_p_values, "nonconformist": nonconformist_label_p_values},
        limit=bare_label_search,
        exact=lambda inputs: rank_bounds(inputs, by_label=True),
        agree=in_its_step,
        distance=out_of_step,
        bar="at least 200x faster than crepes",
    ),
    *(
        Task(
            name=f"sets at three levels, {score}",
            sizes=(2_000, 6_000, 20_000),
            prepare=lambda n: prepare_probabilities(n, 100),
            ours=our_sets(score),
            peers={"mapie": mapie_sets(score), "puncc": puncc_sets(score)},
            exact=exact_sets(score, LEVELS),
            agree=same_sets if score == "lac" else valid,
            bar="at least 5x faster than MAPIE",
        )
        for score in ("lac", "aps", "raps")
    ),
    *(
        Task(
            name=f"sets of 1000 labels, {score}",
            sizes=(1_000, 5_000, 20_000),
            prepare=prepare_many_labels,
            ours=our_ranked_sets(score),
            peers={"torchcp": torchcp_ranked_sets(score)},
            exact=exact_sets(score, (0.1,)),
            agree=same_sets,
            bar="at least 2x faster than TorchCP on the CPU",
            quick=False,
        )
        for score in ("aps", "raps", "saps")
    ),
]
