"""Coverage in strata when promises are kept: levels per row, one threshold, clusters, against brute force."""

import inspect
import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from calipers.engines import Rows, state_of
from calipers.exceptions import InputError
from calipers.metrics import (
    coverage_gap,
    escv,
    failing_regions,
    feature_stratified_coverage,
    metric_entries,
    rank_cv,
    size_stratified_coverage,
    sscv,
    t_cv,
    worst_slab_coverage,
)
from calipers.metrics.promised_counts import promise_levels
from calipers.metrics.promised_rows import check_promised_rows
from calipers.metrics.strata_null import one_stratum, share_fields
from calipers.results import EstimateTable

Z = np.array([1, 0, 1, 1, 0, 1, 1, 0, 1, 1], dtype=bool)
T = np.array([0.9, 0.8, 0.55, 0.7, 0.95, 0.6, 0.85, 0.3, 0.75, 0.65])
G = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
SIZE = G + 1

METRICS = {
    "coverage_gap": lambda z, x, **o: coverage_gap(z, np.digitize(x, [-0.5, 0.5]), random_state=0, **o),
    "feature": lambda z, x, **o: feature_stratified_coverage(z, x, n_bins=4, random_state=0, **o),
    "size": lambda z, x, **o: size_stratified_coverage(z, np.abs(x), n_bins=4, random_state=0, **o),
    "t_cv": lambda z, x, **o: t_cv(z, x, n_bins=4, random_state=0, **o),
    "t_cv with ties": lambda z, x, **o: t_cv(z, np.round(x), n_bins=4, random_state=0, **o),
    "sscv": lambda z, x, **o: sscv(z, 1 + np.digitize(x, [-1, 0, 1]), random_state=0, **o),
    "escv": lambda z, x, **o: escv(z, 1 + np.digitize(x, [-1, 0, 1]), random_state=0, **o),
    "slab": lambda z, x, **o: worst_slab_coverage(x[:, None], z, random_state=0, n_directions=5, **o),
    "regions": lambda z, x, **o: failing_regions(x[:, None], z, keep="all", random_state=0, **o),
}
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def outcomes_and_chances(t=T):
    for outcomes in itertools.product((0, 1), repeat=len(t)):
        z = np.array(outcomes)
        yield z, float(np.prod(np.where(z == 1, t, 1 - t)))


def brute_p(statistic, observed, *, t=T):
    """P(statistic at least as large) by all outcomes."""
    return sum(chance for z, chance in outcomes_and_chances(t) if statistic(z) >= observed - 1e-9)


def departures(z, codes=G):
    return np.array([(z - T)[codes == g].mean() for g in np.unique(codes)])


@each_metric
def test_one_level_written_for_every_row_is_that_level_exactly(metric):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=600), rng.random(600) < 0.85
    for options in ({}, {"n_calibration": 80}, {"cluster": np.arange(600) // 6}):
        plain, written = (metric(z, x, alpha=a, **options) for a in (0.1, np.full(600, 0.1)))
        assert plain.to_dict() == written.to_dict()


def test_the_gap_of_levels_per_row_is_that_of_all_outcomes():
    e = coverage_gap(Z, G, alpha=1 - T, random_state=0)
    assert e.value == pytest.approx(np.abs(departures(Z)).mean())
    expected = brute_p(lambda z: np.abs(departures(z)).mean(), e.value)
    assert e.p_value == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 9999))
    assert e.details["groups"]["1"]["promised"] == pytest.approx((0.95 + 0.6 + 0.85) / 3)


def test_the_worst_stratum_of_levels_per_row_is_furthest_below_its_promise():
    e = feature_stratified_coverage(Z, G, alpha=1 - T)
    # 3/4 against 0.7375, 2/3 against 0.8, 2/3 against 0.5667.
    assert e.details["worst"] == "1"
    assert e.value == pytest.approx(2 / 3)
    assert e.p_value == pytest.approx(brute_p(lambda z: -departures(z).min(), -departures(Z).min()))
    readings = sorted((departures(z).min(), chance) for z, chance in outcomes_and_chances())
    at_most = np.cumsum([chance for _, chance in readings])
    low = readings[int(np.argmax(at_most > 0.05))][0]
    assert e.null_low == pytest.approx(0.8 + low)


