"""Rows that arrive: lines of a growing file, of the files of a folder, or of standard input.

A place is how far a file has been read: the offset behind its last whole line. Places are stored together
with the monitor (`monitor_state`), in one file that is replaced at once: whenever the program is stopped,
the stored monitor has seen exactly the rows before the stored places.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl

from calipers.exceptions import InputError
from calipers.inputs.files.formats import FORMATS

# Bytes read at once.
PIECE = 1 << 23
# Formats that grow line by line.
_KINDS = {end: kind.name for kind in FORMATS if kind.name in ("csv", "json-lines") for end in kind.endings}

Places = dict[str, dict[str, Any]]
_START = {"offset": 0, "lines": 0, "header": "", "open": False}


class Arrived(NamedTuple):
    """Rows that have come, and where they lie: the first of them on this line."""

    table: pl.DataFrame
    name: str
    line: int


def read_rows(source: str, places: Places) -> Iterator[Arrived]:
    """Tables of rows that have not been read before; ``places`` moves on with each.

    Parameters
    ----------
    source : str
        A csv or json-lines file, a folder of such files (read in the order of their names), or "-".
    places : dict
        Per file the offset and the lines behind the last row read, the header, and whether the last line had
        no end; changed in place.
    """
    if source == "-":
        yield from _stream_rows(_standard_input(), places.setdefault("-", _START.copy()))
        return
    path = Path(source)
    files = sorted(p for p in path.iterdir() if p.suffix in _KINDS) if path.is_dir() else [path]
    written = [file.stat().st_mtime_ns for file in files]
    for at, file in enumerate(files):
        place = places.setdefault(file.name, _START.copy())
        # A file that follows has been written since: this one is complete, its last line too.
        yield from _file_rows(file, place, finished=max(written[at + 1 :], default=-1) >= written[at])


def _standard_input() -> IO[bytes]:
    import sys

    return sys.stdin.buffer


def _file_rows(file: Path, place: dict[str, Any], *, finished: bool) -> Iterator[Arrived]:
    kind = _KINDS.get(file.suffix)
    if kind is None:
        raise InputError(
            f"{file} must end in {', '.join(_KINDS)}; rows are read as they arrive, line by line."
        )
    if file.stat().st_size < place["offset"]:
        raise InputError(
            f"{file} has become shorter than what was read of it ({place['offset']} bytes). "
            "Start with a new --state, or give the new rows in a file of another name."
        )
    with file.open("rb") as stream:
        stream.seek(place["offset"])
        if place.get("open", False):
            _pass_the_end_of_a_line(stream, place, file)
        while lines := _whole_lines(stream, finished=finished):
            yield from _table(lines, kind, place, str(file))


def _pass_the_end_of_a_line(stream: IO[bytes], place: dict[str, Any], file: Path) -> None:
    """Go behind the end of a last line that was taken for whole without one; nothing else may follow it."""
    start, found = stream.tell(), stream.read(2)
    end = found[: 2 if found == b"\r\n" else 1]
    if found and end not in (b"\n", b"\r\n"):
        raise InputError(
            f"{file} goes on in the middle of a line that was counted: it had no end while a file that "
            "follows was written. Start with a new --state, and finish a file before the next is begun."
        )
    stream.seek(start + len(end))
    place["open"] = not end
    place["offset"] += len(end)
    place["lines"] += len(end) > 0


def _whole_lines(stream: IO[bytes], *, finished: bool) -> bytes:
    """The next lines that end; the start of a line is left for the next time."""
    start, piece = stream.tell(), stream.read(PIECE)
    end = piece.rfind(b"\n") + 1
    if end == 0 and len(piece) == PIECE:
        raise InputError(f"a line is longer than {PIECE} bytes; these are not rows.")
    if finished and len(piece) < PIECE:
        end = len(piece)
    stream.seek(start + end)
    return piece[:end]


def _stream_rows(stream: Any, place: dict[str, Any]) -> Iterator[Arrived]:
    """Rows of a stream as they come in; it has no place to go back to, so each start has its own header."""
    place |= _START
    kind, waiting = "", b""
    while piece := stream.read1(PIECE):  # what is there already; waits only when there is nothing
        waiting += piece
        kind = kind or ("json-lines" if waiting.lstrip().startswith(b"{") else "csv")
        end = waiting.rfind(b"\n") + 1
        lines, waiting = waiting[:end], waiting[end:]
        if lines:
            yield from _table(lines, kind, place, "standard input")
    if waiting.strip():
        yield from _table(waiting, kind, place, "standard input")


def _table(lines: bytes, kind: str, place: dict[str, Any], name: str) -> Iterator[Arrived]:
    """The lines as a table; the place is moved behind them once the table has been taken."""
    header, body = place["header"], lines
    line = place.get("lines", 0) + 1
    if kind == "csv" and not header:
        first, _, body = lines.partition(b"\n")
        header, line = first.decode("utf-8-sig").strip(), line + 1
    table = _parsed(body, kind, header, name)
    place["header"] = header
    place["offset"] += len(lines)
    place["lines"] = place.get("lines", 0) + lines.count(b"\n")
    place["open"] = not lines.endswith(b"\n")
    if table is not None and table.height:
        yield Arrived(table, name, line)


def _parsed(body: bytes, kind: str, header: str, name: str) -> pl.DataFrame | None:
    if not body.strip():
        return None
    try:
        if kind == "csv":
            # As text: what a value is must not depend on the rows that came with it.
            return pl.read_csv(io.BytesIO(header.encode() + b"\n" + body), infer_schema=False)
        return pl.read_ndjson(io.BytesIO(body), infer_schema_length=None)
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise InputError(f"{name} cannot be read as {kind} ({str(error).splitlines()[0]}).") from None
