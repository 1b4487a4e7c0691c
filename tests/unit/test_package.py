"""What ``import calipers`` gives and costs."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import calipers

ROOT = Path(__file__).resolve().parents[2]
# Every name a user may rely on. A change here is a change of the public interface.
PUBLIC = [
    "__version__",
    "audit",
    "audit_model",
    "auditing",
    "calibration",
    "compare",
    "conformal",
    "datasets",
    "difficulty",
    "displays",
    "engines",
    "exceptions",
    "integrations",
    "metrics",
    "performance",
    "plots",
    "results",
    "scorers",
]
# Rooms that do the work behind them: reached by name, not listed.
INTERNAL = ["arrays", "inference", "inputs", "report"]


def run_python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True, env=environment
    )


def test_public_names_are_pinned() -> None:
    assert sorted(calipers.__all__) == PUBLIC
    assert dir(calipers) == PUBLIC


@pytest.mark.parametrize("name", [*PUBLIC, *INTERNAL])
def test_every_public_name_can_be_reached(name: str) -> None:
    assert getattr(calipers, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'calipers' has no attribute 'metric'"):
        _ = calipers.metric


def test_type_checkers_see_the_same_names_as_users() -> None:
    tree = ast.parse(Path(calipers.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.asname or alias.name for node in block.body for alias in node.names}
    assert imported | {"__version__"} == {*PUBLIC, *INTERNAL}


def test_names_of_the_conformal_room_are_loaded_on_first_use_and_seen_by_type_checkers() -> None:
    from calipers import conformal

    tree = ast.parse(Path(conformal.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.name: node.module for node in block.body for alias in node.names}
    assert sorted(imported) == sorted(conformal.__all__)
    for name, module in imported.items():
        assert getattr(conformal, name) is getattr(importlib.import_module(module), name)
    assert conformal.scores.lac is conformal.lac
    with pytest.raises(AttributeError, match="module 'calipers.conformal' has no attribute 'score'"):
        _ = conformal.score


def test_p_values_do_not_load_scikit_learn() -> None:
    code = (
        "import sys; from calipers.conformal import conformal_p_values as p, conformal_rank, lac; "
        "p([0.1, 0.2], [0.3]); print('sklearn' in sys.modules)"
    )
    assert run_python(code).stdout == "False\n"


def test_no_public_function_shares_its_name_with_a_module() -> None:
    for room in (name for name in PUBLIC if inspect.ismodule(getattr(calipers, name))):
        module = importlib.import_module(f"calipers.{room}")
        folder = Path(module.__file__).parent if hasattr(module, "__path__") else None
        modules = {path.stem for path in folder.glob("*.py")} if folder else set()
        assert not modules & set(module.__all__), room


def test_the_version_comes_from_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    place = ROOT / project["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{calipers.__version__}"' in place.read_text(encoding="utf-8")


def test_the_change_log_and_the_citation_know_the_version() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert calipers.__version__ in re.findall(r"^## \[(.+)\]", log, re.MULTILINE)
    assert f"\nversion: {calipers.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_workflow_tries_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {c.split(" :: ")[-1] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)}
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    tried = set(re.findall(r"\d\.\d+", re.search(r"^ +python: \[(.+)\]$", workflow, flags=re.MULTILINE)[1]))
    assert "continue-on-error" not in workflow  # a Python that is named decides
    assert named == tried
    assert f">={min(named, key=lambda v: int(v.split('.')[1]))}" == project["requires-python"]
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert "Python 3.11, 3.12, 3.13 and 3.14" in page


def test_a_build_in_a_workflow_states_the_addresses_of_its_repository(monkeypatch) -> None:
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # hatchling is there only while a package is built
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    metadata = {}
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/calipers")
    hook.Addresses().update(metadata)
    assert metadata["urls"]["Source"] == "https://example.org/someone/calipers"
    assert {"Documentation", "Changelog", "Issues"} <= metadata["urls"].keys()
    monkeypatch.delenv("GITHUB_REPOSITORY")
    hook.Addresses().update(metadata)
    assert metadata["urls"] == {}


def test_import_loads_no_room_and_no_heavy_library() -> None:
    loaded = run_python("import sys, calipers; print(*sorted(sys.modules))").stdout.split()
    heavy = {"numpy", "scipy", "sklearn", "polars", "narwhals", "typer", "rich", "pydantic", "jinja2"}
    assert not heavy & set(loaded)
    assert [name for name in loaded if name.startswith("calipers")] == ["calipers", "calipers.version"]


def import_seconds(module: str) -> float:
    code = f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
    return float(run_python(code).stdout)


def test_import_costs_a_fraction_of_importing_numpy() -> None:
    # Interleaved and best of five: a busy machine slows both, and the smallest time is the cleanest.
    pairs = [(import_seconds("calipers"), import_seconds("numpy")) for _ in range(5)]
    ours, numpys = (min(column) for column in zip(*pairs, strict=True))
    assert ours < 0.5 * numpys


def public_packages() -> list[str]:
    """Every package and public module that a user can type a dot after."""
    source = Path(calipers.__file__).parent
    folders = [path.parent.relative_to(source) for path in source.rglob("__init__.py")]
    rooms = {name for name in PUBLIC if (source / name).is_dir() or (source / f"{name}.py").exists()}
    inside = {".".join(folder.parts) for folder in folders if folder.parts[:1] and folder.parts[0] in rooms}
    return sorted(f"calipers.{name}" for name in rooms | inside)


@pytest.mark.parametrize("name", public_packages())
def test_completion_shows_only_public_names(name: str) -> None:
    module = importlib.import_module(name)
    exported = module.__all__
    assert dir(module) == sorted(exported)
    assert not [word for word in exported if word.startswith("_")]
    assert all(hasattr(module, word) for word in exported)


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(calipers.__file__).parent / "py.typed").exists()
