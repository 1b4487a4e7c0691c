import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calipers.exceptions import InputError
from calipers.inference import Moments, effective_quantile, mean_estimate, paired_difference

rows = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 4)), min_size=1, max_size=20)


def test_mean_and_standard_error_by_hand():
    # 1, 2, 3, 6: mean 3, squares 4 + 1 + 0 + 9 = 14, variance 14/3, error sqrt(14/12).
    e = mean_estimate(np.array([1.0, 2.0, 3.0, 6.0]), name="m", method="normal")
    assert e.value == 3.0
    assert e.std_error == pytest.approx(np.sqrt(14 / 12))
    assert e.high - e.value == pytest.approx(1.959963984540054 * np.sqrt(14 / 12))
    assert (e.n, e.p_value, e.null_high) == (4.0, None, None)


@given(rows)
def test_whole_weights_equal_repeated_rows(rows):
    x, w = np.array(rows, dtype=float).T
    weighted, repeated = Moments.of(x, w), Moments.of(np.repeat(x, w.astype(int)))
    assert weighted.n == repeated.n
    assert weighted.mean == pytest.approx(repeated.mean, abs=1e-12)
    assert weighted.squares == pytest.approx(repeated.squares, abs=1e-9)


@given(rows, st.integers(0, 20))
def test_merged_blocks_equal_the_whole(rows, cut):
    x, w = np.array(rows, dtype=float).T
    merged = Moments.of(x[:cut], w[:cut]).merge(Moments.of(x[cut:], w[cut:]))
    whole = Moments.of(x, w)
    assert merged.n == whole.n
    assert merged.mean == pytest.approx(whole.mean, abs=1e-12)
    assert merged.squares == pytest.approx(whole.squares, abs=1e-9)


def test_a_large_offset_does_not_eat_the_spread():
    x = np.random.default_rng(0).normal(size=1000)
    assert Moments.of(x + 1e9).std_error == pytest.approx(Moments.of(x).std_error, rel=1e-6)


def test_moments_can_stand_in_for_the_rows():
    x = np.array([1.0, 4.0, 2.5])
    assert mean_estimate(Moments.of(x), name="m") == mean_estimate(x, name="m")


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        ([], "there are no rows"),
        ([2.0], "one row has no spread"),
        ([0.1] * 7, "all contributions are equal"),
        ([1.0, np.inf], "a contribution is not finite"),
        ([1.0, np.nan], "a contribution is not finite"),
    ],
)
def test_a_mean_without_an_honest_interval_says_why(x, reason):
    e = mean_estimate(np.array(x), name="m", null=0.0)
    assert (e.low, e.high, e.p_value) == (None, None, None)
    assert reason in e.reason


def test_equal_contributions_have_no_rounding_spread():
    e = mean_estimate(np.full(1001, 0.1), name="m", weights=np.full(1001, 0.3))
    assert (e.value, e.std_error) == (0.1, 0.0)


def test_the_test_and_the_interval_agree():
    x = np.random.default_rng(1).normal(0.4, 1, 30)
    e = mean_estimate(x, name="m", confidence=0.95)
    at_end = mean_estimate(x, name="m", null=e.low)
    assert at_end.p_value == pytest.approx(0.05)
    assert at_end.null_high == pytest.approx(e.value)


def test_one_sided_tests_have_one_sided_bands():
    x = np.array([1.0, 2.0, 4.0])
    greater = mean_estimate(x, name="m", null=1.0, alternative="greater")
    less = mean_estimate(x, name="m", null=1.0, alternative="less")
    assert greater.p_value + less.p_value == pytest.approx(1.0)
    assert greater.null_low is None
    assert less.null_high is None
    assert greater.null_high - 1.0 == pytest.approx(1.0 - less.null_low)


def test_pairing_takes_out_what_both_share():
    # Differences 2, 1, 3: mean 2, error 1/sqrt(3), t = 2 sqrt(3) on 2 degrees of freedom, whose
    # two-sided p is 1 - t / sqrt(2 + t^2) = 1 - sqrt(12/14).
    e = paired_difference(np.array([3.0, 5.0, 9.0]), np.array([1.0, 4.0, 6.0]), name="gain")
    assert e.std_error == pytest.approx(3**-0.5)
    assert e.p_value == pytest.approx(1 - np.sqrt(12 / 14))


def test_pairs_must_match():
    with pytest.raises(InputError, match="got first: 2, second: 3"):
        paired_difference(np.ones(2), np.ones(3), name="gain")


def test_unknown_method_is_refused():
    with pytest.raises(InputError, match='method must be "t" or "normal", got \'z\''):
        mean_estimate(np.ones(2), name="m", method="z")


