"""Names from files are shown as they are: no heading, no command, no escape sequence, no formula."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.cli import main
from calipers.report.markdown_text import fenced, markdown_cell, markdown_text

NASTY = "\x1b[2J\r\n# big ![x](http://a.b/c) <img src=x> @team | *b* `c` ::error::pwned"


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.normal(size=600)
    group = np.where(np.arange(600) % 2 == 0, NASTY, "b")
    width = np.where(group == "b", 1.7, 0.3)
    place = tmp_path / "rows.parquet"
    pl.DataFrame({"y_true": y, "lower": -width, "upper": width, "group": group}).write_parquet(place)
    return str(place)


def test_a_group_name_is_no_markdown(rows: str) -> None:
    assert main(["audit", rows, "--out", "out", "-q"]) == 1
    text = Path("out/summary.md").read_text(encoding="utf-8")
    assert "big" in text
    for live in ("\x1b", "\r", "\n# big", "![x](", "<img", "http://", " @team", "*b*", "`c`"):
        assert live not in text


def test_a_group_name_is_no_escape_sequence_and_no_command(
    rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", rows, "--github"]) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert "\\x1b[2J" in shown
    commands = [line for line in shown.splitlines() if line.startswith("::")]
    assert commands
    assert all(
        line.startswith(("::error title=CAL", "::warning title=CAL", "::notice title=CAL"))
        for line in commands
    )


LIKE_A_COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)


@pytest.mark.parametrize("filling", [0, 40, 56])
def test_no_line_of_the_text_is_a_command_of_a_workflow(
    filling: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # GitHub skips blanks in front of '::' and takes '##[' anywhere; where a long sentence wraps depends on the name.
    name = f"{'x' * filling} ::add-mask::e ##[add-mask]e"
    y, width = np.random.default_rng(0).normal(size=600), np.where(np.arange(600) % 2 == 0, 0.3, 1.7)
    place = tmp_path / "rows.parquet"
    groups = np.where(width < 1, name, "b")
    pl.DataFrame({"y_true": y, "lower": -width, "upper": width, "group": groups}).write_parquet(place)
    assert main(["audit", str(place)]) == 1
    shown = capsys.readouterr().out
    assert "add-mask" in shown
    assert not LIKE_A_COMMAND.search(shown)


def test_earlier_audits_and_monitors_show_no_escape_sequence(
    rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", rows, "--history", "kept", "-q"]) == 1
    Path("kept/a\x1b[2Jb.json").write_text("{}", encoding="utf-8")
    assert main(["history", "kept", "--fail-on", "never"]) == 0
    assert main(["history", "kept", "--json", "--fail-on", "never"]) == 0
    pl.read_parquet(rows).with_columns(pl.col("group").str.replace("\n", "")).write_ndjson("rows.jsonl")
    assert main(["monitor", "rows.jsonl", "--group", "group", "--alpha", "0.1"]) == 1
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "big" in shown.out
    assert not LIKE_A_COMMAND.search(shown.out + shown.err)


def test_a_column_name_in_an_error_is_no_escape_sequence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "rows.parquet"
    pl.DataFrame({"y_true\x1b[2J": [1.0], "lower": [0.0], "upper": [1.0]}).write_parquet(place)
    assert main(["audit", str(place)]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("coverage 0.88 [0.86, 0.90] at 95 % (p = 8.0e-15), x_1 > 0.5 and y < 2", None),
        ("a](b", "a\\](b"),
        ("![a](b)", "\\![a\\](b)"),
        ("**a** __b__ ~~c~~", "\\*\\*a\\*\\* \\_\\_b\\_\\_ \\~\\~c\\~\\~"),
        ("<b> </b> <!-- &lt; 1 < 2", "&lt;b> &lt;/b> &lt;!-- &amp;lt; 1 < 2"),
        ("a\\*b", "a\\\\\\*b"),
        ("me@home.org @you", "me@home.org @<!-- -->you"),
        ("https://a www.b", "https:<!-- -->//a www<!-- -->.b"),
        ("a\nb", "a b"),
    ],
)
def test_text_is_shown_and_not_read(text: str, shown: str | None) -> None:
    assert markdown_text(text) == (text if shown is None else shown)


@pytest.mark.parametrize("mark", ["# a", "> a", "- a", "+ a", "= a"])
def test_a_line_does_not_begin_a_heading_or_a_list(mark: str) -> None:
    assert markdown_text(mark, starts_line=True) == "\\" + mark


def test_a_numbered_line_is_no_list_and_a_bar_ends_no_cell() -> None:
    assert markdown_text("1. a", starts_line=True) == "\\1. a"
    assert markdown_cell("a|b") == "a\\|b"


def test_code_cannot_leave_its_fence() -> None:
    assert fenced("a\n```\nb", "python").startswith("````python\n")
