"""A bound of the mean loss is compared in every slice, and the place where it is exceeded is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import calipers
from calipers.auditing.audit_result import Audit
from calipers.results import Finding

N = 3000
BOUND = 0.12


def world(seed: int = 0) -> tuple[np.random.Generator, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return rng, {
        "X": rng.uniform(0, 10, (N, 2)),
        "ease": rng.random(N),
        "time": np.datetime64("2025-01-01") + rng.permutation(N) // 10,
    }


def audited(loss: np.ndarray, beside: dict[str, Any], **more: Any) -> Audit:
    return calipers.audit(loss=loss, bound=BOUND, random_state=0, **beside, **more)


def fault(found: Audit, code: str) -> Finding:
    (finding,) = (f for f in found.findings if f.code == code)
    assert finding.outcome == "fault", finding
    return finding


def codes_of_faults(found: Audit) -> set[str]:
    return {f.code for f in found.faults}


def zero_one(rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    return (rng.random(N) < mean).astype(float)


def continuous(rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    return rng.beta(3 * mean, 3 * (1 - mean))


@pytest.mark.parametrize("draw", [zero_one, continuous])
def test_a_region_that_exceeds_the_bound_is_named(draw: Any) -> None:
    rng, beside = world()
    there = (beside["X"][:, 0] > 6) & (beside["X"][:, 1] < 4)
    found = audited(draw(rng, np.where(there, 0.35, 0.05)), beside)
    region = fault(found, "CAL605")
    assert codes_of_faults(found) == {"CAL605"}
    assert found.promises["mean loss", "features"].answer == "broken"
    assert found.promises["mean loss", "all rows"].answer == "kept"
    rows = found.rows_of("CAL605")
    # Most rows of the rule lie in the region, and most of the region in the rule.
    assert (rows & there).sum() > 0.8 * max(rows.sum(), there.sum())
    assert region.severity == "warning"
    assert region.where.startswith("x0 > ")


def test_hard_rows_that_exceed_the_bound_are_named() -> None:
    rng, beside = world(1)
    found = audited(zero_one(rng, np.where(beside["ease"] < 0.2, 0.3, 0.05)), beside)
    assert fault(found, "CAL606").where == "hardest fifth"
    assert "In the hardest fifth of rows (by ease) the mean loss is" in fault(found, "CAL606").sentence


def test_a_time_at_which_the_bound_is_exceeded_is_dated() -> None:
    rng, beside = world(2)
    day = (beside["time"] - np.datetime64("2025-01-01")).astype(int)
    found = audited(zero_one(rng, np.where((day >= 120) & (day < 150), 0.5, 0.05)), beside)
    assert fault(found, "CAL607").where == "from 2025-05-01 to 2025-05-30"
    assert found.promises["mean loss", "time"].answer == "broken"


def test_what_all_rows_exceed_is_not_told_again_for_every_part() -> None:
    rng, beside = world(3)
    groups = rng.choice(["a", "b"], N)
    assert codes_of_faults(audited(zero_one(rng, np.full(N, 0.3)), beside, groups=groups)) == {"CAL602"}
    mean = np.where(groups == "b", 0.5, 0.2)
    said = fault(audited(zero_one(rng, mean), beside, groups=groups), "CAL603").sentence
    assert said.startswith("In group b the mean loss is 0.4835; at most 0.12 was promised, and all rows")


def test_kept_bounds_are_accused_no_more_often_than_the_level() -> None:
    accused = 0
    for seed in range(40):
        rng, beside = world(100 + seed)
        accused += bool(codes_of_faults(audited(zero_one(rng, np.full(N, BOUND)), beside)))
    # One-sided tests at 5 % over the whole audit: at most 6 of 40 with probability 0.994.
    assert accused <= stats.binom.ppf(0.994, 40, 0.05)


def test_rows_of_one_cluster_count_as_fewer() -> None:
    """Forty clusters of equal losses with the bound as their mean: their mean is no evidence."""
    accused = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        loss = np.repeat((rng.random(40) < BOUND).astype(float), 25)
        found = calipers.audit(loss=loss, bound=BOUND, cluster=np.arange(1000) // 25, random_state=0)
        accused += "CAL602" in codes_of_faults(found)
    assert accused <= stats.binom.ppf(0.994, 40, 0.05)
    few = calipers.audit(loss=np.ones(1000), bound=BOUND, cluster=np.arange(1000) // 100, random_state=0)
    (finding,) = (f for f in few.findings if f.code == "CAL602")
    assert finding.outcome == "cannot_tell"
    assert "fewer than 20 of them" in str(finding.evidence)


@pytest.mark.parametrize("code", ["CAL605", "CAL606", "CAL607"])
def test_whole_weights_are_repeated_rows(code: str) -> None:
    rng, beside = world(5)
    there = (beside["X"][:, 0] > 7) | (beside["ease"] < 0.1)
    loss, times = zero_one(rng, np.where(there, 0.3, 0.05)), rng.integers(1, 3, N)
    weighted = audited(loss, beside, sample_weight=times)
    repeated = audited(np.repeat(loss, times), {k: np.repeat(v, times, axis=0) for k, v in beside.items()})
    one, other = (next(f for f in a.findings if f.code == code) for a in (weighted, repeated))
    assert (one.sentence, one.where) == (other.sentence, other.where)
    assert str(one.evidence) == str(other.evidence)
