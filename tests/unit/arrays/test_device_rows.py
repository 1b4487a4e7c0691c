import numpy as np
import pytest

from calipers.arrays import as_numpy
from calipers.arrays.device_rows import (
    first_labels,
    p_values_among,
    read_rows,
    row_moments,
    running_mass,
    scatter_rows,
    score_sums,
    walk_ends,
)
from calipers.conformal import conformal_p_values
from calipers.conformal.score_table import score_rule
from calipers.exceptions import InputError
from calipers.inference import Moments
from calipers.inputs.p_value_sets import level_floors, sets_at
from calipers.metrics import efficiency
from calipers.metrics.contributions import CRITERIA_ORDER, criterion_rows
from calipers.metrics.reliability import BinaryRows, sup_interval
from calipers.metrics.reliability.calibration_estimate import row_moments as moments_of_scores
from calipers.metrics.reliability.ordered_walk import extremes_by_sorting
from calipers.metrics.reliability.sup_interval import TIE, interval_between

SHAPES = [(7, 1), (100, 3), (501, 1000), (64, 8192)]


@pytest.mark.parametrize(
    "function",
    [
        running_mass,
        row_moments,
        lambda x: scatter_rows(x, x),
        lambda x: read_rows(x, x, x),
        lambda x: first_labels(x, x, x, x[0]),
        lambda x: p_values_among(x[0], x[0]),
        lambda x: walk_ends(x[0], x[0] > 0, 0.0),
        lambda x: score_sums(x[0], x[0] > 0, 0.0, 1.0),
    ],
)
def test_tables_on_the_host_have_no_kernel(function):
    assert function(np.ones((2, 3))) is None


def cuda(array):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array).cuda()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_read_gives_the_criteria_of_the_host(shape, dtype):
    rng = np.random.default_rng(0)
    p, codes = (np.round(50 * rng.random(shape)) / 50).astype(dtype), rng.integers(0, shape[1], shape[0])
    expected = criterion_rows(p, codes, sets_at(p, 0.1))
    table = cuda(p)
    *columns, unfit, zero = as_numpy(read_rows(table, cuda(codes), level_floors(table, 0.1)))
    read = dict(zip(CRITERIA_ORDER, columns, strict=True))
    assert not unfit.any()
    np.testing.assert_array_equal(zero, codes == 0)
    for name, column in expected.items():
        # Sums are added up in another order.
        np.testing.assert_allclose(read[name], column, rtol=0, atol=1e-9 if name in {"S", "F", "OF"} else 0)


@pytest.mark.gpu
@pytest.mark.parametrize(("bad", "words"), [(1.5, r": 1.5\)"), (-0.1, r": -0.1\)"), (np.nan, "NaN")])
def test_the_read_refuses_what_is_no_p_value_as_the_host_does(bad, words):
    p, y = np.full((50, 7), 0.25), np.arange(50) % 7
    p[13, 4] = bad
    for table in (p, cuda(p)):
        with pytest.raises(InputError, match=words):
            efficiency(y, table)


@pytest.mark.gpu
@pytest.mark.parametrize("classes", [None, range(7)])
@pytest.mark.parametrize("bad", [-1, 7])
def test_the_read_refuses_labels_that_are_no_columns_as_the_host_does(bad, classes):
    p, y = np.full((50, 7), 0.25), np.arange(50) % 7
    y[13] = bad
    said = []
    for labels, table in ((y, p), (cuda(y), cuda(p))):
        with pytest.raises(InputError) as refusal:
            efficiency(labels, table, classes=classes)
        said.append(str(refusal.value))
    assert said[0] == said[1]


@pytest.mark.gpu
def test_labels_without_a_zero_are_read_as_on_the_host():
    p, y = np.full((50, 7), 0.25), 1 + np.arange(50) % 6
    for labels, table in ((y, p), (cuda(y), cuda(p))):
        with pytest.raises(InputError):
            efficiency(labels, table)
    assert float(efficiency(cuda(y), cuda(p), classes=range(7))["S"]) == 1.75
    two = np.ones((4, 2)) / 2
    assert float(efficiency(cuda(np.ones(4, dtype=int)), cuda(two))["S"]) == 1.0


@pytest.mark.gpu
@pytest.mark.parametrize("where", ["calibration", "test"])
def test_p_values_on_a_device_refuse_nan_as_on_the_host(where):
    scores = {"calibration": np.linspace(0, 1, 300), "test": np.linspace(0, 1, 5000).reshape(1000, 5)}
    scores[where].reshape(-1)[137] = np.nan
    said = []
    for place in (np.asarray, cuda):
        with pytest.raises(InputError, match="NaN") as refusal:
            conformal_p_values(place(scores["calibration"]), place(scores["test"]))
        said.append(str(refusal.value))
    assert said[0] == said[1]


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 2, 3, 255, 256, 257, 20_000])
@pytest.mark.parametrize("kind", ["spread", "tied", "skewed", "infinite"])
def test_p_values_on_a_device_are_those_of_the_host(n, kind):
    rng = np.random.default_rng(n)
    cal, test = rng.random(n), rng.random((50, 33))
    if kind == "tied":
        cal, test = np.round(cal, 1), np.round(test, 1)
    if kind == "skewed":
        cal, test = cal**40, test**40
    if kind == "infinite":
        cal[0], test[0, 0], test[1, 1] = np.inf, np.inf, -np.inf
    found = conformal_p_values(cuda(cal), cuda(test))
    np.testing.assert_array_equal(as_numpy(found), conformal_p_values(cal, test))


