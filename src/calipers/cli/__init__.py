"""The command line: ``calipers COMMAND``, one file per command.

Exit codes: 0 clean, 1 findings at or above the threshold, 2 bad input, 70 a fault in Calipers itself.
Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

__all__ = ["main"]


def __dir__() -> list[str]:
    return sorted(__all__)


BAD_INPUT = 2
INTERNAL_FAULT = 70  # never 1: a crash must not look like a finding
FILE_ERRORS = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the entry point of the ``calipers`` program.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``calipers``; those of the process when None.

    Returns
    -------
    int
        0 clean, 1 findings, 2 bad input, 70 a fault in Calipers.

    Examples
    --------
    >>> from calipers.cli import main
    >>> main(["--version"])
    calipers 0...
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    state = random.getstate()
    try:
        return _run([word for word in words if word != "--debug"] or ["--help"], debug=debug)
    finally:
        random.setstate(state)  # rich draws link numbers from the global generator


def _run(words: list[str], *, debug: bool) -> int:
    import typer

    from calipers.cli.commands import root
    from calipers.exceptions import CalipersError

    try:
        # Without the stand-alone mode typer returns exit codes and raises its errors, instead of exiting.
        return root().main(args=words, prog_name="calipers", standalone_mode=False) or 0
    except typer.TyperException as error:
        return _complain(f"{error.format_message().rstrip('.')}. See 'calipers --help'.", debug=debug)
    except (CalipersError, *FILE_ERRORS) as error:
        return _complain(str(error), debug=debug)
    except typer.Abort:
        return _complain("stopped.", debug=debug)
    except Exception:  # noqa: BLE001 - the last door: a fault of ours is reported as one
        return _report_fault()


def _complain(message: str, *, debug: bool) -> int:
    """One line on standard error; with ``--debug`` the traceback before it."""
    import traceback

    if debug:
        traceback.print_exc()
    print(f"calipers: {' '.join(message.split())}", file=sys.stderr)
    return BAD_INPUT


def _report_fault() -> int:
    import traceback

    traceback.print_exc()
    print("calipers: this is a fault in Calipers, not in your input; please report it.", file=sys.stderr)
    return INTERNAL_FAULT
