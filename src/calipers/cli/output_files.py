"""Files that commands write: checked before the work, written together or not at all."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calipers.exceptions import InputError

if TYPE_CHECKING:
    from calipers.results.writing import AnyContent

ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace existing files that Calipers did not write.")
]
# Everything Calipers writes names it near its beginning.
_SIGNATURE, _HEAD = b"calipers", 4096


def writable_folder(path: Path) -> Path:
    """The folder, made if it does not exist; an error when a file is in the way."""
    _require_folder(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files a command was asked to write.

    Parameters
    ----------
    folder : Path or None
        The folder of ``--out``; made when the files are written.
    names : tuple of str
        The files written into it.
    others : tuple of Path
        Files asked for by a place of their own.
    force : bool
        Whether files that Calipers did not write may be replaced.
    folders : tuple of Path
        Folders of numbered parts, each replaced as a whole.
    """

    folder: Path | None
    names: tuple[str, ...] = ()
    others: tuple[Path, ...] = ()
    force: bool = False
    folders: tuple[Path, ...] = ()

    def places(self) -> list[Path]:
        """Every file that will be written."""
        own = [] if self.folder is None else [self.folder / name for name in self.names]
        return own + list(self.others)

    def check(self) -> Outputs:
        """Refuse, before any work, what could not be written afterwards or must not be replaced."""
        if self.folder is not None:
            _require_folder(self.folder)
        for place in self.places():
            _require_writable(place)
            if place.is_file() and not self.force and not _is_ours(place):
                raise InputError(
                    f"{place} exists and was not written by Calipers. "
                    "Give another place, or --force to replace it."
                )
        for place in self.folders:
            _require_parts(place, force=self.force)
        return self

    def write(self, contents: Mapping[Path, AnyContent]) -> InputError | None:
        """Write all files together; what went wrong comes back, to be raised after the results are shown."""
        from calipers.results.writing import remove_leftovers, write_together

        replaced = [place for place in contents if place.is_file() or place.is_dir()]
        try:
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers({place.parent for place in contents})
            write_together(contents)
        except OSError as error:
            reason = error.strerror or error
            place = self.folder or next(iter(contents))
            return InputError(
                f"{place} cannot be written: {reason}. Give another place. No file was changed."
            )
        except InputError as error:
            return InputError(f"{error} No file was changed.")
        if replaced:
            names = ", ".join(str(place) for place in replaced)
            print(f"calipers: replaced what an earlier run wrote: {names}", file=sys.stderr)
        return None


def _require_folder(path: Path) -> None:
    try:
        wrong = path.exists() and not path.is_dir()
    except OSError as error:
        raise InputError(
            f"{str(path)[:60]} cannot be a folder: {error.strerror}. Give another place."
        ) from None
    if wrong:
        raise InputError(f"--out must be a folder, got the file {path}. Give another place.")


def _require_writable(place: Path) -> None:
    """Refuse a place in which nothing can be written: the nearest folder that exists decides."""
    try:
        if place.is_dir():
            raise InputError(f"{place} cannot be written: it is a folder. Give the name of a file.")
        exists = place.exists()
        folder = next(parent for parent in (place.absolute(), *place.absolute().parents) if parent.is_dir())
    except OSError as error:
        raise InputError(
            f"{str(place)[:60]} cannot be written: {error.strerror}. Give another place."
        ) from None
    if exists and not os.access(place, os.W_OK):
        raise InputError(f"{place} cannot be written: it is read-only. Allow it, or give another place.")
    is_device = exists and not stat.S_ISREG(place.stat().st_mode)
    if not is_device and not os.access(folder, os.W_OK):
        raise InputError(
            f"{place} cannot be written: the folder {folder} may not be written to. "
            "Allow it, or give another place."
        )


def _require_parts(place: Path, *, force: bool) -> None:
    """Refuse a folder that holds anything but the numbered parts of an earlier run."""
    _require_folder(place)
    _require_writable(place / "part-00000")
    others = [path.name for path in place.iterdir() if not path.match("part-*")] if place.is_dir() else []
    if others and not force:
        raise InputError(
            f"{place} holds files that Calipers did not write ({min(others)}). "
            "Give another place, or --force to replace the folder."
        )


def _is_ours(place: Path) -> bool:
    try:
        with place.open("rb") as file:
            return _SIGNATURE in file.read(_HEAD).lower() or not place.stat().st_size
    except OSError:
        return False


def require_parents(places: Iterable[Path]) -> None:
    """Refuse a file whose folder does not exist; only folders of ``--out`` are made."""
    for place in places:
        if not place.absolute().parent.is_dir():
            raise InputError(
                f"{place} cannot be written: the folder {place.parent} does not exist. "
                "Make it, or give another place."
            )
