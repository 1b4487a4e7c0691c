"""How large a file may be: the memory its rows need, and what a compressed file unpacks to.

A kilobyte of gzip can hold a megabyte, so neither is guessed from the size of the file: rows are counted, and
bytes are unpacked, in bounded memory.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

from calipers.exceptions import InputError
from calipers.inputs.files.formats import format_of, open_packed

# A frame, its numpy copies and the work on them, per byte of values.
_WORKING_SPACE = 4
_BYTES_PER_VALUE = 8
# A compressed file may unpack to so many times its size, and to so many bytes in any case. Tables of numbers
# shrink by 2 to 30; what deflate can do at most is 1032.
_MOST_EXPANSION = 200
_ALWAYS_ALLOWED = 100 << 20
_CHUNK = 1 << 20
# Fields of the index of an arrow file, and the bytes of an entry.
_DICTIONARIES, _BATCHES, _BLOCK = 2, 3, 24


def refuse_bomb(path: str) -> None:
    """Refuse a local file that unpacks to far more than its size; it is unpacked no further than the limit.

    Examples
    --------
    >>> from calipers.inputs.files.size_limits import refuse_bomb
    >>> refuse_bomb("rows.parquet")
    """
    kind, compression = format_of(path)
    if "://" in path or not (compression or kind.name == "npz"):
        return
    limit = max(_ALWAYS_ALLOWED, _MOST_EXPANSION * Path(path).stat().st_size)
    total = 0
    for size in _unpacked_sizes(path, compression):
        total += size
        if total > limit:
            remedy = "Write it with numpy.savez" if kind.name == "npz" else "Unpack it"
            raise InputError(
                f"{path} unpacks to more than {limit / 1e6:.0f} MB, over {_MOST_EXPANSION} times its size, "
                f"and was not read. {remedy} if you trust it, and give the unpacked file."
            )


def refuse_damaged_index(path: str) -> None:
    """Refuse a local arrow file whose index names blocks beyond its end: polars would make room for them.

    Examples
    --------
    >>> from calipers.inputs.files.size_limits import refuse_damaged_index
    >>> refuse_damaged_index("s3://bucket/rows.arrow")
    """
    kind, compression = format_of(path)
    if kind.name != "arrow" or compression or "://" in path:
        return
    size = Path(path).stat().st_size
    try:
        blocks = _arrow_blocks(path, size)
    except struct.error:  # not an index at all, which polars says
        return
    if any(min(block) < 0 or sum(block) > size for block in blocks):
        raise InputError(f"{path} is damaged: its index names rows beyond its end. Write it again.")


def _arrow_blocks(path: str, size: int) -> list[tuple[int, int, int]]:
    """Offset, bytes of the header and of the body of every block in the index of an arrow file.

    The index is a table of FlatBuffers before the last ten bytes: its length, and ``ARROW1``.
    """
    with Path(path).open("rb") as file:
        file.seek(max(size - 10, 0))
        length, magic = struct.unpack("<i6s", file.read(10))
        if magic != b"ARROW1" or not 0 < length <= size - 10:
            return []
        file.seek(size - 10 - length)
        index = file.read(length)

    def number(form: str, place: int) -> int:
        if place < 0:
            raise struct.error
        return int(struct.unpack_from(form, index, place)[0])

    table = number("<I", 0)
    fields = table - number("<i", table)
    blocks: list[tuple[int, int, int]] = []
    for field in (_DICTIONARIES, _BATCHES):
        place = number("<H", fields + 4 + 2 * field) if 4 + 2 * field < number("<H", fields) else 0
        if place:
            vector = table + place + number("<I", table + place)
            for at in range(number("<I", vector)):
                offset, metadata, body = struct.unpack_from("<qi4xq", index, vector + 4 + _BLOCK * at)
                blocks.append((offset, metadata, body))
    return blocks


def _unpacked_sizes(path: str, compression: str) -> Iterator[int]:
    if not compression:
        with zipfile.ZipFile(path) as archive:
            yield from (member.file_size for member in archive.infolist())
        return
    with open_packed(path, compression) as file:
        while chunk := file.read(_CHUNK):
            yield len(chunk)


def working_bytes(n_rows: int, n_columns: int) -> int:
    """Memory for the rows of a table and the work on them.

    Examples
    --------
    >>> from calipers.inputs.files.size_limits import working_bytes
    >>> working_bytes(1_000_000, 10) / 1e6
    320.0
    """
    return n_rows * n_columns * _BYTES_PER_VALUE * _WORKING_SPACE


def fits_memory(needed: int) -> bool:
    """Whether so many bytes are free; True where the system does not say.

    Examples
    --------
    >>> from calipers.inputs.files.size_limits import fits_memory
    >>> fits_memory(1000)
    True
    """
    free = available_memory()
    return free is None or needed <= free


def require_memory(needed: int, place: str) -> None:
    """Refuse rows that need more memory than is free, with the command that streams them."""
    if not fits_memory(needed):
        free = available_memory() or 0
        raise InputError(
            f"{place} needs about {needed / 1e9:.1f} GB in memory and {free / 1e9:.1f} GB are free. "
            f"'calipers audit {place} --engine local' streams all rows; "
            "--max-rows 1000000 audits a random million of them."
        )


def available_memory() -> int | None:
    """Bytes a new process could use; None where the system does not say.

    Examples
    --------
    >>> from calipers.inputs.files.size_limits import available_memory
    >>> free = available_memory()
    >>> free is None or free > 0
    True
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