@pytest.mark.parametrize(
    ("metric", "statistic"),
    [
        (lambda **o: sscv(Z, SIZE, strata=(1, 2, 3), **o), lambda z: np.abs(departures(z)).max()),
        (lambda **o: escv(Z, SIZE, **o), lambda z: np.abs(departures(z)).max()),
        (lambda **o: escv(Z, SIZE, one_sided=True, **o), lambda z: np.maximum(-departures(z), 0).max()),
        (
            lambda **o: t_cv(Z, np.arange(10), n_bins=5, **o),
            lambda z: np.abs(departures(z, np.arange(10) // 2)).max(),
        ),
    ],
)
def test_the_largest_violation_of_levels_per_row_is_that_of_all_outcomes(metric, statistic):
    e = metric(alpha=1 - T)
    assert e.value == pytest.approx(statistic(Z))
    assert e.p_value == pytest.approx(brute_p(statistic, statistic(Z)))


def test_shared_ties_take_the_levels_of_their_rows():
    ease = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2.0])
    e = t_cv(Z, ease, alpha=1 - T, n_bins=2, random_state=0)

    def statistic(z):
        d = z - T
        # Five rows a bin: the tie of three in the middle gives two thirds of each row to the first one.
        first = (d[:3].sum() + 2 / 3 * d[3:6].sum()) / 5
        return max(abs(first), abs((d[6:].sum() + 1 / 3 * d[3:6].sum()) / 5))

    assert e.value == pytest.approx(statistic(Z))
    expected = brute_p(statistic, e.value)
    assert e.p_value == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 9999))


def test_one_slice_of_levels_per_row_is_a_sum_of_unequal_coins():
    rows, _ = check_promised_rows(Z, alpha=1 - T)
    fields = share_fields(one_stratum(rows, None, "all"), Z.mean(), "less", np.random.default_rng(0))
    assert fields["p_value"] == pytest.approx(brute_p(lambda z: -z.sum(), -Z.sum()))


def mixture(inside, rank, n):
    """Mean over c ~ Beta(rank, n + 1 - rank) of a chance given c."""
    return integrate.quad(
        lambda c: inside(c) * stats.beta.pdf(c, rank, n + 1 - rank), 0, 1, limit=300, epsabs=1e-12
    )[0]


def test_one_threshold_shifts_all_strata_together():
    z, groups = np.tile([1, 1, 1, 1, 0], 24).astype(bool), np.repeat([0, 1, 2], 40)
    e = feature_stratified_coverage(z, groups, alpha=0.1, n_calibration=49)  # rank 45
    at_least = mixture(lambda c: stats.binom.sf(32, 40, c) ** 3, 45, 49)
    assert e.p_value == pytest.approx(1 - at_least, rel=1e-6)
    violation = escv(z, groups, alpha=0.1, n_calibration=49)
    within = mixture(lambda c: (stats.binom.cdf(39, 40, c) - stats.binom.cdf(32, 40, c)) ** 3, 45, 49)
    assert violation.p_value == pytest.approx(1 - within, rel=1e-6)
    own = feature_stratified_coverage(z, groups, alpha=0.1, n_calibration=[49] * 3)
    assert own.p_value == pytest.approx(1 - stats.betabinom.sf(32, 40, 45, 5) ** 3, rel=1e-6)
    # Shifted together the least of three is less extreme than that of three of their own.
    assert e.p_value < own.p_value
    gap = coverage_gap(z, groups, alpha=0.1, n_calibration=49, random_state=0)
    c = np.random.default_rng(1).beta(45, 5, size=(40_000, 1))
    drawn = np.abs(np.random.default_rng(2).binomial(40, np.tile(c, 3)) / 40 - 0.9).mean(axis=1)
    expected = np.mean(drawn >= gap.value - 1e-9)
    assert gap.p_value == pytest.approx(expected, abs=4 * np.sqrt(expected / 9999))


