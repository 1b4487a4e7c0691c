"""Results of studies are found again only when code, data and parameters are the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import studies
from studies.caching import imported_sources, remembered, study_cache
from studies.progress import study_progress, worked

CALLS: list[tuple[object, ...]] = []


def scaled(values: np.ndarray, factor: float = 1.0) -> dict[str, object]:
    CALLS.append((values.sum(), factor))
    return {"values": factor * values, "note": "text"}


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    CALLS.clear()


def test_the_same_arguments_are_computed_once(tmp_path: Path) -> None:
    first, second = (remembered(tmp_path, scaled, np.arange(4.0), factor=3) for _ in range(2))
    assert len(CALLS) == 1
    np.testing.assert_array_equal(first["values"], second["values"])
    assert second["values"].tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize(
    ("values", "options"),
    [(np.arange(5.0), {}), (np.arange(4.0) + 1e-9, {}), (np.arange(4.0), {"factor": 2.0})],
    ids=["other rows", "a changed number", "another parameter"],
)
def test_other_arguments_are_computed_anew(tmp_path: Path, values: np.ndarray, options) -> None:
    remembered(tmp_path, scaled, np.arange(4.0))
    found = remembered(tmp_path, scaled, values, **options)
    assert len(CALLS) == 2
    np.testing.assert_array_equal(found["values"], options.get("factor", 1.0) * values)


def test_without_a_folder_everything_is_computed(tmp_path: Path) -> None:
    for _ in range(2):
        remembered(None, scaled, np.arange(4.0))
    assert len(CALLS) == 2


def test_interrupted_jobs_are_resumed_at_the_first_that_is_missing(tmp_path: Path) -> None:
    done: list[int] = []

    def work(k: int, last: int) -> list[int]:
        if k > last:
            raise KeyboardInterrupt
        done.append(k)
        return [k, k**2]

    def go(last: int) -> list[object]:
        jobs = {f"{k}": (k, last) for k in range(5)}
        with study_progress() as progress:
            return worked(
                progress, work, jobs, description="squares", cache=study_cache(tmp_path, scaled, "squares")
            )

    with pytest.raises(KeyboardInterrupt):
        go(2)
    assert done == [0, 1, 2]
    assert go(9) == [[k, k**2] for k in range(5)]
    assert done == [0, 1, 2, 3, 4]


def test_sources_are_followed_through_imports_of_the_package() -> None:
    found = imported_sources("studies.adaptivity.classification")
    assert {"studies.adaptivity.cases", "studies.adaptivity.outputs", "studies.adaptivity.methods"} <= set(
        found
    )
    assert "studies.adaptivity.network" in found  # imported inside a function
    assert not {"studies.adaptivity.figures", "studies.adaptivity.claims", "studies.adaptivity"} & set(found)


@pytest.mark.parametrize("name", studies.STUDIES)
def test_nothing_that_computes_imports_figures_or_claims(name: str) -> None:
    folder = Path(studies.__file__).parent / name
    for path in folder.glob("*.py"):
        if path.stem not in {"__init__", "figure", "figures", "claims"}:
            found = imported_sources(f"studies.{name}.{path.stem}")
            assert not {f"studies.{name}.{drawn}" for drawn in ("figure", "figures", "claims")} & set(found)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the studies that may be changed."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(studies.__file__).parent, folder / "studies", ignore=ignored)
    return folder


def test_changed_code_of_a_study_is_not_answered_from_the_cache(copied: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from studies.caching import remembered; from studies.calibration.documents import run_once\n"
        "from studies.calibration.settings import QUICK\n"
        "print(remembered(sys.argv[1], run_once, QUICK, 0))"
    )

    def run() -> str:
        command = [sys.executable, "-c", code, str(tmp_path)]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=copied, env=environment
        )
        return done.stdout

    def change(file: str, old: str, new: str) -> None:
        path = copied / "studies" / "calibration" / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    first = run()
    assert run() == first
    assert len(list(tmp_path.iterdir())) == 1
    change("figures.py", "COLOURS", "COLORS")  # draws, computes nothing
    assert run() == first
    assert len(list(tmp_path.iterdir())) == 1
    change("settings.py", "SEED = 0", "SEED = 1")  # another module that the function uses
    second = run()
    assert second != first
    change("documents.py", "expit(train.counts @ weights + intercepts)", "expit(train.counts @ weights)")
    assert run() not in {first, second}
    assert len(list(tmp_path.iterdir())) == 3


def test_code_that_is_edited_during_a_run_does_not_lend_its_name_to_old_results(
    copied: Path, tmp_path: Path
) -> None:
    toy = copied / "studies" / "toy"
    toy.mkdir()
    (toy / "work.py").write_text("def compute():\n    return 1\n", encoding="utf-8")
    (toy / "__init__.py").write_text(
        "from pathlib import Path\n"
        "from studies.caching import remembered\n"
        "from studies.outcome import StudyReport\n"
        "from studies.toy import work\n\n\n"
        "def run(data, out, *, quick):\n"
        "    # Somebody saves a change while the study runs.\n"
        "    Path(work.__file__).write_text('def compute():\\n    return 2\\n', encoding='utf-8')\n"
        "    found = remembered(out / 'cache', work.compute)\n"
        "    return StudyReport(name='toy', title=f'found {found}', claims=(), files=())\n",
        encoding="utf-8",
    )
    code = (
        "import sys, studies; studies.STUDIES['toy'] = 'a toy'\n"
        "print(studies.run_study('toy', None, sys.argv[1]).title)"
    )
    command = [sys.executable, "-B", "-c", code, str(tmp_path)]
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=copied).stdout.strip()
        for _ in range(2)
    ]
    assert said == ["found 1", "found 2"]
