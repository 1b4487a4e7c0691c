"""The pre-commit hook in a real repository, and the script of the GitHub Action as a runner would run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.interop.peers import require

ROOT = Path(__file__).resolve().parents[2]
SHELL = shutil.which("bash")
GIT = shutil.which("git")
IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def write_predictions(path: Path, reach: float) -> Path:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=2000), np.full(2000, -reach), np.full(2000, reach)])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, rows, delimiter=",", header="y_true,lower,upper", comments="")
    return path


def git(folder: Path, *words: str) -> None:
    environment = os.environ | IDENTITY | {"GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run([GIT, *words], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose hook comes from .pre-commit-hooks.yaml of this one, run with the Calipers of this test."""
    require("pre-commit", "pre_commit")
    if GIT is None:
        pytest.skip("git is not installed")
    # As a user would write it, except that the program is the installed one: `language: python` would build
    # an environment with every dependency, for minutes. The rest of the definition is ours, word for word.
    definition = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
    assert definition["entry"] == "calipers audit"
    assert definition["language"] == "python"
    hook = definition | {
        "language": "system",
        "entry": f"{sys.executable} -m {definition['entry']}",
        "files": r"^predictions/test\.csv$",
        "args": ["predictions/test.csv", "--alpha", "0.1"],
    }
    folder = tmp_path / "project"
    folder.mkdir()
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    git(folder, "init", "-q")
    return folder


def run_hook(folder: Path) -> subprocess.CompletedProcess[str]:
    git(folder, "add", "-A")
    environment = os.environ | IDENTITY | {
        "PRE_COMMIT_HOME": str(folder.parent / "cache"), "PYTHONPATH": str(ROOT / "src"),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_hook_stops_a_commit_with_an_issue_and_lets_a_clean_one_pass(repository):
    write_predictions(repository / "predictions" / "test.csv", reach=1.2)
    bad = run_hook(repository)
    assert bad.returncode == 1
    assert "exit code: 1" in bad.stdout
    assert "CAL101" in bad.stdout
    write_predictions(repository / "predictions" / "test.csv", reach=1.645)
    good = run_hook(repository)
    assert good.returncode == 0, good.stdout
    assert "Passed" in good.stdout


def test_the_hook_looks_only_at_the_files_it_was_given(repository):
    write_predictions(repository / "predictions" / "other.csv", reach=0.1)
    done = run_hook(repository)
    assert done.returncode == 0
    assert "Skipped" in done.stdout


def test_the_hook_tells_bad_input_from_a_finding(repository):
    (repository / "predictions").mkdir()
    (repository / "predictions" / "test.csv").write_text("outcome,lower,upper\n1,0,2\n", encoding="utf-8")
    done = run_hook(repository)
    assert "exit code: 2" in done.stdout
    assert "has no column 'y_true'" in done.stdout


def run_action(folder: Path, file: Path, **inputs: str) -> tuple[int, str, str, str]:
    """Run the action's one step with its defaults; exit code, what it printed, its output and its summary."""
    if SHELL is None:
        pytest.skip("bash is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = action["runs"]["steps"]
    given = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()} | inputs
    given["file"] = str(file)
    # Instead of an environment of its own: one that stands there already, whose installer has nothing to do.
    environment = folder / "calipers-environment" / "bin"
    environment.mkdir(parents=True)
    (environment / "python").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (environment / "calipers").write_text(
        f'#!/bin/sh\nexec {sys.executable} -m calipers "$@"\n', encoding="utf-8"
    )
    for program in environment.iterdir():
        program.chmod(0o755)
    variables = {
        name: given[text.split("inputs.")[1].removesuffix(" }}")] if "inputs." in text else str(ROOT)
        for name, text in step["env"].items()
    }
    variables |= {"CALIPERS_PYTHON": "true", "RUNNER_TEMP": str(folder), "PYTHONPATH": str(ROOT / "src")}
    places = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = subprocess.run(
        [SHELL, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=os.environ | variables | {k: str(v) for k, v in places.items()},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    output, summary = (p.read_text(encoding="utf-8") if p.exists() else "" for p in places.values())
    return done.returncode, done.stdout + done.stderr, output, summary


def test_the_action_fails_on_an_issue_and_writes_the_report_and_the_summary(tmp_path):
    file = write_predictions(tmp_path / "test.csv", reach=1.2)
    code, said, output, summary = run_action(tmp_path, file, options="--alpha 0.1")
    assert code == 1, said
    assert "::error" in said
    assert output == "exit-code=1\n"
    assert "CAL101" in summary
    assert (tmp_path / "calipers-report.html").exists()


def test_the_action_passes_what_is_below_its_threshold(tmp_path):
    file = write_predictions(tmp_path / "test.csv", reach=1.2)
    code, said, output, _ = run_action(tmp_path, file, **{"fail-on": "never", "report": ""})
    assert code == 0, said
    assert output == "exit-code=0\n"
    assert not (tmp_path / "calipers-report.html").exists()


def test_the_action_reports_bad_input_as_such(tmp_path):
    code, _, output, _ = run_action(tmp_path, tmp_path / "no-such-file.csv")
    assert code == 2
    assert output == "exit-code=2\n"