@each_metric
def test_levels_of_one_calibration_sample_are_its_order_statistics(metric):
    rng = np.random.default_rng(0)
    x, alpha = rng.normal(size=1500), np.where(np.arange(1500) % 2, 0.1, 0.3)
    # Order statistics at both levels lie two standard deviations high: luck, not a broken promise.
    z = rng.random(1500) < np.where(np.arange(1500) % 2, 0.95, 0.78)

    def smallest(e):
        return e.p_value if hasattr(e, "p_value") else min((r.p_value for r in e.values()), default=1.0)

    alone, known = (smallest(metric(z, x, alpha=alpha, **o)) for o in ({}, {"n_calibration": 100}))
    assert known >= min(0.01, alone)
    assert known > 0.003


@each_metric
def test_a_broken_certain_promise_rejects_by_itself(metric):
    rng = np.random.default_rng(3)
    x, alpha = rng.normal(size=400), np.full(400, 0.1)
    alpha[:200] = 0.0
    z = rng.random(400) < 0.9
    z[:200] = True
    clean = metric(z, x, alpha=alpha)
    z[np.argsort(np.abs(x))[:12]] = False  # some of them were certain to be covered
    broken = metric(z, x, alpha=alpha)
    if hasattr(clean, "p_value"):
        assert clean.p_value > 1e-3
        assert broken.p_value <= 1e-3
    else:
        assert all(r.p_value > 1e-3 for r in clean.values())


