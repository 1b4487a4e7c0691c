"""Every promise of SECURITY.md names tests, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TABLE = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in Path("SECURITY.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| what an attacker")
]


def named_tests(cell: str) -> list[str]:
    return re.findall(r"tests/[^,<|\s]+", cell)


def test_the_table_has_a_row_for_every_way_in() -> None:
    assert len(TABLE) >= 11
    assert all(len(row) == 3 and row[1] and named_tests(row[2]) for row in TABLE)


@pytest.mark.parametrize("name", [name for row in TABLE for name in named_tests(row[-1])])
def test_a_test_that_is_named_is_there(name: str) -> None:
    place, _, function = name.partition("::")
    tree = ast.parse(Path(place).read_text(encoding="utf-8"))
    assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
