"""Files of a command: checked before the work, written together or not at all, and nothing found is lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.cli import audit as audit_command
from calipers.cli import main
from calipers.cli.options import exit_code
from calipers.exceptions import InputError
from calipers.inputs.files.formats import write_table
from calipers.results import Finding, write_together

NAMES = ["audit.json", "report.html", "summary.md"]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(0).normal(size=300)
    place = tmp_path / "rows.csv"
    pl.DataFrame({"y_true": y, "lower": np.full(300, -0.5), "upper": np.full(300, 0.5)}).write_csv(place)
    return str(place)


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("the audit ran before its outputs were checked")

    monkeypatch.setattr(audit_command, "run", run)


def test_a_file_in_the_place_of_the_folder_is_found_before_the_work(
    rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forbid(monkeypatch)
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    assert main(["audit", rows, "--out", "out"]) == 2
    assert "--out must be a folder" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_a_folder_that_is_missing_is_found_before_the_work(
    option: str, rows: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forbid(monkeypatch)
    assert main(["audit", rows, option, "nowhere/file"]) == 2
    assert "the folder nowhere does not exist" in capsys.readouterr().err


def test_a_file_of_another_program_is_kept_unless_forced(
    rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.html").write_text("my notes", encoding="utf-8")
    assert main(["audit", rows, "--html", "notes.html", "-q"]) == 2
    assert "was not written by Calipers. Give another place, or --force" in capsys.readouterr().err
    assert (tmp_path / "notes.html").read_text(encoding="utf-8") == "my notes"
    assert main(["audit", rows, "--html", "notes.html", "-q", "--force"]) == 1
    assert "<!doctype html>" in (tmp_path / "notes.html").read_text(encoding="utf-8")


def test_a_report_that_is_replaced_is_named(rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", rows, "--out", "out", "-q"]) == 1
    assert capsys.readouterr().err == ""
    assert main(["audit", rows, "--out", "out", "-q"]) == 1
    assert "replaced what an earlier run wrote: out/report.html" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--quiet"], ["--json"]])
def test_a_full_disk_loses_no_verdict_and_leaves_no_half(
    words: list[str],
    rows: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written, real = [], os.fsync

    def fill(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fill)
    assert main(["audit", rows, "--out", "out", *words]) == 2
    shown = capsys.readouterr()
    assert "the disk is full" in shown.err
    assert "No file was changed" in shown.err
    assert "issue" in shown.out
    assert list((tmp_path / "out").iterdir()) == []


def test_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    old = tmp_path / "a.txt"
    old.write_text("old", encoding="utf-8")
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(InputError, match="b.txt cannot be written: it is a folder"):
        write_together({old: "new", tmp_path / "b.txt": "new"})
    assert old.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def run_program(words: list[str], reader: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -c 'import sys; from calipers.cli import main; sys.exit(main())' "
    command = f"set -o pipefail; {program} {' '.join(words)} {reader}"
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ | environment,
        check=False,
    )


def test_a_reader_that_leaves_is_no_finding_and_files_are_written(rows: str, tmp_path: Path) -> None:
    done = run_program(
        ["audit", rows, "--json", "--out", "out"], "| true"
    )  # it has left before the first word
    assert (done.returncode, done.stderr) == (141, "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == NAMES


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [["audit"], ["audit", "--json"], ["measure"], ["audit", "--out", "out"]])
def test_output_to_a_full_disk_is_one_sentence(words: list[str], rows: str, tmp_path: Path) -> None:
    done = run_program([words[0], rows, *words[1:]], "> /dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith("calipers: standard output cannot be written: No space left on device.")
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "out" / "audit.json").exists() == ("--out" in words)


def test_a_closed_output_keeps_the_exit_code_and_the_files(rows: str, tmp_path: Path) -> None:
    done = run_program(["audit", rows, "--out", "out", "--fail-on", "never"], ">&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == NAMES
    assert run_program(["measure", rows], ">&- 2>&-").returncode == 0


def test_tables_for_a_reader_that_left_are_no_finding(rows: str) -> None:
    assert run_program(["audit", rows], "| true").returncode == 141


def test_a_terminal_of_another_encoding_gets_stand_ins(rows: str) -> None:
    done = run_program(["audit", rows], "", PYTHONIOENCODING="cp1252")
    assert done.returncode == 1
    assert "x no" in done.stdout


def finding(outcome: str) -> Finding:
    severity = "issue" if outcome == "fault" else "none"
    return Finding(
        code="CAL101", severity=severity, question="coverage", title="t", sentence="s", outcome=outcome
    )


@pytest.mark.parametrize(
    ("outcomes", "fail_on", "code"),
    [
        (["cannot_tell"], "issue", 3),
        (["cannot_tell", "clean"], "issue", 0),
        (["cannot_tell", "fault"], "issue", 1),
        (["cannot_tell"], "never", 0),
        ([], "issue", 0),
    ],
)
def test_too_few_rows_have_a_code_of_their_own(outcomes: list[str], fail_on: str, code: int) -> None:
    assert exit_code([finding(outcome) for outcome in outcomes], fail_on) == code


def test_the_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for code in ("0: clean", "1: findings", "2: bad input", "3: too few rows", "70:", "130:", "141:"):
        assert code in shown


def test_stopping_by_hand_has_the_code_of_shells(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(audit_command, "run", stop)
    assert main(["audit", rows]) == 130


def test_stopping_while_a_command_is_loaded_has_that_code_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calipers.cli._run", stop)
    assert main(["audit", "rows.csv"]) == 130
    assert capsys.readouterr().err == "calipers: stopped.\n"


CUT_OFF = """
import os, sys, threading, time
path = sys.argv[1]
whole = open(path, "rb").read()
def cut():
    while True:
        os.truncate(path, len(whole) // 7)
        time.sleep(0.01)
        with open(path, "r+b") as file:
            file.write(whole)
        time.sleep(0.05)
threading.Thread(target=cut, daemon=True).start()
from calipers.cli import main
codes, end = set(), time.monotonic() + 4
while time.monotonic() < end:
    sys.argv = ["calipers", "measure", path, "--quiet"]
    codes.add(main())
os._exit(0 if codes <= {0, 2} else 1)
"""


@pytest.mark.skipif(not hasattr(os, "truncate"), reason="no truncate")
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".arrow", ".parquet"])
def test_a_file_cut_off_while_it_is_read_is_refused(ending: str, tmp_path: Path) -> None:
    """A mapped file that shrinks raises SIGBUS, which no program can answer."""
    rng, n = np.random.default_rng(0), 200_000
    frame = pl.DataFrame(
        {"y_true": rng.normal(size=n), "lower": -1.0 - rng.random(n), "upper": rng.random(n)}
    )
    place = tmp_path / f"rows{ending}"
    write_table(frame.with_columns(upper=pl.col("upper") + 1.0), str(place))
    done = subprocess.run([sys.executable, "-c", CUT_OFF, str(place)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("columns", ["0", "1", "7", "-3", "words"])
def test_a_terminal_of_any_width_gets_the_verdict(
    columns: str, rows: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["audit", rows]) in {0, 1}
    assert "issue" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "words", [["--alpha", "5e-324"], ["--alpha", "1e-300"], ["--alpha", "0.9999999999999999"]]
)
def test_a_level_next_to_0_or_1_is_answered(words: list[str], rows: str) -> None:
    assert main(["audit", rows, "--quiet", *words]) in {0, 1, 3}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name")
def test_what_is_no_file_is_refused_and_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.csv"):
        assert main(["audit", str(tmp_path / name)]) == 2
        assert "is not a file but a pipe, a socket or a device" in capsys.readouterr().err


def test_a_file_without_predictions_is_refused_and_no_clean_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # "No fault found; 0 of 6 questions could be asked" had exit code 0: a renamed column passed every gate.
    place = tmp_path / "rows.csv"
    pl.DataFrame({"y_true": [0, 1] * 50, "score": [0.5] * 100}).write_csv(place)
    assert main(["audit", str(place)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "an audit needs what was predicted, and no column holds it" in said
    assert "there are y_true (outcome), score (feature)" in said
    assert main(["audit", str(place), "--max-rows", "50"]) == 2


def test_a_list_in_a_cell_is_no_feature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "rows.parquet"
    columns = {"y_true": [1.0] * 50, "lower": [0.0] * 50, "upper": [2.0] * 50, "x": [[1, 2]] * 50}
    pl.DataFrame(columns).write_parquet(place)
    assert main(["audit", str(place)]) == 2
    assert "'x' of X must hold numbers, booleans or text, got List" in capsys.readouterr().err
