"""``python3 dev.py study NAME``: runs what the table names, and shows claims beside readings."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import studies
from calipers.cli.commands import COMMANDS
from studies import STUDIES, Claim, StudyReport, run_study
from studies.__main__ import main

ROOT = Path(__file__).resolve().parents[3]
CLAIMS = (
    Claim(claim="A beats B", paper="A 1, B 2", ours="A 1.1, B 2.2", agrees=True),
    Claim(claim="C beats D", paper="C 1, D 2", ours="C 2, D 1", agrees=False),
    Claim(claim="small run", paper="3 %", ours="not measured", agrees=None),
)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path | None, Path, bool]]:
    """A study called toy; the list holds the arguments it was run with."""
    seen: list[tuple[Path | None, Path, bool]] = []

    def run(data: Path | None, out: Path, *, quick: bool) -> StudyReport:
        seen.append((data, out, quick))
        return StudyReport(name="toy", title="A toy study", claims=CLAIMS, files=(out / "table.csv",))

    module = types.ModuleType("studies.toy")
    module.run = run
    monkeypatch.setitem(sys.modules, "studies.toy", module)
    monkeypatch.setitem(studies.STUDIES, "toy", "A toy.")
    return seen


def test_the_claims_are_shown_and_written(toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toy", "--data", str(tmp_path), "--out", str(tmp_path / "o"), "--quick"]) == 0
    assert toy == [(tmp_path, tmp_path / "o", True)]
    shown = capsys.readouterr().out
    assert "A toy study: 1 of 2 claims agree, 1 undecided" in " ".join(shown.split())
    assert all(word in shown for word in ("yes", "no", "undecided", "claims.csv", "table.csv"))
    with (tmp_path / "o" / "claims.csv").open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["claim", "paper", "ours", "agrees?"]
    assert [row[3] for row in rows[1:]] == ["yes", "no", "undecided"]


def test_json_holds_every_claim(toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toy", "--out", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [claim["agrees"] for claim in document["claims"]] == [True, False, None]
    assert document["files"][-1] == str(tmp_path / "claims.csv")


def test_the_data_folder_may_come_from_the_environment(toy, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CALIPERS_DATA", str(tmp_path / "data"))
    assert main(["toy", "--out", str(tmp_path)]) == 0
    assert toy[0][0] == tmp_path / "data"


def test_an_unknown_study_is_bad_input(toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["alchemy", "--out", str(tmp_path)])
    assert refused.value.code == 2
    assert "invalid choice: 'alchemy' (choose from" in capsys.readouterr().err


def test_a_file_in_the_way_is_bad_input(toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["toy", "--out", str(tmp_path / "file")]) == 2
    assert "out must be a folder" in capsys.readouterr().err


def test_help_lists_every_study_without_loading_one() -> None:
    code = (
        "import sys, studies.__main__ as program; print(program.parser().format_help()); "
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert all(f"{name}: " in done.stdout for name in STUDIES)
    loaded = set(done.stderr.split())
    assert not {"numpy", "sklearn", "calipers", *(f"studies.{name}" for name in STUDIES)} & loaded


def test_the_command_line_of_the_package_has_no_studies() -> None:
    assert "study" not in COMMANDS


def test_studies_are_in_the_sdist_and_not_in_the_wheel() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    assert targets["wheel"]["packages"] == ["src/calipers"]
    assert {"/studies", "/dev.py"} <= set(targets["sdist"]["include"])


def test_the_reports_are_shown_in_one_short_line() -> None:
    report = StudyReport(name="a", title="b", claims=CLAIMS * 4, files=(Path("f"),) * 9)
    for thing in (report, CLAIMS[0]):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) <= 300


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_of_the_table_can_be_loaded(name: str) -> None:
    module = __import__(f"studies.{name}", fromlist=["run"])
    assert callable(module.run)


def test_run_study_takes_text_paths(toy, tmp_path: Path) -> None:
    report = run_study("toy", None, str(tmp_path))
    assert toy == [(None, tmp_path, False)]
    assert report.files == (tmp_path / "table.csv", tmp_path / "claims.csv")
