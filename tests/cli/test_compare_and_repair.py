"""``calipers compare`` and ``calipers repair`` from files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.cli import main


def write_rows(path: Path, half_width: float, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=1000)
    hot = np.arange(1000) % 3 == 0
    y[hot] *= 2.5
    frame = pl.DataFrame(
        {
            "y_true": y,
            "lower": np.full(1000, -half_width),
            "upper": np.full(1000, half_width),
            "group": np.where(hot, "hot", "cool"),
        }
    )
    frame.write_csv(path)
    return str(path)


def test_compare_writes_its_three_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write_rows(tmp_path / f"{name}.csv", width) for name, width in (("a", 2.0), ("b", 4.0))]
    assert main(["compare", *files, "--out", str(tmp_path / "out")]) == 0
    assert "## Calipers comparison of a and b" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "comparison.html",
        "comparison.json",
        "comparison.md",
    }


def test_compare_ranks_methods_over_data_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = []
    for name, width in (("good", 3.0), ("bad", 0.5)):
        files = [write_rows(tmp_path / f"{name}{seed}.csv", width, seed) for seed in range(3)]
        words.append(f"{name}={','.join(files)}")
    assert main(["compare", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rankings"]["mean size"]["n_blocks"] == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["one.csv"], "at least two predictors"), (["x/a.csv", "y/a.csv"], "two predictors are called 'a'")],
)
def test_compare_refuses_what_it_cannot_pair(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 2
    assert expected in capsys.readouterr().err


def test_repair_writes_before_and_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_rows(tmp_path / "rows.csv", 2.0)
    before = Path(file).read_bytes()
    assert main(["repair", file, "--out", str(tmp_path / "out")]) == 0
    assert "coverage of group hot" in capsys.readouterr().out
    document = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert "CAL201" in document["repair"]["gone"]
    assert Path(file).read_bytes() == before
