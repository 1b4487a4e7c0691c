"""Sets of outcomes: the construction with the paper's slips repaired."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, QuantileRegressor
from sklearn.naive_bayes import GaussianNB

from calipers.conformal import conformal_quantile
from calipers.exceptions import InputError, InputTypeError
from calipers.performance import ConfusionOutcome, SymbolicPerformance
from calipers.performance.splitting import plan_blocks
from tests.unit.performance.algorithms import FailsOnLargeMean

X, Y = make_classification(1200, 4, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)


def make(**options):
    return SymbolicPerformance(
        GaussianNB(),
        **({"outcome": "confusion", "n_points": 30, "alpha": 0.2, "random_state": 2} | options),
    )


@pytest.fixture(scope="module")
def fitted():
    return make().fit(X, Y)


def test_the_set_is_built_as_in_section_3_3_with_conformity_scores_at_level_alpha():
    scorer, learner = LogisticRegression(), QuantileRegressor(alpha=0.0)

    def only_x(A, _):
        return A[:, :2]

    forecast = make(scorer=scorer, learner=learner, features=only_x).fit(X, Y)
    order, _, _ = np.random.default_rng(2).spawn(3)
    plan = plan_blocks(
        1200, n_points=30, train_size=None, points_per_loss=1, parts=3, alpha=0.2, generator=order
    )
    symbols = np.array(
        [
            [
                ConfusionOutcome()(GaussianNB().fit(X[t], Y[t]), X[e], Y[e])[0]
                for t, e in zip(*part, strict=True)
            ]
            for part in zip(plan.train, plan.evaluate, strict=True)
        ]
    )
    assert (forecast.observed_ == symbols).all()
    cases = [X[part[:, 0], :2] for part in plan.evaluate]
    model = clone(scorer).fit(cases[0], symbols[0])
    assert model.classes_.tolist() == forecast.outcomes_.tolist()

    def conformity(table, labels):
        column = np.searchsorted(model.classes_, labels)
        return model.predict_log_proba(table)[np.arange(len(table)), column]

    quantile = QuantileRegressor(quantile=0.2, alpha=0.0).fit(cases[1], conformity(cases[1], symbols[1]))
    # The last split's own models gave symbols[2].
    scores = quantile.predict(cases[2]) - conformity(cases[2], symbols[2])
    threshold = conformal_quantile(scores, 0.2)
    expected = quantile.predict(X[:50, :2])[:, None] - model.predict_log_proba(X[:50, :2]) <= threshold + 1e-9
    assert (forecast.predict_set(X[:50], Y[:50]) == expected).all()
    assert forecast.scores_ == pytest.approx(scores, abs=1e-8)


def test_columns_are_the_outcomes_in_sorted_order(fitted):
    assert fitted.outcomes_.tolist() == ["correct", "false_negative", "false_positive"]
    sets = fitted.predict_set(X[:20], Y[:20])
    assert sets.dtype == bool
    assert sets.shape == (20, 3)
    # The label is part of the case: a negative case cannot be a false negative.
    assert not sets[Y[:20] == 0, 1].any()


def test_a_smaller_alpha_gives_larger_sets_and_too_few_points_all_outcomes(fitted):
    assert (fitted.predict_set(X, Y, alpha=0.05) >= fitted.predict_set(X, Y, alpha=0.4)).all()
    assert fitted.predict_set(X[:5], Y[:5], alpha=0.01).all()
    assert "30 losses are fewer than the 99 needed" in str(fitted.guarantee(0.01))


def test_the_sentence_names_the_training_size_and_the_exact_coverage(fitted):
    # ceil(31 x 0.8) = 25 of 31; 1200 / 90 = 13 rows per block.
    assert "trained anew on 12 rows, lies in its predicted set" in fitted.guarantee_
    assert "25/31" in fitted.guarantee_


def test_listed_outcomes_fix_the_columns():
    forecast = make(outcomes=["false_positive", "correct", "false_negative", "abstained"]).fit(X, Y)
    assert forecast.outcomes_.tolist() == ["false_positive", "correct", "false_negative", "abstained"]
    sets = forecast.predict_set(X, Y)
    same = make().fit(X, Y).predict_set(X, Y)
    assert (sets[:, [1, 2, 0]] == same).all()
    with pytest.raises(
        InputError, match="outcomes must list every outcome that occurs, 'false_negative' is missing"
    ):
        make(outcomes=["correct", "false_positive"]).fit(X, Y)


def test_an_outcome_the_first_part_never_shows_has_the_floor_probability():
    calls = []

    def rare(model, A, y):
        calls.append(1)
        return ["rare" if len(calls) == 25 else "usual"]

    forecast = make(n_points=20, outcome=rare).fit(X, Y)
    assert forecast.outcomes_.tolist() == ["rare", "usual"]
    assert forecast.observed_[0].tolist() == ["usual"] * 20
    assert forecast.predict_set(X[:3], Y[:3])[:, 1].all()


def test_failed_fits_are_an_outcome_of_their_own():
    forecast = SymbolicPerformance(
        FailsOnLargeMean(),
        outcome=lambda m, A, y: np.array(["done"]),
        n_points=12,
        on_failure="infinite",
        random_state=0,
    ).fit(X, X[:, 0] - X[:, 0].mean())
    assert forecast.outcomes_.tolist() == ["done", "failed"]
    assert len(forecast.failures_) == (forecast.observed_ == "failed").sum() > 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [("correctness", {"correct", "wrong"}), ("prediction", {0, 1})],
)
def test_named_outcomes(name, expected):
    assert set(make(outcome=name).fit(X, Y).outcomes_.tolist()) <= expected


def test_bad_outcomes_are_refused():
    with pytest.raises(
        InputError, match="outcome must be one of confusion, correctness, prediction or a callable, got 'hit'"
    ):
        make(outcome="hit").fit(X, Y)
    with pytest.raises(
        InputTypeError, match=r"outcome must be a name or a callable outcome\(estimator, X, y\), got int"
    ):
        make(outcome=3).fit(X, Y)
    with pytest.raises(Exception, match="outcome must return one symbol per row, got 2 for one row"):
        make(outcome=lambda m, A, y: ["a", "b"]).fit(X, Y)


def test_it_is_a_scikit_learn_estimator():
    forecast = SymbolicPerformance(DummyClassifier(), outcome="correctness", alpha=0.3)
    assert clone(forecast).get_params()["alpha"] == 0.3
    with pytest.raises(NotFittedError, match="not fitted yet"):
        forecast.predict_set(X, Y)
