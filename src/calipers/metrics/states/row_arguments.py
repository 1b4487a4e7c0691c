"""Arguments of a metric that differ by row, as columns of the blocks it is measured over."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np

ROW_ARGUMENTS = ("promised", "cluster")


class WithRowArguments:
    """A metric whose last columns are what was promised for each row, and its cluster.

    Parameters
    ----------
    function : callable
        The metric; takes ``alpha``, and ``cluster`` where that is asked for.
    columns : tuple of str
        Of `ROW_ARGUMENTS`, in the order of the last columns.

    Examples
    --------
    >>> from calipers.metrics import escv
    >>> from calipers.metrics.states.row_arguments import WithRowArguments
    >>> float(WithRowArguments(escv, ("promised",))([1, 0], [1, 1], [0.9, 0.5])).__round__(3)
    0.2
    """

    def __init__(self, function: Callable[..., Any], columns: tuple[str, ...]) -> None:
        update_wrapper(self, function)
        self.function, self.columns = function, columns

    def __call__(self, *columns: Any, **options: Any) -> Any:
        """The metric, with its last columns as arguments."""
        count = len(columns) - len(self.columns)
        given = dict(zip(self.columns, columns[count:], strict=True))
        if "promised" in given:
            given["alpha"] = 1.0 - np.asarray(given.pop("promised"), dtype=float)
        return self.function(*columns[:count], **(options | given))
