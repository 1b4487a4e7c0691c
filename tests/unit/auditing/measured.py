"""The measurements one check reads, for tests of single checks."""

from __future__ import annotations

from typing import Any

from calipers.auditing.arguments import rows_of_arguments
from calipers.auditing.checks import CHECKS
from calipers.auditing.filled_states import measure_rows
from calipers.auditing.measurements import Design, Measurements
from calipers.engines import ArraySource
from calipers.engines.running import LocalEngine


def measured(y_true: Any, *, code: str, seed: int = 0, **given: Any) -> Measurements:
    rows = rows_of_arguments(y_true, seed=seed, **given)
    pieces = ArraySource(rows.given, classes=rows.classes, alpha=rows.alphas).pieces()
    design = Design(n=rows.n, alphas=rows.alphas, head=pieces[0].head(), seed=seed)
    chosen = [check for check in CHECKS if check.code == code]
    return measure_rows(design, chosen, pieces, LocalEngine(), rows)
