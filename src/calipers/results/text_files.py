"""A text that is given back and, when a path is given, also written to it."""

from __future__ import annotations

from pathlib import Path

from calipers.results.writing import write_atomically


def also_written(text: str, path: Path | str | None) -> str:
    """The text; it is also written to the path when one is given."""
    if path is not None:
        write_atomically(path, text)
    return text
