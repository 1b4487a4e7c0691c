"""The progress bar of a study, on standard error: results own standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from joblib import delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from calipers.performance.fitting import in_workers

T = TypeVar("T")


@contextmanager
def study_progress() -> Iterator[Progress]:
    """A bar with description, steps done and time; one task per stage of the study.

    Examples
    --------
    >>> from studies.progress import study_progress
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


def worked(
    progress: Progress, work: Callable[..., T], jobs: Sequence[tuple[Any, ...]], *, description: str
) -> Iterator[T]:
    """What the work gives for each job, in their order: here, or by the workers that joblib is told to use.

    Examples
    --------
    >>> import joblib
    >>> from studies.progress import study_progress, worked
    >>> with study_progress() as progress, joblib.parallel_config(backend="threading", n_jobs=2):
    ...     list(worked(progress, pow, [(2, 3), (3, 2)], description="powers"))
    [8, 9]
    """
    found = in_workers(delayed(work)(*job) for job in jobs)
    yield from progress.track(found, total=len(jobs), description=description)
