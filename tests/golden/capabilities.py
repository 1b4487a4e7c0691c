"""Tests by their ids."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def is_a_test(identity: str) -> bool:
    """Whether ``path::name`` is a test function or a test class's method in this repository."""
    path, _, name = identity.partition("::")
    place = ROOT / path
    if not place.is_file():
        return False
    tree = ast.parse(place.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree))
