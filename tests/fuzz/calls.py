"""Mutated calls: run, classify what came out, and shrink what failed."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from calipers.exceptions import CalipersError, CalipersWarning
from calipers.results import Estimate, EstimateTable
from tests.fuzz.mutations import mutated, names_for
from tests.fuzz.targets import Target
from tests.fuzz.twins import TWINS, differs, tricky_rows, twin_value

# (argument, mutation) pairs of one call.
Plan = tuple[tuple[str, str], ...]


FAILURES = ("foreign", "warning", "unexplained", "too long", "wrong")
LONGEST = 20.0
# They fit a model of scikit-learn, which looks at the rows first.
ESTIMATORS = {"ConformalClassifier", "ConformalRegressor", "TransductiveKNNClassifier"}


class TooLongError(BaseException):
    """A call that does not end; no code under test may catch it."""


@dataclass(slots=True)
class Tally:
    """How many calls came out how, and the failures, one per target and kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def report(self) -> str:
        """What failed, ready to be read."""
        shown = "\n".join(f"{what}: {how}" for (what, _), how in sorted(self.failures.items()))
        return f"{dict(self.outcomes)}\n{shown}"


def plan_call(target: Target, seed: int) -> Plan:
    """One argument mutated, sometimes two."""
    rng = np.random.default_rng([seed, 1])
    given = target.make(np.random.default_rng([seed, 0]))
    every = given | {name: value for name, value in target.options().items() if name not in given}
    names = [name for name in every if name not in {"classifier", "cv"}]
    chosen = rng.choice(len(names), size=min(len(names), 1 + int(rng.random() < 0.25)), replace=False)
    plan = []
    for i in chosen:
        choices = names_for(every[names[i]]) if names[i] != "sample_weight" else names_for(np.ones(1))
        plan.append((names[i], choices[int(rng.integers(len(choices)))]))
    return tuple(plan)


def arguments(target: Target, seed: int, plan: Plan) -> dict[str, Any]:
    """The arguments of a planned call; the same for the same seed."""
    given = target.make(np.random.default_rng([seed, 0]))
    rows = len(next((v for v in given.values() if isinstance(v, np.ndarray)), np.ones(24)))
    for number, (name, mutation) in enumerate(plan):
        base = given.get(name)
        if base is None and not mutation.startswith("scalar "):
            base = np.ones(rows)
        given[name] = mutated(base, mutation, np.random.default_rng([seed, 2, number]))
    return given


def run_call(target: Target, seed: int, plan: Plan) -> tuple[str, str]:
    """("answer", "right" beside its twin, or "refused", ""), or one of `FAILURES` with what was seen."""
    try:
        given = arguments(target, seed, plan)
    except (TypeError, ValueError, OverflowError, AttributeError, ArithmeticError):
        return "skipped", ""  # the mutation itself makes no sense for this value
    return run_given(target, given, plan)


def run_given(target: Target, given: dict[str, Any], plan: Plan) -> tuple[str, str]:
    """The same for arguments that are there."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            with time_limit(LONGEST):
                found = target.call(**given)
        except TooLongError:
            return "too long", f"no answer within {LONGEST} seconds"
        except (CalipersError, NotFittedError) as error:
            return ("refused", "") if str(error).strip() else ("foreign", "an error without a sentence")
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            if target.name in ESTIMATORS and is_of_scikit_learn(error):
                return "refused", ""
            return "foreign", f"{type(error).__name__}: {str(error)[:160]}"
    leaked = [w for w in seen if not issubclass(w.category, CalipersWarning)]
    if target.name in ESTIMATORS:  # those of scikit-learn about the rows are part of its contract
        names = ("sklearn", "builtins.UserWarning")
        kinds = {id(w): f"{w.filename} {w.category.__module__}.{w.category.__name__}" for w in leaked}
        leaked = [w for w in leaked if not any(name in kinds[id(w)] for name in names)]
    if leaked:
        return "warning", f"{leaked[0].category.__name__}: {str(leaked[0].message)[:160]}"
    for estimate in estimates(found):
        if estimate.value is not None and math.isnan(estimate.value) and not estimate.reason:
            return "unexplained", f"{estimate.name} is NaN without a reason"
    twin = twin_value(target, given, plan)
    single = any(mutation == "float32" for _, mutation in plan)
    if wrong := differs(found, twin, digits=1e-4 if single else 1e-6):
        return "wrong", wrong
    return "answer" if twin is None else "right", ""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """An error when the block computes for longer, where the system has such a clock and this is the main thread.

    Seconds of the processor: a machine that is busy with other work is no fault.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def is_of_scikit_learn(error: Exception) -> bool:
    """Whether scikit-learn's own checks refused the rows: estimators keep its contract, also for errors."""
    places = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = ("calipers", "fuzz")
    return any("sklearn" in place for place in places) and not any(part in places[-1] for part in ours)


def estimates(found: Any) -> Iterator[Estimate]:
    """Every estimate in a result."""
    if isinstance(found, Estimate):
        yield found
    elif isinstance(found, (EstimateTable, Mapping)):
        for value in found.values():
            yield from estimates(value)
    elif hasattr(found, "estimates"):
        yield from estimates(found.estimates)


def shrink(target: Target, seed: int, plan: Plan, kind: str) -> Plan:
    """The fewest mutated arguments that fail in the same way."""
    for pair in plan:
        if len(plan) > 1 and run_call(target, seed, (pair,))[0] == kind:
            return (pair,)
    return plan


def fuzz_twin(target: Target, seed: int, tally: Tally) -> None:
    """One call on tricky rows beside its slow twin, into the tally; targets without a twin are left out."""
    if target.name not in TWINS:
        return
    seed = seed * 1000 + zlib.crc32(target.name.encode()) % 1000
    kind, seen = run_given(target, tricky_rows(target, seed), ())
    tally.outcomes[kind] += 1
    if kind in FAILURES:
        tally.failures.setdefault((target.name, seen[:40]), f"tricky rows of seed {seed}: {kind}: {seen}")


def fuzz_call(target: Target, seed: int, tally: Tally) -> None:
    """One call into the tally."""
    seed = seed * 1000 + zlib.crc32(target.name.encode()) % 1000  # another mutation for every target
    plan = plan_call(target, seed)
    kind, seen = run_call(target, seed, plan)
    tally.outcomes[kind] += 1
    if kind in FAILURES:
        smallest = shrink(target, seed, plan, kind)
        kind, seen = run_call(target, seed, smallest)
        what = ", ".join(f"{name} <- {mutation}" for name, mutation in smallest)
        tally.failures.setdefault((target.name, seen[:40]), f"seed {seed}: {what}: {kind}: {seen}")
