"""What fitted models of many libraries state about their uncertainty, and how each is asked for it.

To add a kind of model: a function that asks it, and one line in ``KINDS``. Libraries are recognised by the
names of their modules and are never imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm

from calipers.arrays import RandomState, as_numpy, generator
from calipers.auditing.quantile_models import quantile_levels_of
from calipers.auditing.torch_models import answer_of_network, answer_of_torchcp, probabilities_of
from calipers.exceptions import InputError, InputTypeError

# Quantiles that a stated distribution is audited at, beside the ends of its interval.
GAUSSIAN_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked about: the rows, their outcomes, the level, and where draws come from."""

    X: Any
    y: Any
    alpha: float
    random_state: RandomState = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Arguments of an audit, and the calls that gave them."""

    stated: dict[str, Any]
    calls: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of model: which models are of it, and how one is asked."""

    name: str
    holds: Callable[[Any], bool]
    ask: Callable[[Any, Question], Answer]


def answer_of(model: Any, question: Question) -> Answer:
    """What the model states about the rows; the first kind that it is of decides how it is asked."""
    for kind in KINDS:
        if kind.holds(model):
            return kind.ask(model, question)
    raise InputTypeError(_nothing_stated(model))


def _nothing_stated(model: Any) -> str:
    name = type(model).__name__
    if hasattr(model, "decision_function"):
        return (
            f"an audit needs stated uncertainty, and the scores of {name} are not probabilities. "
            "Calibrate it: CalibratedClassifierCV(model)."
        )
    return (
        f"an audit needs stated uncertainty, and {name} has none of predict_proba, predict_set, predict_p "
        "and predict_interval, no predict(..., return_std=True) and no stated quantile. "
        "Wrap it: ConformalRegressor(model, calibration_size=0.4)."
    )


def comes_from(*packages: str) -> Callable[[Any], bool]:
    """Whether the class of a model, or one that it inherits from, was defined in one of these packages."""

    def holds(model: Any) -> bool:
        modules = [base.__module__ for base in type(model).__mro__]
        return any(f"{module}.".startswith(f"{name}.") for module in modules for name in packages)

    return holds


# --- conformal predictors -----------------------------------------------------------------------


def _ask_predictor(model: Any, question: Question) -> Answer:
    """Predictors of Calipers, and whatever has methods of the same names and forms."""
    if hasattr(model, "predict_interval"):
        intervals = model.predict_interval(question.X, alpha=question.alpha)
        return Answer(
            {"intervals": intervals} | calibration_rows(model),
            (f"predict_interval(alpha={question.alpha:g})",),
        )
    stated: dict[str, Any]
    if hasattr(model, "predict_p"):
        stated, calls = {"p_values": model.predict_p(question.X)}, ["predict_p"]
    else:
        stated = {"sets": model.predict_set(question.X, alpha=question.alpha)}
        calls = [f"predict_set(alpha={question.alpha:g})"]
    stated |= calibration_rows(model)
    if hasattr(model, "predict_proba"):
        stated["probabilities"] = model.predict_proba(question.X)
        calls.append("predict_proba")
    return Answer(stated | _classes(model), tuple(calls))


def calibration_rows(model: Any) -> dict[str, int]:
    """Rows that one of our predictors was conformalised on, where its coverage has their law."""
    cells = getattr(model, "calibration_", None)
    if cells is None or not comes_from("calipers")(model):
        return {}
    other_law = (
        cells.n_labels * cells.n_groups > 1
        or hasattr(model, "weighted_")
        or getattr(model, "guarantee", "marginal") != "marginal"
    )
    return {} if other_law else {"n_calibration": int(cells.sizes.sum())}


def _ask_mapie(model: Any, question: Question) -> Answer:
    """Sets or intervals of MAPIE at one of the levels that the model was made for."""
    name = "predict_set" if hasattr(model, "predict_set") else "predict_interval"
    predicted, stated = getattr(model, name)(question.X)
    place = _level_place(model, question.alpha, as_numpy(stated).shape[-1])
    chosen = as_numpy(stated)[:, :, place]
    calls = (f"{name} at confidence_level {1 - question.alpha:g}",)
    inner = getattr(model, "_mapie_classifier", getattr(model, "_mapie_regressor", None))
    is_split = type(model).__name__.startswith("SplitConformal")
    rows = _count_of(getattr(inner, "conformity_scores_", ())) if is_split else {}
    if name == "predict_interval":
        return Answer({"intervals": chosen, "y_pred": as_numpy(predicted)} | rows, calls)
    return Answer({"sets": chosen} | _classes(inner) | rows, calls)


def _level_place(model: Any, alpha: float, n_levels: int) -> int:
    """Which of the levels is the one asked for; a level that the model does not state is refused."""
    levels = np.asarray(getattr(model, "_alphas", getattr(model, "_alpha", ())), dtype=float).ravel()
    found = np.flatnonzero(np.isclose(levels, alpha, rtol=0, atol=1e-9))
    if len(levels) != n_levels or not len(found):
        said = ", ".join(f"{level:g}" for level in levels) or "not known"
        raise InputError(
            f"{type(model).__name__} states sets or intervals at alpha {said}, not at {alpha:g}. "
            "Give one of these as alpha, or make the model with that confidence_level."
        )
    return int(found[0])


