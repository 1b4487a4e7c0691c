"""pandas, polars and Arrow: every argument in, every table out, with the same answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calipers
from calipers.results import Curve, Estimate, EstimateTable

RNG = np.random.default_rng(0)
N = 300
P = RNG.dirichlet(np.ones(3), size=N)
LABELS = np.array(["a", "b", "c"])
Y = np.array([RNG.choice(LABELS, p=row) for row in P])
SETS = P > 0.15
V = RNG.normal(size=N)
ENDS = np.tile([-1.5, 1.5], (N, 1))
X = {"age": RNG.normal(size=N), "city": RNG.choice(["Rome", "Oslo"], size=N)}
GROUPS = RNG.choice(["f", "m"], size=N)
WEIGHTS = RNG.uniform(1.0, 2.0, size=N)


def frame(library: str, columns: dict[str, Any]) -> Any:
    plain = {name: list(values) for name, values in columns.items()}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[library](plain)


def column(library: str, values: Any) -> Any:
    plain = list(values)
    return {"pandas": pd.Series, "polars": pl.Series, "arrow": lambda v: pa.chunked_array([v])}[library](
        plain
    )


def named(library: str, matrix: np.ndarray, names: Any) -> Any:
    return frame(library, {name: matrix[:, k].tolist() for k, name in enumerate(names)})


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_classification_from_every_library_reads_as_from_numpy(library):
    from_numpy = calipers.audit(
        Y, probabilities=P, sets=SETS, X=pl.DataFrame(X), groups=GROUPS, sample_weight=WEIGHTS, random_state=0
    )
    found = calipers.audit(
        column(library, Y.tolist()), probabilities=named(library, P, LABELS), sets=named(library, SETS, LABELS),
        X=frame(library, X), groups=column(library, GROUPS.tolist()), sample_weight=column(library, WEIGHTS),
        random_state=0,
    )  # fmt: skip
    assert found.to_json() == from_numpy.to_json()


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_regression_from_every_library_reads_as_from_numpy(library):
    from_numpy = calipers.audit(V, intervals=ENDS, X=pl.DataFrame(X), random_state=0)
    v = column(library, V)
    found = calipers.audit(
        v, intervals=named(library, ENDS, ["lower", "upper"]), X=frame(library, X), random_state=0
    )
    assert found.to_json() == from_numpy.to_json()
    two = tuple(column(library, ENDS[:, side]) for side in (0, 1))
    assert (
        calipers.audit(v, intervals=two, X=frame(library, X), random_state=0).to_json()
        == from_numpy.to_json()
    )


@pytest.mark.parametrize("library", ["polars", "arrow"])
def test_a_column_of_lists_is_read_as_sets_of_labels(library):
    lists = [LABELS[row].tolist() for row in SETS]
    found = calipers.audit(Y, sets=column(library, lists), random_state=0)
    assert found.estimates.to_dict() == calipers.audit(Y, sets=SETS, random_state=0).estimates.to_dict()


BACKENDS = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.Table}


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_and_curves_go_out_as_frames(backend):
    table = EstimateTable([Estimate(name="S", value=1.25, std_error=0.5), Estimate(name="N", value=2)])
    out = table.to_frame(backend)
    assert isinstance(out, BACKENDS[backend])
    plain = pl.from_arrow(out) if backend == "pyarrow" else pl.DataFrame(out)
    assert plain["name"].to_list() == ["S", "N"]
    assert plain["value"].to_list() == [1.25, 2.0]
    curve = Curve(name="c", x=np.array([0.0, 1.0]), y=np.array([0.2, 0.4]))
    assert isinstance(curve.to_frame(backend), BACKENDS[backend])


def test_an_unknown_backend_is_refused_with_the_known_ones():
    from calipers.exceptions import InputError

    with pytest.raises(InputError, match='must be "polars", "pandas" or "pyarrow", got \'dask\''):
        EstimateTable([]).to_frame("dask")
