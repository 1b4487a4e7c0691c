#!/usr/bin/env python3
"""Everything a developer does with Calipers, on a machine with only Python and pip.

python3 dev.py demo      set up, run the demonstration, say where the report is
python3 dev.py test      set up, run the tests: the fast lane, those named, or with --all the whole suite
python3 dev.py interop   tests/interop, and the array tests with torch: no package may be missing
python3 dev.py lint      ruff, format, mypy, import contract, docstrings, schemas of workflows
python3 dev.py bench     side-by-side benchmarks (benchmarks/run.py)
python3 dev.py study     run a paper's experiment (studies/): python3 dev.py study NAME, or --help
python3 dev.py docs      build the site into docs/_build/html
python3 dev.py fuzz      mutated calls, malformed files, killed runs: --minutes N, --seed S (tests/fuzz)
python3 dev.py package   build wheel and sdist, install them where nothing is, run the demo from them
python3 dev.py lowest    unit tests with the lowest versions of dependencies: lowest [--python PATH]
python3 dev.py lock      write requirements.lock: one version of everything that a developer installs
python3 dev.py notebooks write docs/notebooks/*.ipynb with their outputs
python3 dev.py walk      follow README and quickstart to the letter, in a copy with nothing installed

Every command makes `.venv` when there is none and installs what it needs when pyproject.toml has
changed since the last time; a second run starts at once. Arguments that a command does not know go
on to the program it runs: `python3 dev.py test tests/unit -k rank`. With CALIPERS_LOCKED=1 the
versions are those of requirements.lock, otherwise the newest that are allowed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
TOOLS = ROOT / ".tools"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "calipers-installed.json"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")

OLDEST_PYTHON = (3, 11)
WORKERS = "2"  # the smallest machine the suite promises to be fast on has two cores

# What each command needs beyond the package itself: extras of pyproject.toml.
EXTRAS = {
    "demo": (),
    "test": ("test",),
    "interop": ("interop",),
    "lint": ("lint", "test"),  # mypy reads the optional parts too
    "bench": ("test",),
    "fuzz": ("test",),
    "study": ("plots", "forest"),  # the paper forecasts with a quantile forest
    "docs": ("docs",),
    "package": ("package",),
    "lowest": ("package",),
    "lock": ("package",),
    "notebooks": ("notebooks",),
}
# The extras whose versions requirements.lock holds: all that some command installs.
LOCKED = ("dev", "interop", "notebooks", "package")
# What a command needs and cannot name as an extra. puncc states numpy < 2 and works with numpy 2; TorchCP
# states torchsort, which does not build everywhere and which nothing here uses.
WITHOUT_DEPENDENCIES = {"interop": ("puncc==0.9.3", "torchcp==1.2.1")}
# Packages that docs/where-we-stand.md speaks of and no test runs: tests read their files.
NEIGHBOURS = TOOLS / "neighbours"
READ_ONLY = ("covmetrics==0.1.2", "mcgrad==0.1.5", "netcal==1.4.0", "nannyml==0.13.1", "evidently==0.7.23")
# What the unit tests import beyond the package, in the oldest versions that work with its oldest ones.
LOWEST_TESTS = (
    "pytest>=8.2", "pytest-xdist>=3.6", "pytest-randomly>=3.15", "hypothesis>=6.100", "httpx>=0.27",
    "pandas>=2.2.2", "pyarrow>=16.1", "array-api-strict>=2.4.1",
    "pyparsing>=3.1",  # matplotlib 3.8 warns with 3.3, and a warning is an error in tests
)  # fmt: skip
# Published schemas, which come with check-jsonschema, and the files that follow them.
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/something-*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.github-actions": "action.yml",
    "vendor.readthedocs": ".readthedocs.yaml",
    "vendor.citation-file-format": "CITATION.cff",
}
# What a command runs, and how to say that it is not there.
NEEDS = {
    "bench": ("benchmarks/run.py", "there are no benchmarks yet"),
    "study": ("studies/__main__.py", "there are no studies here"),
    "docs": ("docs/conf.py", "there is no site yet"),
}

Command = "list[str | Path]"  # a string: Python 3.9 and older must get as far as the check of their version


class SetupError(Exception):
    """Something a person has to act on; the message says what."""


# --- running things -----------------------------------------------------------------------------


def child_environment(**extra: str) -> dict[str, str]:
    """The environment of every child process: bytecode is written, pip is not talked out of its job."""
    environment = dict(os.environ)
    # Without bytecode every new process compiles numpy, scipy and scikit-learn again (3.9 s, not 1.4 s).
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PIP_TARGET"):
        environment.pop(name, None)
    # A user-wide pip setting of either kind makes `pip install --target` refuse to work.
    environment |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return environment | extra


def say(text: str) -> None:
    """One line about what happens now, before the output of what happens."""
    print(f"dev: {text}", file=sys.stderr, flush=True)


def run(command: Command, **extra: str) -> int:
    """Run in the checkout's root with the output shown; return the exit code."""
    return subprocess.run(command, cwd=ROOT, env=child_environment(**extra), check=False).returncode


