"""The page on interoperation: its blocks that need other packages run as printed, after those that do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop.peers import foreign, require

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "interop.md"
BLOCK = re.compile(r"^```(python|\{code-block\} python)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
SECTIONS = {
    part.partition("\n")[0]: part.partition("\n")[2]
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")
}


def run(text: str, kind: str, namespace: dict[str, object]) -> None:
    for found, block in BLOCK.findall(text):
        if found == kind:
            exec(compile(block, PAGE.name, "exec"), namespace)  # noqa: S102 - our own page


@pytest.mark.parametrize(
    ("section", "package"), [("MLflow", "mlflow"), ("skore", "skore"), ("Hugging Face evaluate", "evaluate")]
)
def test_the_section_runs_as_printed(section, package, tmp_path, monkeypatch):
    require(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    namespace: dict[str, object] = {"__name__": "page"}
    with foreign():
        for opening in (next(iter(SECTIONS)), "scikit-learn"):
            run(SECTIONS[opening], "python", namespace)
        assert BLOCK.search(SECTIONS[section])
        run(SECTIONS[section], "{code-block} python", namespace)
