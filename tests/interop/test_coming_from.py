"""docs/howto/coming-from.md: the blocks of other packages run as printed, and the audit agrees with what they say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calipers
from tests.interop.peers import foreign, pretend_installed, require

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "coming-from.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|\{code-block\} python)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
OPENING, *PARTS = PAGE.split("\n## ")
SECTIONS = {part.partition(":")[0]: part for part in PARTS}


def run(section: str) -> dict[str, Any]:
    """What is there after the opening of the page and the block of one package."""
    namespace: dict[str, Any] = {"__name__": "page"}
    (shown,) = (block for kind, block in BLOCK.findall(SECTIONS[section]) if kind != "python")
    for block in (BLOCK.search(OPENING)[2], shown):
        exec(compile(block, "coming-from.md", "exec"), namespace)  # noqa: S102 - our own page
    return namespace


@pytest.mark.parametrize(
    ("section", "module", "predictor"),
    [
        ("MAPIE", "mapie", "mapie"),
        ("crepes", "crepes", "wrapped"),
        ("puncc", "deel", "split"),
        ("TorchCP", "torchcp", "torchcp"),
    ],
)
def test_the_block_runs_and_the_audit_reads_the_same_coverage(section, module, predictor):
    require(section, module)
    with foreign():
        if section == "TorchCP":
            pretend_installed("torchsort", "torch_geometric", "transformers")
        there = run(section)
        X, y, test = there["X"], there["y"], there["test"]
        found = calipers.audit_model(there[predictor], X[test], y[test], random_state=0)
    lower, upper = ends(there, section)
    covered = (lower <= y[test]) & (y[test] <= upper)
    assert float(found.estimates["coverage"]) == pytest.approx(covered.mean(), abs=1e-12)
    assert float(found.estimates["coverage"]) == pytest.approx(0.9, abs=0.03)


def ends(there: dict[str, Any], section: str) -> tuple[np.ndarray, np.ndarray]:
    """The intervals that the block made, as lower and upper ends."""
    if section == "puncc":
        return there["lower"], there["upper"]
    if section == "TorchCP":
        told = there["torchcp"].predict(there["torch"].as_tensor(there["X"][there["test"]]))
        return tuple(told.detach().numpy().reshape(-1, 2).T)
    return tuple(np.asarray(there["intervals"]).reshape(len(there["y"][there["test"]]), 2).T)


def test_the_numbers_that_the_packages_give_are_those_of_the_page():
    require("mapie")
    require("crepes")
    with foreign():
        there, crepes = run("MAPIE"), run("crepes")
        y, test = there["y"], there["test"]
        score = there["regression_coverage_score"](y[test], there["intervals"])
        told = crepes["wrapped"].evaluate(there["X"][test], y[test], confidence=0.9)
    ours = calipers.metrics.coverage(y[test], there["intervals"][:, :, 0])
    assert float(ours) == pytest.approx(np.squeeze(score), abs=1e-12)
    errors = told["error"], 1 - float(calipers.metrics.coverage(y[test], crepes["intervals"]))
    assert " and ".join(f"{error:.4f}" for error in errors) == "0.0990 and 0.0945"
    assert "0.0990 and 0.0945" in SECTIONS["crepes"]


def test_every_name_of_ours_in_the_tables_exists():
    names = set(re.findall(r"`(metrics|performance|conformal)\.(\w+)", PAGE))
    assert len(names) >= 6
    for room, name in names:
        assert hasattr(importlib.import_module(f"calipers.{room}"), name), f"{room}.{name}"


@pytest.mark.parametrize("package", ["mapie", "crepes"])
def test_every_name_of_theirs_in_the_tables_exists(package):
    require(package)
    folder = Path(importlib.import_module(package).__file__).parent
    source = "\n".join(file.read_text(encoding="utf-8") for file in folder.rglob("*.py"))
    section = SECTIONS[{"mapie": "MAPIE", "crepes": "crepes"}[package]]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    names = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    assert len(names) >= 4
    for name in names:
        assert re.search(rf"(def|class) {name}\b|\b{name}\s*[:=]", source), name
