"""A test that asks for a package is run somewhere by continuous integration: the package is in an extra it installs."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Import names that are not the name of what is installed.
DISTRIBUTIONS = {"PIL": "matplotlib", "calipers": "numba", "scipy": "numpy"}
# What `python3 dev.py interop` runs with torch: these, and every test file that names it.
INTEROP = "torch"


def installed_by(extra: str) -> set[str]:
    """Distributions of an extra and of the extras it names."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras, open_extras = table["optional-dependencies"], [extra]
    requirements = list(table["dependencies"])
    while open_extras:
        requirements += extras[open_extras.pop()]
        own = [r for r in requirements if r.startswith("calipers[")]
        open_extras += [name for r in own for name in r.removeprefix("calipers[").rstrip("]").split(",")]
        requirements = [r for r in requirements if r not in own]
    return {re.split(r"[\s\[<>=!~;]", r)[0].lower().replace("-", "_") for r in requirements}


def asked_for() -> dict[str, list[str]]:
    """Package -> test files that are skipped without it."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            name = node.args[0]
            if node.func.attr == "importorskip" and isinstance(name, ast.Constant):
                found.setdefault(name.value.split(".")[0], []).append(str(file.relative_to(ROOT)))
    return found


def test_every_package_that_tests_ask_for_is_installed_by_a_lane_that_runs_them():
    lanes = installed_by("test"), installed_by("interop")
    missing = {
        package: files
        for package, files in asked_for().items()
        if DISTRIBUTIONS.get(package, package).lower() not in lanes[package == INTEROP]
    }
    assert missing == {}


def test_the_lanes_are_those_of_continuous_integration():
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert {"step python3 dev.py test --all", "step python3 dev.py interop"} <= set(steps.splitlines())
    assert {"chromium", "java"} <= set(re.findall(r"command -v (\w+)", steps))


def test_extras_are_followed_into_each_other():
    assert {"s3fs", "pyspark", "axe_playwright_python", "numpy"} <= installed_by("test")
    assert "torch" not in installed_by("test")
    assert {"torch", "mlflow", "s3fs"} <= installed_by("interop")


def test_what_the_fast_lane_leaves_out_is_there_and_left_out_nowhere_else(pytestconfig, monkeypatch):
    conftest = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    for prefix in conftest.LONG:
        file, _, name = prefix.partition("::")
        assert (ROOT / file).exists(), prefix
        assert not name or f"def {name}" in (ROOT / file).read_text(encoding="utf-8")
    monkeypatch.syspath_prepend(str(ROOT))
    import dev

    ran: list[list[str]] = []
    monkeypatch.setattr(dev, "run", lambda command, **_: ran.append([str(word) for word in command]) or 0)
    for words in ([], ["--all"], ["tests/docs"], ["--slow"], ["-k", "pages"]):
        options, rest = dev.parser().parse_known_args(["test", *words])
        dev.test(options, rest)
    assert ["--fast" in command for command in ran] == [True, False, False, False, False]
    assert all("--all" not in command for command in ran)
