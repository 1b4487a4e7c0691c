import json
import shutil

import numpy as np
import pytest
from benchmarks.environments import pinned

from benchmarks import bars, instructions, page, profiles, readers, store
from benchmarks import run as runner
from tests.benchmarks.test_tables import row

TASKS = [task for _, task in runner.tasks("")]
# What is there or not does not grow.
ONE_SIZE = {"install size", "import of every room", "first p-value in a new interpreter"}
ANSWERS = {
    "l1": 0.09, "l2": 0.01, "kl": 0.05, "spread": [0.01, 0.01, 0.01], "median": 0.0375, "high": 0.05,
    "massart_over_ours": 12.0, "rademacher_over_ours": 8.0, "megabytes": 1.0, "packages": 3, "heavy": 0,
}  # fmt: skip


@pytest.fixture
def full_run():
    """Every task at every size: the peers take 1000 times our time, the limit four times as long."""
    made = store.Run("full")
    for task in TASKS:
        for size in task.sizes:
            roles = {"ours": 1e-3, "limit": 4e-3} | dict.fromkeys(task.peers, 1.0)
            made.replace(
                [
                    row(task.name, size, role, cpu, peak=0.1, agrees="right", answers=ANSWERS)
                    for role, cpu in roles.items()
                ]
            )
    verdict = {"verdict": "right", "answers": {}, "problem": ""}
    made.content["league"] = [{"trap": "t", "question": "q", "exact": {"x": 1}, "found": {"ours": verdict}}]
    return made


def test_task_names_are_unique_and_sizes_let_growth_be_read_off():
    assert len({task.name for task in TASKS}) == len(TASKS)
    for task in TASKS:
        assert list(task.sizes) == sorted(set(task.sizes))
        assert len(task.sizes) == 3 or task.name in ONE_SIZE, task.name


def test_every_peer_of_a_task_is_pinned():
    assert {peer for task in TASKS for peer in task.peers} <= set(pinned())


def test_every_bar_finds_its_task(full_run):
    unread = [bar.promise for bar, reading in bars.readings(full_run) if reading.met is None]
    assert all("GPU" in promise or "1e8 rows" in promise for promise in unread), unread


def test_every_bar_is_met_where_we_are_fast_and_every_named_test_exists(full_run):
    unmet = [
        (bar.promise, reading.figure) for bar, reading in bars.readings(full_run) if reading.met is False
    ]
    assert all("GPU" in promise or "1e8 rows" in promise for promise, _ in unmet), unmet


def test_a_slow_run_misses_its_bars(full_run):
    for m in full_run.measurements:
        if m["library"] == "ours":
            m["cpu"], m["wall"], m["peak_mb"] = 1e4, 1e4, 1e6
    missed = {bar.promise for bar, reading in bars.readings(full_run) if reading.met is False}
    assert "p-values 50x faster than crepes" in missed
    assert "worst slab under 200 MB" in missed
    assert "c_emp of 1e7 friendly scores in 0.35 of an argsort" in missed
    assert "100 000 x 20 x 10, six questions, under 30 s" in missed
    assert "a million rows under 4 GB" in missed
    assert "1000 trials x 1000 models in minutes" in missed


def test_a_clock_on_a_busy_machine_proves_nothing(full_run):
    audit = full_run.of("audit", "ours", 100_000)
    audit |= {"wall": 100.0, "cpu": 20.0, "load": 25.0}
    promise = "100 000 x 20 x 10, six questions, under 30 s"
    found = {bar.promise: reading for bar, reading in bars.readings(full_run)}[promise]
    assert found == readers.Reading("100.0 s by the clock, 20.0 CPU s; 25 processes wanted the cores", None)
    audit |= {"cpu": 40.0}
    assert {bar.promise: reading.met for bar, reading in bars.readings(full_run)}[promise] is False


def test_an_empty_run_claims_nothing():
    for bar, reading in bars.readings(store.Run("empty")):
        stored = "GPU" in bar.promise or "1e8 rows" in bar.promise
        assert reading.met is None or "test `" in reading.figure or stored, bar.promise


def test_a_wrong_answer_of_ours_is_an_unmet_bar(full_run):
    full_run.content["league"][0]["found"]["ours"]["verdict"] = "wrong"
    found = {bar.promise: reading for bar, reading in bars.readings(full_run)}
    assert found["right in every trap of the field"] == readers.Reading("right in 0 of 1 traps", met=False)


def test_a_named_test_that_does_not_exist_is_an_unmet_bar():
    assert (
        readers.held_by("statistical/test_conformal_promises.py", "test_of_nothing")(store.Run("x")).met
        is False
    )