def _ask_crepes(model: Any, question: Question) -> Answer:
    """Smoothed p-values or intervals of a model that crepes wraps; Mondrian thresholds have another law."""
    seed = int(generator(question.random_state).integers(2**31))
    if hasattr(model, "predict_set"):
        stated = {"p_values": model.predict_p(question.X, seed=seed)} | _classes(model.learner)
        stated |= _crepes_rows(model.cc)
        stated["probabilities"] = model.predict_proba(question.X)
        return Answer(stated, ("predict_p", "predict_proba"))
    confidence = 1 - question.alpha
    intervals = model.predict_int(question.X, confidence=confidence, seed=seed)
    stated = {"intervals": intervals, "y_pred": model.predict(question.X)} | _crepes_rows(model.cr)
    return Answer(stated, (f"predict_int(confidence={confidence:g})", "predict"))


def _crepes_rows(conformal: Any) -> dict[str, int]:
    return {} if conformal is None or conformal.mondrian else _count_of(conformal.alphas)


def _count_of(scores: Any) -> dict[str, int]:
    """The number of calibration rows behind one threshold, when the scores of one are there."""
    n = np.size(scores)
    return {"n_calibration": n} if n and len(scores) == n else {}


def _ask_puncc(model: Any, question: Question) -> Answer:
    """Intervals (prediction, lower, upper), or (probabilities, lists of labels)."""
    told = model.predict(question.X, alpha=question.alpha)
    calls = (f"predict(alpha={question.alpha:g})",)
    if len(told) == 3:
        predicted, lower, upper = (as_numpy(part).ravel() for part in told)
        return Answer({"intervals": np.column_stack([lower, upper]), "y_pred": predicted}, calls)
    probabilities = as_numpy(told[0])
    members: np.ndarray = np.zeros(probabilities.shape, dtype=bool)
    for row, labels in enumerate(told[1]):
        members[row, np.asarray(labels, dtype=int)] = True
    classes = np.arange(probabilities.shape[1])
    return Answer({"sets": members, "probabilities": probabilities, "classes": classes}, calls)


def _ask_torchcp(model: Any, question: Question) -> Answer:
    return Answer(*answer_of_torchcp(model, question.X, alpha=question.alpha))


# --- models -------------------------------------------------------------------------------------


def _ask_classifier(model: Any, question: Question) -> Answer:
    return Answer({"probabilities": model.predict_proba(question.X)} | _classes(model), ("predict_proba",))


def _classes(model: Any) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    return {} if classes is None else {"classes": classes}


def _ask_gaussian(model: Any, question: Question) -> Answer:
    """A normal distribution per row: its quantiles, its interval and where the outcome fell in it."""
    mean, deviation = (
        as_numpy(part).astype(np.float64) for part in model.predict(question.X, return_std=True)
    )
    if mean.ndim != 1 or not (deviation > 0).all():
        raise InputError(
            f"{type(model).__name__} must state one positive standard deviation per row, got a mean of shape "
            f"{mean.shape} and a smallest deviation of {deviation.min():g}. "
            "A Gaussian process without a WhiteKernel states none for rows it was fitted on."
        )
    ends = (question.alpha / 2, 1 - question.alpha / 2)
    levels = sorted({*GAUSSIAN_LEVELS, *ends})
    at = {level: mean + norm.ppf(level) * deviation for level in levels}
    y = as_numpy(question.y, name="y").astype(np.float64)
    stated = {
        "intervals": np.column_stack([at[end] for end in ends]), "y_pred": mean,
        "quantiles": np.column_stack([at[level] for level in levels]), "quantile_levels": levels,
        "pit": norm.cdf((y - mean) / deviation),
    }  # fmt: skip
    return Answer(stated, ("predict(return_std=True), read as a normal distribution",))


def _ask_quantile_forest(model: Any, question: Question) -> Answer:
    """Quantiles of a model whose ``predict`` takes the levels."""
    levels = [question.alpha / 2, 0.5, 1 - question.alpha / 2]
    Q = as_numpy(model.predict(question.X, quantiles=levels))
    stated = {"quantiles": Q, "quantile_levels": levels, "intervals": Q[:, [0, 2]], "y_pred": Q[:, 1]}
    return Answer(stated, (f"predict(quantiles={_listed(levels)})",))


def _ask_quantile_model(model: Any, question: Question) -> Answer:
    """The quantile, or the quantiles, that the model was fitted to predict."""
    levels = quantile_levels_of(model)
    Q = as_numpy(model.predict(question.X)).reshape(-1, len(levels))
    return _stated_quantiles(Q, levels, question, ("predict, fitted to quantile " + _listed(levels),))


