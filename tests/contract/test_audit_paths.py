"""What every check of the audit owes: the same answer however the rows come, and what their weights mean."""

from __future__ import annotations

import functools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calipers
from calipers.auditing.checks import CHECKS
from calipers.engines import ArraySource

N = 900
FIELDS = ("value", "std_error", "low", "high", "p_value", "null_low", "null_high", "n")
# Rows are split or a model is fitted: copies of a row would cross the folds, so only the scale is asked for.
SPLIT = ("ert ", "coverage where", "size saved")
SPLIT_CODES = {"CAL202", "CAL203", "CAL302", "CAL505"}
SPLIT_PICTURES = ("coverage_by_expectation", "coverage_by_region")
# What is stated once for all rows.
STATED = ("alpha", "bound", "quantile_levels")


def classification(rng):
    P = rng.dirichlet(np.full(4, 0.6), N)
    y = np.array([rng.choice(4, p=p) for p in P])
    p_values = np.round((P / P.max(axis=1, keepdims=True)) ** 1.5 * 100) / 101 + 1 / 101
    X = rng.normal(size=(N, 3))
    return {
        "y_true": y, "probabilities": P, "p_values": p_values, "X": X, "groups": rng.integers(0, 3, N),
        "ease": np.round(P.max(axis=1), 2), "time": rng.permutation(N).astype(float),
    }  # fmt: skip


def regression(rng):
    X = rng.normal(size=(N, 2))
    scale = np.where(X[:, 0] > 1, 3.0, 1.0)
    return {
        "y_true": rng.normal(size=N) * scale, "intervals": np.tile([-1.7, 1.7], (N, 1)), "X": X,
        "groups": np.where(X[:, 0] > 1, "hard", "easy"), "ease": -np.abs(np.round(X[:, 0], 1)),
        "time": np.arange(N, dtype=float),
    }  # fmt: skip


def sets_at_two_levels(rng):
    rows = classification(rng)
    sets = np.stack([rows["p_values"] > a for a in (0.05, 0.2)], axis=-1)
    return {"y_true": rows["y_true"], "sets": sets, "X": rows["X"], "alpha": [0.05, 0.2]}


def distributions(rng):
    y = rng.normal(size=N)
    quantiles = pl.DataFrame({"0.1": np.full(N, -1.0), "0.5": np.zeros(N), "0.9": np.full(N, 1.28)})
    groups = pl.DataFrame({"sex": rng.choice(["f", "m"], N), "site": rng.choice(["a", "b", "c"], N)})
    return {
        "y_true": y, "quantiles": quantiles, "pit": np.round(stats.norm.cdf(y / 1.1), 3), "groups": groups,
        "time": np.arange(N, dtype=float), "X": rng.normal(size=(N, 2)),
    }  # fmt: skip


def promises_made_elsewhere(rng):
    promised = np.round(rng.uniform(0.6, 0.99, N), 2)
    groups = np.where(rng.random(N) < 0.3, "b", "a")
    return {
        "covered": rng.random(N) < promised - 0.1 * (groups == "b"), "promised": promised, "groups": groups,
        "size": np.round(rng.random(N), 2), "loss": np.round(rng.beta(1, 9, N), 3), "bound": 0.08,
        "ease": np.round(promised, 1), "time": np.arange(N, dtype=float), "X": rng.normal(size=(N, 2)),
    }  # fmt: skip


WORLDS = {
    "classification": classification, "regression": regression, "two levels": sets_at_two_levels,
    "distributions": distributions, "promises": promises_made_elsewhere,
}  # fmt: skip


@functools.cache
def world(name):
    return WORLDS[name](np.random.default_rng(5)) | {"row_id": np.arange(N)}


def of_rows(given, which):
    return {key: value if key in STATED else value[which] for key, value in given.items()}


def in_memory(given, **options):
    return calipers.audit(**given, n_calibration=400, random_state=0, **options)


@functools.cache
def reference(name):
    return in_memory(world(name))


def assert_same(found, expected, *, skip=(), skip_codes=frozenset(), rel=1e-9, fields=FIELDS):
    names = [name for name in expected.estimates if not name.startswith(tuple(skip))]
    assert set(names) <= set(found.estimates)
    for name in names:
        for field in fields:
            a, b = getattr(found.estimates[name], field), getattr(expected.estimates[name], field)
            assert (a is None) == (b is None), (name, field, a, b)
            assert a is None or a == pytest.approx(b, rel=rel, abs=1e-12, nan_ok=True), (name, field, a, b)
    ours, theirs = ({f.code: f for f in audit.findings} for audit in (found, expected))
    assert set(ours) == set(theirs)
    for code in set(theirs) - skip_codes:
        assert ours[code].sentence == theirs[code].sentence, code
        assert (ours[code].outcome, ours[code].severity) == (theirs[code].outcome, theirs[code].severity), (
            code
        )