def test_a_constant_shift_has_no_spread_however_it_is_rounded():
    first = np.random.default_rng(0).random(500)
    e = paired_difference(first, first - 0.1, name="shift")
    assert e.value == pytest.approx(0.1)
    assert (e.std_error, e.p_value) == (0.0, None)
    assert "all contributions are equal" in e.reason


def test_a_p_value_too_small_for_a_number_is_not_0():
    rows = np.random.default_rng(0).normal(10, 1, 5000)
    assert mean_estimate(rows, name="m", null=0.0).p_value > 0


def test_importance_weights_have_a_linearised_error_at_the_effective_size():
    x, w = np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25, 0.25])
    e = mean_estimate(x, name="x", weights=w)
    n = 1 / 0.375
    assert e.value == pytest.approx(2.0)
    assert e.n == pytest.approx(n)
    # w^2 (x - 2)^2: 0.25, 0, 0.25.
    assert e.std_error == pytest.approx(np.sqrt(0.5 * n / (n - 1)))
    for factor in (1 / 600, 7.3):
        scaled = mean_estimate(x, name="x", weights=factor * w)
        for field in ("value", "std_error", "low", "high", "n"):
            assert getattr(scaled, field) == pytest.approx(getattr(e, field)), field


def test_equal_importance_weights_give_what_the_rows_give():
    x = np.random.default_rng(0).normal(size=30)
    plain, scaled = mean_estimate(x, name="x"), mean_estimate(x, name="x", weights=np.full(30, 0.7))
    for field in ("value", "std_error", "low", "high", "n"):
        assert getattr(scaled, field) == pytest.approx(getattr(plain, field)), field


def test_one_block_with_importance_weights_decides_for_all():
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=40), rng.integers(1, 4, 40).astype(float)
    w[-1] = 0.5
    parts = [Moments.of(x[a : a + 10], w[a : a + 10]) for a in range(0, 40, 10)]
    merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    whole = Moments.of(x, w)
    assert [part.whole for part in parts] == [True, True, True, False]
    assert not merged.whole
    assert (merged.std_error, merged.rows) == (pytest.approx(whole.std_error), pytest.approx(whole.rows))


def test_a_column_of_shape_n_1_is_a_column():
    # It was broadcast against the weights: -30 instead of 2.
    x, w = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0])
    assert mean_estimate(x[:, None], name="x", weights=w).value == 2.0
    with pytest.raises(InputError, match="contributions must have one dimension"):
        mean_estimate(np.ones((3, 2)), name="x", weights=w)
    with pytest.raises(InputError, match="one entry per row"):
        mean_estimate(x, name="x", weights=w[:2])


def test_an_infinite_mean_stays_infinite_when_blocks_merge():
    infinite, finite = Moments.of(np.array([np.inf, 1.0])), Moments.of(np.array([1.0, 2.0]))
    for merged in (infinite.merge(finite), finite.merge(infinite)):
        assert merged.mean == np.inf
        assert np.isnan(merged.squares)


@pytest.mark.parametrize("weights", [None, "whole", "importance"])
def test_tails_of_blocks_merge_to_those_of_all_rows(weights):
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=60)
    w = {None: None, "whole": rng.integers(0, 4, 60).astype(float), "importance": rng.random(60)}[weights]
    parts = [slice(0, 7), slice(7, 41), slice(41, 60)]
    merged = Moments()
    for part in parts:
        merged = merged.merge(Moments.of(x[part], None if w is None else w[part], tails=True))
    whole = Moments.of(x, w, tails=True)
    assert merged.tails == pytest.approx(whole.tails, rel=1e-10)
    assert merged.carrying_rows == pytest.approx(whole.carrying_rows, rel=1e-10)


def test_rows_that_carry_the_noise_are_counted_by_hand():
    # Deviations 3, -1, -1, -1: squares sum to 12, fourth powers to 84; 144 / 84 rows carry the noise.
    moments = Moments.of(np.array([4.0, 0.0, 0.0, 0.0]), tails=True)
    assert moments.carrying_rows == pytest.approx(144 / 84)
    half = effective_quantile(0.95, 144 / 84) * moments.std_error
    e = mean_estimate(moments, name="loss")
    assert e.high - e.low == pytest.approx(2 * half)
    assert "carry the noise" in e.method


def test_without_tails_the_interval_is_the_plain_one():
    rows = np.array([4.0, 0.0, 0.0, 0.0])
    assert Moments.of(rows).carrying_rows is None
    assert mean_estimate(rows, name="loss").method == "mean, Student t interval"
