"""p-values by sort and search against the definition written as a double loop."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.conformal import conformal_p_values, conformal_quantile
from calipers.conformal.p_values import CalibrationScores
from calipers.exceptions import InputError


def by_definition(cal, test, tau, same_cell):
    """eq. 2 and eq. 42, one comparison at a time; ``same_cell(i, r, k)`` says which rows count."""
    m, K = test.shape
    out = np.empty((m, K))
    for r in range(m):
        for k in range(K):
            rows = [i for i in range(len(cal)) if same_cell(i, r, k)]
            above = sum(cal[i] > test[r, k] for i in rows)
            equal = sum(cal[i] == test[r, k] for i in rows) + 1
            out[r, k] = (above + tau[r] * equal) / (len(rows) + 1)
    return out


@pytest.fixture
def rows():
    rng = np.random.default_rng(11)
    # Few distinct values: ties within calibration and between calibration and test everywhere.
    return {
        "cal": rng.integers(0, 9, 57) / 4.0,
        "test": rng.integers(-1, 10, (23, 4)) / 4.0,
        "labels": rng.choice([0, 1, 3], 57),
        "cal_groups": rng.choice(["a", "b", "c"], 57),
        "test_groups": rng.choice(["a", "b", "c", "new"], 23),
        "tau": rng.random(23),
    }


CELLS = {
    "unconditional": (False, False),
    "label-conditional": (True, False),
    "Mondrian": (False, True),
    "both": (True, True),
}


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("smoothed", [False, True])
def test_p_values_equal_the_definition(rows, kind, smoothed):
    by_label, by_group = CELLS[kind]

    def same_cell(i, r, k):
        return (not by_label or rows["labels"][i] == k) and (
            not by_group or rows["cal_groups"][i] == rows["test_groups"][r]
        )

    options = {"tau": rows["tau"]} if smoothed else {}
    if by_label:
        options["calibration_labels"] = rows["labels"]
    if by_group:
        options |= {"calibration_groups": rows["cal_groups"], "test_groups": rows["test_groups"]}
    ours = conformal_p_values(rows["cal"], rows["test"], **options)
    expected = by_definition(rows["cal"], rows["test"], rows["tau"] if smoothed else np.ones(23), same_cell)
    np.testing.assert_allclose(ours, expected, rtol=1e-15)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("kind", CELLS)
def test_other_array_libraries_give_the_same_p_values_where_they_lie(rows, kind, library):
    xp = pytest.importorskip(library)
    by_label, by_group = CELLS[kind]
    options = {"calibration_labels": rows["labels"]} if by_label else {}
    if by_group:
        codes = {"a": 5, "b": 7, "c": 9, "new": 11}
        options |= {
            "calibration_groups": np.array([codes[g] for g in rows["cal_groups"]]),
            "test_groups": np.array([codes[g] for g in rows["test_groups"]]),
        }
    options |= {"tau": rows["tau"]}
    expected = conformal_p_values(rows["cal"], rows["test"], **options)
    moved = {key: xp.asarray(value) for key, value in options.items()}
    ours = conformal_p_values(xp.asarray(rows["cal"]), xp.asarray(rows["test"]), **moved)
    assert type(ours) is type(xp.asarray(rows["test"]))
    np.testing.assert_array_equal(np.asarray(ours), expected)


def test_one_tau_is_shared_by_the_labels_of_a_row():
    p = conformal_p_values(np.ones(4), np.ones((3, 5)), smoothed=True, random_state=0)
    assert (p == p[:, :1]).all()
    assert len(np.unique(p[:, 0])) == 3


def test_without_smoothing_the_same_input_gives_the_same_output():
    first = conformal_p_values([1.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(first, [1.0, 0.5, 0.25])


def test_a_vector_of_test_scores_keeps_its_shape():
    assert conformal_p_values([1.0, 2.0], [1.5]).shape == (1,)


def test_a_cell_without_rows_gives_tau():
    p = conformal_p_values([1.0], [[0.0, 9.0]], calibration_labels=[0], tau=0.3)
    np.testing.assert_allclose(p, [[(1 + 0.3) / 2, 0.3]])


def test_float32_scores_are_compared_as_they_are():
    cal = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    p = conformal_p_values(cal, cal)
    assert p.dtype == np.float64
    np.testing.assert_array_equal(p, [1.0, 0.75, 0.5])


def test_all_scores_tied_give_one():
    np.testing.assert_array_equal(conformal_p_values(np.zeros(50), np.zeros((2, 3))), np.ones((2, 3)))


def test_infinite_scores_are_kept():
    np.testing.assert_array_equal(conformal_p_values([1.0, np.inf], [np.inf, -np.inf]), [2 / 3, 1.0])


@settings(max_examples=60, deadline=None)
@given(
    cal=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    test=st.lists(st.integers(-1, 7), min_size=1, max_size=8),
    alpha=st.fractions(Fraction(1, 60), Fraction(59, 60), max_denominator=60),
)
def test_the_set_rule_and_the_quantile_rule_agree(cal, test, alpha):
    cal, test = np.array(cal, dtype=float), np.array(test, dtype=float)
    by_quantile = test <= conformal_quantile(cal, alpha)
    # p > alpha as a comparison of integers: (count + 1) q > p (n + 1).
    counts = (cal[None, :] >= test[:, None]).sum(axis=1)
    exact = [(int(c) + 1) * alpha.denominator > alpha.numerator * (len(cal) + 1) for c in counts]
    table = CalibrationScores.build(cal)
    by_threshold = table.threshold_sets(test[:, None], table.thresholds((alpha,))[:, 0], groups=None)[:, 0]
    by_smoothed = table.smoothed_sets(test[:, None], alpha, groups=None, tau=np.ones(len(test)))[:, 0]
    np.testing.assert_array_equal(by_quantile, exact)
    np.testing.assert_array_equal(by_threshold, exact)
    np.testing.assert_array_equal(by_smoothed, exact)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.integers(1, 99))
def test_float64_p_values_compare_with_alpha_as_the_fractions_do(n, percent):
    # Division rounds correctly, so equal fractions stay equal and different ones stay apart.
    p = conformal_p_values(np.arange(n), np.arange(n + 1) - 0.5)
    exact = [Fraction(n - i + 1, n + 1) > Fraction(percent, 100) for i in range(n + 1)]
    np.testing.assert_array_equal(p > percent / 100, exact)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"calibration_scores": []}, "calibration_scores must have at least one row"),
        ({"calibration_scores": [np.nan]}, "calibration_scores has 1 NaN"),
        ({"test_scores": [[np.nan, 1.0]]}, r"test_scores has 1 NaN .*first at row 0, column 0"),
        ({"test_scores": 1.0}, r"test_scores must be \(m,\) or \(m, K\)"),
        ({"calibration_labels": [0]}, "one entry per calibration row"),
        ({"calibration_labels": [0, 2]}, r"must lie in 0\.\.1, .* 1 of 2 do not \(first at row 1: 2\)"),
        ({"calibration_labels": ["a", "b"]}, "column indices"),
        ({"calibration_labels": [0, 1], "test_scores": [1.0]}, r"need test_scores of shape \(m, K\)"),
        ({"calibration_groups": [0, 1]}, "test_groups is missing"),
        ({"test_groups": [0]}, "calibration_groups is missing"),
        ({"tau": 1.5}, r"tau must lie in \[0, 1\]"),
        ({"tau": [0.1, 0.2]}, "one per test row"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    good = {"calibration_scores": [1.0, 2.0], "test_scores": [[1.0, 2.0]]}
    with pytest.raises(InputError, match=message):
        conformal_p_values(**(good | change))


@pytest.mark.parametrize("label_conditional", [False, True])
def test_working_memory_stays_below_three_times_the_output(label_conditional):
    import tracemalloc

    rng = np.random.default_rng(0)
    cal, test = rng.random(10_000), rng.random((10_000, 10))
    options = {"calibration_labels": rng.integers(0, 10, 10_000)} if label_conditional else {}
    conformal_p_values(cal[:10], test[:10])
    tracemalloc.start()
    p = conformal_p_values(cal, test, smoothed=True, random_state=0, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * p.nbytes


def test_draws_outside_their_range_are_named_with_value_and_row():
    with pytest.raises(InputError, match=r"tau must lie in \[0, 1\], got 1\.5 at row 1\."):
        conformal_p_values([0.1, 0.2], [0.1, 0.3], tau=[0.5, 1.5])
