"""What the registry knows about a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from calipers.arrays import short_repr

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
    merge : {"sum", "sketch", "gather"}
        How states of two blocks of rows combine.
    weighted : bool
        Whether ``sample_weight`` is taken (weights mean repetition).
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
    merge: Literal["sum", "sketch", "gather"]
    weighted: bool
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
