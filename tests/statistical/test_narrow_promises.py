"""CAL302 accuses nobody who is as narrow as the rows allow, and finds those who are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistical.narrow_worlds import ORACLES, WASTEFUL, oracle_sets, wasteful

RATE = 0.05


def accused(name: str, repeats: int, n: int) -> int:
    world, kind = ORACLES[name]
    return sum(world(kind, n, np.random.default_rng([7, i])).outcome == "fault" for i in range(repeats))


@pytest.mark.parametrize("name", ORACLES)
def test_the_narrowest_predictors_are_left_alone(name: str) -> None:
    assert accused(name, 8, 800) <= stats.binom.ppf(0.999, 8, RATE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_at_most_10_of_200_oracles_are_accused(name: str) -> None:
    assert accused(name, 200, 1000) <= 10


@pytest.mark.parametrize("kind", WASTEFUL)
def test_wasteful_predictors_are_named(kind: str) -> None:
    found = [wasteful(kind, 1500, np.random.default_rng([8, i])) for i in range(4)]
    assert [finding.severity for finding in found] == ["warning"] * 4


def test_sets_of_even_stated_mass_are_larger_and_that_is_said() -> None:
    finding = oracle_sets("aps", 4000, np.random.default_rng(9))
    saved = finding.evidence
    assert saved is not None
    assert 0.0 < float(saved) < 0.3
