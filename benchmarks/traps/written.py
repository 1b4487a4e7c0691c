"""How a trap is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.protocol import Answers, Inputs, Task
from benchmarks.traps.catalogue import CATALOGUE

Library = Callable[[Inputs], Answers]


def trap(
    key: str,
    exact: Answers,
    ours: Library | None,
    peers: Mapping[str, Library],
    *,
    inputs: Inputs | Callable[[], Inputs] | None = None,
    agree: Callable[[Answers, Answers], bool] | None = None,
) -> Task:
    """A task of one size with a written answer; its question is in the catalogue.

    ``ours`` is None where Calipers has no such feature: the row then only judges those who have.
    """

    def prepare(_: int) -> Inputs:
        return inputs() if callable(inputs) else dict(inputs or {"nothing": 0})

    return Task(
        name=key, sizes=(1,), prepare=prepare, exact=lambda _: exact, ours=ours, peers=peers, agree=agree,
        bar=CATALOGUE[key],
    )  # fmt: skip


def refused(call: Callable[[], Any], *, also: Callable[[Any], bool] = lambda _: False) -> Answers:
    """Whether a call raises instead of answering; ``also`` accepts answers that say as much."""
    try:
        found = call()
    except Exception:  # noqa: BLE001 - any refusal will do, each library has its own
        return {"refused": True}
    return {"refused": bool(also(found))}


def within(tolerance: float) -> Callable[[Answers, Answers], bool]:
    """Answers no further than this from the truth, number by number."""

    def judge(exact: Answers, found: Answers) -> bool:
        return all(abs(float(exact[key]) - float(found[key])) <= tolerance for key in exact if key in found)

    return judge
