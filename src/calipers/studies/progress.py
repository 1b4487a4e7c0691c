"""The progress bar of a study, on standard error: results own standard output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def study_progress() -> Iterator[Progress]:
    """A bar with description, steps done and time; one task per stage of the study.

    Examples
    --------
    >>> from calipers.studies.progress import study_progress
    >>> with study_progress() as progress:
    ...     total = sum(progress.track(range(3), description="adding"))
    >>> total
    3
    """
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield progress
