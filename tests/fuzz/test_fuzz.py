"""A short fixed run of the fuzz; the long one is ``python3 dev.py fuzz``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.metrics import coverage_gap, metric_entries
from tests.fuzz.calls import Plan, Tally, Target, fuzz_call, fuzz_twin, run_call, shrink
from tests.fuzz.files import fuzz_file
from tests.fuzz.hostile_requests import fuzz_request, local_page
from tests.fuzz.killed_runs import kill_many
from tests.fuzz.metric_twins import WITHOUT
from tests.fuzz.targets import LEFT_OUT, SLOW, public_callables, targets
from tests.fuzz.twins import TWINS

TARGETS = list(targets())
SEEDS, TWIN_SEEDS, FILES, KILLS, REQUESTS = range(4), range(12), range(60), range(6), range(80)
# Their twins speak of fewer values, more events, or scores off 0 and 1, than the example has.
SPECIAL = {"calibration_slope", "feature_stratified_coverage", "multicalibration_error"}


def test_every_public_callable_is_fuzzed_or_left_out_with_a_reason() -> None:
    fuzzed = {target.name for target in TARGETS}
    assert public_callables() - fuzzed - set(LEFT_OUT) == set()
    assert set(LEFT_OUT) - public_callables() == set()
    assert all(LEFT_OUT.values())
    elsewhere = [Path(reason) for reason in LEFT_OUT.values() if reason.startswith("tests/")]
    assert all(place.exists() for place in elsewhere)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_unmutated_call_has_an_answer(target: Target) -> None:
    expected = "right" if target.name in TWINS.keys() - SPECIAL else "answer"
    assert run_call(target, 0, ()) == (expected, "")


def test_every_metric_has_a_slow_twin_or_a_reason() -> None:
    measured = {entry.name for entry in metric_entries()} - set(LEFT_OUT)
    assert measured - set(TWINS) == set(WITHOUT)
    named = [word.split("; ")[-1].split(" ")[0] for word in WITHOUT.values()]
    assert all(Path(name).exists() for name in named)


@pytest.mark.parametrize("target", [t for t in TARGETS if t.name in TWINS], ids=lambda target: target.name)
def test_tricky_rows_read_as_their_slow_twin(target: Target) -> None:
    tally = Tally()
    for seed in TWIN_SEEDS:
        fuzz_twin(target, seed, tally)
    assert not tally.failures, tally.report()
    assert tally.outcomes["right"]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_calls_are_answered_or_refused(target: Target) -> None:
    tally = Tally()
    for seed in SEEDS:
        if target.name not in SLOW or seed < 1:
            fuzz_call(target, seed, tally)
    assert not tally.failures, tally.report()


# Found by long runs and mended: (target, seed, mutations).
MENDED = (
    ("audit", 500940801, (("bound", "scalar 31"),)),
    ("audit of classes", 501040458, (("sample_rows", "scalar 26"),)),
    ("audit of classes", 500980458, (("bound", "scalar 28"),)),
    ("average_p_value", 500139769, (("p_values", "ragged"),)),
    ("brier_decomposition", 501089182, (("pos_label", "scalar 22"), ("y_true", "huge"))),
    ("calibration_slope", 500398969, (("probabilities", "tiny"),)),
    ("change_over_time", 500680860, (("time", "no columns"),)),
    ("audit of classes", 700040458, (("engine", "scalar 28"),)),
    ("change_over_time", 850433860, (("time", "too large"),)),
    ("estimate_shift_weights", 500040986, (("X_old", "too large"),)),
)


@pytest.mark.parametrize(("name", "seed", "plan"), MENDED, ids=lambda value: str(value)[:40])
def test_what_long_runs_found_stays_mended(name: str, seed: int, plan: Plan) -> None:
    target = next(target for target in TARGETS if target.name == name)
    kind, seen = run_call(target, seed, plan)
    assert kind in {"answer", "right", "refused"}, seen


def test_malformed_files_are_answered_or_refused(tmp_path: Path) -> None:
    tally = Tally()
    for seed in FILES:
        fuzz_file(tmp_path, seed, tally)
    assert not tally.failures, tally.report()
    assert tally.outcomes["exit 2"] > 10


@pytest.mark.filterwarnings("ignore:Using `httpx` with")
def test_hostile_requests_are_answered_or_refused(tmp_path: Path) -> None:
    pytest.importorskip("starlette.testclient", reason="the local page needs calipers[serve]")
    tally = Tally()
    with local_page(tmp_path) as client:
        for seed in REQUESTS:
            fuzz_request(client, seed, tally)
    assert not tally.failures, tally.report()
    assert tally.outcomes["4xx"] > 20


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


def test_an_answer_beside_its_twin_is_found_wrong() -> None:
    def off_by_little(covered: object, groups: object, alpha: float) -> object:
        return replace(coverage_gap(covered, groups, alpha=alpha), value=0.1234)

    make = next(target.make for target in TARGETS if target.name == "coverage_gap")
    kind, seen = run_call(Target("coverage_gap", off_by_little, make), 0, (("covered", "list"),))
    assert kind == "wrong"
    assert seen.startswith("value: 0.1234, its slow twin gives")


def test_an_error_of_ours_is_a_refusal_and_a_nan_needs_a_reason() -> None:
    from calipers.results import Estimate

    def refuse() -> None:
        raise InputError("no")

    assert run_call(Target("refuse", refuse, lambda rng: {}), 0, ())[0] == "refused"
    nan = Target("nan", lambda: Estimate(name="x", value=float("nan")), lambda rng: {})
    assert run_call(nan, 0, ())[0] == "unexplained"
