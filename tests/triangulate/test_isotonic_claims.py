"""Claims 3 and 5 of Gao, Parameswaran and Peng (2017), by routes that do not use isotonic regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from calipers.calibration import IsotonicCalibrator
from calipers.metrics import calibration_error


def largest_gap(y: np.ndarray, z: np.ndarray) -> float:
    """max over a, b of |sum of y - z over a < i <= b|, by comparing all pairs of prefixes."""
    walk = np.concatenate([[0.0], np.cumsum(y - z)])
    return float(np.abs(walk[:, None] - walk[None, :]).max())


def linear_program(y: np.ndarray) -> float:
    """The smallest such gap over 0 <= z_1 <= ... <= z_n <= 1: the program in the proof of Claim 3."""
    n = y.size
    total, lower = np.cumsum(y), np.tril(np.ones((n, n)))
    one, zero = np.ones((n, 1)), np.zeros((n, 1))
    # Z_k >= S_k - xi1 and Z_k <= S_k + xi2, then z_i - z_{i+1} <= 0.
    rise = np.hstack([np.eye(n)[:-1] - np.eye(n, k=1)[:-1], np.zeros((n - 1, 2))])
    matrix = np.vstack([np.hstack([-lower, -one, zero]), np.hstack([lower, zero, -one]), rise])
    right = np.concatenate([-total, total, np.zeros(n - 1)])
    cost = np.concatenate([np.zeros(n), [1.0, 1.0]])
    solved = linprog(cost, matrix, right, bounds=[(0, 1)] * n + [(0, None)] * 2, method="highs")
    return float(solved.fun)


@pytest.mark.parametrize("n", [2, 5, 20, 60])
def test_claim_3_isotonic_regression_reaches_the_minimum_of_the_linear_program(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.sort(rng.random(n))
    y = (rng.random(n) < 1 - p).astype(float)  # the wrong way round: many pooled rows
    z = IsotonicCalibrator().fit_predict(p, y.astype(int))
    assert largest_gap(y, z) == pytest.approx(linear_program(y), abs=1e-8)


ROWS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=40)


@settings(max_examples=150, deadline=None)
@given(rows=ROWS)
def test_claim_5_part_1_own_rows_are_calibrated(rows: list[tuple[int, bool]]) -> None:
    p, y = np.array([r[0] for r in rows]) / 20, np.array([r[1] for r in rows], dtype=int)
    after = IsotonicCalibrator().fit_predict(p, y)
    assert float(calibration_error(y, after, random_state=0)) < 1e-14


@settings(max_examples=200, deadline=None)
@given(rows=ROWS, threshold=st.integers(0, 40))
def test_claim_5_part_2_no_threshold_loses_on_its_own_rows(
    rows: list[tuple[int, bool]], threshold: int
) -> None:
    p, y = np.array([r[0] for r in rows]) / 20, np.array([r[1] for r in rows])
    after = IsotonicCalibrator().fit_predict(p, y)
    t = threshold / 40

    def loss(stated: np.ndarray) -> float:
        # As printed: a prediction equal to the threshold is negative.
        return float(np.sum((1 - t) * (y & (stated <= t)) + t * (~y & (stated > t))))

    def loss_with_ties_up(stated: np.ndarray) -> float:
        # As bayes_decision does it.
        return float(np.sum((1 - t) * (y & (stated < t)) + t * (~y & (stated >= t))))

    assert loss(after) <= loss(p) + 1e-12
    assert loss_with_ties_up(after) <= loss_with_ties_up(p) + 1e-12
