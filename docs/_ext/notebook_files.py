"""The notebooks as Jupyter opens them, with the outputs of a run: ``python3 dev.py notebooks``.

The sources are docs/notebooks/*.py; what is written here is never edited and not kept under version control.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "notebooks"
TIMEOUT_S = 300
# Pictures go into the notebook, whatever backend was chosen outside.
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def main(arguments: list[str]) -> int:
    """Run the notebooks that were named, or all, and write them."""
    parser = argparse.ArgumentParser(prog="python3 dev.py notebooks")
    parser.add_argument("--out", type=Path, default=SOURCES, help="folder of the .ipynb files")
    parser.add_argument("names", nargs="*", help="notebooks to build; all when none is named")
    options = parser.parse_args(arguments)
    known = {path.stem: path for path in sorted(SOURCES.glob("*.py"))}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"there is no notebook {unknown[0]}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or known:
        print(write_notebook(known[name], options.out), flush=True)
    return 0


def write_notebook(source: Path, folder: Path) -> Path:
    """Run a script in percent format in a Jupyter kernel and write it with all that it showed."""
    import jupytext
    from nbclient import NotebookClient
    from scripts import bring_data

    notebook = jupytext.read(source)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with tempfile.TemporaryDirectory() as room:
        bring_data(source.parent / "data", Path(room))
        client = NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": room}})
        client.execute(env=os.environ | INLINE)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the time of day, which changes with every run
    place = folder / f"{source.stem}.ipynb"
    jupytext.write(notebook, place, fmt="ipynb")
    return place


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
