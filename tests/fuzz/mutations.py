"""Ways in which an argument can be wrong, strange or merely unusual."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

Mutation = Callable[[np.ndarray, np.random.Generator], Any]

SCALARS: tuple[Any, ...] = (
    None, -1, 0, 1, 2, 3.5, 1e-12, 1 - 1e-12, 1e308, float("nan"), float("inf"), -float("inf"), "x", "", b"x", [], (),
    {}, set(), True, False, object(), 10**400, Decimal("NaN"), Decimal("0.1"), Fraction(1, 3), 1j, np.array(3),
    np.array([0.1, 0.2]), np.float32(0.1), np.int8(3), [0.1, 0.2], ["a"], dt.date(2024, 1, 1), range(3), pd.NA,
)  # fmt: skip


def _with(value: Any) -> Mutation:
    """One entry replaced."""

    def mutate(array: np.ndarray, rng: np.random.Generator) -> Any:
        made = array.astype(object)
        if made.size:
            made.flat[int(rng.integers(made.size))] = value
        return made

    return mutate


def _float_with(value: float) -> Mutation:
    def mutate(array: np.ndarray, rng: np.random.Generator) -> Any:
        made = array.astype(float) if array.dtype.kind in "biuf" else array
        if made.size and made.dtype.kind == "f":
            made.flat[int(rng.integers(made.size))] = value
        return made

    return mutate


def _objects(array: np.ndarray, cell: Callable[[int], Any]) -> np.ndarray:
    made = np.empty(len(array), dtype=object)
    for row in range(len(array)):
        made[row] = cell(row)
    return made


def _frame(array: np.ndarray, library: Any) -> Any:
    if array.ndim == 1:
        return library.Series(array)
    return library.DataFrame({f"c{j}": array.reshape(len(array), -1)[:, j] for j in range(array[0].size)})


def _cast(kind: str) -> Mutation:
    return lambda array, rng: array.astype(kind)


ARRAYS: dict[str, Mutation] = {
    "list": lambda a, rng: a.tolist(),
    "tuple": lambda a, rng: tuple(a.tolist()),
    "float32": _cast("float32"),
    "float16": _cast("float16"),
    "int8": _cast("int8"),
    "uint64": _cast("uint64"),
    "bool": _cast("bool"),
    "text": _cast("str"),
    "complex": _cast("complex"),
    "object": _cast("object"),
    "bytes": _cast("S"),
    "dates": lambda a, rng: np.datetime64("2024-01-01") + np.arange(a.size).reshape(a.shape),
    "spans": lambda a, rng: np.arange(a.size).reshape(a.shape).astype("m8[D]"),
    "pandas": lambda a, rng: _frame(a, pd),
    "pandas of another index": lambda a, rng: _frame(a, pd).set_axis(np.arange(len(a))[::-1]),
    "pandas nullable": lambda a, rng: pd.Series(a.ravel()).convert_dtypes() if a.ndim == 1 else _frame(a, pd),
    "pandas of arrow": lambda a, rng: _frame(a, pd).convert_dtypes(dtype_backend="pyarrow"),
    "pandas of objects": lambda a, rng: _frame(a, pd).convert_dtypes().astype(object),
    "pandas categories": lambda a, rng: pd.Series(a.ravel()[: len(a)]).astype("category"),
    "pandas with one name twice": lambda a, rng: pd.DataFrame(a.reshape(len(a), -1)).set_axis(
        ["a"] * a[0].size, axis=1
    ),
    "polars": lambda a, rng: _frame(a, pl),
    "polars with a null": lambda a, rng: pl.Series([None, *a.ravel()[1 : len(a)].tolist()], strict=False),
    "polars of lists": lambda a, rng: pl.Series([[1]] * len(a)),
    "arrow": lambda a, rng: _frame(a, pl).to_arrow(),
    "sparse": lambda a, rng: sparse.csr_array(np.atleast_2d(a)),
    "masked": lambda a, rng: np.ma.masked_array(a, mask=rng.random(a.shape) < 0.2),
    "read only": lambda a, rng: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "strided": lambda a, rng: np.repeat(a, 2, axis=0)[::2],
    "fortran": lambda a, rng: np.asfortranarray(a),
    "byte order": lambda a, rng: a.astype(a.dtype.newbyteorder()),
    "one value": lambda a, rng: np.array(a.flat[0]),
    "scalar": lambda a, rng: a.flat[0].item(),
    "empty": lambda a, rng: a[:0],
    "one row": lambda a, rng: a[:1],
    "two rows": lambda a, rng: a[:2],
    "one row less": lambda a, rng: a[:-1],
    "one row more": lambda a, rng: np.concatenate([a, a[-1:]]),
    "a column": lambda a, rng: a.reshape(len(a), -1),
    "flat": lambda a, rng: a.ravel(),
    "transposed": lambda a, rng: a.T,
    "another axis": lambda a, rng: a[..., None],
    "no columns": lambda a, rng: a.reshape(len(a), -1)[:, :0],
    "constant": lambda a, rng: np.full_like(a, a.flat[0]),
    "zeros": lambda a, rng: np.zeros_like(a),
    "ones": lambda a, rng: np.ones_like(a),
    "negative": lambda a, rng: -a.astype(float),
    "shifted": lambda a, rng: a.astype(float) + 1,
    "huge": lambda a, rng: a.astype(float) * 1e300,
    "tiny": lambda a, rng: a.astype(float) * 1e-300,
    "percent": lambda a, rng: a.astype(float) * 100,
    "shuffled": lambda a, rng: rng.permutation(a),
    "beyond doubles": lambda a, rng: 2**53 + np.arange(a.size).reshape(a.shape),
    "smallest": lambda a, rng: np.full(a.shape, 5e-324),
    "distinct": lambda a, rng: np.arange(a.size).reshape(a.shape),
    "all missing": lambda a, rng: np.full(a.shape, np.nan),
    "missing": _float_with(np.nan),
    "infinite": _float_with(np.inf),
    "minus infinite": _float_with(-np.inf),
    "minus zero": _float_with(-0.0),
    "none": _with(None),
    "na": _with(pd.NA),
    "nat": _with(pd.NaT),
    "text cell": _with("x"),
    "list cell": _with([1]),
    "dict cell": _with({}),
    "too large": _with(10**400),
    "decimal nan": _with(Decimal("NaN")),
    "signalling nan": _with(Decimal("sNaN")),
    "decimals": lambda a, rng: _objects(a, lambda i: Decimal(str(float(a.reshape(len(a), -1)[i, 0])))),
    "fractions": lambda a, rng: _objects(a, lambda i: Fraction(int(i), 7)),
    "mixed kinds": lambda a, rng: _objects(a, lambda i: i if i % 2 else f"t{i}"),
    "ragged": lambda a, rng: [list(range(i % 3 + 1)) for i in range(len(a))],
    "dates as objects": lambda a, rng: _objects(a, lambda i: dt.date(2024, 1, 1 + i % 28)),
    "generator": lambda a, rng: (value for value in a.tolist()),
    "dictionary": lambda a, rng: {"a": a.tolist()},
    "word": lambda a, rng: "word",
    "nothing": lambda a, rng: None,
    "number": lambda a, rng: 3,
    "function": lambda a, rng: len,
}


def mutated(value: Any, name: str, rng: np.random.Generator) -> Any:
    """The value with the mutation of that name; scalars are replaced by the one of that number."""
    if name.startswith("scalar "):
        return SCALARS[int(name.removeprefix("scalar "))]
    return ARRAYS[name](np.array(value), rng)


def names_for(value: Any) -> list[str]:
    """Names of the mutations that make sense for a value."""
    if isinstance(value, np.ndarray):
        return list(ARRAYS)
    return [f"scalar {i}" for i in range(len(SCALARS))]
