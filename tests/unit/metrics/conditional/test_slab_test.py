"""The test of the worst slab over all rows: size, power, calibration luck, weights, order of rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calipers.exceptions import InputError
from calipers.metrics import worst_slab_coverage
from calipers.metrics.conditional.slab_search import any_run_as_low, sorted_blocks, worst_slab
from calipers.metrics.conditional.slab_test import redrawn_rows
from calipers.metrics.promised_rows import check_promised_rows

FEW = {"n_directions": 12, "n_draws": 39}


def p_value(X, z, seed=0, **options):
    return worst_slab_coverage(X, z, **({"alpha": 0.1, "random_state": seed} | FEW | options)).p_value


def rejected(runs, make, **options):
    """Of some samples those with a p-value of at most 5 %; 39 draws make that level exact."""
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng([5, seed])
        found += p_value(*make(rng), seed, **options) <= 0.05
    return found


def kept(rng, n=160):
    return rng.normal(size=(n, 3)), rng.random(n) < 0.9


def region(rng, n=300):
    X = rng.normal(size=(n, 3))
    inside = X[:, 1] > 0.7
    return X, rng.random(n) < np.where(inside, 0.7, 0.9 + 0.2 * inside.mean() / (1 - inside.mean()))


def test_kept_promises_are_rejected_as_often_as_stated():
    assert rejected(200, kept) <= stats.binom.ppf(0.999, 200, 0.05)


def test_one_threshold_of_few_calibration_rows_is_not_a_fault():
    def lucky(rng):
        X, z = kept(rng, 400)
        return X, rng.random(len(z)) < rng.beta(18, 2)  # the coverage of 19 calibration rows at alpha 0.1

    most = stats.binom.ppf(0.999, 80, 0.05)
    assert rejected(80, lucky, n_calibration=19) <= most < rejected(80, lucky)


def test_all_rows_find_more_than_the_half_that_did_not_choose_the_slab():
    runs = 40
    held_out = sum(
        worst_slab_coverage(*region(np.random.default_rng([5, s])), alpha=0.1, random_state=s).p_value <= 0.05
        for s in range(runs)
    )
    assert rejected(runs, region) >= held_out + 8


@pytest.mark.parametrize("ties", [False, True])
def test_a_run_as_low_is_seen_exactly_when_the_search_finds_one(ties):
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 4, size=(60, 2)).astype(float) if ties else rng.normal(size=(60, 2))
    directions = np.vstack([np.eye(2), rng.normal(size=(5, 2))])
    for _ in range(20):
        z, other = rng.random((2, 60)) < 0.8
        least = worst_slab(columns, z, 0.1, directions).coverage
        as_low = any(
            any_run_as_low(other[order].astype(float), None, edge, least, 6)
            for order, edge in sorted_blocks(columns, directions)
        )
        assert as_low == (worst_slab(columns, other, 0.1, directions).coverage <= least + 1e-12)


def test_promises_per_row_and_repeated_rows_are_redrawn_as_promised():
    rng = np.random.default_rng(1)
    t, counts = np.repeat([0.2, 0.9], 500), np.tile([1, 3], 500)
    rows, _ = check_promised_rows(rng.random(1000) < t, alpha=1 - t, sample_weight=counts)
    drawn = redrawn_rows(rows, 50, None, rng)
    for level in (0.2, 0.9):
        for count in (1, 3):
            chosen = drawn[:, np.isclose(rows.target, level) & (counts == count)]
            assert np.isin(np.round(chosen * count, 9), range(count + 1)).all()
            assert chosen.mean() == pytest.approx(level, abs=5 * 0.5 / np.sqrt(50 * 250))


def test_the_value_stays_that_of_the_other_half_and_the_order_of_rows_does_not_matter():
    X, z = region(np.random.default_rng(2))
    plain = worst_slab_coverage(X, z, alpha=0.1, n_directions=12, random_state=0)
    tested = worst_slab_coverage(X, z, alpha=0.1, random_state=0, **FEW)
    assert (tested.value, tested.low, tested.high) == (plain.value, plain.low, plain.high)
    assert tested.details["held_out_p_value"] == plain.p_value
    assert tested.null_low is None
    order = np.random.default_rng(3).permutation(len(z))
    assert p_value(X[order], z[order]) == tested.p_value


def test_a_broken_certainty_rejects_and_what_has_no_law_keeps_its_answer():
    X, z = kept(np.random.default_rng(4))
    t = np.full(len(z), 0.9)
    t[np.flatnonzero(~z)[0]] = 1.0
    assert p_value(X, z, alpha=1 - t) == 1 / 40
    weights = np.random.default_rng(5).uniform(0.5, 2, len(z))
    assert p_value(X, z, sample_weight=weights) is None
    assert p_value(X, z, alpha=None) is None
    with pytest.raises(InputError, match="n_draws"):
        p_value(X, z, n_draws=-1)
