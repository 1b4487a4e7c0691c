"""Files of predictions: every kind, every role, and one sentence for whatever is wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.exceptions import CalipersError
from calipers.inputs.files import ColumnChoice, formats, read_predictions, read_table

FRAME = pl.DataFrame(
    {
        "y_true": ["cat", "dog", "cat", "ant"],
        "p_ant": [0.1, 0.2, 0.3, 0.5],
        "p_cat": [0.6, 0.2, 0.5, 0.3],
        "p_dog": [0.3, 0.6, 0.2, 0.2],
        "set_dog": [False, True, False, False],
        "set_cat": [True, False, True, False],
        "set_ant": [False, False, True, True],
        "group": ["a", "b", "a", "b"],
        "age": [30, 41, 52, 63],
        "ease": [0.1, 0.4, 0.2, 0.3],
    }
)
WRITERS = {
    "rows.csv": FRAME.write_csv,
    "rows.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "rows.parquet": FRAME.write_parquet,
    "rows.arrow": FRAME.write_ipc,
    "rows.jsonl": FRAME.write_ndjson,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_table_gives_the_same_predictions(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    found = read_predictions(tmp_path / name)
    assert found.classes == ["ant", "cat", "dog"]
    assert found.probabilities.tolist() == FRAME.select("p_ant", "p_cat", "p_dog").to_numpy().tolist()
    # The sets come in another column order and are brought into that of the probabilities.
    assert found.sets.tolist() == FRAME.select("set_ant", "set_cat", "set_dog").to_numpy().tolist()
    assert found.groups.tolist() == ["a", "b", "a", "b"]
    assert found.ease.tolist() == [0.1, 0.4, 0.2, 0.3]
    assert found.X.columns == ["age"]
    assert found.y_true.tolist() == FRAME["y_true"].to_list()


def test_a_file_is_not_modified(tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    FRAME.write_csv(place)
    before, stamp = place.read_bytes(), place.stat().st_mtime_ns
    read_predictions(place)
    assert (place.read_bytes(), place.stat().st_mtime_ns) == (before, stamp)


def test_integer_labels_make_integer_classes(tmp_path: Path) -> None:
    pl.DataFrame({"y_true": [2, 5], "p_2": [0.9, 0.2], "p_5": [0.1, 0.8]}).write_csv(tmp_path / "r.csv")
    assert read_predictions(tmp_path / "r.csv").classes == [2, 5]


def test_one_probability_column_is_the_positive_class(tmp_path: Path) -> None:
    pl.DataFrame({"label": [0, 1], "score": [0.2, 0.7]}).write_csv(tmp_path / "r.csv")
    found = read_predictions(tmp_path / "r.csv", ColumnChoice(y="label", probabilities=("score",)))
    assert found.probabilities.tolist() == [0.2, 0.7]
    assert found.classes is None


def test_levels_in_column_names_make_a_last_axis(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"y_true": [1.0], "lower_0.2": [0.5], "upper_0.2": [1.5], "lower_0.05": [0.0], "upper_0.05": [2.0]}
    )
    frame.write_csv(tmp_path / "r.csv")
    found = read_predictions(tmp_path / "r.csv")
    assert found.alpha == [0.05, 0.2]
    assert found.intervals.tolist() == [[[0.0, 0.5], [2.0, 1.5]]]


def test_a_text_column_that_names_its_rows_is_no_feature(tmp_path: Path) -> None:
    n = 60
    frame = pl.DataFrame(
        {
            "y_true": np.zeros(n),
            "lower": np.zeros(n),
            "upper": np.ones(n),
            "id": [f"row{i}" for i in range(n)],
            "site": ["a", "b"] * (n // 2),
        }
    )
    frame.write_csv(tmp_path / "r.csv")
    found = read_predictions(tmp_path / "r.csv")
    assert found.X.columns == ["site"]
    assert found.roles["id"] == "ignored (names its rows)"


def test_npz_keys_are_the_arguments_of_an_audit(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "r.npz",
        y_true=[0, 1],
        sets=np.eye(2, dtype=bool),
        X=[[1.0], [2.0]],
        feature_names=["age"],
        n_calibration=500,
        alpha=0.2,
    )
    found = read_predictions(tmp_path / "r.npz")
    assert found.X["age"].to_list() == [1.0, 2.0]
    assert (found.n_calibration, found.alpha) == (500, [0.2])


def test_a_sample_is_drawn_while_the_file_streams_by(tmp_path: Path) -> None:
    place = tmp_path / "r.parquet"
    pl.DataFrame({"y_true": range(1000)}).write_parquet(place)
    first = read_table(place, max_rows=50, random_state=3)
    again = read_table(place, max_rows=50, random_state=3)
    assert first.height == 50
    assert first.equals(again)
    assert first["y_true"].n_unique() == 50
    assert read_table(place, max_rows=5000).height == 1000


def write_corrupt(path: Path) -> None:
    FRAME.write_parquet(path)
    path.write_bytes(path.read_bytes()[:200])


BAD_FILES = {
    "missing": ("none.csv", lambda path: None, "does not exist"),
    "folder": ("folder.csv", lambda path: path.mkdir(), "is a folder"),
    "empty": ("r.csv", lambda path: path.touch(), "is empty"),
    "only a header": ("r.csv", lambda path: path.write_text("y_true,p_a\n"), "has no rows"),
    "unknown ending": ("r.xlsx", lambda path: path.write_text("x"), "must end in .csv"),
    "cut parquet": ("r.parquet", write_corrupt, "could not be read as parquet"),
    "text as parquet": (
        "r.parquet",
        lambda path: path.write_text("y,p\n1,2\n"),
        "could not be read as parquet",
    ),
    "text as npz": ("r.npz", lambda path: path.write_text("y,p\n1,2\n"), "could not be read as npz"),
    "broken json": ("r.jsonl", lambda path: path.write_text('{"y_true": 1}\n{"y_tr'), "could not be read"),
    "no outcome": (
        "r.csv",
        lambda path: path.write_text("a,b\n1,2\n"),
        "has no column 'y_true'; it has a, b",
    ),
    "one end": ("r.csv", lambda path: path.write_text("y_true,lower\n1,2\n"), "no column for upper"),
    "text ends": (
        "r.csv",
        lambda path: path.write_text("y_true,lower,upper\n1,a,b\n"),
        "column 'lower' of .* must hold numbers",
    ),
    "missing outcome": (
        "r.csv",
        lambda path: path.write_text("y_true,lower,upper\n1,0,2\n,0,2\n"),
        r"column 'y_true' .* 1 missing of 2 values \(first at row 1\)",
    ),
    "classes that differ": (
        "r.csv",
        lambda path: path.write_text("y_true,p_a,p_b,set_a,set_c\na,0.5,0.5,1,0\n"),
        "class 'b' is in one of",
    ),
    "classes of another kind": (
        "r.csv",
        lambda path: path.write_text("y_true,p_a,p_b\n1,0.5,0.5\n"),
        "are not of the kind y_true holds",
    ),
    "sets of other numbers": (
        "r.csv",
        lambda path: path.write_text("y_true,set_a,set_b\na,0.5,1\n"),
        "must hold true and false",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_gets_one_sentence_that_names_it(case: str, tmp_path: Path) -> None:
    name, write, expected = BAD_FILES[case]
    write(tmp_path / name)
    with pytest.raises(CalipersError, match=expected) as caught:
        read_predictions(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_npz_with_pickled_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "r.npz", y_true=np.array([{"a": 1}], dtype=object))
    with pytest.raises(CalipersError, match="could not be read as npz"):
        read_predictions(tmp_path / "r.npz")


def test_an_unknown_array_of_an_npz_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "r.npz", y_true=[0, 1], probs=[0.1, 0.2])
    with pytest.raises(CalipersError, match="an array 'probs' that an audit does not take"):
        read_predictions(tmp_path / "r.npz")


def test_a_file_larger_than_memory_is_refused_with_the_command_that_streams_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r.parquet"
    FRAME.write_parquet(place)
    monkeypatch.setattr(formats, "available_memory", lambda: 100)
    with pytest.raises(CalipersError, match=r"'calipers audit .*r\.parquet --engine local' streams all rows"):
        read_table(place)
    assert read_table(place, max_rows=2).height == 2


@pytest.mark.parametrize("role", ["group", "ease", "weight", "lower", "upper"])
def test_a_column_that_was_named_and_is_not_there_is_refused(role: str, tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "r.csv")
    with pytest.raises(CalipersError, match="has no column 'nope'"):
        read_predictions(tmp_path / "r.csv", ColumnChoice(**{role: "nope"}))
