"""Files appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import platform
import shutil
import signal
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from calipers.exceptions import InputError

# What is written: text (as UTF-8), bytes, or a function that writes into the open binary file.
Content = str | bytes | Callable[[IO[bytes]], Any]
_TEMPORARY, _PART = ".calipers-", ".part"
_USUAL_MODE = 0o666  # less what the umask of the process takes away


def write_atomically(path: Path | str, content: Content) -> Path:
    """Write a file in one step: an interrupted or failed write leaves the old file, or none.

    Parameters
    ----------
    path : path
        Where to; its folder must exist. A link is followed.
    content : str, bytes or callable
        Text (written as UTF-8, line ends as they are), bytes, or a function that is given the open binary
        file and writes into it (it may seek and read back).

    Returns
    -------
    Path
        The path that was given.

    Raises
    ------
    InputError
        When the folder is missing, the folder or an existing file may not be written to, or the disk is full;
        one sentence says which. The error of the operating system, if there was one, is its cause.

    Notes
    -----
    The content goes to a temporary file in the same folder (a rename is one step only within one file
    system), is flushed to the disk, and then takes the place of the file. An existing file keeps its mode, a
    new one gets what any new file would get. What is not a regular file, such as ``/dev/stdout`` or a pipe,
    cannot be replaced and is written into.

    Examples
    --------
    >>> import tempfile
    >>> from calipers.results import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/a.txt", "whole").read_text(encoding="utf-8")
    'whole'
    """
    place = Path(path)
    target = place.resolve() if place.is_symlink() else place
    with _refusals_named(place, target):
        mode = _writable_mode(place, target)
        if mode is None or stat.S_ISREG(mode):
            _replace(target, content, mode)
        else:
            with target.open("wb") as file:
                _fill(file, content)
    return place


@dataclass(frozen=True, slots=True)
class FolderContent:
    """A folder of files, which takes the place of the old one as a whole.

    Parameters
    ----------
    fill : callable
        Given the path of an empty folder, writes the files into it.
    """

    fill: Callable[[Path], Any]


AnyContent = Content | FolderContent


def write_together(contents: Mapping[Path, AnyContent]) -> list[Path]:
    """Write several files together: all of them are complete before the first takes its place.

    Parameters
    ----------
    contents : mapping of path to content
        As `write_atomically` takes them, or a `FolderContent`; the folders they lie in must exist.

    Returns
    -------
    list of Path
        The paths that were given.

    Raises
    ------
    InputError
        As `write_atomically`; then no file was changed.

    Notes
    -----
    A failure or a signal while contents are written leaves every old file. Between the first and the last
    rename signals wait; only a process killed outright in that moment can leave some files new and some old,
    each of them whole. What a killed process was writing is hidden; `remove_leftovers` removes it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calipers.results import write_together
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     places = write_together({Path(folder, "a.txt"): "first", Path(folder, "b.txt"): "second"})
    ...     [place.read_text() for place in places]
    ['first', 'second']
    """
    parts: dict[Path, Path] = {}
    others: dict[Path, Content] = {}
    try:
        for place, content in contents.items():
            target = place.resolve() if place.is_symlink() else place
            with _refusals_named(place, target):
                if isinstance(content, FolderContent):
                    parts[target] = _prepared_folder(target, content)
                    continue
                mode = _writable_mode(place, target)
                if mode is None or stat.S_ISREG(mode):
                    parts[target] = _prepared(target, content, mode)
                else:
                    others[place] = content
        with _signals_held():
            for target, part in parts.items():
                with _refusals_named(target, target):
                    _take_place(part, target)
    finally:
        for part in parts.values():
            _remove(part)
    for place, content in others.items():  # pipes and devices, which cannot be replaced
        write_atomically(place, content)
    return list(contents)


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Remove what killed processes of this machine were writing into these folders.

    Parameters
    ----------
    folders : iterable of Path
        Folders that are written to; those that do not exist are passed over.
    """
    for folder in folders:
        for place in folder.glob(f"{_own_prefix()}*{_PART}") if folder.is_dir() else ():
            number = place.name.removeprefix(_own_prefix()).split("-", maxsplit=1)[0]
            if number.isdigit() and not is_running(int(number)):
                _remove(place)


