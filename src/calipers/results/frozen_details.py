"""Frozen results whose details are a mapping that cannot be changed: how they come back from a pickle."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any


def restore_frozen(result: Any, state: dict[str, Any]) -> None:
    """``__setstate__`` of a frozen result: its fields, and its details as a mapping that cannot change."""
    for key, value in state.items():
        object.__setattr__(result, key, MappingProxyType(value) if key == "details" else value)
