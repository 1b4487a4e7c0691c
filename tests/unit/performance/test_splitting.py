"""Blocks are equal, disjoint and random; the remainder is dropped at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.exceptions import InputError
from calipers.performance.splitting import plan_blocks, split_candidate


def plan(n, *, n_points=None, train_size=None, b=1, parts=1, alpha=0.1, seed=0):
    return plan_blocks(
        n,
        n_points=n_points,
        train_size=train_size,
        points_per_loss=b,
        parts=parts,
        alpha=alpha,
        generator=np.random.default_rng(seed),
    )


@settings(max_examples=80, deadline=None)
@given(
    k=st.integers(1, 12),
    m=st.integers(1, 9),
    b=st.integers(1, 4),
    parts=st.integers(1, 3),
    extra=st.integers(0, 30),
)
def test_blocks_are_disjoint_and_use_every_row_once(k, m, b, parts, extra):
    n = parts * k * (m + b) + extra
    blocks = plan(n, n_points=k, train_size=m, b=b, parts=parts)
    assert blocks.train.shape == (parts, k, m)
    assert blocks.evaluate.shape == (parts, k, b)
    every = np.concatenate([blocks.train.ravel(), blocks.evaluate.ravel(), blocks.discarded])
    assert sorted(every.tolist()) == list(range(n))


def test_the_papers_sizes():
    # Section 4.2: n = 75 000, k = 1000 gives floor((n - k) / k) = 74 training rows each.
    blocks = plan(75_000, n_points=1000)
    assert (blocks.n_points, blocks.train_size, blocks.discarded.size) == (1000, 74, 0)
    # Section 4.1: 75 % of 1797 rows, two parts of 50 points: floor(673 / 50) - 1 = 12.
    assert plan(1347, n_points=50, parts=2).train_size == 12


def test_either_number_determines_the_other():
    assert plan(1000, train_size=19).n_points == 50
    assert plan(1000, n_points=50).train_size == 19
    assert plan(1000, train_size=15, b=5, parts=2).n_points == 25


def test_the_default_has_the_points_that_give_finite_ends_and_more_to_learn_from():
    # As few as can be, so that training samples are large; five times as many where a regression learns.
    assert (plan(6000).n_points, plan(6000).train_size) == (20, 299)
    assert plan(5000, alpha=0.3).n_points == 6
    assert plan(5000, parts=2).n_points == 100


def test_the_remainder_is_random():
    left = {tuple(sorted(plan(23, n_points=4, seed=s).discarded.tolist())) for s in range(20)}
    assert len(left) > 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_points": 60},
            r"n_points=60 needs at least 120 rows \(60 blocks of 1 training and 1 evaluation rows\), got 100",
        ),
        (
            {"n_points": 30, "parts": 2},
            r"needs at least 120 rows \(2 x 30 blocks of 1 training and 1 evaluation",
        ),
        ({"n_points": 20, "train_size": 9}, "n_points=20 and train_size=9 needs at least 200 rows"),
        ({"train_size": 100}, "train_size=100 needs at least 101 rows"),
        ({"parts": 2}, "the default number of points needs at least 400 rows"),
        ({"n_points": 0}, "n_points must be a whole number of at least 1, got 0"),
        ({"train_size": 2.5}, "train_size must be a whole number of at least 1, got 2.5"),
        ({"n_points": 5, "b": 0}, "points_per_loss must be a whole number of at least 1, got 0"),
    ],
)
def test_impossible_sizes_are_refused_with_the_rows_needed(options, message):
    with pytest.raises(InputError, match=message):
        plan(100, **options)


def test_candidate_split_takes_shares_and_counts():
    rng = np.random.default_rng(0)
    train, calibration = split_candidate(101, 0.5, 1, rng)
    assert (train.size, calibration.shape) == (51, (50, 1))
    train, calibration = split_candidate(101, 31, 10, rng)
    assert (train.size, calibration.shape) == (70, (3, 10))
    # 0.29 x 100 is 28.999999999999996 in floats.
    assert split_candidate(100, 0.29, 1, rng)[1].shape == (29, 1)


@pytest.mark.parametrize(
    ("size", "b", "message"),
    [
        (10, 1, "must leave at least one row to train on and one to calibrate on, got 10 of 10"),
        (0.01, 1, "got 0 of 10 rows for calibration"),
        (1.5, 1, "calibration_size must lie strictly between 0 and 1, got 1.5"),
        (0, 1, "calibration_size must be a whole number of at least 1, got 0"),
        (0.5, 6, "points_per_loss must not exceed the 5 calibration rows, got 6"),
    ],
)
def test_impossible_candidate_splits_are_refused(size, b, message):
    with pytest.raises(InputError, match=message):
        split_candidate(10, size, b, np.random.default_rng(0))
