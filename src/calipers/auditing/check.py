"""One line of the table of checks: which states it needs, and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from calipers.auditing.check_result import CheckResult
from calipers.auditing.measurements import Design, Level, Measurements
from calipers.inference import State

States: TypeAlias = dict[str, State]
CheckResults: TypeAlias = CheckResult | Iterable[CheckResult]


def _no_states(*_: object) -> States:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A question about the rows, at every level or once.

    Parameters
    ----------
    code, title, question : str
        Stable code, a few words, one of the six questions.
    needs : tuple of str
        Words of `Design.have` without which it cannot run.
    add : str
        What to add to the inputs so that it can.
    read : callable
        ``read(measurements, level)`` gives the results; ``level`` is None for a check that runs once.
    states : callable
        ``states(design, level)`` names the states over all rows that it reads. Checks that give a state the
        same name share it.
    from_sample : callable
        ``from_sample(measurements, level)`` names states of one more pass, made from the sample: a model
        fitted on it, or a threshold found on it, is evaluated on all other rows.
    once : bool
        Whether it runs once rather than at every level.
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
    read: Callable[[Measurements, Level], CheckResults] | Callable[[Measurements, None], CheckResults]
    states: Callable[[Design, Level], States] | Callable[[Design, None], States] = _no_states
    from_sample: Callable[[Measurements, Level], States] = _no_states
    once: bool = False
    on_sample: bool = False
    tasks: tuple[str, ...] = ("classification", "regression")
