"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_text(path: Path | str, text: str) -> Path:
    """Write a text file in one step: an interrupted run leaves the old file, or none.

    Parameters
    ----------
    path : path
        Where to; its folder must exist.
    text : str
        What.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileNotFoundError
        When its folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from calipers.report import write_text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(f"{folder}/a.txt", "whole").read_text(encoding="utf-8")
    'whole'
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{place} cannot be written: the folder {place.parent} does not exist.")
    # Beside its final place: a rename is one step only within one file system.
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # mkstemp makes files for the owner alone; a report gets what any new file would get.
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
    return place
