"""However rows are split and ordered, a state finishes with what the metric says of all of them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers import metrics
from calipers.engines import ArraySource, FileSource, Rows, measure, state_of
from calipers.exceptions import DeprecatedNameWarning, InputError
from tests.unit.engines.passes import finished_over

FIELDS = ("value", "low", "high", "p_value", "null_low", "null_high", "n", "std_error")


def rows(n, seed, *, levels=None):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(5), n)
    y = np.array([rng.choice(5, p=p) for p in P])
    ease = rng.random(n) if levels is None else rng.integers(0, levels, n) / levels
    p_values = np.round(rng.random((n, 5)), 2)
    return {
        "y_true": y,
        "probabilities": P,
        "p_values": p_values,
        "ease": ease,
        "groups": rng.integers(0, 3, n),
    }


def states_of(name, given, cuts, order, **options):
    """The finished state of shuffled rows cut at the given places and merged backwards."""
    shuffled = {key: value[order] for key, value in given.items()}
    blocks = [
        Rows({key: value[a:b] for key, value in shuffled.items()}, classes=np.arange(5), alpha=0.1)
        for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)
        if b > a
    ]
    return finished_over(state_of(name, alpha=0.1, **options), blocks)


def assert_same(left, right):
    left = dict(left) if hasattr(left, "items") else {left.name: left}
    right = dict(right) if hasattr(right, "items") else {right.name: right}
    assert list(left) == list(right)
    for name, e in left.items():
        for field in FIELDS:
            a, b = getattr(e, field), getattr(right[name], field)
            assert (a is None) == (b is None), (name, field)
            if a is not None:
                assert a == pytest.approx(b, rel=1e-11, abs=1e-12, nan_ok=True), (name, field)


def whole(name, given):
    """The metric on all rows at once, through its public function."""
    block = Rows(given, classes=np.arange(5), alpha=0.1)
    covered, size, ranks = block["covered"], block["size"], block["ranks"]
    calls = {
        "coverage": lambda: metrics.coverage(given["y_true"], block.derived_sets(), alpha=0.1),
        "sscv": lambda: metrics.sscv(covered, size, alpha=0.1),
        "escv": lambda: metrics.escv(covered, size, alpha=0.1),
        "rank_cv": lambda: metrics.rank_cv(covered, ranks, alpha=0.1),
        "deficit": lambda: metrics.deficit(ranks, size),
        "excess": lambda: metrics.excess(ranks, size),
        "efficiency": lambda: metrics.efficiency(given["y_true"], given["p_values"], alpha=0.1),
        "t_cv": lambda: metrics.t_cv(covered, given["ease"], alpha=0.1, n_bins=7),
    }
    return calls[name]()


@pytest.mark.parametrize("name", ["coverage", "sscv", "escv", "rank_cv", "deficit", "excess", "efficiency"])
@given(cuts=st.lists(st.integers(0, 120), max_size=5), seed=st.integers(0, 5))
@settings(max_examples=12, deadline=None)
def test_no_split_and_no_order_changes_the_answer(name, cuts, seed):
    given_rows = rows(120, seed)
    order = np.random.default_rng(seed + 100).permutation(120)
    assert_same(states_of(name, given_rows, sorted(cuts), order), whole(name, given_rows))


@pytest.mark.parametrize("levels", [None, 3, 40])
@given(cuts=st.lists(st.integers(0, 300), max_size=4), seed=st.integers(0, 5))
@settings(max_examples=8, deadline=None)
def test_bins_of_equal_mass_are_exact_with_and_without_ties(levels, cuts, seed):
    given_rows = rows(300, seed, levels=levels)
    order = np.random.default_rng(seed).permutation(300)
    found = states_of("t_cv", given_rows, sorted(cuts), order, n_bins=7)
    assert float(found) == pytest.approx(float(whole("t_cv", given_rows)), abs=1e-12)
    assert found.n == 300


def test_edges_among_crowded_values_are_found_by_more_passes(monkeypatch):
    # All the ease lies within one part in 1e12 of 0.5: the first buckets cannot tell rows apart.
    monkeypatch.setattr("calipers.metrics.adaptivity.ease_states._NARROW", 10.0)
    given_rows = rows(400, 1)
    given_rows["ease"] = np.where(np.arange(400) == 0, 0.0, 0.5 + given_rows["ease"] * 1e-12)
    found = states_of("t_cv", given_rows, [100, 200], np.arange(400), n_bins=7)
    assert float(found) == pytest.approx(float(whole("t_cv", given_rows)), abs=1e-12)


def test_integer_weights_count_as_repeated_rows():
    given_rows = rows(80, 3)
    weights = np.random.default_rng(0).integers(1, 4, 80)
    weighted = states_of("sscv", given_rows | {"sample_weight": weights}, [20, 50], np.arange(80))
    repeated = {key: np.repeat(value, weights, axis=0) for key, value in given_rows.items()}
    assert_same(weighted, whole("sscv", repeated))


def test_files_give_the_numbers_of_arrays(tmp_path):
    given_rows = rows(1000, 4)
    frame = pl.DataFrame(
        {"y_true": given_rows["y_true"], "ease": given_rows["ease"]}
        | {f"p_{k}": given_rows["probabilities"][:, k] for k in range(5)}
        | {f"pvalue_{k}": given_rows["p_values"][:, k] for k in range(5)}
        | {"age": np.arange(1000)}
    )
    frame[:600].write_parquet(tmp_path / "a.parquet")
    frame[600:].write_parquet(tmp_path / "b.parquet")
    names = ["coverage", "efficiency", "t_cv", "proper_scores", "deficit"]
    keep = {k: v for k, v in given_rows.items() if k != "groups"}
    in_memory = measure(ArraySource(keep, classes=np.arange(5)), names, alpha=0.1)
    streamed = measure(FileSource(str(tmp_path / "*.parquet"), piece_rows=170), names, alpha=0.1)
    assert_same(streamed, in_memory)


def test_wrong_sources_are_named(tmp_path):
    with pytest.raises(InputError, match="no file matches"):
        FileSource(str(tmp_path / "*.parquet")).pieces()
    (tmp_path / "rows.xls").touch()
    with pytest.raises(InputError, match="must end in .csv"):
        FileSource(str(tmp_path / "rows.xls")).pieces()
    with pytest.raises(
        InputError, match="t_cv needs ease, which these rows do not have; they have y_true, intervals"
    ):
        measure(ArraySource({"y_true": np.zeros(3), "intervals": np.zeros((3, 2))}), ["t_cv"])
    with pytest.raises(InputError, match="there is no metric 'nothing'"):
        state_of("nothing")
    with pytest.raises(InputError, match='engine must be "local", "dask" or "spark"'):
        measure(ArraySource({"y_true": np.zeros(3), "intervals": np.zeros((3, 2))}), engine="slurm")


def calibration_rows(n, seed, kind):
    rng = np.random.default_rng(seed)
    f = {
        "spread": lambda: rng.random(n),
        "crowded": lambda: 0.5 + 1e-9 * rng.random(n),
        "rounded": lambda: np.round(rng.random(n), 2),
        "ends": lambda: np.where(rng.random(n) < 0.3, 0.0, np.where(rng.random(n) < 0.3, 1.0, rng.random(n))),
    }[kind]()
    y = (rng.random(n) < f**1.3).astype(int)
    return {"y_true": y, "probabilities": np.column_stack([1 - f, f])}


def finish(name, blocks, **options):
    state = state_of(name, **options)
    passes = 0
    while True:
        passes += 1
        parts = [state.fresh() for _ in blocks]
        for part, block in zip(parts, blocks, strict=True):
            part.absorb(block)
        total = parts[0]
        for part in parts[1:]:
            total.merge(part)
        following = total.advance()
        if following is None:
            return total.finish(), passes
        state = following


@pytest.mark.parametrize("kind", ["spread", "crowded", "rounded", "ends"])
@pytest.mark.parametrize("kept", [500_000, 40])
def test_calibration_error_is_exact_in_constant_memory(kind, kept, monkeypatch):
    # No row may be kept as "few", and with 40 kept rows the buckets must be cut finer in further passes.
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._KEPT_ROWS", kept)
    given_rows = calibration_rows(3000, 3, kind)
    blocks = [
        Rows({key: value[a : a + 700] for key, value in given_rows.items()}, classes=[0, 1])
        for a in range(0, 3000, 700)
    ]
    found, passes = finish("calibration_error", blocks, random_state=0)
    monkeypatch.undo()
    whole_rows = metrics.calibration_error(given_rows["y_true"], given_rows["probabilities"], random_state=0)
    assert passes <= 6
    assert found.method == whole_rows.method
    # 3000 scores are few enough to be drawn one by one, so the buckets are told apart to the last score.
    for field in ("value", "std_error", "low", "high", "n", "p_value", "null_high"):
        assert getattr(found, field) == pytest.approx(getattr(whole_rows, field), rel=1e-9, abs=1e-12), field
    for key in (
        "interval",
        "sign",
        "brier",
        "share_in_interval",
        "stated_in_interval",
        "impossible",
        "low_bound",
    ):
        assert found.details[key] == pytest.approx(whole_rows.details[key], rel=1e-9, abs=1e-12), key
    assert found.details["asymptotic_p_value"] == pytest.approx(whole_rows.details["asymptotic_p_value"])


@pytest.mark.parametrize(("packed", "passes"), [(3000, 1), (2999, 2)])
def test_calibration_error_of_a_small_run_reads_its_rows_once(packed, passes, monkeypatch):
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", packed)
    given_rows = calibration_rows(3000, 3, "crowded")
    blocks = [
        Rows({key: value[a : a + 700] for key, value in given_rows.items()}, classes=[0, 1])
        for a in range(0, 3000, 700)
    ]
    found, needed = finish("calibration_error", blocks, random_state=0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    assert needed == passes
    assert found == finish("calibration_error", blocks, random_state=0)[0]


def test_calibration_error_of_few_rows_is_the_metric_itself():
    given_rows = calibration_rows(500, 4, "spread")
    blocks = [
        Rows({key: value[a : a + 99] for key, value in given_rows.items()}, classes=[0, 1])
        for a in range(0, 500, 99)
    ]
    found, passes = finish("calibration_error", blocks, random_state=0)
    expected = metrics.calibration_error(given_rows["y_true"], given_rows["probabilities"], random_state=0)
    assert passes == 1
    assert (float(found), found.p_value) == (float(expected), expected.p_value)


@pytest.mark.parametrize("few", [100_000, 0], ids=["from rows", "from buckets"])
def test_a_part_of_the_rows_may_weigh_nothing_all_of_them_may_not(few, monkeypatch):
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", few)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    given = rows(400, 3) | {"sample_weight": np.repeat([0.0, 1.0], 200)}
    kept = {name: value[200:] for name, value in given.items() if name != "sample_weight"}
    names, seed = ["efficiency", "calibration_error"], {"calibration_error": {"random_state": 0}}
    parts = ArraySource(given, classes=np.arange(5), piece_rows=100)
    whole = ArraySource(kept, classes=np.arange(5))
    assert_same(measure(parts, names, options=seed), measure(whole, names, options=seed))
    for metric in ("efficiency", "proper_scores", "calibration_error", "coverage"):
        nothing = ArraySource(given | {"sample_weight": np.zeros(400)}, classes=np.arange(5))
        with pytest.raises(InputError, match="sample_weight must not be zero everywhere"):
            measure(nothing, [metric])


@pytest.mark.parametrize("multiclass", ["max", "classwise"])
@pytest.mark.parametrize("blocks", [1, 7, 100])
def test_every_class_from_buckets_reads_what_memory_reads(multiclass, blocks, monkeypatch):
    given_rows = {
        name: values for name, values in rows(1500, 6).items() if name in ("y_true", "probabilities")
    }
    # Labels are drawn by row for few values only: here they count as many, in memory too.
    monkeypatch.setattr("calipers.metrics.reliability.class_errors.MAX_COINS", 1)
    expected = metrics.calibration_error(*given_rows.values(), multiclass=multiclass, random_state=0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    monkeypatch.setattr("calipers.metrics.reliability.classwise_states._KEPT_VALUES", 0)
    cuts = np.linspace(0, 1500, blocks + 1).astype(int)[1:-1].tolist()
    order = np.random.default_rng(0).permutation(1500)
    found = states_of("calibration_error", given_rows, cuts, order, multiclass=multiclass, random_state=0)
    assert "Bonferroni" in found.method
    assert_same(found, expected)
    for key in ("class", "interval", "sign", "sentence", "low_bound"):
        assert found.details[key] == pytest.approx(expected.details[key]), key
    assert found.details["per_class"] == pytest.approx(expected.details["per_class"])


def test_the_old_name_of_an_option_works_and_warns_over_blocks_too():
    columns = np.random.default_rng(0).integers(1, 9, (3, 90))
    block = Rows(dict(zip(("ranks", "size", "ease"), columns, strict=True)))
    with pytest.warns(DeprecatedNameWarning, match="n_permutations is now called n_draws"):
        old = state_of("t_ss", n_permutations=19, random_state=0)
    new = state_of("t_ss", n_draws=19, random_state=0)
    assert str(finished_over(old, [block])) == str(finished_over(new, [block]))
