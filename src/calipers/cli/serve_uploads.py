"""Where uploads lie while the page runs: removed at every end, or at the next start."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from calipers.results.writing import is_running

PREFIX = "calipers-serve-"


@contextmanager
def upload_folder() -> Iterator[Path]:
    """A folder of this process alone, readable by its owner; those of ended processes are removed first."""
    remove_left_over()
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def remove_left_over() -> None:
    """Remove folders of pages that were killed: ours, by the number of a process that has ended."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        number = place.name.removeprefix(PREFIX).split("-", maxsplit=1)[0]
        if number.isdigit() and _is_own_folder(place) and not is_running(int(number)):
            shutil.rmtree(place, ignore_errors=True)


def _is_own_folder(place: Path) -> bool:
    user = getattr(os, "getuid", None)
    return place.is_dir() and not place.is_symlink() and (user is None or place.stat().st_uid == user())


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Requests to end leave by the way of an exception, so that what must be cleaned up is."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), leave) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
