"""The built package: the wheel and the source distribution, installed where nothing is, and used.

``python3 dev.py package [--python PATH]``. Builds both, checks what a package index would check, installs the wheel and its
dependencies into an empty environment, runs the demo and audits a csv of one's own from it, then does the same with the
source distribution in its place. ``build``, ``twine`` and ``virtualenv`` come with the extra ``package``.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST_WHEEL = 2_000_000


def main(arguments: list[str]) -> int:
    """Build, check, install and use; 0 when every step worked."""
    parser = argparse.ArgumentParser(prog="python3 dev.py package")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to install for")
    parser.add_argument("--dist", type=Path, help="keep what was built in this folder")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="calipers-package-") as name:
        folder = Path(name)
        dist = (options.dist or folder / "dist").resolve()
        wheel, sdist = build(dist)
        check(wheel, sdist)
        environment = folder / "environment"
        call([sys.executable, "-m", "virtualenv", "--quiet", "--python", options.python, str(environment)])
        install_and_use(environment, wheel, folder / "wheel")
        install_and_use(environment, sdist, folder / "sdist")
    print("package: built, installed and used", flush=True)
    return 0


def build(dist: Path) -> tuple[Path, Path]:
    """The wheel, made from the source distribution, and that distribution."""
    if dist.is_dir() and any(dist.iterdir()):
        raise SystemExit(f"package: {dist} is not empty; an older build would be mistaken for this one.")
    call([sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)])
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    return wheel, sdist


def check(wheel: Path, sdist: Path) -> None:
    """What an index refuses, and what would make installing slow."""
    call([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)])
    size = wheel.stat().st_size
    print(f"package: the wheel has {size / 1e6:.2f} MB", flush=True)
    if size > LARGEST_WHEEL:
        raise SystemExit(f"package: the wheel has {size} bytes, more than {LARGEST_WHEEL}.")


def install_and_use(environment: Path, package: Path, folder: Path) -> None:
    """Install the file over whatever Calipers is there; run the demo, then audit a csv of one's own."""
    started = time.monotonic()
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    folder.mkdir()
    call([str(scripts / "python"), "-m", "pip", "uninstall", "--quiet", "--yes", "calipers"])
    call([str(scripts / "python"), "-m", "pip", "install", "--quiet", str(package)])
    write_predictions(folder / "own.csv")
    call([str(scripts / "calipers"), "audit", "own.csv", "--out", "own"], folder, allowed=1)
    print(f"package: {package.name}, to the first audit {time.monotonic() - started:.0f} s", flush=True)
    call([str(scripts / "calipers"), "demo", "--out", "demo"], folder)
    for report in ("own/report.html", "demo/report.html", "demo/audit.json"):
        if not (folder / report).is_file():
            raise SystemExit(f"package: {package.name} wrote no {report}.")


def write_predictions(path: Path) -> None:
    """Intervals that promise 90 % and hold 76 %: the audit must find it (exit code 1)."""
    draw = random.Random(0)
    rows = [f"{draw.gauss(0, 1)},-1.2,1.2" for _ in range(2000)]
    path.write_text("\n".join(["y_true,lower,upper", *rows]) + "\n", encoding="utf-8")


def call(command: list[str], folder: Path | None = None, *, allowed: int = 0) -> None:
    """Run it away from the checkout; show all it said when it does not end with the allowed code."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        command, cwd=folder or tempfile.gettempdir(), env=environment, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode != allowed:
        raise SystemExit(f"package: {' '.join(command)} ended with {done.returncode}\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
