"""How many files and functions of the package one audit passes: ``python -m benchmarks.audit_path``.

Measured with a profile hook over ``calipers audit FILE --out DIR`` in this process, in memory and streamed.
What runs at import is left out; a file counts when one of its functions ran.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np


def passed(call: Callable[[], Any]) -> tuple[set[str], set[tuple[str, str, int]], int]:
    """Files and functions of the package that a call passes, and its greatest depth inside the package."""
    import calipers

    root = str(Path(calipers.__file__).parent)
    files: set[str] = set()
    functions: set[tuple[str, str, int]] = set()
    depth = [0, 0]

    def hook(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(root) or code.co_name == "<module>":
            return
        if event == "call":
            files.add(code.co_filename)
            functions.add((code.co_filename, code.co_name, code.co_firstlineno))
            depth[0] += 1
            depth[1] = max(depth)
        elif event == "return":
            depth[0] -= 1

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files, functions, depth[1]


def example(folder: Path) -> Path:
    """A csv of 2000 intervals with two features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = X[:, 0] + rng.normal(size=2000)
    table = np.column_stack([y, X[:, 0] - 1.6, X[:, 0] + 1.6, X])
    path = folder / "rows.csv"
    np.savetxt(path, table, delimiter=",", header="y_true,lower,upper,a,b", comments="")
    return path


def main(arguments: Sequence[str] = ()) -> None:
    """Print the figures for both ways."""
    from calipers.cli import main as command

    with tempfile.TemporaryDirectory() as place:
        path = example(Path(place))
        for name, options in {"in memory": [], "streamed": ["--engine", "local"]}.items():

            def call(options: list[str] = options, name: str = name) -> None:
                out = str(Path(place, name.replace(" ", "_")))
                with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                    command(["audit", str(path), "--out", out, "--fail-on", "never", *options])

            call()  # what runs at import is not part of the path
            files, functions, depth = passed(call)
            print(f"{name}: {len(functions)} functions in {len(files)} files, depth {depth}")


if __name__ == "__main__":
    main(sys.argv[1:])
