"""p-values, scores and prediction sets of split-conformal classification."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task

LEVELS = (0.05, 0.1, 0.2)


class Passes:
    """A fitted scikit-learn style classifier whose probabilities are its features."""

    _estimator_type = "classifier"

    def __init__(self, labels: int) -> None:
        self.classes_ = np.arange(labels)
        self.n_features_in_ = labels

    def fit(self, X: Any, y: Any) -> Passes:
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return self.classes_[np.asarray(X).argmax(axis=1)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"labels": len(self.classes_)}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        target = TargetTags(required=True)
        kind = "classifier"
        return Tags(
            estimator_type=kind, target_tags=target, classifier_tags=ClassifierTags(), input_tags=InputTags()
        )


def prepare_probabilities(n: int, labels: int) -> Inputs:
    rng = np.random.default_rng(0)
    P = rng.gamma(0.3, size=(2 * n, labels)) + 1e-9
    P /= P.sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < rng.random((2 * n, 1))).sum(axis=1).clip(max=labels - 1)
    return {"cal": P[:n], "y": y[:n], "test": P[n:], "labels": labels}


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


def within_one_rank(mine: Answers, theirs: Answers) -> bool:
    # Smoothing draws differ; without ties the p-values lie in the same step of 1/(n + 1) of their label.
    return bool(np.abs(mine["p"] - theirs["p"]).max() < 0.01)


# Sets at three levels: n + n rows x 100 labels


def our_sets(score: str) -> Any:
    def run(inputs: Inputs) -> Answers:
        from sklearn.frozen import FrozenEstimator

        from calipers.conformal import ConformalClassifier

        model = ConformalClassifier(FrozenEstimator(Passes(int(inputs["labels"]))), nonconformity=score)
        model.conformalize(inputs["cal"], inputs["y"])
        return {"sets": model.predict_set(inputs["test"], LEVELS)}

    return run


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
        return {"sets": model.predict_set(inputs["test"])[1]}

    return run


def same_sets(mine: Answers, theirs: Answers) -> bool:
    return bool(np.mean(np.asarray(mine["sets"]) == np.asarray(theirs["sets"])) > 0.999)


def not_comparable(mine: Answers, theirs: Answers) -> bool:
    # The peer randomises its calibration scores but not its sets, or ranks with penalties of its own tuning.
    return True


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
        return {"sets": model.predict_set(inputs["test"], 0.1)}

    return run


def torchcp_ranked_sets(score: str) -> Any:
    def run(inputs: Inputs) -> Answers:
        pretend_installed("torchsort", "torch_geometric", "transformers")
        import torch
        from torchcp.classification.predictor import SplitPredictor
        from torchcp.classification.score import APS, RAPS, SAPS

        torch.set_num_threads(1)
        shared = {"score_type": "identity", "randomized": False}
        function = {
            "aps": lambda: APS(**shared),
            "raps": lambda: RAPS(penalty=0.01, kreg=1, **shared),
            "saps": lambda: SAPS(weight=0.2, **shared),
        }[score]()
        predictor = SplitPredictor(function, alpha=0.1, device=torch.device("cpu"))
        predictor.calculate_threshold(torch.from_numpy(inputs["cal"]), torch.from_numpy(inputs["y"]))
        return {"sets": predictor.predict_with_logits(torch.from_numpy(inputs["test"])).numpy()}

    return run


def pretend_installed(*names: str) -> None:
    """Empty modules for parts of the peer that are imported with it, not used here, and hard to install."""

    class Empty(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, Finder, is_package=True) if name.partition(".")[0] in names else None

        @staticmethod
        def create_module(spec: Any) -> Any:
            return Empty(spec.name)

        @staticmethod
        def exec_module(module: Any) -> None:
            return None

    if not any(name in sys.modules for name in names):
        sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]


TASKS = [
    Task(
        name="p-values, smoothed",
        sizes=(1_000, 3_000, 10_000),
        prepare=lambda n: prepare_probabilities(n, 10),
        ours=our_p_values,
        peers={"crepes": crepes_p_values},
        limit=bare_search,
        agree=within_one_rank,
        bar="within 1.5x of a bare sort and search, 50x faster than crepes, memory below 3x the output",
    ),
    Task(
        name="p-values, label-conditional",
        sizes=(1_000, 3_000, 10_000),
        prepare=lambda n: prepare_probabilities(n, 10),
        ours=our_label_p_values,
        peers={"crepes": crepes_label_p_values},
        limit=bare_label_search,
        agree=within_one_rank,
        bar="at least 200x faster than crepes",
    ),
    *(
        Task(
            name=f"sets at three levels, {score}",
            sizes=(2_000, 6_000, 20_000),
            prepare=lambda n: prepare_probabilities(n, 100),
            ours=our_sets(score),
            peers={"mapie": mapie_sets(score)},
            agree=same_sets if score == "lac" else not_comparable,
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
            agree=not_comparable if score == "saps" else same_sets,
            bar="at least 2x faster than TorchCP on the CPU",
            quick=False,
        )
        for score in ("aps", "raps", "saps")
    ),
]
