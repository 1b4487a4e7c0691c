"""AGENTS.md, the map of the repository, and the files that only a hosting site reads."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
MAP = (ROOT / "AGENTS.md").read_text(encoding="utf-8")


def test_the_map_names_every_room_and_no_other():
    rooms = MAP.split("## Rooms")[1].split("## Conventions")[0]
    named = set(
        re.findall(r"`(\w+)/`", "\n".join(line.split("|")[1] for line in rooms.splitlines() if "|" in line))
    )
    there = {path.parent.name for path in (ROOT / "src" / "calipers").glob("*/__init__.py")}
    assert named == there


def test_the_map_leads_to_files_that_are_there():
    tables = re.findall(r"`((?:src/calipers/)?[\w/]+\.py)`", MAP.split("## Add something")[1])
    places = [
        ROOT / table if table.startswith("src/") else ROOT / "src" / "calipers" / table for table in tables
    ]
    assert len(places) >= 8
    assert [place for place in places if not place.exists()] == []
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", MAP)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_step_of_ci_is_a_command_of_dev_and_contributing_names_it():
    steps = re.findall(
        r"^step python3 dev\.py (\w.*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE
    )
    commands = re.findall(
        r"^python3 dev\.py (\w+) ", (ROOT / "dev.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(steps) >= 6
    assert {step.split()[0] for step in steps} <= set(commands)
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [step for step in steps if f"`{step}`" not in page] == []


def test_workflows_run_the_commands_of_developers_and_may_do_no_more_than_they_need():
    workflows = {
        path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")
    }
    assert workflows.keys() == {"ci", "release", "docs"}
    assert all(workflow["permissions"] == {"contents": "read"} for workflow in workflows.values())
    commands = re.findall(
        r"^python3 dev\.py (\w+) ", (ROOT / "dev.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    for workflow in workflows.values():
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                for line in step.get("run", "").splitlines():
                    if line.startswith("python3 dev.py"):
                        assert line.split()[2] in commands
    publish = workflows["release"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}  # trusted publishing: no token is stored
    assert publish["needs"] == "build"


def test_the_release_takes_the_version_from_where_it_stands():
    # The release workflow reads the version with this pattern.
    version = re.search(
        r'^__version__ = "(.*)"$', (ROOT / "src/calipers/version.py").read_text(), re.MULTILINE
    )[1]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == version
