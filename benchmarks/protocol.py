"""How one comparison is written, so that every library sees the same inputs in the same run.

A module in ``benchmarks/tasks`` lists its `Task` objects in ``TASKS``. The runner prepares the inputs
once, hands them to each library as numpy arrays (peers run in their own environment, so their imports
belong inside the function), alternates the order, repeats, and records CPU seconds, wall seconds, peak
memory and the answers, which it compares. Peers and their pinned versions are in ``peers.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Inputs = dict[str, Any]
Answers = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One job that several libraries do.

    Parameters
    ----------
    name : str
        Short and stable; the history is kept under it.
    sizes : tuple of int
        Three sizes, so that growth can be read off; the last is the one the bar speaks of.
    prepare : callable
        Size to a dictionary of numpy arrays and numbers, seeded.
    ours : callable or None
        Inputs to answers (a dictionary of arrays and numbers). None: a trap of a feature we do not have.
    peers : mapping
        Environment name in ``peers.toml`` to a function like ``ours``; it imports the peer inside.
    limit : callable or None
        The bare primitives nobody can avoid (one sort, one read), as a function of the same inputs.
    bar : str
        The promise this task measures, in words with its number.
    agree : callable or None
        ``agree(ours, theirs)`` says whether the answers are the same; None compares with tolerance.
    exact : callable or None
        The true answer by brute force, where it is affordable: it says who is wrong.
    distance : callable or None
        ``distance(exact, theirs)``: how far an answer is off, where it is an array; None takes the largest
        difference.
    judged : bool
        Whether answers can be right or wrong; the size of an installation cannot.
    quick : bool
        Whether ``bench --quick`` runs it (at its smallest size).
    """

    name: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Inputs]
    ours: Callable[[Inputs], Answers] | None
    peers: Mapping[str, Callable[[Inputs], Answers]] = field(default_factory=dict)
    limit: Callable[[Inputs], Any] | None = None
    bar: str = ""
    agree: Callable[[Answers, Answers], bool] | None = None
    exact: Callable[[Inputs], Answers] | None = None
    distance: Callable[[Answers, Answers], float] | None = None
    judged: bool = True
    quick: bool = True
