"""Which files a path, a pattern, a folder, a partitioned table or an address stands for."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from calipers.arrays import import_optional
from calipers.exceptions import CalipersError, InputError, MissingDependencyError
from calipers.inputs.files.formats import SHOWN, is_readable
from calipers.inputs.files.storage_options import for_fsspec

T = TypeVar("T")


def expand(pattern: str, storage: Mapping[str, Any] | None = None) -> list[str]:
    """The files a pattern, a folder or an address stands for, sorted; a plain path stands for itself."""
    if "://" in pattern:
        found = _expand_address(pattern, dict(storage or {}))
    elif _of_system(pattern, lambda: _is_folder(pattern)):
        found = _of_folder(str(file) for file in Path(pattern).rglob("*"))
    elif not has_wildcard(pattern) or Path(pattern).exists():
        return [pattern]
    else:
        found = _of_pattern(Path(pattern))
    if not found:
        raise InputError(f"no file matches {pattern}; files that end in {SHOWN} are looked for.")
    return found


def _of_system(path: str, ask: Callable[[], T]) -> T:
    """What the operating system answers; a name it does not take is one sentence."""
    try:
        return ask()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputError(f"...{path[-60:]!r} is not a file name ({said}).") from None


def _is_folder(path: str) -> bool:
    """Whether it is a folder; `Path.is_dir` of Python 3.14 also calls what the system refuses no folder."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return False


def _of_pattern(path: Path) -> list[str]:
    """Files that match, and those in folders that match."""
    root = Path(path.anchor) if path.is_absolute() else Path()
    found = sorted(root.glob(str(path.relative_to(path.anchor))))
    inside = (_of_folder(str(f) for f in file.rglob("*")) if file.is_dir() else [str(file)] for file in found)
    return [name for names in inside for name in names]


def distinct(files: Iterable[str]) -> list[str]:
    """Every file once, however its path is spelled.

    Examples
    --------
    >>> from calipers.inputs.files.file_patterns import distinct
    >>> distinct(["logs/a.csv", "logs/../logs/a.csv", "s3://bucket/a.csv"])
    ['logs/a.csv', 's3://bucket/a.csv']
    """
    known: dict[str, str] = {}
    for file in files:
        place = file if "://" in file else _of_system(file, partial(os.path.realpath, file))
        known.setdefault(place, file)
    return list(known.values())


def _expand_address(address: str, storage: dict[str, Any]) -> list[str]:
    if not has_wildcard(address) and is_readable(address):
        return [address]
    fsspec = import_optional(
        "fsspec", purpose="patterns and folders of addresses", install="calipers[storage]"
    )

    def listed() -> list[str]:
        system, path = fsspec.url_to_fs(address, **for_fsspec(address, storage))
        found = system.glob(path) if has_wildcard(address) else system.find(path)
        return [system.unstrip_protocol(name) for name in found]

    return _of_folder(of_store(address, listed))


def _of_folder(names: Iterable[str]) -> list[str]:
    """Files that hold rows; names that begin with _ or . are the table's own notes."""
    return sorted(name for name in names if is_readable(name) and name.rsplit("/", 1)[-1][0] not in "_.")


def has_wildcard(pattern: str) -> bool:
    """Whether a path is a pattern."""
    return any(character in pattern for character in "*?[")


def of_store(address: str, work: Callable[[], T]) -> T:
    """Whatever a remote store objects to becomes one sentence that names the address.

    Stores have trees of errors of their own, which share no class but Exception.
    """
    try:
        return work()
    except CalipersError:
        raise
    except FileNotFoundError:
        raise InputError(f"there is nothing at {address}.") from None
    except ImportError as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise MissingDependencyError(f"{address} cannot be opened: {said}.") from None
    except Exception as error:  # noqa: BLE001
        said = " ".join(str(error).split())[:160].rstrip(".") or type(error).__name__
        raise InputError(f"{address} cannot be read ({said}). Check the address and the options.") from None


def short_names(files: Sequence[str]) -> list[str]:
    """Names of the files below the folder they share: the same wherever that folder is mounted.

    Examples
    --------
    >>> from calipers.inputs.files.file_patterns import short_names
    >>> short_names(["/data/north/a.csv", "/data/south/a.csv"])
    ['north/a.csv', 'south/a.csv']
    """
    parts = [file.split("/") for file in files]
    shared = 0
    while all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    return ["/".join(part[shared:]) for part in parts]
