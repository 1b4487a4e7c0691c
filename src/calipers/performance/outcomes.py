"""Outcomes that are symbols, not numbers: right, false positive, false negative, or any label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.exceptions import InputError, InputTypeError

OutcomeFunction = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class ConfusionOutcome:
    """``correct``, ``false_positive`` or ``false_negative`` for a binary classifier.

    Parameters
    ----------
    pos_label : object
        The positive label; a wrong prediction of it is a false positive.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from calipers.performance import ConfusionOutcome
    >>> model = DummyClassifier(strategy="constant", constant=1).fit([[0], [0]], [0, 1])
    >>> ConfusionOutcome()(model, [[0], [0]], [1, 0]).tolist()
    ['correct', 'false_positive']
    """

    pos_label: Any = 1

    def __call__(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """One symbol per row."""
        predicted, actual = np.asarray(estimator.predict(X)), np.asarray(y)
        wrong = np.where(predicted == self.pos_label, "false_positive", "false_negative")
        return np.where(predicted == actual, "correct", wrong)


def _correctness(estimator: Any, X: Any, y: Any) -> np.ndarray:
    return np.where(np.asarray(estimator.predict(X)) == np.asarray(y), "correct", "wrong")


def _prediction(estimator: Any, X: Any, y: Any) -> np.ndarray:
    return np.asarray(estimator.predict(X))


NAMED_OUTCOMES: dict[str, OutcomeFunction] = {
    "confusion": ConfusionOutcome(),
    "correctness": _correctness,
    "prediction": _prediction,
}


def resolve_outcome(outcome: str | OutcomeFunction) -> OutcomeFunction:
    """The function behind a name, or the function itself.

    Examples
    --------
    >>> from calipers.performance.outcomes import resolve_outcome
    >>> resolve_outcome("confusion")
    ConfusionOutcome(pos_label=1)
    """
    if callable(outcome):
        return outcome
    if not isinstance(outcome, str):
        raise InputTypeError(
            f"outcome must be a name or a callable outcome(estimator, X, y), got {type(outcome).__name__}."
        )
    if outcome not in NAMED_OUTCOMES:
        raise InputError(
            f"outcome must be one of {', '.join(NAMED_OUTCOMES)} or a callable, got {outcome!r}."
        )
    return NAMED_OUTCOMES[outcome]
