"""The command line: fast, readable, honest exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import calipers
from calipers.cli import demo, main
from calipers.cli.commands import COMMANDS


def program(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "calipers", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {name} " in shown for name in COMMANDS)


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Usage: calipers" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: calipers {name}" in capsys.readouterr().out


def test_version_is_the_packages() -> None:
    done = program("--version")
    assert (done.returncode, done.stdout) == (0, f"calipers {calipers.__version__}\n")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["demo", "--help"]])
def test_help_imports_no_numerical_library(words: list[str]) -> None:
    code = (
        "import sys; from calipers.cli import main; main(sys.argv[1:]); "
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "sklearn", "polars", "pandas", "matplotlib", "jinja2"}
    assert not heavy & set(done.stderr.split())


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("demo") / "deep" / "folder"
    return folder, program("demo", "--out", str(folder))


def test_demo_writes_the_report_and_the_numbers(
    demonstration: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = demonstration
    assert (done.returncode, done.stderr) == (0, "")
    assert str(folder / "report.html") in done.stdout
    document = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert document["kind"] == "Audit"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(question["title"] in page for question in document["questions"])
    assert "<svg" in page
    assert "src=" not in page


def test_demo_finds_the_planted_and_the_real_fault_and_repairs_them(
    demonstration: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    document = json.loads((demonstration[0] / "audit.json").read_text(encoding="utf-8"))
    found = {f["code"]: f for f in document["findings"] if f["outcome"] == "fault"}
    # Planted: heavy images cannot be predicted. Real: naive Bayes is over-confident.
    assert found["CAL201"]["where"] == "group heavy"
    assert {found[code]["severity"] for code in ("CAL201", "CAL501")} == {"issue"}
    # The features tell the heavy images too: the same fault.
    assert found["CAL202"]["details"]["own_severity"] == "issue"
    assert found["CAL202"]["details"]["explained_by"] == "CAL201"
    assert {"CAL201", "CAL202", "CAL501"} <= set(document["repair"]["gone"])
    assert all(question["answer"] != "not asked" for question in document["questions"])


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    done = program("demo", "--out", str(tmp_path), "--json")
    assert json.loads(done.stdout)["kind"] == "Audit"
    assert "report.html" in done.stderr


BAD_INPUT = {
    "unknown command": (["dmo"], "No such command 'dmo'. Did you mean 'demo'?"),
    "unknown option": (["demo", "--nope"], "--nope"),
    "not a number": (["demo", "--alpha", "much"], "--alpha"),
    "percentage for alpha": (["demo", "--alpha", "90"], "alpha must lie strictly between 0 and 1, got 90"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line_on_standard_error_and_exit_code_2(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words, expected = BAD_INPUT[case]
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("calipers: ")
    assert expected in shown.err


def test_a_file_where_a_folder_is_needed_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    assert main(["demo", "--out", str(tmp_path / "taken")]) == 2
    assert "--out must be a folder" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_the_traceback_of_a_user_error(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    assert main([*words, "--out", str(tmp_path / "taken")]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_fault_of_ours_is_neither_clean_nor_a_finding_nor_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(path: Path) -> Path:
        raise RuntimeError("planted")

    monkeypatch.setattr(demo, "writable_folder", broken)
    assert main(["demo"]) == 70
    assert "this is a fault in Calipers" in capsys.readouterr().err
