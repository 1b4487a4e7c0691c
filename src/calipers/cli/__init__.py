"""The command line: ``calipers COMMAND``, one file per command.

Exit codes: 0 clean, 1 findings at or above the threshold, 2 bad input, 3 too few rows to tell, 70 a fault in
Calipers itself, 130 stopped by hand, 141 the reader of the output closed it. Results go to standard output,
progress and errors to standard error.
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
STOPPED, CLOSED_PIPE = 130, 141  # as a shell names an end by SIGINT and SIGPIPE
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
        0 clean, 1 findings, 2 bad input, 3 too few rows to tell, 70 a fault in Calipers, 130 stopped by hand,
        141 a closed pipe.

    Examples
    --------
    >>> from calipers.cli import main
    >>> main(["--version"])
    calipers 0...
    0
    """
    from calipers.cli.streams import flush_output, is_full, take_any_encoding

    take_any_encoding()
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    state = random.getstate()
    try:
        code = _run([word for word in words if word != "--debug"] or ["--help"], debug=debug)
        lost = flush_output()
        if lost is None or code in {INTERNAL_FAULT, BAD_INPUT}:
            return code
        return _without_output(lost, debug=debug) if is_full(lost) else CLOSED_PIPE
    except KeyboardInterrupt:  # before the command began, or while its output was flushed
        _complain("stopped.", debug=debug)
        return STOPPED
    finally:
        random.setstate(state)  # rich draws link numbers from the global generator


def _run(words: list[str], *, debug: bool) -> int:
    import typer

    from calipers.cli.commands import root
    from calipers.cli.streams import is_full
    from calipers.exceptions import CalipersError

    try:
        # Without the stand-alone mode typer returns exit codes and raises its errors, instead of exiting.
        return root().main(args=words, prog_name="calipers", standalone_mode=False) or 0
    except typer.TyperException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "calipers")
        return _complain(f"{error.format_message().rstrip('.')}. See '{command} --help'.", debug=debug)
    except (CalipersError, *FILE_ERRORS) as error:
        return _complain(str(error), debug=debug)
    except (typer.Abort, KeyboardInterrupt):
        _complain("stopped.", debug=debug)
        return STOPPED
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError as error:
        return _without_output(error, debug=debug) if is_full(error) else _report_fault()
    except SystemExit as stop:
        # typer and rich turn a closed pipe into an exit with 1, which would read as findings.
        return CLOSED_PIPE if stop.code == 1 else int(stop.code or 0)
    except MemoryError:
        return _complain("there is not enough memory for this; give fewer rows with --max-rows.", debug=debug)
    except Exception:  # noqa: BLE001 - the last door: a fault of ours is reported as one
        return _report_fault()


def _without_output(error: Exception, *, debug: bool) -> int:
    reason = getattr(error, "strerror", None) or error
    return _complain(f"standard output cannot be written: {reason}. Write it to another place.", debug=debug)


def _complain(message: str, *, debug: bool) -> int:
    """One line on standard error; with ``--debug`` the traceback before it."""
    import traceback

    from calipers.results.terminal_safe import printable

    if debug:
        traceback.print_exc()
    print(f"calipers: {printable(' '.join(message.split()))}", file=sys.stderr)
    return BAD_INPUT


def _report_fault() -> int:
    import traceback

    traceback.print_exc()
    print("calipers: this is a fault in Calipers, not in your input; please report it.", file=sys.stderr)
    return INTERNAL_FAULT
