"""One pinned environment per peer, built once; a peer that does not install is reported, not skipped."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "peers.toml"
# CALIPERS_BENCH_ENVS keeps the environments in a place shared by several checkouts.
ENVIRONMENTS = Path(os.environ.get("CALIPERS_BENCH_ENVS", ROOT / ".envs"))


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer's Python is, or why there is none."""

    name: str
    python: Path | None
    problem: str = ""


def clean_variables() -> dict[str, str]:
    """The environment of a child: bytecode is written, one thread per numerical library."""
    variables = {k: v for k, v in os.environ.items() if k not in {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return variables | threads | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}


def pinned() -> dict[str, dict[str, Any]]:
    """Peers and their requirements."""
    return tomllib.loads(PEERS.read_text(encoding="utf-8"))


def build(name: str) -> Environment:
    """The environment of one peer, installed when it is missing or its pins have changed."""
    if name not in pinned():
        return Environment(name, None, f"{name} is not in peers.toml")
    entry = pinned()[name]
    if "environment" in entry:
        host = build(entry["environment"])
        return Environment(name, host.python, host.problem)
    steps = install_steps(entry)
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    stamp, wanted = folder / "installed.txt", fingerprint(steps)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return Environment(name, python)
    print(f"bench: building the environment of {name}", file=sys.stderr, flush=True)
    for command in ([sys.executable, "-m", "venv", "--clear", folder], *([python, *step] for step in steps)):
        done = subprocess.run(command, capture_output=True, text=True, env=clean_variables(), check=False)
        if done.returncode:
            return Environment(name, None, reason(done))
    stamp.write_text(wanted, encoding="utf-8")
    return Environment(name, python)


def fingerprint(steps: list[list[str]]) -> str:
    """What an installed environment is recognised by."""
    return hashlib.sha256(repr(steps).encode()).hexdigest()


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """The line of an installer's output that says why it failed."""
    lines = (done.stderr or done.stdout).strip().splitlines()
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [f"exit code {done.returncode}"])[0]


def install_steps(entry: dict[str, Any]) -> list[list[str]]:
    """Pip commands: ``first`` before the rest, ``without_dependencies`` after it."""
    steps = []
    for key, options in (("first", []), ("requirements", []), ("without_dependencies", ["--no-deps"])):
        if entry.get(key):
            steps.append(["-m", "pip", "install", "--quiet", *options, *entry[key]])
    return steps


def versions(python: Path) -> dict[str, str]:
    """Installed packages of an environment and their versions."""
    code = "import importlib.metadata as m\nfor d in m.distributions(): print(d.name + '==' + d.version)"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, env=clean_variables()
    )
    return dict(line.split("==", 1) for line in sorted(set(done.stdout.split())))


def pinned_version(environment: Environment) -> str:
    """The version of the peer that the environment really holds; empty when there is none."""
    if environment.python is None:
        return ""
    package = pinned()[environment.name].get("package", environment.name).lower()
    found = {name.lower(): version for name, version in versions(environment.python).items()}
    return found.get(package, "")