def assert_same_pictures(found, expected, *, skip=frozenset(), rel=1e-9):
    """Every curve that is drawn, point by point."""
    ours, theirs = ({p.name: p for p in audit.pictures} for audit in (found, expected))
    for name in theirs:
        if name.startswith(tuple(skip)):
            continue
        for a, b in zip(ours[name].curves, theirs[name].curves, strict=True):
            for field in ("x", "y", "low", "high", "null_low", "null_high"):
                one, other = getattr(a, field), getattr(b, field)
                assert (one is None) == (other is None), (name, field)
                if one is not None:
                    np.testing.assert_allclose(one, other, rtol=rel, atol=1e-9, err_msg=f"{name} {field}")


each_world = pytest.mark.parametrize("name", WORLDS)


@each_world
@pytest.mark.parametrize("pieces", [1, 7, 100])
def test_streamed_rows_give_the_audit_of_rows_in_memory(name, pieces):
    given = dict(world(name))
    alpha, bound = given.pop("alpha", 0.1), given.pop("bound", None)
    source = ArraySource(given, alpha=alpha, piece_rows=math.ceil(N / pieces))
    found = calipers.audit(source=source, alpha=alpha, bound=bound, n_calibration=400, random_state=0)
    assert_same(found, reference(name))
    assert_same_pictures(found, reference(name))


@each_world
def test_the_order_of_rows_does_not_matter(name):
    order = np.random.default_rng(8).permutation(N)
    found = in_memory(of_rows(world(name), order))
    # Without a time, drift is looked for along the file.
    along = ("chance that a later row", "share of misses of the next", "change of the mean loss")
    file_order = () if "time" in world(name) else along
    skip_codes = {"CAL601"} if file_order else set()
    assert_same(found, reference(name), skip=file_order, skip_codes=skip_codes)
    assert_same_pictures(found, reference(name), skip={"loss_along_the_file"} if file_order else set())


@each_world
def test_whole_number_weights_are_repeated_rows(name):
    counts = np.random.default_rng(3).integers(0, 4, N)
    given = world(name)
    repeated = in_memory(
        {k: v for k, v in of_rows(given, np.repeat(np.arange(N), counts)).items() if k != "row_id"}
    )
    weighted = in_memory(given | {"sample_weight": counts})
    drawn = (
        "error rate of the next",
        "absolute error of the next",
        "share of misses of the next",
        "loss of the next",
    )
    assert_same(
        weighted, repeated, skip=(*SPLIT, *drawn, "t_ss", "p_value_uniformity", "p-value uniformity"),
        skip_codes=SPLIT_CODES | {"CAL601"},
    )  # fmt: skip
    assert_same_pictures(weighted, repeated, skip={*SPLIT_CODES, *SPLIT_PICTURES, "loss_along"})


@each_world
@pytest.mark.parametrize("scale", [1 / 600, 7.3])
def test_importance_weights_are_free_of_scale_and_have_no_exact_test(name, scale):
    weights = np.random.default_rng(4).uniform(0.5, 2.0, N)
    first, second = (in_memory(world(name) | {"sample_weight": w}) for w in (weights, weights * scale))
    assert set(first.estimates) == set(second.estimates)
    counted = (e.value for e in reference(name).estimates.values())
    unweighted = {value for value in counted if value is not None and 0 < abs(value) < 1}
    for key, estimate in first.estimates.items():
        settled = estimate.std_error == 0  # a share of 0 or 1 in the worst part is one with any weights
        assert settled or estimate.value not in unweighted, f"{key} is that of rows without weights"
        assert estimate.value == pytest.approx(second.estimates[key].value, rel=1e-9, nan_ok=True), key
        assert estimate.p_value is None or "calibration" not in key, key


@each_world
def test_the_confidence_asked_for_is_the_confidence_given(name):
    found = in_memory(world(name), confidence=0.8)
    for key, estimate in found.estimates.items():
        forecast = " of the next " in key
        if estimate.low is not None and not forecast:
            assert estimate.confidence == pytest.approx(0.8), key
    for key, narrow in found.estimates.items():
        wide = reference(name).estimates[key]
        if None not in (narrow.low, narrow.high, wide.low, wide.high) and " of the next " not in key:
            assert narrow.low >= wide.low - 1e-12, key
            assert narrow.high <= wide.high + 1e-12, key
            assert narrow.high - narrow.low < wide.high - wide.low or wide.high == wide.low, key
    pictures = {p.name: p for p in reference(name).pictures}
    for picture in found.pictures:
        for narrow, wide in zip(picture.curves, pictures[picture.name].curves, strict=True):
            if narrow.low is not None and narrow.confidence is not None:
                assert narrow.confidence == pytest.approx(0.8), picture.name
                assert np.sum(narrow.high - narrow.low) < np.sum(wide.high - wide.low), picture.name


def test_every_check_runs_in_some_world():
    ran = {f.code for name in WORLDS for f in reference(name).findings if f.outcome != "not_applicable"}
    # One check looks for over- and for under-confidence, one for too little and for too much coverage.
    ran |= {{"CAL502": "CAL501", "CAL102": "CAL101"}.get(code, code) for code in ran}
    assert {check.code for check in CHECKS} <= ran
