"""Folders that commands write into."""

from __future__ import annotations

from pathlib import Path

from calipers.exceptions import InputError


def writable_folder(path: Path) -> Path:
    """The folder, made if it does not exist; an error when a file is in the way."""
    if path.exists() and not path.is_dir():
        raise InputError(f"--out must be a folder, got the file {path}. Give another place.")
    path.mkdir(parents=True, exist_ok=True)
    return path
