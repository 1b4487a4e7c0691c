import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.environments import Environment, install_steps, pinned, reason
from benchmarks.measure import Measurement, Worker, close, measure, short, stored_inputs, verdict
from benchmarks.worker import descendants_seconds

from tests.benchmarks import toy_tasks

MODULE = "tests.benchmarks.toy_tasks"
HERE = Path(sys.executable)
SUM, NO_TRUTH = toy_tasks.TASKS


@pytest.fixture
def worker():
    started = Worker(HERE)
    yield started
    started.close()


def test_a_worker_takes_runs_and_saves_one_task_after_another(worker, tmp_path):
    for size, expected in ((10, 45.0), (100, 4950.0)):
        with stored_inputs(SUM, size) as inputs:
            assert worker.take(MODULE, "sum", "ours", inputs) == {"taken": "sum"}
            found = worker.ask("run")
            assert found["cpu"] >= 0
            assert found["wall"] > 0
            assert float(worker.answers(tmp_path / "a.npz")["total"]) == expected


def test_an_exception_in_a_library_is_an_answer_and_the_worker_lives_on(worker):
    with stored_inputs(SUM, 10) as inputs:
        worker.take(MODULE, "sum", "failing", inputs)
        assert worker.ask("run") == {"error": "RuntimeError: cannot add 10 numbers"}
        worker.take(MODULE, "sum", "ours", inputs)
        assert "cpu" in worker.ask("run")


def test_running_before_a_task_is_taken_is_an_error(worker):
    assert "no task was taken" in worker.ask("run")["error"]


def test_a_library_that_ends_its_process_is_reported(worker):
    with stored_inputs(SUM, 10) as inputs:
        worker.take(MODULE, "sum", "dying", inputs)
        assert worker.ask("run") == {"error": "the process ended (code 3)"}


def test_every_library_gets_its_time_and_its_verdict():
    peers = {name: Environment(name, HERE) for name in ("wrong", "failing", "dying", "other")}
    peers["absent"] = Environment("absent", None, "no matching distribution")
    found = {m.library: m for m in measure(MODULE, SUM, 100, peers, 2)}
    assert list(found) == ["ours", "limit", "wrong", "failing", "dying", "other", "absent"]
    assert {name: m.agrees for name, m in found.items()} == {
        "ours": "right", "limit": "", "wrong": "wrong", "failing": "", "dying": "", "other": "another number", "absent": "",
    }  # fmt: skip
    assert found["absent"].problem == "did not install: no matching distribution"
    assert found["failing"].problem == "RuntimeError: cannot add 100 numbers"
    assert found["ours"].repetitions == 2
    assert math.isfinite(found["ours"].cpu)
    assert found["wrong"].answers == {"total": 4951.0}
    assert found["wrong"].exact == {"total": 4950.0}
    assert found["wrong"].off_by == 1.0
    assert math.isnan(found["ours"].off_by)


def test_without_a_truth_answers_are_compared_with_ours():
    found = {
        m.library: m.agrees for m in measure(MODULE, NO_TRUTH, 5, {"wrong": Environment("wrong", HERE)}, 1)
    }
    assert found == {"ours": "", "wrong": "differs"}


def test_verdicts_name_the_five_cases():
    one, two = {"total": np.array(1.0)}, {"total": np.array(2.0)}
    assert verdict(SUM, one, one, one, "peer") == "right"
    assert verdict(SUM, one, two, one, "peer") == "wrong"
    assert verdict(NO_TRUTH, one, one, None, "peer") == "same"
    assert verdict(NO_TRUTH, one, two, None, "peer") == "differs"
    assert verdict(NO_TRUTH, one, {"mean": np.array(1.0)}, None, "peer") == "another number"
    assert verdict(NO_TRUTH, one, one, None, "ours") == ""


def test_what_cannot_be_right_or_wrong_gets_no_verdict():
    unjudged = replace(NO_TRUTH, judged=False)
    assert verdict(unjudged, {"total": np.array(1.0)}, {"total": np.array(2.0)}, None, "peer") == ""


def test_answers_of_another_shape_are_not_close():
    assert not close({"p": np.zeros(3)}, {"p": np.zeros((3, 1))})
    assert close({"p": np.array([1.0, np.nan])}, {"p": np.array([1.0 + 1e-9, np.nan])})


def test_long_answers_are_not_kept():
    assert short({"few": np.arange(3), "many": np.arange(9), "yes": True}) == {"few": [0, 1, 2], "yes": True}


def test_the_best_run_counts_and_the_largest_memory():
    m = Measurement("t", 1, "ours")
    for cpu, peak in ((2.0, 1.0), (1.0, 5.0), (3.0, 2.0)):
        m.record({"cpu": cpu, "wall": cpu + 1, "peak_mb": peak})
    assert (m.cpu, m.wall, m.peak_mb, m.runs) == (1.0, 2.0, 5.0, [2.0, 1.0, 3.0])


def test_every_peer_is_pinned_to_a_version_or_lives_with_one_that_is():
    for name, entry in pinned().items():
        if "environment" in entry:
            assert entry["environment"] in pinned(), name
            continue
        pins = [r for key in ("first", "requirements", "without_dependencies") for r in entry.get(key, ())]
        assert any("==" in r and r.lower().startswith(name) for r in pins), name
        assert install_steps(entry)[0][:3] == ["-m", "pip", "install"]


def test_the_reason_of_a_failed_installation_is_the_error_line():
    class Done:
        stderr = "WARNING: x\nERROR: No matching distribution found for y==1\n"
        stdout, returncode = "", 1

    assert reason(Done) == "ERROR: No matching distribution found for y==1"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are listed by Linux only")
def test_the_seconds_of_a_child_at_work_are_counted_before_it_ends():
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    others = descendants_seconds("self")  # a browser or a cluster that an earlier test has left running
    with subprocess.Popen(
        [HERE, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "done\n"
        assert 0.25 <= descendants_seconds("self") - others < 3.0
        child.stdin.write("\n")
        child.stdin.close()
    assert descendants_seconds(str(child.pid)) == 0.0