def test_the_page_has_every_section_and_every_bar(full_run):
    full_run.content["versions"] = {"crepes": "0.9.1"}
    full_run.content["not_installed"] = {"puncc": "no wheel"}
    text = page.page(full_run)
    for title in (
        "Promises",
        "Ratios",
        "Who is wrong",
        "Above the limit",
        "Growth",
        "Traps",
        "Our own cost",
        "Instructions",
        "GPU arrays",
        "Many rows",
        "History",
    ):
        assert f"\n## {title}\n" in text
    assert all(bar.promise.replace("|", "/") in text for bar in bars.BARS)
    assert "crepes 0.9.1" in text
    assert "Did not install: puncc: no wheel." in text
    assert str(store.ROOT) not in text


def test_an_unmet_promise_is_followed_by_its_reason(full_run, monkeypatch):
    full_run.of("audit", "ours", 100_000)["wall"] = 100.0
    promise = "100 000 x 20 x 10, six questions, under 30 s"
    monkeypatch.setitem(page.REASONS, promise, "boosting takes 90 %")
    assert f"- {promise}: boosting takes 90 %" in page.page(full_run)


def test_profiles_belong_to_tasks():
    assert set(profiles.PROFILES) <= {task.name for task in TASKS}


def test_a_task_far_from_the_limit_or_behind_a_peer_is_listed_with_its_profile(full_run):
    assert profiles.far_tasks(full_run) == {}
    full_run.of("coverage", "ours", 10**6)["cpu"] = 10.0
    cells = profiles.far_cells(full_run)
    assert [row[0] for row in cells[1:]] == ["coverage"]
    assert cells[1][2:4] == ["2500x", "mapie 0.10x"]
    assert cells[1][4] == profiles.PROFILES["coverage"]


def test_reasons_belong_to_bars():
    assert set(page.REASONS) <= {bar.promise for bar in bars.BARS}


def test_the_stored_page_is_the_one_the_newest_run_gives():
    runs = store.history()
    if not runs:
        pytest.skip("no run is stored")
    same = page.PLACE.read_text(encoding="utf-8") == page.page(runs[-1])
    assert same, "docs/benchmarks.md is out of date: python3 dev.py bench --page"


def test_a_gpu_run_is_read_line_by_line(tmp_path, monkeypatch):
    line = {
        "job": "p-values, 20k",
        "ours_ms": 1.0,
        "bare_ms": 0.6,
        "over_bare": 1.67,
        "times_cpu": 900.0,
        "same": True,
    }
    (tmp_path / "gpu.json").write_text(
        json.dumps({"device": "G", "torch": "2", "date": "d", "rows": [line]}), encoding="utf-8"
    )
    monkeypatch.setattr(readers, "GPU", tmp_path / "gpu.json")
    assert readers.gpu_job("p-values")(store.Run("x")) == readers.Reading(
        "1.00 ms, 1.67x bare, 900x two cores", met=True
    )
    assert readers.gpu_job("p-values", most_over_bare=1.5)(store.Run("x")).met is False
    assert "| p-values, 20k | 1.00 ms | 0.60 ms | 1.67x | 900x | yes |" in page.gpu_part()


def test_a_run_over_large_files_is_read_per_pass(tmp_path, monkeypatch):
    one = {
        "task": "coverage",
        "rows": 10**8,
        "passes": 1,
        "scan_wall": 1.0,
        "wall": 1.5,
        "scan_cpu": 1.0,
        "cpu": 1.8,
        "peak_gb": 0.5,
    }
    (tmp_path / "large_files.json").write_text(
        json.dumps([one, one | {"task": "T-CV", "passes": 2, "cpu": 3.0, "wall": 4.5}]), encoding="utf-8"
    )
    monkeypatch.setattr(readers, "LARGE_FILES", tmp_path / "large_files.json")
    assert readers.large_file_scans(single=True)(store.Run("x")) == readers.Reading(
        "coverage 1.5x (CPU 1.8x)", met=True
    )
    assert readers.large_file_scans(single=False)(store.Run("x")) == readers.Reading(
        "T-CV 4.5x in 2 passes (CPU 3.0x)", met=False
    )
    assert readers.large_file_memory(store.Run("x")) == readers.Reading("0.50 GB (coverage)", met=True)
    assert "| T-CV | 100,000,000 | 2 | 4.50x | 3.00x | 0.50 GB |" in page.large_file_part()


def test_a_kernel_with_more_instructions_is_called_slower():
    rows, slower = instructions.compare(
        {"a": 106, "b": 104, "c": None, "d": 5}, {"a": 100, "b": 100, "c": 100}
    )
    assert slower == ["a"]
    assert rows[1] == ["a", "106", "100", "+6.0%"]
    assert rows[3][1] == "could not run"


def test_without_valgrind_the_counts_say_that_they_did_not_run(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert instructions.main() == 2
    assert "did not run: valgrind is missing" in capsys.readouterr().err


@pytest.mark.parametrize("name", instructions.KERNELS)
def test_every_counted_kernel_runs(name):
    prepare, call = instructions.KERNELS[name]
    names = {"np": np, "rng": np.random.default_rng(0)}
    exec(prepare, names)  # noqa: S102 - the code is what valgrind runs
    # A call that gives nothing back would be counted as a fast kernel.
    assert eval(call, names) is not None  # noqa: S307
