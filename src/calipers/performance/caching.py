"""A folder of finished work, so that an interrupted run goes on where it stopped.

The one cache of the package: fits of `AlgorithmPerformance` and `SymbolicPerformance`, and the studies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calipers.exceptions import InputError, InputTypeError
from calipers.performance.fingerprints import fingerprint, library_versions, source_fingerprint
from calipers.results import write_atomically

_SKELETON = "skeleton"


@dataclass(frozen=True, slots=True)
class ResumableCache:
    """Finished parts of one computation; without a folder it keeps nothing.

    The folder is named after everything the parts depend on: the source of Calipers, the versions of the
    libraries that compute, and what is named when the cache is opened (data, parameters, functions). When
    one of them changes, the name changes, and nothing old is found. A part is one file, written whole or not
    at all. A damaged one counts as missing. Files hold numbers and text only, no pickle.

    Parameters
    ----------
    folder : Path or None
        Where the parts are.

    Examples
    --------
    >>> import tempfile
    >>> from calipers.performance.caching import ResumableCache
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for size in (2, 2, 3):
    ...         cache = ResumableCache.open(folder, "squares", size)
    ...         print(cache.get("all", lambda: print("computing") or [k**2 for k in range(size)]))
    computing
    [0, 1]
    [0, 1]
    computing
    [0, 1, 4]
    """

    folder: Path | None

    @classmethod
    def open(cls, folder: Path | str | None, name: str, *determined_by: Any) -> ResumableCache:
        """The cache of exactly this computation, empty when it is new."""
        if folder is None:
            return cls(None)
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise InputError(f"cache must be a folder, got the file {place}. Give another place.")
        key = fingerprint((source_fingerprint("calipers"), library_versions(), *determined_by))
        return cls(place / f"{name}-{key}")

    def __contains__(self, part: str) -> bool:
        """Whether the part was stored; it may be damaged, which only `read` sees."""
        return self.folder is not None and (self.folder / f"{part}.npz").exists()

    def read(self, part: str) -> Any:
        """A stored part; KeyError when it is missing or damaged. Tuples come back as lists."""
        if self.folder is None:
            raise KeyError(part)
        try:
            with (
                (self.folder / f"{part}.npz").open("rb") as file,
                np.load(file, allow_pickle=False) as stored,
            ):
                return _filled(json.loads(stored[_SKELETON].tobytes()), stored)
        except Exception:  # noqa: BLE001 - numpy and zipfile raise a dozen kinds for a damaged file
            raise KeyError(part) from None

    def read_all(self) -> Iterator[Any]:
        """Every stored part that is not damaged."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob("*.npz")):
            try:
                yield self.read(path.stem)
            except KeyError:
                continue

    def store(self, part: str, value: Any) -> None:
        """Keep a value: numbers, text, None and arrays, in lists, tuples and dictionaries with text keys."""
        if self.folder is None:
            return
        arrays: dict[str, Any] = {}
        skeleton = json.dumps(_emptied(value, arrays)).encode()
        arrays[_SKELETON] = np.frombuffer(skeleton, dtype=np.uint8)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.folder / f"{part}.npz", lambda file: np.savez(file, **arrays))

    def keep(self, part: str, value: Any) -> Any:
        """Store a value and return it as it is read back, so that every run goes on with the same bits."""
        if self.folder is None:
            return value
        self.store(part, value)
        return self.read(part)

    def get(self, part: str, compute: Callable[[], Any]) -> Any:
        """The stored part, or computed and kept."""
        try:
            return self.read(part)
        except KeyError:
            pass  # what is computed must not be raised from it
        return self.keep(part, compute())


def _emptied(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value as JSON, its arrays taken out and numbered."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        name = str(len(arrays))
        arrays[name] = value
        return {"$array": name}
    if isinstance(value, (list, tuple)):
        return [_emptied(item, arrays) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _emptied(item, arrays) for key, item in value.items()}
    raise InputTypeError(f"a cache keeps numbers, text and arrays of them, got {type(value).__name__}.")


def _filled(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_filled(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$array"}:
        return arrays[value["$array"]]
    return {key: _filled(item, arrays) for key, item in value.items()}
