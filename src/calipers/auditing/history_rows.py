"""What single rows contributed to an audit, kept beside it: audits of the same rows are compared in pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from calipers.arrays.hashing import mix
from calipers.auditing.comparison_measures import COVERAGE, MATCHED_SIZE, MEASURES
from calipers.inference import paired_difference
from calipers.inputs.row_keys import keys_of_ids
from calipers.results import write_atomically

if TYPE_CHECKING:
    from calipers.auditing.audit_result import Audit

# Beyond so many rows two independent means tell small differences as well.
MOST_ROWS = 200_000
KEY = "row"
# Estimates of an audit that are a measure of rows under another name.
SAME = {"mean width": "mean size", "accuracy of the top label": "mean error"}


def contributions(audit: Audit) -> pl.DataFrame | None:
    """A line per row: what names it, and what it adds to every measure that `calipers.compare` pairs.

    Parameters
    ----------
    audit : Audit
        The audit.

    Returns
    -------
    DataFrame or None
        None for weighted and for dependent rows, for rows that were streamed, for more than 200 000 of them,
        and where neither outcomes nor ids tell which rows they are.
    """
    rows = audit.data
    told = rows.get("y") is not None or rows.get("row_id") is not None
    independent = rows.weights is None and rows.get("cluster") is None
    if not (told and independent and audit.sample_rows == audit.rows <= MOST_ROWS):
        return None
    measured = {m.name: m.rows(rows) for m in MEASURES if m is not MATCHED_SIZE}
    columns = {
        name: np.asarray(values, dtype=np.float64) for name, values in measured.items() if values is not None
    }
    return pl.DataFrame({KEY: _keys(audit)} | columns) if columns else None


def _keys(audit: Audit) -> np.ndarray:
    """A number per row: of its id, or of its position, and of its outcome."""
    ids, y = audit.data.get("row_id"), audit.data.get("y")
    keys = np.arange(audit.rows, dtype=np.uint64) if ids is None else keys_of_ids(np.asarray(ids))
    if y is None:
        return keys
    outcome = np.asarray(y)
    numeric = outcome.dtype.kind in "biuf"
    known = (
        (outcome.astype(np.float64) + 0.0).view(np.uint64) if numeric else keys_of_ids(outcome.astype(str))
    )
    return mix(mix(keys) ^ known)


def keep_rows(table: pl.DataFrame | None, path: Path) -> None:
    """Write the contributions, whole or not at all."""
    if table is not None:
        write_atomically(path, table.write_parquet)


def paired_tests(before: pl.DataFrame, after: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    """Measure -> mean before, mean after and p-value of their difference; empty unless the rows agree.

    Coverage by the exact test of the rows that only one audit covers (McNemar), other measures by the t test
    of the differences.
    """
    from calipers.auditing.comparison_tests import coverage_difference

    first, second = before.sort(KEY), after.sort(KEY)
    if not first[KEY].equals(second[KEY]) or first[KEY].is_duplicated().any():
        return {}
    found = {}
    for name in (column for column in first.columns[1:] if column in second.columns):
        old, new = first[name].to_numpy(), second[name].to_numpy()
        test = coverage_difference if name == COVERAGE.name else paired_difference
        p = test(new, old, name=name, weights=None, confidence=0.95).p_value
        if p is not None:
            found[name] = float(old.mean()), float(new.mean()), float(p)
    return found
