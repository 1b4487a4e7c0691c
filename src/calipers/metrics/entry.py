"""What the registry knows about a metric."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from calipers.arrays import short_repr
from calipers.deprecation import under_new_names
from calipers.exceptions import InputError
from calipers.inference import State
from calipers.inputs.rows import Rows

QUESTIONS = ("coverage", "everywhere", "narrow", "adaptive", "probabilities", "forecast")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricEntry:
    """One public metric: what it takes, what a good value is, and what its null says.

    Parameters
    ----------
    function : callable
        The public function; its name is the metric's name.
    question : str
        Which of the six questions it answers (one of `QUESTIONS`).
    inputs : tuple of str
        Names of the data arguments, in order ("y_true", "prediction", "covered", "ease", ...).
    returns : {"estimate", "table"}
        What comes back.
    direction : {"lower", "higher", "target"}
        Whether lower or higher is better, or a target value is right.
    good : str
        What a good value looks like, in words.
    bounds : (float, float)
        Range of the value.
    null : str
        The null behind the p-value and the band, or empty.
    no_null : str
        Why there is none; filled exactly when ``null`` is empty.
    interval : str
        How the interval is made, or empty.
    no_interval : str
        Why there is none; filled exactly when ``interval`` is empty.
    merge : {"counts", "moments", "bins", "passes", "gather"}
        How it is measured over blocks of rows: from counts of distinct rows, moments of a number per row,
        sums over bins, several passes over the rows, or the rows themselves, gathered.
    state : callable or None
        ``state(entry, options)`` gives the empty state that measures it over blocks of rows. None for counts
        and gathered rows, whose states call the function itself.
    weighted : bool
        Whether ``sample_weight`` is taken; `calipers.inputs.weights` says what weights mean.
    importance : {"untested", "tested", "refused"}
        What importance weights give: an estimate without p-value, one with an asymptotic test that allows for
        them, or an error.
    scaled : str
        Why the value with whole weights changes when all of them are rescaled; empty when it does not.
    counts_labels : bool
        Whether ``size`` must be a number of labels, not a width.
    row_arguments : tuple of str
        Columns of blocks that its arguments ``alpha`` ("promised", one minus alpha) and ``cluster`` can come
        from, where they differ by row.
    splits_rows : bool
        Whether rows are split or a model is fitted to them: copies of a row may then lie on both sides, so
        that whole weights are not quite repeated rows.
    randomized : bool
        Whether ``random_state`` matters.
    array_api : bool
        Whether the kernel works on torch, CuPy and JAX arrays where they lie.
    """

    function: Callable[..., Any]
    question: str
    inputs: tuple[str, ...]
    returns: Literal["estimate", "table"] = "estimate"
    direction: Literal["lower", "higher", "target"]
    good: str
    bounds: tuple[float, float]
    null: str = ""
    no_null: str = ""
    interval: str = ""
    no_interval: str = ""
    merge: Literal["counts", "moments", "bins", "passes", "gather"]
    state: Callable[[MetricEntry, dict[str, Any]], State] | None = None
    weighted: bool
    importance: Literal["untested", "tested", "refused"] = "untested"
    scaled: str = ""
    counts_labels: bool = False
    row_arguments: tuple[str, ...] = ()
    splits_rows: bool = False
    randomized: bool = False
    array_api: bool = False

    __repr__ = short_repr

    @property
    def name(self) -> str:
        """Name of the public function."""
        return self.function.__name__

    def __post_init__(self) -> None:
        if self.question not in QUESTIONS:
            raise ValueError(f"{self.name}: question must be one of {QUESTIONS}, got {self.question!r}")
        if bool(self.null) == bool(self.no_null):
            raise ValueError(f"{self.name}: give either a null or the reason why there is none")
        if bool(self.interval) == bool(self.no_interval):
            raise ValueError(f"{self.name}: give either an interval method or the reason why there is none")
        if self.state is None and self.merge not in ("counts", "gather"):
            raise ValueError(f"{self.name}: merge={self.merge!r} needs the state that does it")

    def fits(self, rows: Rows) -> bool:
        """Whether these rows hold its inputs, given or derived."""
        found = [rows.get(name) for name in self.inputs]
        if any(column is None for column in found):
            return False
        return not self.counts_labels or bool((rows["size"] % 1 == 0).all())

    def new_state(
        self, *, alpha: Any, confidence: float, by_row: tuple[str, ...] = (), **options: Any
    ) -> State:
        """An empty state of this metric; alpha and confidence where the function takes them.

        Parameters
        ----------
        alpha : float
            Allowed miscoverage.
        confidence : float
            Level of the intervals.
        by_row : tuple of str
            Columns of the blocks, of ``row_arguments``: "promised" in place of alpha, "cluster".
        **options
            Further keyword arguments of the function.

        Returns
        -------
        State
            Its ``finish`` gives what the function gives for all rows at once.
        """
        parameters = inspect.signature(self.function).parameters
        common = {"alpha": alpha, "confidence": confidence}
        chosen = {key: value for key, value in common.items() if key in parameters}
        chosen |= known_options(self, under_new_names(self.function, options), tuple(parameters))
        unknown = [name for name in by_row if name not in self.row_arguments]
        if unknown:
            known = " and ".join(self.row_arguments) or "nothing"
            raise InputError(f"{self.name} takes {known} by row, got {unknown[0]!r}.")
        if by_row:
            from calipers.metrics.states.row_arguments import WithRowArguments

            fixed = {k: v for k, v in chosen.items() if k != "alpha" or "promised" not in by_row}
            function = WithRowArguments(self.function, by_row)
            return replace(self, function=function, inputs=(*self.inputs, *by_row))._state(fixed)
        return self._state(chosen)

    def _state(self, chosen: dict[str, Any]) -> State:
        from calipers.metrics.states.all_rows import GatherState
        from calipers.metrics.states.counts import CountState

        if self.state is not None:
            return self.state(self, chosen)
        if self.merge == "counts":
            return CountState(self.function, self.inputs, chosen)
        return GatherState(self.function, self.inputs, chosen, weighted=self.weighted)


def known_options(entry: MetricEntry, options: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """The options, all of which must be known.

    Examples
    --------
    >>> from calipers.metrics import metric_entry
    >>> known_options(metric_entry("coverage"), {"bins": 3}, ("alpha",))
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: coverage over blocks of rows takes alpha, got 'bins'.
    """
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InputError(f"{entry.name} over blocks of rows takes {', '.join(known)}, got {unknown[0]!r}.")
    return options