def quietly(command: Command, **extra: str) -> tuple[bool, str]:
    """Run with the output kept: whether it worked, and what it said."""
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=child_environment(**extra),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return False, str(error)
    return done.returncode == 0, done.stdout.strip()


# --- the environment ----------------------------------------------------------------------------


def uv() -> str | None:
    """Path of uv when it is installed; CALIPERS_NO_UV=1 hides it."""
    return None if os.environ.get("CALIPERS_NO_UV") else shutil.which("uv")


def has_pip() -> bool:
    """Whether the environment's own pip works (uv makes environments without one)."""
    return quietly([PYTHON, "-m", "pip", "--version"])[0]


def is_usable() -> bool:
    """Whether `.venv` holds a Python that runs and is new enough."""
    check = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    return PYTHON.exists() and quietly([PYTHON, "-c", check])[0]


def create_with_uv() -> tuple[bool, str]:
    """An environment by uv, without pip."""
    program = uv()
    if program is None:
        return False, "uv is not installed"
    return quietly([program, "venv", "--python", sys.executable, VENV])


def create_with_venv() -> tuple[bool, str]:
    """An environment by the standard library; Debian's Python may lack the ensurepip it needs."""
    return quietly([sys.executable, "-m", "venv", VENV])


def create_with_virtualenv() -> tuple[bool, str]:
    """An environment by virtualenv, put into `.tools`: allowed where pip is externally managed."""
    if not (TOOLS / "virtualenv").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(TOOLS), "virtualenv"]
        worked, said = quietly([*pip])
        if not worked:
            return False, said
    return quietly([sys.executable, "-m", "virtualenv", "--quiet", VENV], PYTHONPATH=str(TOOLS))


def create_environment(*, with_uv: bool = True) -> None:
    """Make `.venv` in the first way that works here; say all that was tried when none does."""
    tried = []
    ways = [create_with_venv, create_with_virtualenv]
    if with_uv and uv():
        ways.insert(0, create_with_uv)
    for create in ways:
        shutil.rmtree(VENV, ignore_errors=True)  # a failed attempt leaves half an environment
        name = create.__name__.removeprefix("create_with_")
        say(f"creating .venv with {name}")
        worked, said = create()
        if worked and is_usable():
            return
        tried.append(f"{name}: {said.splitlines()[-1] if said else 'made no working Python'}")
        say(f"{name} did not work here")
    shutil.rmtree(VENV, ignore_errors=True)
    raise SetupError("no environment could be made.\n  " + "\n  ".join(tried))


def constraints() -> list[str]:
    """Arguments of an installer: the versions of the lock file, when CALIPERS_LOCKED is set."""
    return ["--constraint", str(LOCK)] if os.environ.get("CALIPERS_LOCKED") else []


