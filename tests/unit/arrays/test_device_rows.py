import numpy as np
import pytest

from calipers.arrays import as_numpy
from calipers.arrays.device_rows import read_rows, running_mass, scatter_rows
from calipers.inputs.p_value_sets import level_floors, sets_at
from calipers.metrics.contributions import CRITERIA_ORDER, criterion_rows

SHAPES = [(7, 1), (100, 3), (501, 1000), (64, 8192)]


@pytest.mark.parametrize(
    "function", [running_mass, lambda x: scatter_rows(x, x), lambda x: read_rows(x, x, x)]
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
    read = dict(
        zip(CRITERIA_ORDER, as_numpy(read_rows(table, cuda(codes), level_floors(table, 0.1))), strict=True)
    )
    for name, column in expected.items():
        # Sums are added up in another order.
        np.testing.assert_allclose(read[name], column, rtol=0, atol=1e-9 if name in {"S", "F", "OF"} else 0)


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