@each_metric
def test_too_few_clusters_cannot_tell(metric):
    rng = np.random.default_rng(4)
    x, z = rng.normal(size=300), rng.random(300) < 0.7
    e = metric(z, x, alpha=0.1, cluster=np.arange(300) // 75)
    for one in [e] if hasattr(e, "p_value") else e.values():
        assert one.p_value is None
        assert "cannot tell" in one.reason
        assert "cluster" in one.reason


@each_metric
def test_clusters_widen_the_interval(metric):
    rng = np.random.default_rng(5)
    x = np.repeat(rng.normal(size=200), 10) + 1e-3 * rng.normal(size=2000)
    # Ten rows of a cluster are alike, and covered or missed together.
    z = np.repeat(rng.random(200) < 0.8, 10)
    plain, dependent = (metric(z, x, alpha=0.1, cluster=c) for c in (None, np.repeat(np.arange(200), 10)))
    if hasattr(plain, "p_value"):
        assert dependent.std_error > 1.5 * plain.std_error
        assert dependent.p_value > plain.p_value


def test_rows_all_covered_are_not_taken_for_certainty():
    # 200 clusters of one row, all covered at 0.99: the sums do not vary, the promise does.
    z, cluster = np.ones(200, bool), np.arange(200)
    assert coverage_gap(z, np.arange(200) % 4, alpha=0.01, cluster=cluster, random_state=0).p_value > 0.05
    assert sscv(z, np.arange(200) % 2 + 1, alpha=0.01, cluster=cluster, random_state=0).p_value > 0.05


def test_levels_per_row_with_whole_weights_are_repeated_rows():
    w = np.array([2, 1, 3, 1, 2, 1, 1, 2, 1, 1])
    for metric in (feature_stratified_coverage, size_stratified_coverage, escv):
        weighted = metric(Z, SIZE, alpha=1 - T, sample_weight=w)
        repeated = metric(np.repeat(Z, w), np.repeat(SIZE, w), alpha=np.repeat(1 - T, w))
        assert weighted.p_value == pytest.approx(repeated.p_value)
        assert weighted.low == pytest.approx(repeated.low)
        assert weighted.value == pytest.approx(repeated.value)


def test_rank_cv_takes_levels_per_row():
    e = rank_cv(Z, SIZE, alpha=1 - T, strata=(1, 2, 3))
    assert e.value == pytest.approx(np.abs(departures(Z)).max())
    assert e.p_value is None


def test_many_promises_are_pooled_on_the_safe_side():
    rng = np.random.default_rng(6)
    t = rng.beta(8, 2, size=20_000)
    level = promise_levels(t, 40)
    assert level.max() + 1 <= 25
    assert (np.diff(t[np.argsort(level, kind="stable")]) < 0).any()  # several promises share a level
    means = np.bincount(level, weights=t) / np.bincount(level)
    pooled, exact = np.sum(means[level] * (1 - means[level])), np.sum(t * (1 - t))
    assert exact <= pooled <= 1.004 * exact


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coverage_gap(Z, G, alpha=1 - T[:9]), "one entry per row .10."),
        (lambda: coverage_gap(Z, G, alpha=T + 1), "between 0 and 1 in every row"),
        (lambda: coverage_gap(Z, G, alpha=0.1, n_calibration=[5, 5]), "one per stratum .groups: 3., got 2"),
        (lambda: escv(Z, SIZE, alpha=0.1, n_calibration=0), "n_calibration must be a whole number"),
        (lambda: escv(Z, SIZE, alpha=0.1, cluster=[1, 2]), "cluster must have one entry per row"),
        (
            lambda: worst_slab_coverage(T[:, None], Z, alpha=0.1, n_calibration=[5, 5]),
            "n_calibration must be one number here",
        ),
        (
            lambda: worst_slab_coverage(T[:, None], Z, alpha=0.1, cluster=np.zeros(10)),
            "at least 2 clusters",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    "entry", [e for e in metric_entries() if e.row_arguments], ids=lambda entry: entry.name
)
def test_promises_and_clusters_of_blocks_are_those_of_all_rows(entry):
    rng = np.random.default_rng(7)
    n, promised = 240, np.round(rng.beta(8, 2, size=240), 1)
    columns = {
        "X": rng.normal(size=(n, 2)),
        "covered": rng.random(n) < promised,
        "groups": rng.integers(0, 2, n),
        "feature": rng.integers(0, 2, n),
        "size": rng.integers(1, 3, n),
        "ranks": rng.integers(1, 4, n),
        "ease": np.round(rng.random(n), 1),
    }
    data = {name: columns[name] for name in entry.inputs}
    by_row = {"promised": promised, "cluster": np.arange(n) // 3}
    options = {"cv": 2, "n_repeats": 1, "null": None} if "ert" in entry.name else {}
    options |= {"n_bins": 3} if entry.name == "t_cv" else {}
    seeded = {"random_state": 5} if "random_state" in inspect.signature(entry.function).parameters else {}
    for names in (("promised",), ("promised", "cluster"))[: len(entry.row_arguments)]:
        blocks = np.array_split(rng.permutation(n), 7)
        streamed = _over_blocks(entry.name, data | by_row, blocks, by_row=names, **options, **seeded)
        given = {"alpha": 1 - promised} | ({"cluster": by_row["cluster"]} if "cluster" in names else {})
        if entry.name.startswith("ert"):  # folds follow the order of rows, which one block has too
            whole = _over_blocks(entry.name, data | by_row, [np.arange(n)], by_row=names, **options, **seeded)
        else:
            whole = entry.function(**data, **given, **options, **seeded)
        for a, b in zip(_estimates(streamed), _estimates(whole), strict=True):
            assert a.value == pytest.approx(b.value)
            assert a.low == pytest.approx(b.low)
            assert a.p_value == pytest.approx(b.p_value)


def test_an_argument_that_cannot_differ_by_row_is_refused():
    with pytest.raises(InputError, match="rank_cv takes promised by row, got 'cluster'"):
        state_of("rank_cv", by_row=("cluster",))


def _over_blocks(name, columns, blocks, **options):
    state = state_of(name, **options)
    while True:
        for part in blocks:
            state.absorb(Rows({k: np.asarray(v)[part] for k, v in columns.items()}))
        following = state.advance()
        if following is None:
            return state.finish()
        state = following


def _estimates(result):
    return list(result.values()) if isinstance(result, EstimateTable) else [result]


def test_calibration_rows_and_clusters_add_their_variances():
    """200 clusters of one row: 0.09 / 200 of the rows, and Var Beta(46, 5) of 50 calibration rows."""
    rows, _ = check_promised_rows(np.arange(200) % 10 > 0, alpha=0.1, cluster=np.arange(200))
    alone, shared = (
        one_stratum(rows, n, "all").departures(20_000, np.random.default_rng(0)).var() for n in (None, 50)
    )
    assert alone == pytest.approx(0.09 / 200, rel=0.05)
    assert shared - alone == pytest.approx(stats.beta(46, 5).var(), rel=0.05)