def fingerprint() -> str:
    """What an installation depends on: the project file, the version, the place, the Python and the lock."""
    digest = hashlib.sha256(f"{ROOT}|{sys.version_info[:2]}|{constraints()}".encode())
    for path in (ROOT / "pyproject.toml", ROOT / "src" / "calipers" / "version.py"):
        digest.update(path.read_bytes())
    if constraints():
        digest.update(LOCK.read_bytes())
    return digest.hexdigest()


def installed() -> tuple[str, set[str]]:
    """Fingerprint and extras of the last installation."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        return stamp["fingerprint"], set(stamp["extras"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", set()


def install_with(command: Command, target: str) -> bool:
    """Install the checkout in place; on failure the tail of the output is shown."""
    worked, said = quietly([*command, *constraints(), "-e", target])
    if not worked:
        print("\n".join(said.splitlines()[-15:]), file=sys.stderr, flush=True)
    return worked


def install(extras: set[str]) -> None:
    """Install Calipers in place with these extras, by uv when it is there and works, else by pip."""
    target = f".[{','.join(sorted(extras))}]" if extras else "."
    program = uv()
    if program:
        say(f"installing {target} with uv")
        command: Command = [program, "pip", "install", "--python", PYTHON, "--compile-bytecode"]
        if install_with(command, target):
            return
        say("uv did not work here, trying pip")
    if not has_pip():
        create_environment(with_uv=False)
    say(f"installing {target} with pip")
    if not install_with([PYTHON, "-m", "pip", "install"], target):
        raise SetupError(f"{target} could not be installed; the lines above say why.")


def install_alone(packages: tuple[str, ...], folder: Path | None = None) -> None:
    """Install packages without what they say they need, into the environment or a folder of their own."""
    say(f"installing {' '.join(packages)} without their dependencies")
    program = uv()
    command: Command = [PYTHON, "-m", "pip", "install"] if has_pip() else []
    if program:
        command = [program, "pip", "install", "--python", PYTHON]
    command = [*command, "--target", folder] if folder else command
    worked, said = quietly([*command, "--no-deps", *packages])
    if not worked:
        raise SetupError(f"{' '.join(packages)} could not be installed: {(said.splitlines() or [''])[-1]}")


def prepare(extras: tuple[str, ...], alone: tuple[str, ...] = ()) -> None:
    """Make `.venv` hold Calipers, the extras and what comes alone; nothing is done when it already does."""
    if not is_usable():
        create_environment()
    found, present = installed()
    if found == fingerprint() and present.issuperset((*extras, *alone)):
        return
    wanted = {extra for extra in present if "==" not in extra} | set(extras)
    started = time.monotonic()
    STAMP.unlink(missing_ok=True)
    install(wanted)
    if alone:
        install_alone(alone)
    state = {"fingerprint": fingerprint(), "extras": sorted(wanted | set(alone))}
    STAMP.write_text(json.dumps(state), encoding="utf-8")
    say(f"ready after {time.monotonic() - started:.0f} s")


# --- the commands -------------------------------------------------------------------------------


def demo(options: argparse.Namespace, rest: list[str]) -> int:
    """Run the demonstration on an embedded data set and print where the report is."""
    out = [] if any(word.split("=")[0] == "--out" for word in rest) else ["--out", "calipers-demo"]
    return run([PYTHON, "-m", "calipers", "demo", *out, *rest])


def test(options: argparse.Namespace, rest: list[str]) -> int:
    """Run the tests: on two processes, and without threads fighting for the same cores.

    Without arguments the fast lane, which leaves simulations, pages, notebooks, browsers and clusters to CI.
    """
    command: Command = [PYTHON, "-m", "pytest"]
    if not (rest or options.all or options.slow or options.gpu):
        say("the fast lane; --all adds simulations, pages, notebooks, browsers and clusters, as in CI")
        command += ["--fast"]
    if not any(word.startswith(("-n", "--numprocesses", "--pdb", "no:xdist")) for word in rest):
        command += ["-n", WORKERS, "--dist", "worksteal"]
    command += ["--slow"] if options.slow else []
    command += ["--gpu"] if options.gpu else []
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name not in os.environ}
    return run([*command, *rest], **threads)


def interop(options: argparse.Namespace, rest: list[str]) -> int:
    """Run the tests against other packages; one that is missing fails instead of being skipped."""
    environment = {"CALIPERS_REQUIRE_PEERS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    there = {path.name for path in NEIGHBOURS.glob("*.dist-info")}
    missing = [name for name in READ_ONLY if f"{name.replace('==', '-')}.dist-info" not in there]
    if missing:
        install_alone(tuple(missing), NEIGHBOURS)
    peers = run([PYTHON, "-m", "pytest", ROOT / "tests" / "interop", *rest], **environment)
    if rest:
        return peers
    # torch is too heavy for every test run; here it is, so every test that looks for it is run with it.
    arrays = run([PYTHON, "-m", "pytest", *files_naming("torch"), "-n", WORKERS], **environment)
    return peers or arrays


def files_naming(word: str) -> list[Path]:
    """The tests whose files name a package; the interop tests have a run of their own."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [file for file in files if word in file.read_text(encoding="utf-8")]
    return [ROOT / "tests" / "contract", *(f for f in found if f.parent.name not in ("interop", "contract"))]


