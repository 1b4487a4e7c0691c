"""``calipers calibrate``: honest rows, untouched input, both audits."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.calibration import IsotonicCalibrator
from calipers.cli import main
from calipers.datasets import ScoreWorld
from calipers.inputs.files import read_table
from calipers.inputs.files.formats import write_table


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    p, y = ScoreWorld("uniform", "shift", 0.8).sample(1500, random_state=0)
    columns = {"y_true": np.where(y == 1, "yes", "no"), "p_no": 1 - p, "p_yes": p, "age": 10 * p}
    pl.DataFrame(columns).write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


def test_a_broken_file_is_repaired_and_itself_not_changed(broken: Path, capsys) -> None:
    out, before = broken.parent / "out", hashlib.sha256(broken.read_bytes()).hexdigest()
    assert main(["calibrate", str(broken), "--out", str(out)]) == 0
    assert hashlib.sha256(broken.read_bytes()).hexdigest() == before
    assert "Repaired by LinkCalibrator" in capsys.readouterr().out
    rows, found = pl.read_csv(broken), pl.read_csv(out / "calibrated.csv")
    assert found.columns == rows.columns
    assert found["age"].equals(rows["age"])
    np.testing.assert_allclose(found["p_no"] + found["p_yes"], 1, atol=1e-12)
    document = json.loads((out / "calibration.json").read_text(encoding="utf-8"))
    errors = [document["calibration"][name] for name in ("before", "after")]
    assert "Repaired" in document["verdict"]
    assert {"before", "after"} <= set(document)
    assert json.dumps(errors[0]) != json.dumps(errors[1])
    assert (out / "report_before.html").is_file()
    assert (out / "report_after.html").is_file()


def test_an_interrupted_run_leaves_the_old_file(broken: Path, monkeypatch) -> None:
    out = broken.parent / "out"
    assert main(["calibrate", str(broken), "--out", str(out), "--quiet"]) == 0
    old, names = (out / "calibrated.csv").read_bytes(), sorted(path.name for path in out.iterdir())

    def half(self: pl.DataFrame, file, **options) -> None:
        file.write(b"y_true,p_no")
        raise KeyboardInterrupt

    monkeypatch.setattr(pl.DataFrame, "write_csv", half)
    assert main(["calibrate", str(broken), "--out", str(out), "--quiet", "--method", "isotonic"]) == 130
    assert (out / "calibrated.csv").read_bytes() == old
    assert sorted(path.name for path in out.iterdir()) == names


def test_every_row_is_calibrated_by_the_other_folds(broken: Path) -> None:
    out = broken.parent / "out"
    assert (
        main(["calibrate", str(broken), "--out", str(out), "--method", "isotonic", "--quiet", "--folds", "3"])
        == 0
    )
    rows, found = pl.read_csv(broken), pl.read_csv(out / "calibrated.csv")
    p, y = rows["p_yes"].to_numpy(), rows["y_true"].to_numpy() == "yes"
    parts = np.random.default_rng(0).permutation(len(y)) % 3
    for part in range(3):
        kept = parts != part
        expected = IsotonicCalibrator().fit(p[kept], y[kept]).predict(p[~kept])
        np.testing.assert_allclose(found["p_yes"].to_numpy()[~kept], expected, atol=1e-12)


def test_a_calibrated_file_is_left_alone(tmp_path: Path, capsys) -> None:
    p, y = ScoreWorld().sample(1500, random_state=0)  # p = 0.94; that of sample 1 is 0.03
    pl.DataFrame({"y_true": y, "p_1": p}).write_parquet(tmp_path / "good.parquet")
    assert main(["calibrate", str(tmp_path / "good.parquet"), "--out", str(tmp_path / "o"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"].startswith("Left alone")
    assert pl.read_parquet(tmp_path / "o" / "calibrated.parquet")["p_1"].to_numpy().tolist() == p.tolist()


def test_another_file_goes_through_the_calibrator_of_all_rows(broken: Path) -> None:
    out = broken.parent / "out"
    words = [
        "calibrate",
        str(broken),
        "--method",
        "isotonic",
        "--apply",
        str(broken),
        "--out",
        str(out),
        "-q",
    ]
    assert main(words) == 0
    rows, found = pl.read_csv(broken), pl.read_csv(out / "rows_calibrated.csv")
    p, y = rows["p_yes"].to_numpy(), rows["y_true"].to_numpy() == "yes"
    np.testing.assert_allclose(found["p_yes"], IsotonicCalibrator().fit_predict(p, y), atol=1e-12)


def three_classes(path: Path, names: list[str]) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    P = rng.dirichlet([1, 1, 1], size=400)
    labels = np.array(["a", "b", "c"])
    y = [str(rng.choice(labels, p=row**2 / np.sum(row**2))) for row in P]
    table = pl.DataFrame({"y_true": y, **{f"p_{name}": P[:, k] for k, name in enumerate("abc")}})
    table.select("y_true", *(f"p_{name}" for name in names)).write_csv(path)
    return table


def test_another_file_may_have_its_classes_in_another_order(tmp_path: Path) -> None:
    three_classes(tmp_path / "rows.csv", ["a", "b", "c"])
    three_classes(tmp_path / "turned.csv", ["c", "a", "b"])
    words = [
        "calibrate",
        str(tmp_path / "rows.csv"),
        "--method",
        "isotonic",
        "-q",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main([*words, "--apply", str(tmp_path / "rows.csv")]) == 0
    assert main([*words, "--apply", str(tmp_path / "turned.csv")]) == 0
    plain, turned = (pl.read_csv(tmp_path / "o" / f"{name}_calibrated.csv") for name in ("rows", "turned"))
    assert turned.columns == ["y_true", "p_c", "p_a", "p_b"]
    np.testing.assert_allclose(turned.select(plain.columns[1:]), plain.select(plain.columns[1:]), atol=1e-12)


def test_another_file_with_other_classes_is_refused(tmp_path: Path, capsys) -> None:
    table = three_classes(tmp_path / "rows.csv", ["a", "b", "c"])
    other = table.rename({"p_c": "p_d"}).with_columns(pl.col("y_true").replace("c", "d"))
    other.write_csv(tmp_path / "other.csv")
    words = ["calibrate", str(tmp_path / "rows.csv"), "-q", "--out", str(tmp_path / "o")]
    assert main([*words, "--apply", str(tmp_path / "other.csv")]) == 2
    assert "(a, b, c), got a, b, d." in capsys.readouterr().err


@pytest.mark.parametrize("method", ["auto", "isotonic", "beta"])
def test_several_classes_and_npz(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], size=600)
    y = np.array([rng.choice(3, p=row) for row in P])
    sharp = P**3 / (P**3).sum(axis=1, keepdims=True)
    np.savez(tmp_path / "rows.npz", y_true=y, probabilities=sharp)
    out = tmp_path / "o"
    assert main(["calibrate", str(tmp_path / "rows.npz"), "--method", method, "--out", str(out), "-q"]) == 0
    with np.load(out / "calibrated.npz") as found:
        np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1, atol=1e-9)
        assert np.mean((found["probabilities"] - P) ** 2) < np.mean((sharp - P) ** 2)
        assert found["y_true"].tolist() == y.tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "magic"], "--method must be one of auto, isotonic"),
        (["--folds", "1"], "--folds must be a whole number of at least 2"),
        (["--proba", "q_*"], "has no column like q_*"),
        (["--fail-on", "sometimes"], "--fail-on must be"),
    ],
)
def test_bad_options_are_bad_input(broken: Path, words: list[str], message: str, capsys) -> None:
    assert main(["calibrate", str(broken), "--out", str(broken.parent / "o"), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_file_without_probabilities_is_bad_input(tmp_path: Path, capsys) -> None:
    pl.DataFrame({"y_true": [1, 0], "lower": [0, 0], "upper": [1, 1]}).write_csv(tmp_path / "rows.csv")
    assert main(["calibrate", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "o")]) == 2
    assert "has no probabilities" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".tsv", ".csv.gz", ".jsonl", ".parquet", ".arrow", ".npz"])
def test_the_calibrated_file_has_the_format_and_all_columns_of_the_file(ending: str, tmp_path: Path) -> None:
    p, y = ScoreWorld("uniform", "shift", 0.8).sample(400, random_state=0)
    columns = {"y_true": np.where(y == 1, "yes", "no"), "p_no": 1 - p, "p_yes": p, "age": np.round(10 * p, 1)}
    place, out = tmp_path / f"rows{ending}", tmp_path / "out"
    if ending == ".npz":
        given = {
            "probabilities": np.stack([1 - p, p], axis=1),
            "X": columns["age"][:, None],
            "n_calibration": 50,
        }
        layers = np.ones((400, 2, 2), dtype=bool)
        np.savez(
            place, y_true=columns["y_true"], sets=layers, alpha=[0.1, 0.2], feature_names=["age"], **given
        )
    else:
        write_table(pl.DataFrame(columns), str(place))
    before = read_table(place)
    words = ["calibrate", str(place), "--method", "isotonic", "--out", str(out), "-q", "--apply", str(place)]
    assert main(words) == 0
    stated = {"probabilities", "p_no", "p_yes"}
    for name in ("calibrated", "rows_calibrated"):
        found = read_table(out / f"{name}{ending}")
        assert found.schema == before.schema
        kept = [column for column in before.columns if column not in stated]
        assert found.select(kept).equals(before.select(kept))
        changed = [column for column in before.columns if column in stated]
        assert not found.select(changed).equals(before.select(changed))
    if ending == ".npz":
        with np.load(place) as first, np.load(out / "calibrated.npz") as second:
            assert sorted(first.files) == sorted(second.files)
            assert first["alpha"].tolist() == second["alpha"].tolist()


def test_the_sentence_and_the_numbers_below_it_are_about_the_same_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before, the sentence read 0.0016 and the line below 0.0025: two cross-fits with other folds."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=3000)
    y = rng.random(3000) < p
    stated = np.clip(1.8 * (p - 0.5) + 0.5, 0.0, 1.0)
    pl.DataFrame({"y_true": y.astype(int), "p_0": 1 - stated, "p_1": stated}).write_csv(tmp_path / "rows.csv")
    main(["calibrate", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    said = re.search(r"becomes (0\.\d{4})", printed)
    read = re.search(r"after: calibration_error (0\.\d+)", printed)
    assert said is not None
    assert read is not None
    assert float(read[1]) == pytest.approx(float(said[1]), abs=6e-4)
    assert "outcomes had been stated as impossible" in printed
