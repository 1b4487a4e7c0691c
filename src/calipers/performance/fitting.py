"""Many small fits through joblib: the same numbers for any number of workers and any backend.

Every fit has its own integer seed, all drawn from the one generator before the first fit, and the same number
of threads everywhere; so a value depends on its block only, never on who computed it or when. Fits travel in
chunks with the rows they need, so the data set crosses to the workers once in all.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from calipers.exceptions import FitError, InputError
from calipers.inputs import check_count
from calipers.performance.caching import ResumableCache
from calipers.performance.progress import FitProgress, Progress
from calipers.performance.rows import Rows

# Enough chunks that workers of unequal speed end together, few enough that dispatch costs nothing.
_CHUNKS_PER_WORKER = 16
_MIN_CHUNKS = 64
_MAX_SEED = 2**31 - 1

# evaluate(fitted estimator, evaluation rows) -> one value (a float, or a symbol)
Evaluate = Callable[[Any, Rows], Any]


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How the fits are run; ``n_jobs``, ``cache`` and ``progress`` change no result.

    ``on_failure``: "raise" stops at the first failed subset, "infinite" counts it as infinite loss.
    ``inner_threads``: threads of every fit; sums taken in another order may change the last digits.
    """

    n_jobs: int | None = None
    on_failure: str = "raise"
    cache: str | None = None
    progress: bool | Progress = False
    inner_threads: int = 1

    def __post_init__(self) -> None:
        if self.on_failure not in {"raise", "infinite"}:
            raise InputError(f'on_failure must be "raise" or "infinite", got {self.on_failure!r}.')
        check_count(self.inner_threads, name="inner_threads")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one fit gave: a value, or the error that stopped it."""

    index: int
    value: Any
    error: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    index: int
    train: Rows
    evaluate: Rows
    seed: int


def fit_blocks(
    estimator: Any,
    rows: Rows,
    train: np.ndarray,
    evaluate_rows: np.ndarray,
    evaluate: Evaluate,
    *,
    generator: np.random.Generator,
    options: FitOptions,
    failed_value: Any = np.inf,
) -> tuple[list[Any], dict[int, str]]:
    """Value of every block, and the error of every block that failed.

    Parameters
    ----------
    estimator : object with ``fit``
        Cloned for every block; parameters called ``random_state`` that are None get the block's seed.
    train, evaluate_rows : int array (k, m) and (k, b)
        Rows of each block.
    evaluate : callable
        Fitted estimator and evaluation rows to one value.
    failed_value : object
        What a failed block counts as when ``options.on_failure`` is "infinite".

    Raises
    ------
    FitError
        At the first failed subset, when failures raise.
    """
    seeds = generator.integers(0, _MAX_SEED, size=len(train))
    cache = ResumableCache.open(
        options.cache, "fits", estimator, rows.X, rows.y, train, evaluate_rows, seeds, evaluate
    )
    values: list[Any] = [None] * len(train)
    done = {index: value for chunk in cache.read_all() for index, value in chunk}
    for index, value in done.items():
        values[index] = value
    todo = [j for j in range(len(train)) if j not in done]
    failures: dict[int, str] = {}
    fatal: list[FitError] = []

    def chunks() -> Iterator[list[_Block]]:
        for chunk in _chunked(todo, options.n_jobs):
            # After a failure nothing new is sent out; what runs is awaited, so that no worker is cut off.
            if fatal:
                return
            yield [_Block(j, rows.take(train[j]), rows.take(evaluate_rows[j]), int(seeds[j])) for j in chunk]

    with FitProgress(options.progress, len(train)) as report:
        report(len(done))
        for outcomes in _run(estimator, chunks(), evaluate, options):
            fatal += _record(outcomes, values, failures, cache, options, failed_value)
            report(len(outcomes))
    if fatal:
        raise fatal[0]
    return values, failures


def _record(
    outcomes: list[Outcome],
    values: list[Any],
    failures: dict[int, str],
    cache: ResumableCache,
    options: FitOptions,
    failed_value: Any,
) -> list[FitError]:
    """Keep values and failures; the errors that end the run, when failures raise."""
    fatal = []
    good = [(o.index, o.value) for o in outcomes if not o.error]
    if good:
        cache.store(f"{good[0][0]:08d}", good)  # no other chunk has this index
    for outcome in outcomes:
        values[outcome.index] = failed_value if outcome.error else outcome.value
        if outcome.error and options.on_failure == "raise":
            error = FitError(
                f"the fit on training subset {outcome.index} of {len(values)} failed: {outcome.error}. "
                'Repair it, or pass on_failure="infinite" to count failures as infinite loss.'
            )
            error.add_note(outcome.trace)
            fatal.append(error)
        elif outcome.error:
            failures[outcome.index] = outcome.error
    return fatal


def _run(
    estimator: Any, chunks: Iterator[list[_Block]], evaluate: Evaluate, options: FitOptions
) -> Iterator[list[Outcome]]:
    tasks = (delayed(run_chunk)(estimator, chunk, evaluate, options.inner_threads) for chunk in chunks)
    yield from in_workers(tasks, options.n_jobs)


def in_workers(tasks: Iterable[Any], n_jobs: int | None = None) -> Iterator[Any]:
    """Results of delayed calls in their order, as they come, by whatever backend joblib is set to."""
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:  # a backend that can only return everything at the end
        parallel = Parallel(n_jobs=n_jobs)
    yield from parallel(tasks)


def _chunked(indices: Sequence[int], n_jobs: int | None) -> Iterator[Sequence[int]]:
    size = max(1, len(indices) // max(_MIN_CHUNKS, _CHUNKS_PER_WORKER * effective_n_jobs(n_jobs)))
    for start in range(0, len(indices), size):
        yield indices[start : start + size]


def run_chunk(estimator: Any, blocks: list[_Block], evaluate: Evaluate, threads: int) -> list[Outcome]:
    """Fit and evaluate some blocks, in a worker; an exception becomes part of the outcome."""
    copies = SeededCopies(estimator)
    with thread_limit(threads):
        return [_run_block(copies, block, evaluate) for block in blocks]


def _run_block(copies: SeededCopies, block: _Block, evaluate: Evaluate) -> Outcome:
    try:
        model, train = copies.make(block.seed), block.train
        fitted = model.fit(train.X) if train.y is None else model.fit(train.X, train.y)
        # Some algorithms return the fitted model, as scikit-learn's do; others return nothing.
        return Outcome(block.index, evaluate(model if fitted is None else fitted, block.evaluate))
    except Exception as error:  # noqa: BLE001 - any failure of the user's algorithm is reported with its subset
        return Outcome(block.index, None, f"{type(error).__name__}: {error}", traceback.format_exc())


class SeededCopies:
    """Makes unfitted copies whose open random states are set; one the user fixed stays fixed.

    The first copy is scikit-learn's ``clone``; the others are read back from its pickle, which takes a
    tenth of the time.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from calipers.performance.fitting import SeededCopies
    >>> copies = SeededCopies(SGDClassifier())
    >>> copies.make(7).random_state == copies.make(7).random_state != copies.make(8).random_state
    True
    """

    def __init__(self, estimator: Any) -> None:
        self._template = clone(estimator, safe=False)
        self._open = _open_random_states(self._template)
        try:
            self._pickle = pickle.dumps(self._template, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError):  # a lambda inside, say
            self._pickle = b""

    def make(self, seed: int) -> Any:
        """One copy for this seed."""
        model = pickle.loads(self._pickle) if self._pickle else clone(self._template, safe=False)  # noqa: S301 - our own
        if self._open == ["random_state"]:
            model.random_state = seed  # what set_params does, without reading the signature every time
        elif self._open:
            draws = np.random.default_rng(seed).integers(0, _MAX_SEED, size=len(self._open))
            model.set_params(**dict(zip(self._open, draws.tolist(), strict=True)))
        return model


def _open_random_states(model: Any) -> list[str]:
    if not hasattr(model, "get_params"):
        return []
    return [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]


def seeded_clone(estimator: Any, seed: int) -> Any:
    """One unfitted copy; see `SeededCopies`."""
    return SeededCopies(estimator).make(seed)


@lru_cache(maxsize=1)
def _controller() -> Any:
    # Finding the loaded libraries costs milliseconds, limiting them microseconds: find once per process.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def thread_limit(threads: int) -> AbstractContextManager[Any]:
    """The same number of threads per fit in every process: sums are then added in the same order."""
    context: AbstractContextManager[Any] = _controller().limit(limits=threads)
    return context