def lint(options: argparse.Namespace, rest: list[str]) -> int:
    """Run every checker, also after one has failed, and list the failed ones at the end."""
    checks: dict[str, Command] = {
        "ruff check": [PYTHON, "-m", "ruff", "check", "."],
        "ruff format --check": [PYTHON, "-m", "ruff", "format", "--check", "."],
        "mypy": [PYTHON, "-m", "mypy"],
        "lint-imports": [SCRIPTS / "lint-imports"],
        "numpydoc lint": [PYTHON, "-m", "numpydoc", "lint", *public_modules()],
    }
    for schema, pattern in SCHEMAS.items():
        files = sorted(ROOT.glob(pattern))
        checks[f"schema of {pattern}"] = [SCRIPTS / "check-jsonschema", "--builtin-schema", schema, *files]
    failed = []
    for name, command in checks.items():
        say(name)
        if run(command):
            failed.append(name)
    say(f"failed: {', '.join(failed)}" if failed else f"all {len(checks)} checks passed")
    return 1 if failed else 0


def public_modules() -> list[Path]:
    """The files whose docstrings are validated: all of the package but its command line, and the studies."""
    files = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "studies").rglob("*.py"))]
    return [path for path in files if "cli" not in path.parts]


def bench(options: argparse.Namespace, rest: list[str]) -> int:
    """Run the benchmarks with the arguments given; `--quick` and `--gpu` are theirs."""
    return run([PYTHON, ROOT / "benchmarks" / "run.py", *rest])


def study(options: argparse.Namespace, rest: list[str]) -> int:
    """Run the experiment of a paper: NAME, --data, --out, --quick, --jobs, --json."""
    return run([PYTHON, "-m", "studies", *rest])


def docs(options: argparse.Namespace, rest: list[str]) -> int:
    """Build the site, where a warning is an error, and try its search without a network."""
    target = ROOT / "docs" / "_build" / "html"
    code = run([PYTHON, "-m", "sphinx", "-b", "html", "-W", "--keep-going", *rest, ROOT / "docs", target])
    code = code or run([PYTHON, ROOT / "docs" / "_ext" / "offline_search.py", target])
    if code == 0:
        say(f"the site is {target / 'index.html'}")
    return code


def fuzz(options: argparse.Namespace, rest: list[str]) -> int:
    """Fuzz calls and files for a while: --minutes N, --seed S; every failure is printed with its seed."""
    return run([PYTHON, "-m", "tests.fuzz", *rest])


def package(options: argparse.Namespace, rest: list[str]) -> int:
    """Build, check, install and use the package: --python PATH, --dist FOLDER to keep what was built."""
    return run([PYTHON, ROOT / "tests" / "walk" / "packages.py", *rest])


