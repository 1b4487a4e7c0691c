"""One line of the table of checks: which states it needs, and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from calipers.auditing.check_result import CheckResult
from calipers.auditing.measurements import Design, Measurements
from calipers.auditing.promise import Promise
from calipers.inference import State

States: TypeAlias = dict[str, State]
CheckResults: TypeAlias = CheckResult | Iterable[CheckResult]
ADD_LOSS = "Add loss and bound: the loss of every row, and what its mean was promised not to exceed."
ADD_PROBABILITIES = "Add probabilities: one column per class, or the positive class of two."


def _no_states(*_: object) -> States:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A question about the rows: one family of slices, asked of every promise of some kinds, or once.

    Parameters
    ----------
    code, title, question : str
        Stable code, a few words, one of the six questions.
    needs : tuple of str
        Words of `Design.have` without which it cannot run.
    add : str
        What to add to the inputs so that it can.
    read : callable
        ``read(measurements, promise)`` gives the results; ``promise`` is None for a check that runs once.
    states : callable
        ``states(design, promise)`` names the states over all rows that it reads. Checks that give a state the
        same name share it.
    from_sample : callable
        ``from_sample(measurements, promise)`` names states of one more pass, made from the sample: a model
        fitted on it, or a threshold found on it, is evaluated on all other rows.
    once : bool
        Whether it runs once rather than for every promise.
    kinds : tuple of str
        Kinds of promises it asks about; see `Promise`.
    slices : str
        The family of slices it looks at: "all rows", "score", "groups", "features", "difficulty", "time".
    on_sample : bool
        Whether its verdict rests on the sample alone; the finding then says how many rows that is.
    tasks : tuple of str
        Kinds of prediction it applies to.
    """

    code: str
    title: str
    question: str
    needs: tuple[str, ...]
    add: str
    read: Callable[[Measurements, Promise], CheckResults] | Callable[[Measurements, None], CheckResults]
    states: Callable[[Design, Promise], States] | Callable[[Design, None], States] = _no_states
    from_sample: Callable[[Measurements, Promise], States] = _no_states
    once: bool = False
    kinds: tuple[str, ...] = ("coverage",)
    slices: str = ""
    on_sample: bool = False
    tasks: tuple[str, ...] = ("classification", "regression", "outcomes")