@pytest.mark.gpu
def test_the_read_takes_what_exceeds_one_by_rounding():
    p, y = np.full((50, 7), 0.25, dtype=np.float32), np.arange(50) % 7
    p[3, 2] = np.nextafter(np.float32(1), np.float32(2))
    assert float(efficiency(y, cuda(p))["S"]) == pytest.approx(float(efficiency(y, p)["S"]))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_running_masses_are_those_of_the_host_to_the_last_bit(shape):
    mass = np.sort(np.random.default_rng(1).random(shape, dtype=np.float32) ** 8, axis=1)[:, ::-1]
    mass = np.ascontiguousarray(mass / mass.sum(axis=1, keepdims=True))
    expected = np.minimum(np.cumsum((mass.astype(np.float64) + 1) - 1, axis=1), 1.0)
    expected[:, -1] = 1.0
    np.testing.assert_array_equal(as_numpy(running_mass(cuda(mass))), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_scattered_to_their_columns(shape):
    rng = np.random.default_rng(2)
    values, order = rng.random(shape), np.argsort(rng.random(shape), axis=1)
    expected = np.empty(shape)
    np.put_along_axis(expected, order, values, axis=1)
    np.testing.assert_array_equal(as_numpy(scatter_rows(cuda(values), cuda(order))), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_running_masses_are_put_into_their_columns(shape):
    mass = np.random.default_rng(3).random(shape, dtype=np.float32)
    mass = mass / mass.sum(axis=1, keepdims=True)
    table = cuda(mass)
    ordered, order = table.sort(dim=1, descending=True, stable=True)
    expected = scatter_rows(running_mass(ordered), order)
    np.testing.assert_array_equal(as_numpy(running_mass(ordered, order)), as_numpy(expected))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["aps", "raps", "saps", "top_k"])
@pytest.mark.parametrize("steps", [4, 1 << 20], ids=["ties", "distinct"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sets_are_those_of_the_host(name, steps, dtype):
    rng = np.random.default_rng(4)
    P = rng.integers(1, steps + 1, (300, 17)).astype(dtype)
    P = (P / P.sum(axis=1, keepdims=True)).astype(dtype)
    rule = score_rule(name)
    # No label, all labels, and limits that are met exactly.
    limits = np.concatenate([np.full(20, -1.0), np.full(20, np.inf), rule.matrix(P[40:], None)[:, 3]])
    here = rule.sets(P, limits[:, None], None)
    np.testing.assert_array_equal(as_numpy(rule.sets(cuda(P), cuda(limits[:, None]), None)), here)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 2, 4095, 4097, 50_000])
def test_moments_of_rows_are_those_of_the_host(n):
    table = np.random.default_rng(5).normal(1e3, 1.0, (3, n))
    table[1] = 0.1  # a constant has no spread at all
    for there, here in zip(as_numpy(row_moments(cuda(table))), Moments.of_each(table), strict=True):
        np.testing.assert_allclose(there, [here.mean, here.squares], rtol=1e-9, atol=1e-9)
    assert as_numpy(row_moments(cuda(table)))[1].tolist() == [0.1, 0.0]


COLUMNS = {
    "spread": lambda rng, n: rng.random(n),
    "crowded": lambda rng, n: np.append(1e9, rng.random(n - 1)),
    "ties": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "constant": lambda rng, n: np.full(n, 0.5),
    "infinite": lambda rng, n: np.append([np.inf, -np.inf], rng.random(max(0, n - 2)))[:n],
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("n", [1, 2, 3000])
def test_p_values_are_those_of_the_host_to_the_last_bit(n, kind, dtype):
    rng = np.random.default_rng(6)
    column = COLUMNS[kind](rng, n).astype(dtype)
    values = np.concatenate([column, rng.normal(0.5, 1.0, 5000).astype(dtype), [-np.inf, np.inf, 0.5]])
    values = values.astype(dtype)
    expected = conformal_p_values(column, values)
    ordered, there = cuda(np.sort(column)), cuda(values)
    np.testing.assert_array_equal(as_numpy(p_values_among(ordered, there, is_sorted=True)), expected)
    np.testing.assert_array_equal(as_numpy(conformal_p_values(cuda(column), cuda(values))), expected)


def scored_rows(kind, n, dtype):
    rng = np.random.default_rng(7)
    f = rng.random(n) if kind == "distinct" else rng.integers(0, 12, n) / 11
    y = rng.random(n) < f**2
    if kind == "one label":
        y = np.zeros(n, dtype=bool)
    return f.astype(dtype), y


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["distinct", "ties", "one label"])
@pytest.mark.parametrize("n", [1, 5, 4096, 30_001])
def test_the_walk_over_scores_is_that_of_the_host(n, kind, dtype):
    f, y = scored_rows(kind, n, dtype)
    here, there = BinaryRows(f, y), BinaryRows(cuda(f), cuda(y))
    assert walk_ends(there.scores, there.outcomes, 0.0) is not None
    expected, found = sup_interval(here), interval_between(*extremes_by_sorting(there, TIE * n), float(n))
    assert (found.low, found.high, found.sign) == pytest.approx(
        (expected.low, expected.high, expected.sign), rel=0, abs=0, nan_ok=True
    )
    assert found.value == pytest.approx(expected.value, rel=1e-9, abs=1e-12)
    left, right = moments_of_scores(there, expected), moments_of_scores(here, expected)
    for name in ("second_moment", "variance", "inside", "stated", "happened", "inside_square", "impossible"):
        assert getattr(left, name) == pytest.approx(getattr(right, name), rel=1e-9, abs=1e-9, nan_ok=True)
