"""``calipers compare`` and ``calipers repair`` from files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.cli import audit as audit_command
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


def class_rows(path: Path, seed: int) -> pl.DataFrame:
    """Probabilities of three named classes, far too sure where x > 0, and the sets that hold 0.9 of them."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(1200, 2)), np.array(["cat", "dog", "emu"])
    P = rng.dirichlet(np.ones(3), 1200)
    y = labels[(P.cumsum(axis=1) > rng.uniform(size=(1200, 1))).argmax(axis=1)]
    P = P ** np.where(X[:, :1] > 0, 6.0, 1.0)
    P = P / P.sum(axis=1, keepdims=True)
    order = np.argsort(-P, axis=1)
    before = np.cumsum(np.take_along_axis(P, order, axis=1), axis=1) - np.take_along_axis(P, order, axis=1)
    held = np.take_along_axis(before, np.argsort(order, axis=1), axis=1) < 0.9
    stated = {f"p_{k}": P[:, j] for j, k in enumerate(labels)} | {
        f"set_{k}": held[:, j] for j, k in enumerate(labels)
    }
    frame = pl.DataFrame(
        {"y_true": y, **stated, "x": X[:, 0], "z": X[:, 1], "group": np.where(X[:, 0] > 0, "a", "b")}
    )
    frame.write_parquet(path)
    return frame


def test_classes_are_repaired_and_applied_later(tmp_path: Path) -> None:
    class_rows(tmp_path / "rows.parquet", 0)
    new = class_rows(tmp_path / "new.parquet", 1)
    # The classes of new rows may stand in another order.
    new.drop("y_true").select(*reversed(new.drop("y_true").columns)).write_parquet(tmp_path / "new.parquet")
    out, later = tmp_path / "out", tmp_path / "later"
    words = ["--apply", str(tmp_path / "new.parquet"), "--out", str(out), "--fail-on", "never", "-q"]
    assert main(["repair", str(tmp_path / "rows.parquet"), *words]) == 0
    assert main(["repair", "--load", str(out), str(tmp_path / "new.parquet"), "--out", str(later), "-q"]) == 0
    once = pl.read_parquet(out / "new_repaired.parquet")
    assert pl.read_parquet(later / "new_repaired.parquet").equals(once)
    sure, y = new["group"].to_numpy() == "a", new["y_true"].to_numpy()

    def coverage(frame: pl.DataFrame) -> float:
        held = np.select(
            [y == k for k in ("cat", "dog", "emu")], [frame[f"set_{k}"] for k in ("cat", "dog", "emu")]
        )
        return float(held[sure].mean())

    assert coverage(new) < 0.75 < 0.85 < coverage(once)
    P = once.select("p_cat", "p_dog", "p_emu").to_numpy()
    assert np.allclose(P.sum(axis=1), 1)
    assert (
        P[sure].max(axis=1).mean() < new.select("p_cat", "p_dog", "p_emu").to_numpy()[sure].max(axis=1).mean()
    )


@pytest.mark.parametrize("kind", ["covered", "quantiles"])
def test_rows_of_a_repair_that_changes_nothing_are_written_as_they_are(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=500), rng.normal(size=500)
    own = {"covered": y > -0.5} if kind == "covered" else {"y_true": y, "q_0.1": x - 1, "q_0.9": x + 0.5}
    frame = pl.DataFrame({**own, "x": x})
    frame.write_parquet(tmp_path / "rows.parquet")
    words = ["--apply", str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "out"), "--fail-on", "never"]
    assert main(["repair", str(tmp_path / "rows.parquet"), *words]) == 0
    assert f"no fault that can be repaired from {kind}" in capsys.readouterr().out
    assert pl.read_parquet(tmp_path / "out" / "rows_repaired.parquet").equals(frame)


def test_large_files_are_written_in_parts_that_hold_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = write_rows(tmp_path / "rows.csv", 2.0), tmp_path / "out"
    new_rows(tmp_path / "new.parquet", 100)
    assert main(["repair", file, "--apply", str(tmp_path / "new.parquet"), "--out", str(out), "-q"]) == 0
    monkeypatch.setattr("calipers.auditing.repair.repaired_files.rows_per_piece", lambda columns: 32)
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


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("the audit ran before its outputs were checked")

    monkeypatch.setattr(audit_command, "run", run)


def test_the_outputs_of_a_repair_are_checked_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forbid(monkeypatch)
    file, out = write_rows(tmp_path / "rows.csv", 2.0), tmp_path / "out"
    new_rows(tmp_path / "new.parquet")
    out.mkdir()
    (out / "report.html").write_text("my notes", encoding="utf-8")
    words = ["repair", file, "--out", str(out)]
    assert main(words) == 2
    assert "was not written by Calipers. Give another place, or --force" in capsys.readouterr().err
    (out / "report.html").unlink()
    (out / "new_repaired.parquet").write_text("my rows", encoding="utf-8")
    assert main([*words, "--apply", str(tmp_path / "new.parquet")]) == 2
    assert "new_repaired.parquet exists and was not written by Calipers" in capsys.readouterr().err
    assert main([*words, "--apply", str(tmp_path / "nowhere.parquet")]) == 2
    assert "nowhere.parquet does not exist" in capsys.readouterr().err
    assert main(["repair", file, "--out", file]) == 2
    assert "--out must be a folder" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--quiet"], ["--json"]])
