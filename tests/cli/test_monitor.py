"""``calipers monitor``: rows as they arrive, each counted once, also when the program is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from calipers.cli import main
from calipers.performance import PromiseMonitor, RiskMonitor

KEPT = (np.random.default_rng(0).random(1500) < 0.9).astype(int)
BROKEN = (np.random.default_rng(1).random(600) < 0.7).astype(int)


def last_line(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def write_csv(path, covered):
    path.write_text("covered\n" + "".join(f"{z}\n" for z in covered))


def test_a_kept_promise_ends_with_zero_and_a_broken_one_with_one(tmp_path, capsys):
    write_csv(tmp_path / "rows.csv", KEPT)
    assert main(["monitor", str(tmp_path / "rows.csv"), "--alpha", "0.1"]) == 0
    assert capsys.readouterr().out == "no alarm in 1500 rows (false-alarm rate 0.05)\n"
    write_csv(tmp_path / "rows.csv", [*KEPT, *BROKEN])
    assert main(["monitor", str(tmp_path / "rows.csv"), "--alpha", "0.1"]) == 1
    alarm, summary = capsys.readouterr().out.splitlines()
    ours = PromiseMonitor(alpha=0.1).update([*KEPT, *BROKEN])
    assert alarm == f"ALARM: {ours}; since about row {ours.result().details['changed_at']}"
    assert summary == str(ours)


def test_json_lines_tell_where_it_stands(tmp_path, capsys):
    write_csv(tmp_path / "rows.csv", KEPT)
    assert main(["monitor", str(tmp_path / "rows.csv"), "--alpha", "0.1", "--json"]) == 0
    found, ours = last_line(capsys), PromiseMonitor(alpha=0.1).update(KEPT)
    assert found["e_value"] == ours.e_value_
    assert (found["rows"], found["alarm"], found["alarm_at"]) == (1500, False, None)
    assert found["mean_low"] < found["mean"] == KEPT.mean() < found["mean_high"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_growing_file_is_read_on_where_it_was_left(kind, tmp_path, capsys):
    file, state = tmp_path / f"rows.{kind}", tmp_path / "state.json"
    words = ["monitor", str(file), "--alpha", "0.1", "--state", str(state), "--json"]
    lines = [f"{z}\n" if kind == "csv" else json.dumps({"covered": bool(z)}) + "\n" for z in KEPT]
    file.write_text("covered\n" if kind == "csv" else "")
    with file.open("a") as stream:
        # The last line of the first part is not whole yet.
        stream.write("".join(lines[:400]) + lines[400][:-1])
    assert main(words) == 0
    assert last_line(capsys)["rows"] == 400
    with file.open("a") as stream:
        stream.write("\n" + "".join(lines[401:]))
    assert main(words) == 0
    found = last_line(capsys)
    assert found["rows"] == 1500
    assert found["e_value"] == PromiseMonitor(alpha=0.1).update(KEPT).e_value_
    assert main(words) == 0
    assert capsys.readouterr().out == ""


def test_a_folder_of_daily_files_is_read_in_order(tmp_path, capsys):
    folder, state = tmp_path / "days", tmp_path / "state.json"
    folder.mkdir()
    words = ["monitor", str(folder), "--alpha", "0.1", "--state", str(state), "--json"]
    write_csv(folder / "2026-01-01.csv", KEPT[:300])
    (folder / "notes.txt").write_text("not rows")
    assert main(words) == 0
    write_csv(folder / "2026-01-02.csv", KEPT[300:])
    write_csv(folder / "2026-01-03.csv", BROKEN)
    assert main(words) == 1
    ours = PromiseMonitor(alpha=0.1).update([*KEPT, *BROKEN])
    found = last_line(capsys)
    assert (found["rows"], found["e_value"], found["alarm_at"]) == (2100, ours.e_value_, ours.alarm_at_)


def program(*words, **options):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "calipers", "monitor", *words], env=environment, **options)


def test_lines_of_standard_input(tmp_path):
    text = "covered,promised\n" + "".join(f"{z},0.9\n" for z in BROKEN)
    process = program("-", "--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(text.rstrip("\n"))
    found = json.loads(out.splitlines()[-1])
    assert process.returncode == 1
    assert found["rows"] == BROKEN.size
    assert found["e_value"] == PromiseMonitor().update(BROKEN, 0.9).e_value_


def rows_counted(state):
    return PromiseMonitor.from_dict(json.loads(state.read_text())["monitor"]).n_rows_ if state.exists() else 0


def wait_for_more(state, before):
    end = time.monotonic() + 60
    while rows_counted(state) <= before and time.monotonic() < end:
        time.sleep(0.02)
    return rows_counted(state)


def test_killed_at_any_moment_no_row_is_counted_twice_and_none_is_lost(tmp_path, capsys):
    file, state = tmp_path / "rows.csv", tmp_path / "state.json"
    file.write_text("covered\n")
    words = [str(file), "--alpha", "0.1", "--state", str(state), "--json"]
    rng, rows = np.random.default_rng(2), [*KEPT, *BROKEN]
    for part in np.array_split(rows, 4):
        before = rows_counted(state)
        process = program(*words, "--follow", "0.0001", stdout=subprocess.DEVNULL)
        for few in np.array_split(part, 60):
            with file.open("a") as stream:
                stream.write("".join(f"{z}\n" for z in few))
            time.sleep(0.002)
        wait_for_more(state, before)  # it has started, and is killed somewhere in its work
        time.sleep(float(rng.uniform(0.0, 0.02)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert before < rows_counted(state)
    assert main(["monitor", *words]) == 1
    capsys.readouterr()
    stored = PromiseMonitor.from_dict(json.loads(state.read_text())["monitor"])
    assert stored.to_dict() == PromiseMonitor(alpha=0.1).update(rows).to_dict()


def test_intervals_and_probabilities_say_what_they_promise(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y, half = rng.normal(size=800), np.full(800, 1.6449)
    pl.DataFrame({"y_true": y, "lower": -half, "upper": half}).write_csv(tmp_path / "intervals.csv")
    assert main(["monitor", str(tmp_path / "intervals.csv"), "--alpha", "0.1", "--json"]) == 0
    assert last_line(capsys)["e_value"] == PromiseMonitor(alpha=0.1).update(np.abs(y) <= half).e_value_
    P = rng.dirichlet([1, 1, 1], 800)
    labels = np.array(["ant", "bee", "cat"])[(P.cumsum(axis=1) < rng.random((800, 1))).sum(axis=1)]
    table = {"y_true": labels} | {f"p_{name}": P[:, k] for k, name in enumerate(["ant", "bee", "cat"])}
    pl.DataFrame(table).write_csv(tmp_path / "labels.csv")
    assert main(["monitor", str(tmp_path / "labels.csv"), "--side", "both", "--json"]) == 0
    right = np.array(["ant", "bee", "cat"])[P.argmax(axis=1)] == labels
    ours = PromiseMonitor(side="both").update(right, P.max(axis=1)).e_value_
    assert last_line(capsys)["e_value"] == pytest.approx(ours, rel=1e-9)
    codes = np.searchsorted(["ant", "bee", "cat"], labels)
    table = {"y_true": codes.astype(float)} | {f"p_{k}": P[:, k] for k in range(3)}
    pl.DataFrame(table).write_csv(tmp_path / "codes.csv")
    assert main(["monitor", str(tmp_path / "codes.csv"), "--side", "both", "--json"]) == 0
    assert last_line(capsys)["e_value"] == pytest.approx(ours, rel=1e-9)


def test_a_mean_loss_is_watched_against_its_bound(tmp_path, capsys):
    losses = np.random.default_rng(0).uniform(0, 4, 500)
    pl.DataFrame({"loss": losses}).write_csv(tmp_path / "rows.csv")
    words = ["monitor", str(tmp_path / "rows.csv"), "--bound", "1.5", "--loss-range", "0,4", "--json"]
    assert main(words) == 1
    ours = RiskMonitor(bound=1.5, loss_range=(0, 4)).update(losses)
    assert last_line(capsys)["alarm_at"] == ours.alarm_at_


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("covered\n1\n", [], "the promise is missing"),
        ("x\n1\n", ["--alpha", "0.1"], "rows need the columns covered"),
        (
            "covered\n1\nmaybe\n",
            ["--alpha", "0.1"],
            "column 'covered' has a value that is missing or no number",
        ),
        ("covered\n1\n", ["--bound", "0.1"], "--bound needs a column loss, got covered"),
        ("covered\n1\n", ["--bound", "0.1", "--alpha", "0.1"], "leave out --alpha and --n-calibration"),
        ("loss\n1\n", ["--bound", "0.1", "--loss-range", "1"], "--loss-range must be two numbers"),
    ],
)
def test_rows_that_make_no_sense_are_bad_input(text, words, message, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(text)
    assert main(["monitor", str(tmp_path / "rows.csv"), *words]) == 2
    assert message in capsys.readouterr().err


def test_bad_rows_are_named_by_file_and_line(tmp_path, capsys):
    write_csv(tmp_path / "1.csv", KEPT[:30])
    second, state = tmp_path / "2.csv", tmp_path / "state.json"
    write_csv(second, KEPT[:10])
    words = ["monitor", str(tmp_path), "--alpha", "0.1", "--state", str(state)]
    assert main(words) == 0
    with second.open("a") as stream:
        stream.write("1\n?\n")
    assert main(words) == 2
    assert f"{second}, row 0 being line 12: column 'covered'" in (found := capsys.readouterr().err)
    assert "'?' at row 1" in found


def test_a_last_line_without_end_counts_once_a_later_file_has_been_written(tmp_path, capsys):
    first, second, state = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "state.json"
    second.write_text("covered\n1\n")
    first.write_text("covered\n1\n0")  # written last: its last line may not be whole yet
    os.utime(first, ns=(2_000, 2_000))
    os.utime(second, ns=(1_000, 1_000))
    words = ["monitor", str(tmp_path), "--alpha", "0.1", "--state", str(state), "--json"]
    assert main(words) == 0
    assert last_line(capsys)["rows"] == 2
    os.utime(second, ns=(3_000, 3_000))
    main(words)
    assert last_line(capsys)["rows"] == 3
    first.write_text("covered\n1\n0\n1\n")  # the end of the line, and a row
    main(words)
    assert last_line(capsys)["rows"] == 4


def test_a_line_that_goes_on_after_it_was_counted_is_refused(tmp_path, capsys):
    first, second, state = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "state.json"
    first.write_text("covered\n1\n0")
    second.write_text("covered\n1\n")
    os.utime(first, ns=(1_000, 1_000))
    words = ["monitor", str(tmp_path), "--alpha", "0.1", "--state", str(state)]
    assert main(words) == 0
    first.write_text("covered\n1\n0.5\n")
    assert main(words) == 2
    assert f"{first} goes on in the middle of a line that was counted" in capsys.readouterr().err


def test_a_state_of_other_options_or_another_file_is_refused(tmp_path, capsys):
    file, state = tmp_path / "rows.csv", tmp_path / "state.json"
    write_csv(file, KEPT)
    words = ["monitor", str(file), "--state", str(state)]
    assert main([*words, "--alpha", "0.1"]) == 0
    assert main([*words, "--alpha", "0.2"]) == 2
    assert "--state holds a PromiseMonitor with" in capsys.readouterr().err
    write_csv(file, KEPT[:10])
    assert main([*words, "--alpha", "0.1"]) == 2
    assert "has become shorter than what was read of it" in capsys.readouterr().err
    state.write_text("{}")
    assert main([*words, "--alpha", "0.1"]) == 2
    assert "is not a stored monitor of this version" in capsys.readouterr().err
    assert main(["monitor", str(tmp_path / "rows.parquet"), "--alpha", "0.1"]) == 2
    assert main(["monitor", str(tmp_path / "none.csv"), "--alpha", "0.1"]) == 2


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_columns_with_other_names_are_named_by_options(ending, tmp_path, capsys):
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {"price": rng.normal(size=800), "low": -1.2, "high": 1.2, "lower": 5.0, "site": ["a", "b"] * 400}
    )
    file = tmp_path / f"rows.{ending}"
    table.write_csv(file) if ending == "csv" else table.write_ndjson(file)
    words = ["--alpha", "0.1", "--y", "price", "--lower", "low", "--upper", "high", "--json"]
    assert main(["monitor", str(file), *words]) == 1
    covered = np.abs(table["price"].to_numpy()) <= 1.2
    assert last_line(capsys)["e_value"] == PromiseMonitor(alpha=0.1).update(covered).e_value_
    assert main(["monitor", str(file), *words, "--group", "site"]) == 1
    assert set(last_line(capsys)["groups"]) == {"a", "b"}


def test_probabilities_of_other_names_need_a_star(tmp_path, capsys):
    rng = np.random.default_rng(4)
    stated = rng.random(900)
    happened = (rng.random(900) < stated).astype(int)
    table = pl.DataFrame({"churned": happened, "score_1": stated, "score_0": 1 - stated})
    table.write_csv(tmp_path / "rows.csv")
    words = ["monitor", str(tmp_path / "rows.csv"), "--y", "churned", "--side", "both", "--json"]
    assert main([*words, "--proba", "score_*"]) == 0
    assert last_line(capsys)["mean"] == np.mean((stated >= 0.5) == happened)
    assert main([*words, "--proba", "score_1"]) == 2
    assert "--proba must have a star" in capsys.readouterr().err


def test_a_missing_promise_is_asked_for_by_the_option(tmp_path, capsys):
    write_csv(tmp_path / "rows.csv", KEPT)
    assert main(["monitor", str(tmp_path / "rows.csv")]) == 2
    assert "give --alpha (0.1 promises 90 %), or a column promised." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("01", "02"), ("01", "02")),
        (("0", "1"), ("0.0", "1.0")),
        (("True", "False"), ("true", "false")),
        (("1", "01"), ("1", "01")),
        (("a", "b"), ("a", " b")),
    ],
)
@pytest.mark.parametrize("piecewise", [False, True])
def test_labels_are_those_of_the_columns(names, labels, piecewise, tmp_path, capsys):
    file = tmp_path / "rows.csv"
    lines = [f"{labels[0]},0.8,0.2\n", f"{labels[1]},0.3,0.7\n", f"{labels[1]},0.6,0.4\n"]
    file.write_text(f"y_true,p_{names[0]},p_{names[1]}\n")
    command = ["monitor", str(file), "--json", "--state", str(tmp_path / "s.json")]
    for part in lines if piecewise else ["".join(lines)]:
        with file.open("a") as rows:
            rows.write(part)
        assert main(command) == 0
    assert last_line(capsys)["mean"] == pytest.approx(2 / 3)


def test_a_label_without_a_column_is_refused(tmp_path, capsys):
    """It would be counted as a miss in silence."""
    (tmp_path / "rows.csv").write_text("y_true,p_cat,p_dog\ncat,0.8,0.2\nhorse,0.8,0.2\n")
    assert main(["monitor", str(tmp_path / "rows.csv")]) == 2
    assert (
        "y_true has the label 'horse', which is none of the columns p_cat, p_dog" in capsys.readouterr().err
    )
    (tmp_path / "one.csv").write_text("y_true,p_cat\ncat,0.8\nhorse,0.2\n")  # one column: its class or not
    assert main(["monitor", str(tmp_path / "one.csv"), "--json"]) == 0
    assert last_line(capsys)["mean"] == 0.5
