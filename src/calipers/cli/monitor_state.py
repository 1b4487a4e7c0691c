"""The file of ``calipers monitor --state``: the monitor, and how far every source has been read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from calipers.cli.monitor_source import Places
from calipers.exceptions import InputError
from calipers.results import write_atomically

SCHEMA = 1


def load_state(path: Path) -> dict[str, Any] | None:
    """What was stored, or None when there is nothing yet."""
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a stored monitor ({error}).") from None
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA or "monitor" not in stored:
        raise InputError(f"{path} is not a stored monitor of this version. Give another --state.")
    return stored


def save_state(path: Path, monitor: dict[str, Any], places: Places) -> None:
    """Monitor and places in one file, replaced at once: it is whole whenever the program is stopped."""
    document = {"schema": SCHEMA, "monitor": monitor, "places": places}
    write_atomically(path, json.dumps(document, allow_nan=False))