def test_a_repair_that_cannot_be_written_is_told_and_leaves_no_half(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The new file lacks what the repair needs, which only the repair can say."""
    file, out = write_rows(tmp_path / "rows.csv", 2.0), tmp_path / "out"
    new_rows(tmp_path / "new.parquet").drop("group").write_parquet(tmp_path / "new.parquet")
    apply = ["--apply", str(tmp_path / "new.parquet")]
    assert main(["repair", file, *apply, "--out", str(out), *words]) == 2
    shown = capsys.readouterr()
    assert "CAL201" in shown.out
    assert "group" in shown.err
    assert "No file was changed" in shown.err
    assert list(out.iterdir()) == []


def test_rows_of_an_earlier_run_do_not_mix_with_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write_rows(tmp_path / "rows.csv", 2.0), tmp_path / "out"
    monkeypatch.setattr("calipers.auditing.repair.repaired_files.rows_per_piece", lambda columns: 32)
    new_rows(tmp_path / "new.parquet", 100)
    words = ["--apply", str(tmp_path / "new.parquet"), "--out", str(out), "-q"]
    assert main(["repair", file, *words]) == 0
    new_rows(tmp_path / "new.parquet", 40)
    assert main(["repair", file, *words]) == 0
    assert "replaced what an earlier run wrote" in capsys.readouterr().err
    assert pl.read_parquet(out / "new_repaired").height == 40
    (out / "new_repaired" / "notes.txt").write_text("mine", encoding="utf-8")
    (out / "repair.json").unlink()
    assert main(["repair", file, *words]) == 2
    assert "holds files that Calipers did not write (notes.txt)" in capsys.readouterr().err


def test_new_rows_with_other_names_are_told_the_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(0).normal(size=1200)
    rows = pl.DataFrame({"price": 20_000 * y, "low": -20_000.0, "high": 20_000.0})
    rows.write_csv("rows.csv")
    rows.drop("price").write_csv("new.csv")
    names = ["--lower", "low", "--upper", "high"]
    assert main(["repair", "rows.csv", "--y", "price", *names, "--out", "kept"]) in (0, 1)
    # Thousands are read, decimals and powers of ten are not.
    said = capsys.readouterr().out
    assert "mean width: 40\u202f000 before, " in said
    assert not re.search(r"e\+0|0{3}\.\d{3}", said)
    assert main(["repair", "--load", "kept", "new.csv"]) == 2
    assert "new.csv has no intervals; it has low, high. " in (told := capsys.readouterr().err)
    assert "--lower (column lower) and --upper (column upper)" in told
    assert main(["repair", "--load", "kept", "new.csv", *names]) == 0


def shifted_rows(path: Path, n: int, moved: float, seed: int) -> pl.DataFrame:
    """Noise that grows with a feature, whose mean is moved."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(moved, 1.0, n), rng.normal(size=n)
    y = z + (0.3 + np.exp(0.6 * x)) * rng.normal(size=n)
    frame = pl.DataFrame({"y_true": y, "lower": z - 2.6, "upper": z + 2.6, "x_moved": x, "x_still": z})
    frame.write_parquet(path)
    return frame


def test_rows_with_other_features_get_thresholds_weighted_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, new, out = tmp_path / "rows.parquet", tmp_path / "new.parquet", tmp_path / "out"
    shifted_rows(file, 3000, 0.0, 0)
    frame = shifted_rows(new, 12_000, 1.0, 1)  # more than are looked at
    main(["repair", str(file), "--apply", str(new), "--out", str(out)])
    assert "10000 new rows have other features" in capsys.readouterr().out
    document = json.loads((out / "repair.json").read_text(encoding="utf-8"))
    assert "as far as the estimated likelihood ratio of their features is right" in document["guarantee"]
    there = pl.read_parquet(out / "new_repaired.parquet")
    before, after = (
        ((rows["lower"] <= frame["y_true"]) & (frame["y_true"] <= rows["upper"])).mean()
        for rows in (frame, there)
    )
    assert before < 0.8
    assert after == pytest.approx(0.9, abs=0.06)  # about 250 effective calibration rows: three deviations
    assert main(["repair", "--load", str(out), str(new), "--out", str(tmp_path / "again"), "-q"]) == 0
    assert pl.read_parquet(tmp_path / "again" / "new_repaired.parquet").equals(there)


def test_arrays_are_repaired_as_the_columns_of_a_table_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = X[:, 0] + rng.normal(size=3000) * np.where(X[:, 1] > 0.8, 4.0, 1.0)
    ends = X[:, :1] + np.array([-1.7, 1.7])
    table = {"y_true": y, "lower": ends[:, 0], "upper": ends[:, 1], "a": X[:, 0], "b": X[:, 1]}
    pl.DataFrame(table | {"row_id": np.arange(3000)}).write_parquet("rows.parquet")
    np.savez(
        "arrays.npz",
        y_true=y,
        intervals=ends,
        X=X,
        feature_names=np.array(["a", "b"]),
        row_id=np.arange(3000),
    )
    for name in ("rows.parquet", "arrays.npz"):
        assert (
            main(["repair", name, "--apply", name, "--out", Path(name).stem, "--fail-on", "never", "-q"]) == 0
        )
    repaired = np.load("arrays/arrays_repaired.npz")
    columns = pl.read_parquet("rows/rows_repaired.parquet")
    assert json.loads(Path("rows/repair.json").read_text())["rule"]["thresholds"][
        "partition"
    ]  # by the features
    np.testing.assert_allclose(repaired["intervals"], columns.select("lower", "upper").to_numpy())
    np.testing.assert_array_equal(repaired["X"], X)
    assert main(["measure", "arrays/arrays_repaired.npz", "-q"]) == 0
