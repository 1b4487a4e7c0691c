"""``python -m tests.golden.record [NAME ...]``: store what the package gives today; read `tests.golden` first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from tests.golden import audits, command_line, endings, signatures
from tests.golden.storage import store

RECORDINGS: dict[str, Callable[[], Any]] = {
    "signatures": signatures.collect,
    "command_line": command_line.collect,
    "audits": audits.record,
    "endings": endings.record,
}


def record(names: Sequence[str]) -> None:
    """Record the named files, or all."""
    for name in names or RECORDINGS:
        print(store(name, RECORDINGS[name]()))


if __name__ == "__main__":
    record(sys.argv[1:])
