"""The newcomer's walk: a copy of the checkout, nothing installed, and the README and the quickstart to the letter.

``python3 dev.py walk``. Standard library only. It copies what is under version control (or would be) into an
empty folder, runs the README's first command, then every block of the README, the quickstart, the questions and the
how-to guides in the environment which that command has made, and compares what they print with what the pages
say. Nothing optional is installed there: a page that needs more than ``pip install calipers`` must say so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_BEHIND = (
    ".git", ".venv", ".tools", ".envs", "__pycache__", "_build", "generated", "build", "dist", "*.egg-info",
    ".*_cache", ".hypothesis", "calipers-*",
)  # fmt: skip
# Everything a newcomer reads in the first hour. Interoperation shows other packages and says so.
PAGES = ("docs/quickstart.md", "docs/questions/*.md", "docs/howto/*.md", "docs/findings.md")
NEEDS_MORE = {"pictures.md", "interop.md"}


def main() -> int:
    """Walk; the number of steps that failed."""
    with tempfile.TemporaryDirectory(prefix="calipers-walk-") as folder:
        checkout = Path(folder) / "calipers"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        steps = {
            "README: the first report": first_report,
            "README: ten lines": ten_lines,
            "quickstart, questions, how-to guides, findings": pages,
        }
        failed = []
        for name, step in steps.items():
            started = time.monotonic()
            problem = step(checkout)
            print(f"walk: {time.monotonic() - started:5.0f} s  {name}: {problem or 'as written'}", flush=True)
            failed += [name] if problem else []
    return len(failed)


def first_report(checkout: Path) -> str:
    """The README's first command, from nothing to the page that it names."""
    done = run([sys.executable, "dev.py", "demo"], checkout)
    found = re.search(r"The report is\s+(.*report\.html)", done.stdout, flags=re.DOTALL)
    if done.returncode or found is None:
        return f"exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    page = Path(re.sub(r"\n", "", found[1]))
    return "" if page.stat().st_size > 10_000 else f"{page} is hardly a report"


def ten_lines(checkout: Path) -> str:
    """The README's example prints what the README says."""
    text = (checkout / "README.md").read_text(encoding="utf-8")
    example, printed = (
        re.search(rf"^```{kind}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)[1]  # type: ignore[index]
        for kind in ("python", "text")
    )
    done = run([python(checkout), "-W", "error", "-c", example], checkout)
    return "" if done.stdout == printed else f"it printed\n{done.stdout}{done.stderr}"


def pages(checkout: Path) -> str:
    """Every block of the pages, with what is installed by now."""
    names = [
        path.relative_to(checkout)
        for pattern in PAGES
        for path in sorted(checkout.glob(pattern))
        if path.name not in NEEDS_MORE
    ]
    done = run([python(checkout), "-m", "tests.docs.pages", "--check", *map(str, names)], checkout)
    return "" if done.returncode == 0 else f"\n{done.stdout[-3000:]}{done.stderr[-2000:]}"


def python(checkout: Path) -> str:
    """The interpreter of the environment that the README's first command made."""
    return str(checkout / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run in the folder, as somebody would who knows nothing of this checkout."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", "CALIPERS_DATA")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"COLUMNS": "80", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", check=False
    )


if __name__ == "__main__":
    sys.exit(main())
