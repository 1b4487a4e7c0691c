import json
import math
import platform

import pytest
from benchmarks.picture import draw_history, fastest_peer, limit_ratio

from benchmarks import store, summary


def row(task, size, library, cpu, peak=10.0, agrees="", **more):
    base = {"task": task, "size": size, "library": library, "cpu": cpu, "wall": 2 * cpu, "peak_mb": peak}
    return (
        base
        | {"agrees": agrees, "problem": "", "answers": {}, "exact": {}, "runs": [], "repetitions": 1}
        | more
    )


@pytest.fixture
def run():
    made = store.Run("toy")
    made.replace([row("t", n, "ours", 1e-3 * n, peak=2.0 * n) for n in (10, 100, 1000)])
    made.replace(
        [
            row(
                "t",
                n,
                "peer",
                1e-5 * n**2,
                peak=8.0 * n,
                agrees="wrong",
                answers={"x": 2.0},
                exact={"x": 1.0},
            )
            for n in (10, 100, 1000)
        ]
    )
    made.replace([row("t", n, "limit", 5e-4 * n) for n in (10, 100, 1000)])
    return made


def test_a_ratio_is_theirs_over_ours(run):
    found = {(r["size"], r["library"]): r for r in summary.ratio_rows(run.measurements)}
    assert found[1000, "peer"]["cpu_ratio"] == pytest.approx(10.0)
    assert found[1000, "peer"]["wall_ratio"] == pytest.approx(10.0)
    assert found[1000, "peer"]["memory_ratio"] == pytest.approx(4.0)
    assert summary.of_limit(run, "t") == pytest.approx(2.0)
    assert math.isnan(summary.of_limit(run, "unknown"))


def test_exponents_of_power_laws_are_their_powers(run):
    assert summary.exponents(run.measurements, "cpu")["t", "ours"] == pytest.approx(1.0)
    assert summary.exponents(run.measurements, "cpu")["t", "peer"] == pytest.approx(2.0)
    assert summary.exponents(run.measurements, "peak_mb")["t", "limit"] == pytest.approx(0.0)


def test_unknown_costs_are_blank_not_zero():
    cells = summary.ratio_cells([row("t", 1, "ours", 1.0), row("t", 1, "peer", 1.0) | {"cpu": None}])
    assert cells[1][4] == ""
    assert summary.seconds(None) == ""
    assert math.isnan(summary.ratio(1.0, 0.0))


def test_wrong_answers_are_shown_beside_the_exact_ones(run):
    assert summary.wrong_cells(run.measurements)[1] == ["t", "10", "peer", "wrong", "x 2", "x 1"]


def test_a_long_wrong_answer_says_how_far_it_is_off():
    m = row("t", 10, "peer", 1.0, agrees="wrong", off_by=0.25)
    assert summary.wrong_cells([m])[1] == ["t", "10", "peer", "wrong", "off by up to 0.25", "every value"]


def test_growth_names_sizes_and_both_exponents(run):
    cells = summary.growth_cells(run.measurements)
    assert ["t", "10 100 1,000", "peer", "2.00", "1.00"] in cells


def test_a_pipe_inside_a_cell_does_not_make_a_column():
    assert summary.markdown_table([["a"], ["x|y"]]).splitlines()[2] == "| x/y |"


def test_text_columns_are_as_wide_as_their_widest_cell():
    assert summary.text_table([["a", "b"], ["long", "c"]]).splitlines()[1] == "----  -"


def test_a_quick_run_is_read_in_units_of_the_limit(run):
    before = store.Run("before")
    before.replace([row("t", 10, "ours", 4.0), row("t", 10, "limit", 1.0)])
    cells = summary.change_cells(run, before)
    assert cells[1][3:5] == ["2.00x", "4.00x"]
    assert summary.change_cells(run, None)[1][4] == ""


def test_a_run_comes_back_from_its_file_without_nan(run, tmp_path):
    run.replace([row("t", 10, "ours", math.nan)])
    path = run.save(tmp_path)
    assert "NaN" not in path.read_text(encoding="utf-8")
    again = store.load("toy", tmp_path)
    assert again.of("t", "ours", 10)["cpu"] is None
    assert len(again.measurements) == 9
    assert [r.name for r in store.history(tmp_path)] == ["toy"]


def test_a_new_measurement_replaces_the_old_one(run):
    run.replace([row("t", 10, "ours", 7.0)])
    assert run.of("t", "ours", 10)["cpu"] == 7.0
    assert len(run.measurements) == 9
    assert run.has("t", 10, {"ours", "peer", "limit"})
    assert not run.has("t", 10, {"ours", "other"})
    assert run.of("t")["size"] == 1000
    assert run.of("t", "other") is None


def test_a_stored_run_names_neither_computer_nor_folder(run, tmp_path):
    text = run.save(tmp_path).read_text(encoding="utf-8")
    assert platform.node() not in text or not platform.node()
    assert str(store.ROOT) not in text
    assert set(json.loads(text)["machine"]) == {"processor", "cores", "memory_gib", "system", "python"}


def test_other_files_of_the_history_are_no_runs(tmp_path):
    (tmp_path / "instructions.json").write_text('{"counts": {}}', encoding="utf-8")
    (tmp_path / "large_files.json").write_text('[{"task": "coverage"}]', encoding="utf-8")
    assert store.history(tmp_path) == []


def test_the_picture_shows_the_fastest_peer_and_the_limit(run, tmp_path):
    pytest.importorskip("matplotlib")
    assert math.isnan(fastest_peer(run, "t"))  # the only peer is wrong
    run.of("t", "peer")["agrees"] = "right"
    assert fastest_peer(run, "t") == pytest.approx(10.0)
    assert limit_ratio(run, "t") == pytest.approx(2.0)
    assert math.isnan(fastest_peer(run, "unknown"))
    draw_history([run], tmp_path / "images" / "history.png")
    assert (tmp_path / "images" / "history.png").stat().st_size > 10_000


def test_a_run_is_arranged_by_task_and_size_however_it_was_measured(run):
    run.replace([row("first", 5, "ours", 1.0), row("gone", 1, "ours", 1.0)])
    run.measurements.reverse()
    run.arrange(["first", "t"])
    names = [m["task"] for m in run.measurements]
    assert names == ["first", *["t"] * 9, "gone"]
    assert [m["size"] for m in run.measurements[1:10]] == [10] * 3 + [100] * 3 + [1000] * 3


def test_installed_sizes_have_their_own_table_and_no_ratio(run):
    sizes = {"ours": 200.0, "small": 30.4}
    run.replace(
        [row("install size", 1, k, 0.1, answers={"megabytes": v, "packages": 7}) for k, v in sizes.items()]
    )
    assert summary.install_cells(run.measurements)[1:] == [
        ["small", "30 MB", "7"],
        ["Calipers", "200 MB", "7"],
    ]
    assert all(r["task"] == "t" for r in summary.ratio_rows(run.measurements))
    assert all(cells[0] != "install size" for cells in summary.own_cells(run.measurements))
