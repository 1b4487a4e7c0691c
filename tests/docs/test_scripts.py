"""Gallery and notebooks: every script runs without a warning, draws, and uses public names only."""

from __future__ import annotations

import ast
import importlib
import re
import sys

import pytest

from tests.docs.pages import DOCS

sys.path.append(str(DOCS / "_ext"))
from notebook_files import main as build_notebooks
from notebook_files import write_notebook
from scripts import SHADES, cells_of, run_script, title_of

GALLERY = sorted((DOCS / "gallery").glob("*.py"))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.py"))
names = pytest.mark.parametrize("script", [*GALLERY, *NOTEBOOKS], ids=lambda path: path.stem)


@pytest.fixture(autouse=True)
def _leave_matplotlib_as_it_was(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_is_short_and_draws_one_picture(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 40
    text, code = run_script(script)
    assert len(text.source.split()) > 25, "a picture needs words"
    assert len(code.pictures) == 1
    picture = code.pictures[0]
    assert len(picture) < 150_000
    # It must be readable on white and on black: nothing is black or white of itself.
    assert not re.findall(rf"(?:fill|stroke): (?:{'|'.join(SHADES)}|#ffffff)", picture)


@pytest.mark.parametrize("script", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(script):
    cells = run_script(script)
    assert cells[0].kind == "markdown"
    assert sum(cell.kind == "code" for cell in cells) >= 6
    assert any(cell.pictures for cell in cells)
    assert any(cell.printed for cell in cells)


def test_there_are_three_walks_three_case_studies_and_a_dozen_pictures():
    assert {script.stem for script in NOTEBOOKS} == {
        "classification", "regression", "validation", "credit", "demand", "vision",
    }  # fmt: skip
    assert len(GALLERY) >= 12
    assert len({title_of(script) for script in [*GALLERY, *NOTEBOOKS]}) == len(GALLERY) + len(NOTEBOOKS)


def test_the_data_of_the_case_studies_are_small_and_have_a_source_and_a_licence():
    folder = DOCS / "notebooks" / "data"
    table = (folder / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\S+) \|(.+)\|$", table, flags=re.MULTILINE))
    files = {path.name: path for path in folder.iterdir() if path.suffix in {".gz", ".npz"}}
    assert set(files) == {name for name in rows if "." in name}
    for name, path in files.items():
        assert path.stat().st_size < 500_000
        assert "load_" in rows[name]
        assert re.search(r"CC BY 4\.0|Apache-2\.0|MIT", rows[name])


def test_every_notebook_is_in_the_table_of_the_index():
    index = (DOCS / "notebooks" / "index.md").read_text(encoding="utf-8")
    for script in NOTEBOOKS:
        assert f"]({script.stem}.md)" in index
        assert re.search(rf"^{script.stem}$", index, flags=re.MULTILINE), "not in the table of contents"


@names
def test_a_script_uses_public_names_only(script):
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calipers."):
            module = importlib.import_module(node.module)
            assert {alias.name for alias in node.names} <= set(module.__all__)
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")


CASE_STUDIES = {
    "credit",
    "demand",
    "vision",
}  # run as scripts in every run; in a kernel they take a minute each


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in CASE_STUDIES else [])
        for path in NOTEBOOKS
    ],
)
def test_jupyter_runs_the_notebook_and_the_file_keeps_its_outputs(script, tmp_path):
    pytest.importorskip("nbclient")
    jupytext = pytest.importorskip("jupytext")
    notebook = jupytext.read(write_notebook(script, tmp_path))
    assert len(notebook.cells) == len(cells_of(script))
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert any(output["output_type"] == "stream" for output in outputs)
    assert not any(output["output_type"] == "error" for output in outputs)


def test_an_unknown_notebook_is_refused_by_name(capsys):
    assert build_notebooks(["clasification"]) == 2
    assert "there is no notebook clasification; there are classification" in capsys.readouterr().err
