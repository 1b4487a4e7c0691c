"""The terminal: the worst first, widths respected, the next command, nothing but text when piped."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.cli import main
from calipers.cli.terminal import next_commands, print_audit
from calipers.report.text_bars import text_bar


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    y = np.random.default_rng(0).normal(size=600)
    frame = pl.DataFrame({
        "y_true": y, "lower": np.full(600, -1.0), "upper": np.full(600, 1.0),
        "group": np.where(np.arange(600) % 2, "[red]odd[/]", "even"),
    })  # fmt: skip
    place = tmp_path_factory.mktemp("rows") / "my rows.csv"
    frame.write_csv(place)
    return place


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_keep_to_the_width_and_carry_no_codes(
    width: int, rows: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["audit", str(rows), "--seed", "0"]) == 1
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert not re.search(r"\d\n\s*%", text)
    words = text.partition("Next:")[0]
    assert (
        max(len(line) for line in words.splitlines() if not line.startswith(("CAL", "✗", "✓", "–", "!", "?")))
        <= width
    )


def test_the_worst_finding_comes_before_the_answers_and_the_next_command_last(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["audit", str(rows), "--seed", "0"])
    text = capsys.readouterr().out
    order = [text.index(part) for part in ("Found ", "CAL101 issue", "●", "Does it cover as often", "Next:")]
    assert order == sorted(order)
    assert f"calipers repair '{rows}'" in text
    assert f"calipers audit '{rows}' --html report.html --rows rows" in text


def test_the_next_command_names_the_columns_and_can_be_typed(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"y_true": "the price", "lower": "low", "upper": "high", "group": "site"}
    pl.read_csv(rows).rename(names).write_csv("houses.csv")
    Path("calipers.toml").write_text("[audit]\ngroup = 'site'\nalpha = [0.2]\n")
    words = ["houses.csv", "--y", "the price", "--lower", "low", "--upper", "high", "--n-calibration", "500"]
    assert main(["audit", *words]) == 1
    lines = capsys.readouterr().out.partition("Next:\n")[2].splitlines()
    # What calipers.toml says need not be repeated.
    options = "--y 'the price' --lower low --upper high --n-calibration 500"
    assert lines == [
        f"  calipers repair houses.csv {options}",
        f"  calipers audit houses.csv {options} --html report.html --rows rows",
    ]
    assert main(shlex.split(lines[0])[1:]) in (0, 1)


def test_without_a_file_or_a_fault_nothing_is_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    y = np.random.default_rng(2).normal(size=1000)
    clean = calipers.audit(y, intervals=np.tile([-1.645, 1.645], (1000, 1)), random_state=0)
    broken = calipers.audit(y, intervals=np.tile([-1.0, 1.0], (1000, 1)), random_state=0)
    assert next_commands(clean) == next_commands(broken) == []
    print_audit(clean)
    assert capsys.readouterr().out.startswith("No fault found")


def test_a_bar_shows_value_interval_and_the_null_band() -> None:
    one_sided = {"value": 0.1, "low": 0.05, "high": 0.2, "null_low": None, "null_high": 0.02}
    # 18 steps of 0.01 from 0.02: the interval begins at the third, the value is the eighth.
    assert text_bar(one_sided, width=19) == "░  " + "─" * 5 + "●" + "─" * 10
    assert [text_bar(one_sided, reference=0.3, width=width) for width in (-3, 0, 1, 4)] == [""] * 4
    assert text_bar({"value": None, "low": None, "high": None}) == ""
    assert text_bar({"value": 1.0, "low": 1.0, "high": 1.0}, reference=1.0) == ""
    assert text_bar({"value": 0.5, "low": 0.4, "high": 0.6}) == ""
