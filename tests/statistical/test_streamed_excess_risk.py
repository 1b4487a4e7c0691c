"""What is promised about samples of a stream, and about models fitted to them."""

import numpy as np
import pytest
from scipy import stats

from calipers.engines import ArraySource
from calipers.engines.running import LocalEngine, run_states
from calipers.inference import Moments
from calipers.inputs import check_features
from calipers.metrics.conditional.streamed_excess_risk import (
    ExcessRiskState,
    WeightedRows,
    combined_error,
    direction_p_value,
    fit_fold_models,
)
from calipers.metrics.states.sampling import SampleState

N, SAMPLE, ALPHA = 6000, 600, 0.1


def world(seed, spread):
    """Coverage 0.9 everywhere (spread 0), or 0.9 -+ spread by the sign of the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(N, 2))
    covered = rng.random(N) < 0.9 + spread * np.sign(X[:, 0])
    y = np.where(covered, 0.0, 2.0)
    return {"y_true": y, "intervals": np.tile([-1.0, 1.0], (N, 1)), "X": X}


def sample_of(source, seed):
    pieces = source.pieces()
    state = SampleState(SAMPLE, N, ["array"], seed)
    return run_states({"s": state}, pieces, LocalEngine(1), lambda *_: None)["s"].finish()


def ert_of(rows, seed, null="target"):
    """The table of excess risks of a stream, and the models."""
    source = ArraySource(rows, piece_rows=2500)
    sample = sample_of(source, seed)
    covered = np.abs(sample.given["y_true"]) <= 1
    features = check_features(sample.given["X"])
    place = {"keys": sample.keys, "threshold": sample.threshold}
    ensemble = fit_fold_models(features, covered, None, alpha=ALPHA, seed=seed, **place)
    state = ExcessRiskState(ensemble, seed, null=null)
    return run_states({"j": state}, source.pieces(), LocalEngine(1), lambda *_: None)["j"].table(), ensemble


def expected_risk(ensemble, spread, side=64):
    """The mean excess risk of the models in the world itself: the true coverage on a grid of the square.

    The midpoints of 64 x 64 cells give it to a few in ten thousand; intervals are a hundred times as wide.
    """
    middle = (np.arange(side) + 0.5) / side * 2 - 1
    X = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    truth, target = 0.9 + spread * np.sign(X[:, 0]), 0.9
    h = ensemble.predictions(X)
    # E of f(h) + (z - h) f'(h) for f(q) = |q - t|: sign(h - t) (p - t).
    return float(np.mean(np.sign(h - target) * (truth - target)))


def test_a_sample_keeps_the_share_of_covered_rows_and_of_every_file():
    rows = world(0, 0.08)
    sample = sample_of(ArraySource(rows, piece_rows=1000), 0)
    covered = np.abs(rows["y_true"]) <= 1
    assert sample.n == SAMPLE
    assert abs(np.mean(np.abs(sample.given["y_true"]) <= 1) - covered.mean()) <= 1 / SAMPLE
    assert len(set(sample.keys.tolist())) == SAMPLE


def test_inside_a_stratum_every_row_is_as_likely():
    rows = {key: value[:300] for key, value in world(1, 0.0).items()}
    pieces = ArraySource(rows).pieces()
    counts = np.zeros(300)
    for seed in range(400):
        state = SampleState(60, 300, ["array"], seed)
        sample = run_states({"s": state}, pieces, LocalEngine(1), lambda *_: None)["s"].finish()
        counts[np.isin(rows["X"][:, 0], sample.given["X"][:, 0])] += 1
    for inside in (np.abs(rows["y_true"]) <= 1, np.abs(rows["y_true"]) > 1):
        expected = counts[inside].mean()
        statistic = np.sum((counts[inside] - expected) ** 2 / (expected * (1 - expected / 400)))
        assert stats.chi2(inside.sum() - 1).sf(statistic) > 1e-4


@pytest.mark.parametrize("runs", [16, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("spread", [0.0, 0.08])
def test_the_interval_holds_the_expected_risk_of_models_fitted_to_such_samples(spread, runs):
    found = [ert_of(world(seed, spread), seed) for seed in range(runs)]
    risks = np.array([expected_risk(ensemble, spread) for _, ensemble in found])
    truth = risks.mean()  # what models fitted to samples of this size reach on average
    held = sum(table["l1"].low <= truth <= table["l1"].high for table, _ in found)
    # At least 95 %: fewer than the 1e-4 quantile of Binomial(runs, 0.95) would break the promise.
    assert held >= stats.binom(runs, 0.95).ppf(1e-4)
    # No model beats the true conditional coverage; 600 rows are enough for more than half of what there is.
    assert truth <= spread + 1e-9
    assert truth >= 0.5 * spread
    low = sum(table["l1"].low <= spread for table, _ in found)
    assert low >= stats.binom(runs, 0.95).ppf(1e-4)


def test_the_test_of_the_target_has_its_size_and_power():
    sound = [ert_of(world(1000 + seed, 0.0), seed)[0]["l1"].p_value for seed in range(24)]
    rejected = sum(p is not None and p <= 0.05 for p in sound)
    assert rejected <= stats.binom(24, 0.05).ppf(1 - 1e-4)
    broken = ert_of(world(7, 0.08), 7)[0]
    assert broken["l1"].p_value < 1e-6
    assert ert_of(world(7, 0.08), 7, null="flat")[0]["l2"].p_value < 1e-6


def test_the_error_holds_both_the_rows_and_the_sample():
    moments = Moments(n=100.0, mean=0.1, squares=99.0)  # a standard error of 0.1
    rows = WeightedRows(moments, moments)
    error, freedom = combined_error(rows, np.array([0.1, 0.1, 0.1, 0.1, 0.1]))
    assert (error, freedom) == (pytest.approx(0.1), pytest.approx(99.0))
    # The models' sum of squares around their mean is 0.04: sqrt(0.01 + 0.04).
    error, freedom = combined_error(rows, np.array([0.0, 0.0, 0.0, np.sqrt(0.05), 0.0]))
    assert error == pytest.approx(np.sqrt(0.05))
    assert freedom == pytest.approx(0.05**2 / (0.01**2 / 99 + 0.04**2 / 4))


def test_the_direction_is_tested_with_its_own_variance():
    # Four rows, z = 1 0 1 1, g = 0.1 -0.1 0.1 0: product 0.2, sums 3, 0.1, squares 0.03.
    sums = np.array([4.0, 3.0, 0.1, 0.03, 0.2])
    score, variance = 0.2 - 0.75 * 0.1, 0.75 * 0.25 * 4 / 3 * (0.03 - 0.0025)
    assert direction_p_value(sums, 0.9, "flat") == pytest.approx(stats.norm.sf(score / np.sqrt(variance)))
    score, variance = 0.2 - 0.9 * 0.1, 0.09 * 0.03
    assert direction_p_value(sums, 0.9, "target") == pytest.approx(stats.norm.sf(score / np.sqrt(variance)))
    assert direction_p_value(np.array([4.0, 3.0, 0.0, 0.0, 0.0]), 0.9, "flat") is None
