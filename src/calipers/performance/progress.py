"""How far the fits are: a bar on stderr, or a call to the user's own function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# (fits done, fits in all)
Progress = Callable[[int, int], None]


class FitProgress:
    """Counts finished fits for a callable, for a bar on stderr (True), or not at all (False).

    Examples
    --------
    >>> from calipers.performance.progress import FitProgress
    >>> with FitProgress(lambda done, total: print(done, "of", total), 5) as report:
    ...     report(2)
    ...     report(3)
    2 of 5
    5 of 5
    """

    def __init__(self, progress: bool | Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._bar: Any = None

    def __enter__(self) -> Callable[[int], None]:
        if self._progress is True:
            self._start_bar()
        return self._advance

    def _start_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("fits"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Bar(*columns, console=Console(stderr=True))
        self._bar.start()
        self._task = self._bar.add_task("fits", total=self._total)

    def _advance(self, count: int) -> None:
        self._done += count
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
        elif callable(self._progress):
            self._progress(self._done, self._total)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
