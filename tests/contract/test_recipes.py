"""The recipes of CONTRIBUTING, applied to a copy of the package: a file, lines in a table, and it works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = {
    "A metric": "src/calipers/metrics/registry.py",
    "A nonconformity score": "src/calipers/conformal/score_table.py",
    "A finding": "src/calipers/auditing/checks/__init__.py",
    "A file format": "src/calipers/inputs/files/formats.py",
    "A promise": "src/calipers/auditing/promises.py",
    "A slice": "src/calipers/auditing/checks/__init__.py",
}


def blocks_of(recipe):
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = re.split(r"^##+ ", text.split(f"### {recipe}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```(python|diff)\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


def with_added_lines(text, change):
    """The text with every "+" line put after the line that precedes it in the change."""
    before = None
    for line in change.splitlines():
        if line.startswith("+"):
            found = f"{before}\n"
            assert text.count(found) == 1, f"{before!r} must stand in the table once"
            text = text.replace(found, f"{found}{line[1:]}\n")
            before = line[1:]
        elif not line.startswith("#"):
            before = line[1:]
    return text


@pytest.mark.parametrize(("recipe", "table"), RECIPES.items())
def test_the_recipe_works_on_a_copy_of_the_package(recipe, table, tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (kind, file), (change_kind, change), (_, trial) = blocks_of(recipe)
    assert (kind, change_kind) == ("python", "diff")
    path, code = file.split("\n", 1)
    target = tmp_path / path.removeprefix("# ")
    assert not target.exists()
    target.write_text(code)
    assert change.splitlines()[0] == f"# {table}"
    (tmp_path / table).write_text(with_added_lines((tmp_path / table).read_text(), change))
    # One line in a table, beside the import of the file where the table needs one.
    assert sum(line.startswith("+") for line in change.splitlines()) <= 2
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", trial],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_the_recipes_are_those_of_the_page():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text.split("## Add something", 1)[1].split("\n## ", 1)[0]
    titles = re.findall(r"^### (.*)$", section, flags=re.MULTILINE)
    assert titles == list(RECIPES)
