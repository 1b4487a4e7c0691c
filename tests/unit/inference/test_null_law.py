import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calipers.exceptions import InputError
from calipers.inference import (
    CalibrationLaw,
    CoverageLaw,
    ExactLaw,
    SimulatedLaw,
    ViolationLaw,
    monte_carlo_p,
    strata_law,
)
from calipers.results import Estimate

integer_draws = st.lists(st.integers(-5, 5), min_size=1, max_size=60).map(np.array)
alternatives = st.sampled_from(["greater", "less", "two-sided"])


def test_exact_tails_of_a_die():
    die = ExactLaw([3, 1, 2, 6, 5, 4], np.full(6, 1 / 6))
    assert die.p_value(5) == pytest.approx(1 / 3)
    assert die.p_value(5, "less") == pytest.approx(5 / 6)
    assert die.p_value(5, "two-sided") == pytest.approx(2 / 3)
    assert die.p_value(4.5) == pytest.approx(1 / 3)
    assert (die.mean, die.std) == (pytest.approx(3.5), pytest.approx(np.sqrt(35 / 12)))
    assert die.band(2 / 3, "two-sided") == (2.0, 5.0)


@given(integer_draws, st.integers(-6, 6), alternatives)
def test_the_simulated_p_value_counts_the_reading_among_its_draws(draws, observed, alternative):
    greater = (1 + sum(d >= observed for d in draws)) / (draws.size + 1)
    less = (1 + sum(d <= observed for d in draws)) / (draws.size + 1)
    expected = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]
    law = SimulatedLaw(draws)
    assert law.p_value(observed, alternative) == pytest.approx(expected)
    assert law.monte_carlo_p(observed, alternative).p_value == pytest.approx(expected)


@given(integer_draws, alternatives, st.sampled_from([0.5, 0.8, 0.95]))
def test_a_reading_is_outside_the_band_exactly_when_it_is_rejected(draws, alternative, level):
    for law in (SimulatedLaw(draws), ExactLaw(draws, np.full(draws.size, 1 / draws.size))):
        low, high = law.band(level, alternative)
        for observed in range(-6, 7):
            p = law.p_value(observed, alternative)
            if abs(p - (1 - level)) > 1e-9:
                assert (low <= observed <= high) == (p > 1 - level)


def test_too_few_draws_leave_the_band_open():
    law = SimulatedLaw(np.arange(18))
    assert law.band(0.95) == (-np.inf, np.inf)
    assert SimulatedLaw(np.arange(19)).band(0.95).high == 18.0
    assert SimulatedLaw(np.arange(19)).band(0.95, "less").low == 0.0


def test_rounding_noise_is_a_tie():
    # 0.1 + 0.2 > 0.3 in floats; a strict comparison would read 1/5.
    draws = np.array([0.3, 0.3, 0.1, 0.2])
    assert SimulatedLaw(draws).p_value(0.1 + 0.2) == pytest.approx(3 / 5)
    assert monte_carlo_p(0.1 + 0.2, draws).n_extreme == 2


def test_tiny_statistics_are_not_all_ties():
    assert monte_carlo_p(3e-15, np.array([1e-15, 2e-15, 4e-15])).n_extreme == 1


def test_huge_integers_compare_exactly():
    base = 10**12
    assert monte_carlo_p(base, np.array([base - 1, base, base + 1])).n_extreme == 2


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_an_undefined_draw_counts_as_extreme(alternative):
    draws = np.array([np.nan, 0.0, 1.0, 2.0])
    law = SimulatedLaw(draws)
    assert (law.n_draws, law.n_undefined) == (4, 1)
    assert law.p_value(1.0, alternative) == pytest.approx(4 / 5)
    assert monte_carlo_p(1.0, draws, alternative=alternative).p_value == pytest.approx(4 / 5)
    assert abs(getattr(law.band(0.8, alternative), "high" if alternative == "greater" else "low")) == np.inf


def test_a_nan_reading_has_no_p_value():
    law = SimulatedLaw([1.0, 2.0])
    assert np.isnan(law.p_value(np.nan))
    assert np.isnan(monte_carlo_p(np.nan, [1.0]).p_value)
    assert law.estimate_fields(np.nan)["p_value"] is None


def test_the_randomized_p_value_is_uniform_on_a_discrete_law():
    # Averaged over the law and the draw of U: P(p <= u) = u for every u.
    law, rng = ExactLaw([0, 1, 2], [0.5, 0.3, 0.2]), np.random.default_rng(0)
    for alternative in ("greater", "less", "two-sided"):
        p = np.sort(
            [law.randomized_p_value(x, rng, alternative) for x in rng.choice(3, 2000, p=[0.5, 0.3, 0.2])]
        )
        distance = np.max(np.abs(p - np.arange(1, 2001) / 2000))
        assert distance < 1.95 / np.sqrt(2000)  # Kolmogorov's 0.1 % point


def test_estimate_fields_fill_an_estimate():
    fields = SimulatedLaw(np.arange(1, 100)).estimate_fields(97)
    e = Estimate(name="T-CV", value=97.0, **fields)
    assert (e.p_value, e.null_low, e.null_high, e.null_level, e.alternative) == (
        0.04,
        None,
        95.0,
        0.95,
        "greater",
    )


def test_monte_carlo_error_shrinks_with_the_draws():
    few, many = (monte_carlo_p(0.9, np.linspace(0, 1, b)) for b in (101, 10_001))
    assert few.low < 0.1 < few.high
    assert many.std_error == pytest.approx(few.std_error / 10, rel=0.1)
    assert many.high - many.low < (few.high - few.low) / 5


def test_laws_survive_pickling():
    law = pickle.loads(pickle.dumps(SimulatedLaw([1.0, 2.0, 3.0])))
    assert law.p_value(2.0) == pytest.approx(0.75)


def test_laws_need_mass():
    with pytest.raises(InputError, match="draws must hold at least one draw, got 0"):
        SimulatedLaw([])
    with pytest.raises(InputError, match="draws must hold at least one draw, got 0"):
        monte_carlo_p(1.0, [])
    with pytest.raises(InputError, match="masses must be non-negative and sum to 1"):
        ExactLaw([0, 1], [0.5, 0.4])
    with pytest.raises(InputError, match="vectors of one length"):
        ExactLaw([0, 1], [1.0])


@pytest.mark.parametrize(("rows", "n", "rank"), [((14_285, 14_286), 60, 55), ((30_000, 3_000), 200, 181)])
def test_the_band_of_many_rows_behind_one_threshold_needs_no_full_table(monkeypatch, rows, n, rank):
    def ends():
        law = ViolationLaw([CoverageLaw(m, 0.1) for m in rows], 0.9, threshold=CalibrationLaw(n, rank))
        return [law.quantile(level) for level in (0.5, 0.95, 0.999)]

    by_windows = ends()
    monkeypatch.setattr(strata_law, "_WINDOW_CELLS", 0)
    assert ends() == by_windows
