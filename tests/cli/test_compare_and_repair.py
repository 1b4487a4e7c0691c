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


def new_rows(path: Path, n: int = 40) -> pl.DataFrame:
    """Rows without outcomes, with a column that no audit knows."""
    frame = pl.DataFrame(
        {
            "name": [f"row {i}" for i in range(n)],
            "lower": np.full(n, -2.0),
            "upper": np.full(n, 2.0),
            "group": np.where(np.arange(n) % 2, "hot", "cool"),
        }
    )
    frame.write_parquet(path)
    return frame


def test_repair_writes_what_can_be_applied_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = write_rows(tmp_path / "rows.csv", 2.0), tmp_path / "out"
    frame = new_rows(tmp_path / "new.parquet")
    words = ["--apply", str(tmp_path / "new.parquet"), "--out", str(out)]
    assert main(["repair", file, *words]) == 0
    once = pl.read_parquet(out / "new_repaired.parquet")
    assert once.columns == frame.columns
    assert once["name"].to_list() == frame["name"].to_list()
    widths = (once["upper"] - once["lower"]).to_numpy()
    assert (widths[1::2] > widths[::2]).all()  # the hot group needs wider intervals
    later = tmp_path / "later"
    assert main(["repair", "--load", str(out), str(tmp_path / "new.parquet"), "--out", str(later)]) == 0
    assert "Guarantee: covers 1 - alpha in every cell" in capsys.readouterr().out
    assert pl.read_parquet(later / "new_repaired.parquet").equals(once)


def test_large_files_are_written_in_parts_that_hold_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = write_rows(tmp_path / "rows.csv", 2.0), tmp_path / "out"
    new_rows(tmp_path / "new.parquet", 100)
    assert main(["repair", file, "--apply", str(tmp_path / "new.parquet"), "--out", str(out), "-q"]) == 0
    monkeypatch.setattr("calipers.auditing.repair.files.rows_per_piece", lambda columns: 32)
    assert main(["repair", "--load", str(out), str(tmp_path / "new.parquet"), "-q"]) == 0
    parts = sorted((out / "new_repaired").iterdir())
    assert [pl.read_parquet(part).height for part in parts] == [32, 32, 32, 4]
    assert pl.read_parquet(out / "new_repaired").equals(pl.read_parquet(out / "new_repaired.parquet"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--apply", "new.parquet"], "--apply needs --out"),
        (["--load", "x", "--apply", "new.parquet"], "--apply goes with a repair that is made of FILE"),
        (["--load", "nowhere.json"], "there is no repair at nowhere.json"),
    ],
)
def test_repair_refuses_what_does_not_fit_together(
    tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repair", write_rows(tmp_path / "rows.csv", 2.0), *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_fault_that_is_left_decides_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sets alone state no scores, so their coverage cannot be mended."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    sets = rng.random((1000, 2)) < 0.6
    pl.DataFrame({"y_true": y, "set_0": sets[:, 0], "set_1": sets[:, 1]}).write_csv(tmp_path / "sets.csv")
    assert main(["repair", str(tmp_path / "sets.csv")]) == 1
    assert "Left: CAL101 issue" in capsys.readouterr().out
    assert main(["repair", str(tmp_path / "sets.csv"), "--fail-on", "never", "-q"]) == 0
