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
    pos_label : label or None
        The positive label; a wrong prediction of it is a false positive. None takes the larger of the two
        labels, as everywhere.

    Raises
    ------
    InputError
        When called on more than two labels, or with a ``pos_label`` that is none of the two.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from calipers.performance import ConfusionOutcome
    >>> model = DummyClassifier(strategy="constant", constant="yes").fit([[0], [0]], ["no", "yes"])
    >>> ConfusionOutcome()(model, [[0], [0]], ["yes", "no"]).tolist()
    ['correct', 'false_positive']
    """

    pos_label: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """One symbol per row."""
        predicted, actual = np.asarray(estimator.predict(X)), np.asarray(y)
        # A small training sample may know one label only, and the evaluated rows the other.
        positive = self.for_labels(getattr(estimator, "classes_", predicted), predicted, actual).pos_label
        wrong = np.where(predicted == positive, "false_positive", "false_negative")
        return np.where(predicted == actual, "correct", wrong)

    def for_labels(self, *labels: Any) -> ConfusionOutcome:
        """The same with the positive label of these labels, which must be two at most."""
        known = sorted({label for part in labels for label in np.unique(part).tolist()})
        if len(known) > 2:
            raise InputError(
                f"the confusion outcome is about two labels, got {len(known)} ({known[0]!r}, {known[1]!r}, "
                f'{known[2]!r}, ...). Use outcome="correctness", or labels that say whether it is one class.'
            )
        if self.pos_label is None:
            return ConfusionOutcome(known[-1]) if known else self
        if len(known) == 2 and self.pos_label not in known:
            raise InputError(
                f"pos_label={self.pos_label!r} is none of the labels {known[0]!r} and {known[1]!r}."
            )
        return self


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
    ConfusionOutcome(pos_label=None)
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
