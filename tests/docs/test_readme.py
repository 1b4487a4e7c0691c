"""The README keeps its word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_example_runs_and_prints_what_the_readme_says() -> None:
    (example,), (printed,) = blocks("python"), blocks("text")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == printed


def test_the_example_has_at_most_ten_lines() -> None:
    (example,) = blocks("python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


def test_the_two_commands_come_first() -> None:
    commands = blocks("sh")[0].splitlines()
    assert [line.split("#")[0].strip() for line in commands] == ["python3 dev.py demo", "python3 dev.py test"]


def test_every_file_the_papers_point_to_exists() -> None:
    for paper in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / "decisions").glob("*.md")]:
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", paper.read_text(encoding="utf-8"))
        missing = [link for link in links if not (paper.parent / link).exists()]
        assert not missing, paper.name


def test_the_picture_is_small_and_self_contained() -> None:
    picture = ROOT / re.search(r"!\[[^]]*\]\(([^)]+\.svg)\)", README)[1]
    assert picture.stat().st_size < 50_000
    assert not re.search(r"<script|href=|<image", picture.read_text(encoding="utf-8"))
