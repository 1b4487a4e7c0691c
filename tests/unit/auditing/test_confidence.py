"""``confidence=`` of an audit is the level of every interval it shows, in memory and streamed."""

from __future__ import annotations

import numpy as np
import pytest

import calipers
from calipers.auditing import audit
from calipers.engines import ArraySource

N = 1200


def classification() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    P = np.exp(np.column_stack([X[:, 0], X[:, 1], np.zeros(N)]))
    P /= P.sum(axis=1, keepdims=True)
    y = (rng.random((N, 1)) > P.cumsum(axis=1)).sum(axis=1)
    sharp = P**1.5 / (P**1.5).sum(axis=1, keepdims=True)
    sets = np.quantile(P[np.arange(N), y], 0.15) <= P
    return {
        "y_true": y,
        "probabilities": sharp,
        "sets": sets,
        "X": X,
        "groups": np.where(X[:, 2] > 0, "a", "b"),
    }


def p_values() -> dict[str, np.ndarray]:
    rows = classification()
    P = rows.pop("probabilities")
    p = np.minimum(P + 0.05 * np.random.default_rng(2).random(P.shape), 1.0)
    return {"y_true": rows["y_true"], "p_values": p}


def regression() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    y = rng.normal(size=N) * np.where(X[:, 1] > 0.5, 2.5, 1.0)
    width = 1.6 + 0.1 * rng.random(N)
    intervals = np.column_stack([-width, width])
    ease = -np.abs(X[:, 1]) + 0.1 * rng.normal(size=N)
    return {"y_true": y, "intervals": intervals, "X": X, "ease": ease}


def in_memory(rows: dict[str, np.ndarray], confidence: float) -> calipers.auditing.Audit:
    given = dict(rows)
    return calipers.audit(given.pop("y_true"), **given, confidence=confidence, random_state=0)


def streamed(rows: dict[str, np.ndarray], confidence: float) -> calipers.auditing.Audit:
    return audit(source=ArraySource(rows, piece_rows=500), confidence=confidence, random_state=0)


@pytest.mark.parametrize("rows", [classification, p_values, regression])
@pytest.mark.parametrize("run", [in_memory, streamed])
def test_every_interval_has_the_confidence_that_was_asked(rows, run):
    found = run(rows(), 0.8)
    for name, estimate in found.estimates.items():
        if " of the next " not in name:  # a forecast is made at its own level, 90 %
            assert estimate.confidence in (None, 0.8), name
    for picture in found.pictures:
        for curve in picture.curves:
            assert curve.confidence in (None, 0.8), picture.name


@pytest.mark.parametrize("rows", [classification, p_values, regression])
@pytest.mark.parametrize("run", [in_memory, streamed])
def test_more_confidence_means_wider_intervals(rows, run):
    narrow, wide = run(rows(), 0.8), run(rows(), 0.99)
    for name, estimate in narrow.estimates.items():
        other = wide.estimates[name]
        if estimate.confidence == 0.8 and estimate.low is not None and estimate.high > estimate.low:
            assert other.high - other.low > estimate.high - estimate.low, name
    for few, many in zip(narrow.pictures, wide.pictures, strict=True):
        for one, two in zip(few.curves, many.curves, strict=True):
            if one.confidence == 0.8 and (one.high > one.low).any():
                assert np.nanmax(two.high - two.low) > np.nanmax(one.high - one.low), few.name


def test_comparisons_and_repairs_keep_the_confidence_of_their_audits():
    first, second = in_memory(regression(), 0.8), in_memory(regression() | {"ease": np.arange(float(N))}, 0.8)
    for line in calipers.compare({"a": first, "b": second}).lines:
        found = [*line.values.values(), *line.differences.values()]
        assert {estimate.confidence for estimate in found} <= {None, 0.8}, line.measure
    changes = first.repair().changes
    assert changes
    for change in changes:
        # Where no row changed the difference is 0 without an interval, and says why.
        given = [e for e in (change.before, change.after, change.difference) if not e.reason]
        assert {e.confidence for e in given} == {0.8}, change.measure
        assert {change.before, change.after} <= set(given)
