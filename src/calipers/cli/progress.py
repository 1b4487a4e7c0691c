"""Progress on standard error: only on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def check_progress(*, quiet: bool, title: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar that moves from check to check; nothing when quiet or not a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def move(code: str, done: int, total: int) -> None:
            bar.update(task, description=f"Checking {code}" if code else "Done", completed=done, total=total)

        yield move
