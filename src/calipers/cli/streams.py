"""Standard output and error of a run: any encoding, and readers that leave early."""

from __future__ import annotations

import codecs
import errno
import os
import sys

# What we print beyond ASCII -> what stands for it in an encoding that lacks it.
_STAND_INS = {
    "✓": "+", "✗": "x", "–": "-", "±": "+/-", "≤": "<=", "≥": ">=", "·": "*", "…": "...", "→": "->", "×": "x",
}  # fmt: skip
_HANDLER = "calipers.stand_in"


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_STAND_INS.get(letter, "?") for letter in lacking), error.end


def take_any_encoding() -> None:
    """Let both streams show what their encoding lacks by a stand-in, instead of an error."""
    codecs.register_error(_HANDLER, _stand_in)
    if sys.stdout is None:  # the caller closed it: what is printed goes nowhere, and no file takes its number
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and getattr(stream, "errors", "strict") == "strict":
            reconfigure(errors=_HANDLER)


def flush_output() -> Exception | None:
    """What kept output from its reader, or None; after a failure nothing more is written, nor at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, sys.stdout.fileno())
        except (OSError, ValueError):
            pass
        return error
    return None


def is_full(error: Exception) -> bool:
    """Whether the disk that output is written to has no room or fails; files have errors with their names."""
    codes = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
    return isinstance(error, OSError) and error.errno in codes and error.filename is None
