"""The folder of stored files, and how they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "stored"
VERSION_0_1 = STORED / "version_0_1"


def load(name: str) -> Any:
    """The content of one stored file."""
    return json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))


def store(name: str, content: Any) -> Path:
    """Write it, one entry a line where that keeps differences readable."""
    place = STORED / f"{name}.json"
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    place.write_text(text + "\n", encoding="utf-8")
    return place
