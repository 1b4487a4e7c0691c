"""Titles and sentences about parts of the rows say which side of the promise they are on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calipers
from calipers.results import Finding

N = 6000


def _by_group(shares: dict[str, float], **more: Any) -> Finding:
    """The finding about groups whose rows are covered with these shares, exactly."""
    each = N // len(shares)
    group = np.repeat(list(shares), each)
    covered = np.concatenate([np.arange(each) < round(share * each) for share in shares.values()])
    shuffled = np.random.default_rng(0).permutation(len(group))
    options = {name: value[shuffled] for name, value in more.items()}
    found = calipers.audit(covered=covered[shuffled], groups=group[shuffled], random_state=0, **options)
    return next(finding for finding in found.findings if finding.code == "CAL201")


def test_a_group_above_the_promise_is_not_called_under_covered() -> None:
    found = _by_group({"a": 0.923, "b": 0.99, "c": 0.99})
    assert "cover 92.3 %" in found.sentence
    assert found.title == "coverage differs between groups"
    assert found.severity == "note"  # 90 % was promised, and is kept


def test_a_group_below_the_promise_is_called_under_covered() -> None:
    found = _by_group({"a": 0.80, "b": 0.93, "c": 0.93})
    assert (found.outcome, found.title) == ("fault", "a group is under-covered")


@pytest.mark.parametrize(
    ("shares", "title"),
    [
        ({"a": 0.99, "b": 0.80, "c": 0.80}, "a group is over-covered"),
        ({"a": 0.60, "b": 0.80, "c": 0.80}, "a group is under-covered"),
    ],
)
def test_the_side_is_right_for_a_promise_per_row(shares: dict[str, float], title: str) -> None:
    found = _by_group(shares, promised=np.full(N, 0.8))
    assert (found.outcome, found.title, found.where) == ("fault", title, "group a")


def test_parts_along_difficulty_are_called_parts() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=2000)
    y = np.array([rng.choice(3, p=row) for row in p])
    found = calipers.audit(y, probabilities=p, classes=[0, 1, 2], random_state=0)
    (finding,) = (f for f in found.findings if f.code == "CAL401")
    assert finding.outcome == "clean"
    assert finding.sentence.startswith("In no part along difficulty ")
