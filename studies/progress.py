"""The progress bar of a study, on standard error: results own standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from joblib import delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from calipers.performance.caching import ResumableCache
from calipers.performance.fitting import in_workers


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
    progress: Progress,
    work: Callable[..., Any],
    jobs: Mapping[str, tuple[Any, ...]],
    *,
    description: str,
    cache: ResumableCache,
) -> list[Any]:
    """What the work gives for each job, in their order: kept from an earlier run, or computed now and kept.

    Jobs are done here, or by the workers that joblib is told to use; each is kept as soon as it is done.

    Examples
    --------
    >>> import joblib
    >>> from calipers.performance.caching import ResumableCache
    >>> from studies.progress import study_progress, worked
    >>> jobs = {"cube": (2, 3), "square": (3, 2)}
    >>> with study_progress() as progress, joblib.parallel_config(backend="threading", n_jobs=2):
    ...     worked(progress, pow, jobs, description="powers", cache=ResumableCache(None))
    [8, 9]
    """
    found = {}
    for part in jobs:
        with suppress(KeyError):
            found[part] = cache.read(part)
    missing = [part for part in jobs if part not in found]
    results = in_workers(delayed(work)(*jobs[part]) for part in missing)
    tracked = progress.track(results, total=len(missing), description=description)
    for part, value in zip(missing, tracked, strict=True):
        found[part] = cache.keep(part, value)
    return [found[part] for part in jobs]
