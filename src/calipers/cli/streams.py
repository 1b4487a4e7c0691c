"""Standard output and error of a run: any encoding, and readers that leave early."""

from __future__ import annotations

import codecs
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
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and getattr(stream, "errors", "strict") == "strict":
            reconfigure(errors=_HANDLER)


def flush_output() -> bool:
    """Whether all output reached its reader; a reader that left gets nothing more, also not at exit."""
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError):
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, sys.stdout.fileno())
        except (OSError, ValueError):
            pass
        return False
    return True