def lowest(options: argparse.Namespace, rest: list[str]) -> int:
    """Run the unit tests, or those named, with the lowest versions that the package allows."""
    environment = ROOT / ".envs" / "lowest"
    python = environment / PYTHON.relative_to(VENV)
    tools: Command = [PYTHON, "-m", "uv"]
    wanted = [".[plots,save]", *LOWEST_TESTS, "--resolution", "lowest-direct"]
    only_wheels = ["--only-binary", ":all:", "--no-binary", "calipers"]
    code = run([*tools, "venv", "--clear", "--python", options.python, environment])
    code = code or run([*tools, "pip", "install", "--python", python, *wanted, *only_wheels])
    if code:
        return code
    where = rest or ["tests/unit", "-n", WORKERS]
    # scikit-learn below 1.9 asks frames of polars in a way that polars calls old: a matter between the two.
    old = ["-W", "ignore:Support for the dataframe interchange protocol:DeprecationWarning"]
    return run([python, "-m", "pytest", *where, *old], OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def lock(options: argparse.Namespace, rest: list[str]) -> int:
    """Resolve what developers install, for every platform, into requirements.lock; --upgrade renews all."""
    extras = [word for extra in LOCKED for word in ("--extra", extra)]
    oldest = ".".join(map(str, OLDEST_PYTHON))
    command: Command = [PYTHON, "-m", "uv", "pip", "compile", "pyproject.toml", "--universal", "--quiet"]
    command += ["--python-version", oldest, *extras, "--no-annotate", "--no-emit-index-url"]
    command += ["--custom-compile-command", "python3 dev.py lock", "--output-file", LOCK.name, *rest]
    return run(command)


def notebooks(options: argparse.Namespace, rest: list[str]) -> int:
    """Write the notebooks as Jupyter opens them, with the outputs of a run."""
    return run([PYTHON, ROOT / "docs" / "_ext" / "notebook_files.py", *rest])


def walk(options: argparse.Namespace, rest: list[str]) -> int:
    """Follow the README and the pages for newcomers in a copy of the checkout that has nothing yet."""
    return run([sys.executable, ROOT / "tests" / "walk" / "newcomer.py", *rest])


COMMANDS = {
    "demo": demo,
    "test": test,
    "interop": interop,
    "lint": lint,
    "bench": bench,
    "study": study,
    "docs": docs,
    "fuzz": fuzz,
    "package": package,
    "lowest": lowest,
    "lock": lock,
    "notebooks": notebooks,
    "walk": walk,
}


def parser() -> argparse.ArgumentParser:
    """The command line of this file."""
    top = argparse.ArgumentParser(
        prog="python3 dev.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="{" + ",".join(COMMANDS) + "}")
    for name, function in COMMANDS.items():
        # The studies have a help page of their own, which lists them.
        own_help = name in {"study", "fuzz"}
        command = commands.add_parser(
            name, description=function.__doc__, allow_abbrev=False, add_help=not own_help
        )
        if name == "test":
            command.add_argument("--all", action="store_true", help="the whole suite, as CI runs it")
            command.add_argument("--slow", action="store_true", help="also run the long statistical tests")
            command.add_argument("--gpu", action="store_true", help="also run the tests that need CUDA")
        if name == "lowest":
            command.add_argument("--python", default=sys.executable, help="the interpreter to try")
    return top


def main(arguments: list[str]) -> int:
    """Set up what the command needs, run it, return its exit code."""
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        raise SetupError(f"Calipers needs Python 3.11 or newer, this is {found} ({sys.executable}).")
    options, rest = parser().parse_known_args(arguments)
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if options.command == "lint" and rest:
        raise SetupError(f"lint takes no arguments, got {' '.join(rest)}.")
    needed, sentence = NEEDS.get(options.command, ("dev.py", ""))
    if not (ROOT / needed).exists():
        raise SetupError(f"{sentence}: {needed} does not exist.")
    if options.command != "walk":  # it makes an environment of its own, elsewhere
        prepare(EXTRAS[options.command], WITHOUT_DEPENDENCIES.get(options.command, ()))
    return COMMANDS[options.command](options, rest)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupError as error:
        print(f"dev: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
