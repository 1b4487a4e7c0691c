"""Outcomes as symbols: which label is positive, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

from calipers.exceptions import InputError
from calipers.performance import ConfusionOutcome, SymbolicPerformance


def always(label, labels):
    return DummyClassifier(strategy="constant", constant=label).fit(np.zeros((len(labels), 1)), labels)


@pytest.mark.parametrize("labels", [("no", "yes"), (1, 2), (0, 1), (-1, 1), (False, True)])
def test_the_larger_of_two_labels_is_positive(labels):
    negative, positive = labels
    rows, truth = np.zeros((3, 1)), np.array([negative, positive, negative])
    symbols = ConfusionOutcome()(always(positive, labels), rows, truth)
    assert symbols.tolist() == ["false_positive", "correct", "false_positive"]
    symbols = ConfusionOutcome()(always(negative, labels), rows, truth)
    assert symbols.tolist() == ["correct", "false_negative", "correct"]


def test_another_label_can_be_positive():
    symbols = ConfusionOutcome(pos_label="no")(always("no", ["no", "yes"]), np.zeros((2, 1)), ["yes", "no"])
    assert symbols.tolist() == ["false_positive", "correct"]


def test_a_model_that_saw_one_label_only_is_compared_with_the_rows():
    symbols = ConfusionOutcome()(always("no", ["no", "no"]), np.zeros((2, 1)), ["yes", "no"])
    assert symbols.tolist() == ["false_negative", "correct"]


def test_three_labels_and_a_label_that_does_not_occur_are_refused():
    with pytest.raises(
        InputError, match=r"about two labels, got 3 \('a', 'b', 'c', ...\). Use outcome=\"corr"
    ):
        ConfusionOutcome("a")(always("a", ["a", "b", "c"]), np.zeros((1, 1)), ["b"])
    with pytest.raises(InputError, match="pos_label=1 is none of the labels 'no' and 'yes'"):
        ConfusionOutcome(1)(always("no", ["no", "yes"]), np.zeros((1, 1)), ["no"])


def test_the_forecast_refuses_three_classes_before_any_fit():
    X, y = load_iris(return_X_y=True)
    forecast = SymbolicPerformance(GaussianNB(), outcome="confusion", n_points=10, alpha=0.2, random_state=0)
    with pytest.raises(InputError, match="about two labels, got 3"):
        forecast.fit(X, y)


def test_the_forecast_reads_text_labels_as_their_codes():
    X, y = make_classification(600, 4, flip_y=0.2, random_state=0)
    forecast = SymbolicPerformance(GaussianNB(), outcome="confusion", n_points=15, alpha=0.2, random_state=0)
    coded = forecast.fit(X, y).observed_
    np.testing.assert_array_equal(forecast.fit(X, np.array(["no", "yes"])[y]).observed_, coded)
    assert "false_positive" in coded
