"""Adaptive conformal inference: the level by hand, the bound for every sequence, sets and intervals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

from calipers.conformal import AdaptiveConformal, ConformalClassifier, ConformalRegressor
from calipers.exceptions import InputError, InputTypeError


def predictor(seed: int = 0) -> ConformalRegressor:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 1))
    y = X[:, 0] + rng.normal(size=300)
    return ConformalRegressor().fit(X[:100], y[:100]).conformalize(X[100:], y[100:])


def test_the_level_moves_as_the_papers_formula_says() -> None:
    adaptive = AdaptiveConformal(predictor(), alpha=0.2, step=0.1)
    X = np.zeros((3, 1))
    center = float(adaptive.predictor.predict(X)[0])
    adaptive.update(X[:1], [center + 100.0])  # a miss: 0.2 + 0.1 (0.2 - 1)
    assert adaptive.level_ == pytest.approx(0.12)
    adaptive.update(X[:1], [center])  # a hit: 0.12 + 0.1 * 0.2
    assert adaptive.level_ == pytest.approx(0.14)
    assert adaptive.covered_ == [False, True]
    assert adaptive.levels_ == pytest.approx([0.2, 0.12])


def test_outcomes_of_one_batch_share_the_level_they_were_stated_at() -> None:
    adaptive = AdaptiveConformal(predictor(), alpha=0.2, step=0.1)
    center = float(adaptive.predictor.predict(np.zeros((1, 1)))[0])
    adaptive.update(np.zeros((2, 1)), [center + 100.0, center + 100.0])
    assert adaptive.levels_ == [0.2, 0.2]
    assert adaptive.level_ == pytest.approx(0.04)


@pytest.mark.parametrize("kind", ["growing noise", "adversary", "all the same"])
@pytest.mark.parametrize("step", [0.005, 0.05])
def test_the_share_of_misses_keeps_the_bound_for_every_sequence(kind: str, step: float) -> None:
    rng, n = np.random.default_rng(1), 1500
    X = rng.normal(size=(n, 1))
    noise = rng.normal(size=n)
    y = (
        X[:, 0]
        + {
            "growing noise": noise * np.linspace(1, 10, n),
            "adversary": np.where(np.arange(n) % 100 < 50, 0.0, 1e6),
            "all the same": np.zeros(n),
        }[kind]
    )
    adaptive = AdaptiveConformal(predictor(), alpha=0.1, step=step)
    intervals = adaptive.run(X, y)
    covered = (intervals[:, 0] <= y) & (y <= intervals[:, 1])
    assert covered.tolist() == adaptive.covered_
    assert abs(np.mean(~covered) - 0.1) <= (0.9 + step) / (step * n) + 1e-12


def test_several_steps_follow_the_one_that_suits() -> None:
    rng, n = np.random.default_rng(2), 3000
    X = rng.normal(size=(n, 1))
    y = X[:, 0] + rng.normal(size=n) * np.where(np.arange(n) // 500 % 2, 4.0, 1.0)
    several = AdaptiveConformal(predictor(), alpha=0.1, step=(0.001, 0.01, 0.1))
    several.run(X, y)
    slow = AdaptiveConformal(predictor(), alpha=0.1, step=0.001)
    slow.run(X, y)
    late = slice(1000, None)  # coverage in runs of 250 rows, after a start
    gaps = [
        np.abs(np.asarray(a.covered_)[late].reshape(-1, 250).mean(axis=1) - 0.9).mean()
        for a in (several, slow)
    ]
    assert gaps[0] < 0.6 * gaps[1]
    assert abs(np.mean(several.covered_) - 0.9) < 0.03  # only a single step has an exact bound


def test_a_window_forgets_the_old_scores() -> None:
    rng, n = np.random.default_rng(3), 1200
    X = rng.normal(size=(n, 1))
    y = X[:, 0] + 5 * rng.normal(size=n)  # five times the noise of the calibration rows
    adaptive = AdaptiveConformal(predictor(), alpha=0.1, step=0.005, window=200)
    intervals = adaptive.run(X, y, batch=50)
    assert adaptive.predictor.n_calibration_ == 200
    covered = (intervals[:, 0] <= y) & (y <= intervals[:, 1])
    assert covered.tolist() == adaptive.covered_
    assert 0.85 < covered[400:].mean() < 0.95


def test_sets_of_a_classifier_follow_too() -> None:
    X, y = make_classification(3000, n_features=6, n_informative=4, n_classes=3, random_state=0)
    model = ConformalClassifier(calibration_size=0.5, random_state=0).fit(X[:600], y[:600])
    wrong = np.random.default_rng(0).random(2400) < np.linspace(0, 0.5, 2400)
    labels = np.where(wrong, (y[600:] + 1) % 3, y[600:])
    adaptive = AdaptiveConformal(model, alpha=0.1, step=0.02)
    sets = adaptive.run(X[600:], labels)
    covered = sets[np.arange(2400), labels]
    assert covered.tolist() == adaptive.covered_
    assert abs(covered.mean() - 0.9) <= 0.92 / (0.02 * 2400) + 1e-12


def test_beyond_0_everything_is_stated_and_beyond_1_as_little_as_possible() -> None:
    adaptive = AdaptiveConformal(predictor(), alpha=0.1).start()
    adaptive.level_ = -0.01
    assert adaptive.predict_interval([[0.0]]).tolist() == [[-np.inf, np.inf]]
    adaptive.level_ = 1.0
    assert np.ptp(adaptive.predict_interval([[0.0]])) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"step": 0.0}, "step must lie strictly between 0 and 1"),
        ({"window": 1}, "window"),
        ({"alpha": 2}, "alpha"),
    ],
)
def test_bad_options_are_refused(options: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        AdaptiveConformal(predictor(), **options).start()


def test_a_model_without_p_values_is_refused() -> None:
    with pytest.raises(InputTypeError, match="conformalised ConformalRegressor"):
        AdaptiveConformal(object()).start()
