"""The study of performance prediction: its vectorised parts against plain loops, and a quick run."""

from __future__ import annotations

import csv

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_digits

from calipers.conformal import conformal_interval
from studies import run_study
from studies.performance.descent import batch_descent, draw_rows, draw_start, stochastic_descent
from studies.performance.digits import ModulatedTrial, SoftmaxSVC, digit_features, floor_readings
from studies.performance.optimisation import Sizes
from studies.performance.trials import run_trials, summarise
from studies.progress import study_progress


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X, y = draw_rows(rng, (12, 4), 3, "student")
    return X, y, draw_start(rng, 4, 3)


def test_side_by_side_gradient_descent_is_gradient_descent(samples):
    X, y, start = samples
    for k in range(4):
        w = start[k].copy()
        for _ in range(5):
            w -= 0.1 * 2 * X[:, k].T @ (X[:, k] @ w - y[:, k]) / 12
        assert batch_descent(X, y, start)[k] == pytest.approx(w)


def test_side_by_side_stochastic_descent_is_stochastic_descent(samples):
    X, y, start = samples
    for k in range(4):
        w = start[k].copy()
        for _ in range(5):
            for i in range(12):
                w -= 0.01 * 2 * (X[i, k] @ w - y[i, k]) * X[i, k]
        assert stochastic_descent(X, y, start)[k] == pytest.approx(w)


def test_noise_has_the_papers_laws():
    rng = np.random.default_rng(1)
    X, y = draw_rows(rng, (200_000,), 2, "normal")
    assert (y - X.sum(axis=-1)).std() == pytest.approx(2.2, rel=0.01)
    X, y = draw_rows(rng, (200_000,), 2, "student")
    # The 90 % point of Student's t with 2.1 degrees of freedom is 1.8514.
    assert np.quantile(y - X.sum(axis=-1), 0.9) == pytest.approx(1.8514, rel=0.02)


def test_summaries_use_the_ranks_of_the_library(seed):
    rng = np.random.default_rng(seed)
    losses, test = rng.exponential(size=(3, 50)), rng.exponential(size=(3, 20))
    found = summarise(losses, test, np.array([0, 5, 19]))
    for trial in range(3):
        low, high = conformal_interval(losses[trial], 0.1)
        inside = (test[trial] >= low) & (test[trial] <= high)
        assert (found["low"][trial], found["high"][trial]) == (low, high)
        assert found["coverage"][trial] == inside.mean()
        assert found["new_covered"][trial] == inside[[0, 5, 19][trial]]


def test_the_fourteen_features():
    image = np.zeros((8, 8))
    image[0, 0] = 16.0
    features = digit_features(image.reshape(1, -1), np.array([3]))[0]
    # One pixel of 64 and its mirror image differ by 1: asymmetry 2 / 64 both ways.
    assert features[:4] == pytest.approx([-2 / 64, -2 / 64, 1 / 64, np.sqrt(1 / 64 - 1 / 64**2)])
    assert features[4:].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_softmax_probabilities_sum_to_one_with_two_or_more_classes():
    X, y = load_digits(return_X_y=True)
    for classes in (2, 5):
        keep = y < classes
        table = (
            SoftmaxSVC(kernel="linear", random_state=0).fit(X[keep][:60], y[keep][:60]).predict_proba(X[:7])
        )
        assert table.shape == (7, classes)
        assert table.sum(axis=1) == pytest.approx(1.0)


def test_the_default_sizes_are_the_papers():
    sizes = Sizes()
    assert (sizes.trials, sizes.rows, sizes.test, sizes.points, sizes.train_size) == (
        1000,
        7500,
        2500,
        1000,
        74,
    )


def trials(block, folder, count=7):
    with study_progress() as progress:
        return run_trials(block, count, 3, name="toy", folder=folder, progress=progress)["value"]


def test_finished_blocks_are_read_back_and_blocks_do_not_depend_on_each_other(tmp_path):
    calls = tmp_path / "calls"

    def block(rng, count, calls=str(calls)):
        with open(calls, "a") as file:  # noqa: PTH123
            file.write(f"{count} ")
        return {"value": rng.normal(size=count)}

    first = trials(block, tmp_path / "cache")
    assert (first.size, calls.read_text()) == (7, "3 3 1 ")
    (lost,) = (tmp_path / "cache").rglob("0001-3.npz")
    lost.unlink()
    assert (trials(block, tmp_path / "cache") == first).all()
    assert calls.read_text() == "3 3 1 3 "
    # More trials go on where the first ones ended.
    assert (trials(block, tmp_path / "cache", 9)[:6] == first[:6]).all()
    assert calls.read_text() == "3 3 1 3 3 "


def test_a_changed_block_is_another_one(tmp_path):
    def make(factor):
        return lambda rng, count: {"value": factor * rng.normal(size=count)}

    one, two, again = (trials(make(factor), tmp_path) for factor in (1.0, 2.0, 1.0))
    assert (two == 2 * one).all()
    assert (again == one).all()
    shifted = trials(lambda rng, count: {"value": 1.0 + rng.normal(size=count)}, tmp_path)
    assert (shifted == 1 + one).all()


def normal_block(rng, count):
    return {"value": rng.normal(size=count)}


def test_blocks_are_the_same_from_workers(tmp_path):
    with joblib.parallel_config(n_jobs=2):
        there = trials(normal_block, tmp_path / "two")
    assert (there == trials(normal_block, tmp_path / "one")).all()


def test_a_quick_run_writes_everything(tmp_path):
    report = run_study("performance", None, tmp_path, quick=True)
    assert all(path.exists() for path in report.files)
    names = {path.name for path in report.files}
    assert {"coverage.csv", "naive.csv", "claims.csv", "figure1.png", "figure4.png", "figure5.png"} <= names
    assert all(claim.agrees is None for claim in report.claims)
    with (tmp_path / "claims.csv").open() as stream:
        assert next(csv.reader(stream)) == ["claim", "paper", "ours", "agrees?"]


def test_the_floor_of_absent_digits_caps_losses_and_upper_ends():
    ends = np.array([[0.0, 2.0], [0.5, -np.log(0.1)], [0.0, 1.0]])
    losses = np.array([1.0, -np.log(0.1), 1.5])
    trial = ModulatedTrial(np.zeros((3, 8, 8)), np.zeros(3), {"SVM": ends}, {"SVM": losses}, 12, 50, 0.1)
    (reading,) = floor_readings(trial)
    assert reading.cap == pytest.approx(2.302585)
    assert reading.covered == pytest.approx(2 / 3)
    assert reading.upper_at_cap == reading.losses_at_cap == pytest.approx(1 / 3)
    assert reading.median_upper == 2.0
