"""A short fixed run of the fuzz; the long one is ``python3 dev.py fuzz``."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.metrics import coverage_gap
from tests.fuzz.calls import Tally, Target, fuzz_call, run_call, shrink
from tests.fuzz.files import fuzz_file
from tests.fuzz.killed_runs import kill_many
from tests.fuzz.targets import LEFT_OUT, SLOW, public_callables, targets

TARGETS = list(targets())
SEEDS, FILES, KILLS = range(4), range(60), range(6)


def test_every_public_callable_is_fuzzed_or_left_out_with_a_reason() -> None:
    fuzzed = {target.name for target in TARGETS}
    assert public_callables() - fuzzed - set(LEFT_OUT) == set()
    assert set(LEFT_OUT) - public_callables() == set()
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_unmutated_call_has_an_answer(target: Target) -> None:
    assert run_call(target, 0, ()) == ("answer", "")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_calls_are_answered_or_refused(target: Target) -> None:
    tally = Tally()
    for seed in SEEDS:
        if target.name not in SLOW or seed < 1:
            fuzz_call(target, seed, tally)
    assert not tally.failures, tally.report()


def test_malformed_files_are_answered_or_refused(tmp_path: Path) -> None:
    tally = Tally()
    for seed in FILES:
        fuzz_file(tmp_path, seed, tally)
    assert not tally.failures, tally.report()
    assert tally.outcomes["exit 2"] > 10


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_runs_leave_nothing_mixed_and_are_completed(tmp_path: Path) -> None:
    tally = Tally()
    kill_many(tmp_path, KILLS, tally)
    assert not tally.failures, tally.report()
    assert sum(tally.outcomes.values()) == len(KILLS)


def broken(covered: object, groups: object) -> object:
    if isinstance(groups, list):
        raise KeyError("planted")
    return coverage_gap(covered, groups, alpha=0.1)


def test_a_planted_fault_is_found_and_shrunk() -> None:
    target = Target(
        "planted", broken, lambda rng: {"covered": rng.random(9) < 0.9, "groups": np.arange(9) % 2}
    )
    plan = (("covered", "list"), ("groups", "list"))
    assert run_call(target, 0, plan)[0] == "foreign"
    assert shrink(target, 0, plan, "foreign") == (("groups", "list"),)
    assert run_call(target, 0, plan[:1]) == ("answer", "")


def test_an_error_of_ours_is_a_refusal_and_a_nan_needs_a_reason() -> None:
    from calipers.results import Estimate

    def refuse() -> None:
        raise InputError("no")

    assert run_call(Target("refuse", refuse, lambda rng: {}), 0, ())[0] == "refused"
    nan = Target("nan", lambda: Estimate(name="x", value=float("nan")), lambda rng: {})
    assert run_call(nan, 0, ())[0] == "unexplained"
