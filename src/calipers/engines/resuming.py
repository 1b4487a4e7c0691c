"""A long run that was interrupted goes on where it stopped: what was merged is stored now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calipers.engines.running import LocalEngine, MergeInOrder, Progress, States
from calipers.engines.sources import Piece
from calipers.engines.state_content import content_of, with_content
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs.files.readers import file_stamp

if TYPE_CHECKING:
    from calipers.performance.caching import ResumableCache

# Seconds between two stored states, and how many times longer than storing one the time between must be.
_SECONDS, _RATIO = 30.0, 20.0
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError, IndexError, ImportError)


class ResumableEngine(LocalEngine):
    """Threads on this machine, as `LocalEngine`, and a folder in which finished work is kept.

    Parameters
    ----------
    folder : path
        Where the states of finished pieces are kept: numbers, text and arrays, no pickle. A run with the same
        files, columns and settings goes on from there; when one of them, or Calipers, has changed, nothing
        old is found.
    n_workers : int, optional
        Threads, as for `LocalEngine`.

    Notes
    -----
    The result is that of an uninterrupted run to the last bit: states are merged in the same order. States
    are stored every half minute, and when a pass over the rows has ended. The folder may be removed at any
    time.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from calipers.engines import ArraySource, ResumableEngine, measure
    >>> rows = ArraySource({"y_true": np.zeros(500), "intervals": np.ones((500, 2)) * [-1, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     float(measure(rows, ["coverage"], engine=ResumableEngine(folder))["coverage"])
    1.0
    """

    def __init__(self, folder: Path | str, n_workers: int | None = None) -> None:
        super().__init__(n_workers)
        self.folder = folder
        self._cache()  # a file in its place is refused before the work

    def __repr__(self) -> str:
        return f"ResumableEngine({str(self.folder)!r})"

    def reduce(self, pieces: Sequence[Piece], states: States, progress: Progress) -> States:
        """Absorb the pieces that no earlier run has absorbed, and store what is merged on the way."""
        cache = self._cache([_described(piece) for piece in pieces], states)
        merger, clock = _restored(cache, states), _Clock()
        for part in self.absorbed(pieces[merger.done :], states):
            merger.add(part)
            progress(merger.done, len(pieces))
            if merger.done == len(pieces) or clock.is_due():
                clock.spend(lambda: _store(cache, merger))
        return merger.root()

    def _cache(self, pieces: Sequence[Any] = (), states: States | None = None) -> ResumableCache:
        """The folder of a pass, named after its files and the content of the states that it begins with."""
        from calipers.performance.caching import ResumableCache
        from calipers.performance.fingerprints import fingerprint

        begun = {name: content_of(state, fingerprint) for name, state in (states or {}).items()}
        return ResumableCache.open(self.folder, "pass", pieces, sorted(begun.items()))


class _Clock:
    """When the next state is to be stored: seldom enough that storing takes little of the time."""

    def __init__(self) -> None:
        self.next = time.monotonic() + _SECONDS

    def is_due(self) -> bool:
        return time.monotonic() >= self.next

    def spend(self, work: Callable[[], None]) -> None:
        begin = time.monotonic()
        work()
        now = time.monotonic()
        self.next = now + max(_SECONDS, _RATIO * (now - begin))


def _described(piece: Piece) -> Any:
    """The piece and, for a file, when it was written; a file whose changes cannot be seen is refused."""
    path = str(getattr(piece, "path", ""))
    stamp = file_stamp(path) if path else None
    if path and stamp is None:
        raise InputError(
            f"finished work is kept only for local files, whose changes can be seen, got {path}. "
            "Run without a cache."
        )
    return piece, stamp


def _store(cache: ResumableCache, merger: MergeInOrder) -> None:
    """Keep what is merged; a state that cannot be stored is computed again."""
    try:
        levels = [
            [{name: content_of(state) for name, state in node.items()} for node in level]
            for level in merger.levels
        ]
    except InputTypeError:
        return
    cache.store("merged", {"done": merger.done, "levels": levels})


def _restored(cache: ResumableCache, states: States) -> MergeInOrder:
    """What an earlier run had merged; nothing when there is none, or it cannot be read."""
    merger = MergeInOrder()
    try:
        kept = cache.read("merged")
        levels = [
            [{name: with_content(states[name], content) for name, content in node.items()} for node in level]
            for level in kept["levels"]
        ]
        merger.levels, merger.done = levels, int(kept["done"])
    except _UNREADABLE:
        pass
    return merger