def _ask_several(models: Any, question: Question) -> Answer:
    """Models of one quantile each, side by side."""
    levels = [level for model in models for level in quantile_levels_of(model)]
    Q = np.column_stack([as_numpy(model.predict(question.X)) for model in models])
    order = np.argsort(levels)
    calls = (f"predict of {len(models)} models, fitted to quantiles {_listed(sorted(levels))}",)
    return _stated_quantiles(Q[:, order], [levels[i] for i in order], question, calls)


def _stated_quantiles(
    Q: np.ndarray, levels: list[float], question: Question, calls: tuple[str, ...]
) -> Answer:
    """Quantiles, and the interval between the two that leave alpha / 2 on either side, if they are there."""
    stated: dict[str, Any] = {"quantiles": Q, "quantile_levels": levels}
    ends = [np.flatnonzero(np.isclose(levels, end)) for end in (question.alpha / 2, 1 - question.alpha / 2)]
    if all(map(len, ends)):
        stated["intervals"] = Q[:, [int(end[0]) for end in ends]]
    return Answer(stated, calls)


def _listed(levels: list[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


# --- networks and functions -----------------------------------------------------------------------


def _ask_network(model: Any, question: Question) -> Answer:
    return Answer(*answer_of_network(model, question.X))


def _ask_function(function: Any, question: Question) -> Answer:
    """What a function returns: probabilities, logits, or arguments of an audit by name."""
    told = function(question.X)
    if isinstance(told, Mapping):
        return Answer(dict(told), ("its value by name",))
    first = told[0] if isinstance(told, list) and told else None
    if isinstance(first[0] if isinstance(first, list) and first else first, Mapping):
        return Answer(scores_by_label(told), ("its value, read as scores by label",))
    probabilities, reading = probabilities_of(as_numpy(told))
    return Answer({"probabilities": probabilities}, (f"its value, read as {reading}",))


def _ask_pipeline(pipeline: Any, question: Question) -> Answer:
    """A pipeline of Hugging Face, which takes a list of texts, images or sounds."""
    return Answer(scores_by_label(pipeline(list(question.X))), ("all scores by label",))


def scores_by_label(told: list[Any]) -> dict[str, Any]:
    """Probabilities and classes of rows such as ``[{"label": "good", "score": 0.9}, ...]``, in any order.

    Examples
    --------
    >>> from calipers.auditing.model_answers import scores_by_label
    >>> scores_by_label([[{"label": "no", "score": 0.9}, {"label": "yes", "score": 0.1}]])["classes"]
    ['no', 'yes']
    """
    rows = [row if isinstance(row, list) else [row] for row in told]
    if not all(
        isinstance(part, Mapping) and {"label", "score"} <= part.keys() for row in rows for part in row
    ):
        raise InputTypeError(
            f"a function must return probabilities, logits, or label and score per class, got {told[0]!r}."
        )
    by_label = [{part["label"]: float(part["score"]) for part in row} for row in rows]
    classes = sorted(by_label[0])
    if len(classes) < 2 or any(row.keys() != by_label[0].keys() for row in by_label):
        raise InputError(
            "scores of all classes are needed for every row, and only the likeliest are there. "
            "Ask for all: pipeline(..., top_k=None)."
        )
    return {
        "probabilities": np.array([[row[name] for name in classes] for row in by_label]),
        "classes": classes,
    }


def _takes(word: str) -> Callable[[Any], bool]:
    """Whether the ``predict`` of a model, or of the last step of a pipeline, has this argument."""

    def holds(model: Any) -> bool:
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        predict = getattr(last, "predict", None)
        return predict is not None and word in inspect.signature(predict).parameters

    return holds


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda model: any(hasattr(model, name) for name in names)


def _is_function(model: Any) -> bool:
    return callable(model) and not hasattr(model, "predict")


# The first kind that holds is asked.
KINDS: tuple[Kind, ...] = (
    Kind("MAPIE", comes_from("mapie"), _ask_mapie),
    Kind("crepes", comes_from("crepes"), _ask_crepes),
    Kind("puncc", comes_from("deel"), _ask_puncc),
    Kind("TorchCP", comes_from("torchcp"), _ask_torchcp),
    Kind("torch", comes_from("torch.nn"), _ask_network),
    Kind("Hugging Face pipeline", comes_from("transformers.pipelines"), _ask_pipeline),
    Kind("conformal predictor", _has("predict_p", "predict_set", "predict_interval"), _ask_predictor),
    Kind("classifier", _has("predict_proba"), _ask_classifier),
    Kind("quantile forest", _takes("quantiles"), _ask_quantile_forest),
    Kind("normal distribution", _takes("return_std"), _ask_gaussian),
    Kind("quantile regressor", lambda model: bool(quantile_levels_of(model)), _ask_quantile_model),
    Kind("quantile regressors", lambda model: isinstance(model, list | tuple), _ask_several),
    Kind("function", _is_function, _ask_function),
)