def is_running(process: int) -> bool:
    """Whether a process of that number runs; True where that cannot be asked."""
    if os.name == "nt":  # a signal would end the process there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _own_prefix() -> str:
    """How temporary names of this machine begin: a folder may be shared with others."""
    return f"{_TEMPORARY}{zlib.crc32(platform.node().encode()):08x}-"


def _temporary(target: Path) -> Path:
    """A hidden name beside the target that says which process writes it."""
    return target.with_name(f"{_own_prefix()}{os.getpid()}-{os.urandom(8).hex()}{_PART}")


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def _take_place(part: Path, target: Path) -> None:
    """Rename; a folder cannot replace one that has files, so the old one is moved aside first."""
    if not target.is_dir():
        part.replace(target)
        return
    old = _temporary(target)
    target.rename(old)
    part.rename(target)
    _remove(old)


def _prepared_folder(target: Path, content: FolderContent) -> Path:
    """A complete folder beside the target; nothing stays when it cannot be filled."""
    part = _temporary(target)
    try:
        part.mkdir()
        content.fill(part)
    except BaseException:
        _remove(part)
        raise
    return part


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Interrupts and requests to end wait until the block is done, where the system can make them wait."""
    hold = getattr(signal, "pthread_sigmask", None)
    if hold is None:
        yield
        return
    before = hold(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        hold(signal.SIG_SETMASK, before)


def _writable_mode(place: Path, target: Path) -> int | None:
    """Kind and permissions of what is there, None when nothing is; what may not be written is refused."""
    mode = _mode(target)
    if mode is not None and not os.access(target, os.W_OK):
        raise InputError(f"{place} cannot be written: it is read-only. Allow it, or give another place.")
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return mode


def _mode(target: Path) -> int | None:
    """Kind and permissions of what is there; None when nothing is."""
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        return None


def _replace(target: Path, content: Content, mode: int | None) -> None:
    part = _prepared(target, content, mode)
    try:
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _prepared(target: Path, content: Content, mode: int | None) -> Path:
    """A complete file beside the target, ready to take its place; nothing stays when it cannot be made."""
    part = _temporary(target)
    wanted = _USUAL_MODE if mode is None else stat.S_IMODE(mode)
    try:
        with open(part, "x+b", opener=functools.partial(os.open, mode=wanted)) as file:
            _fill(file, content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            part.chmod(wanted)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part


def _fill(file: IO[bytes], content: Content) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def _refusals_named(place: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = target.name if error.filename is None else Path(error.filename).name
        if name != target.name and not name.startswith(_TEMPORARY):
            raise  # about another file, which the content was to be read from
        raise InputError(f"{place} cannot be written: {_reason(error, target.parent)}") from error


def _reason(error: OSError, folder: Path) -> str:
    """Why, and the remedy."""
    if not folder.exists():
        return f"the folder {folder} does not exist. Make it, or give another place."
    if not folder.is_dir():
        return f"{folder} is a file, not a folder. Give another place."
    known = {
        errno.EISDIR: "it is a folder. Give the name of a file.",
        errno.EACCES: f"the folder {folder} may not be written to. Allow it, or give another place.",
        errno.EROFS: f"the folder {folder} is on a read-only file system. Give another place.",
        errno.ENOSPC: "the disk is full. Free some space, or give another place.",
        errno.EDQUOT: "the disk quota is used up. Free some space, or give another place.",
    }
    known[errno.EPERM] = known[errno.EACCES]
    return known.get(error.errno or 0, f"{error.strerror or type(error).__name__}. Give another place.")
