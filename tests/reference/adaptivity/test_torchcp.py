"""SSCV and the rank strata against stored output of TorchCP 1.2.1 (made by ``make_torchcp.py``)."""

import numpy as np
import pytest

from calipers.metrics import is_covered, rank_cv, rank_ss, sscv, true_rank
from tests.reference.adaptivity.make_torchcp import example

# DiffViolation by rank [1] [2,3] [4,6] [7,10] [11,100]: rows, coverage and size, printed with three digits.
ROWS = [127, 148, 86, 36, 3]
COVERAGE = [1.0, 0.838, 0.523, 0.25, 0.0]
SIZE = [5.803, 5.730, 5.058, 4.917, 6.0]


@pytest.fixture(scope="module")
def data():
    values = example()
    covered = is_covered(values["labels"], values["sets"], classes=range(12))
    return covered, values["sets"].sum(axis=1), true_rank(values["labels"], values["P"], classes=range(12))


def test_sscv_is_that_of_the_peer(data):
    covered, size, _ = data
    assert float(sscv(covered, size, alpha=0.1)) == pytest.approx(0.6272727251, abs=1e-6)
    assert float(sscv(covered, size, alpha=0.1, strata=(1, 3, 10, 100))) == pytest.approx(
        0.6272727251, abs=1e-6
    )


def test_rank_strata_are_those_of_the_peer(data):
    covered, size, ranks = data
    e = rank_cv(covered, ranks, alpha=0.1)
    assert e.details["rows"] == ROWS
    np.testing.assert_allclose(e.details["coverage"], COVERAGE, atol=5e-4)
    assert float(e) == pytest.approx(0.9, abs=1e-6)
    fit = rank_ss(ranks, size, n_draws=1, random_state=0)
    np.testing.assert_allclose(fit.details["bin_size"], SIZE, atol=5e-4)
