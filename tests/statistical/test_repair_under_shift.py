"""A repair made for rows with other features covers those rows."""

from __future__ import annotations

import numpy as np
import pytest

import calipers
from tests.unit.auditing.repair.test_shift import MOVED, columns, coverage


@pytest.mark.slow
def test_coverage_of_the_new_rows_is_restored() -> None:
    """Mean over eight draws; each has the noise of about 700 effective calibration rows and of the ratio."""
    stated, repaired = [], []
    for seed in range(8):
        rng = np.random.default_rng(100 + seed)
        found = calipers.audit(**columns(3000, rng), alpha=0.1, random_state=seed)
        new = columns(3000, rng, MOVED)
        ends = found.repair(held_out=0.3, X_new=new["X"]).apply(new)["intervals"]
        stated.append(coverage(new["intervals"], new["y_true"]))
        repaired.append(coverage(ends, new["y_true"]))
    assert np.mean(stated) < 0.8
    # A standard deviation of 0.02 per draw (0.013 by rows, the rest by the ratio), three of them.
    assert np.mean(repaired) == pytest.approx(0.9, abs=3 * 0.02 / np.sqrt(8))
