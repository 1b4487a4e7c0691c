"""Files of predictions: every format, in memory and streamed, and one sentence for whatever is wrong with them."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.engines import FileSource, measure
from calipers.exceptions import CalipersError, InputError
from calipers.inputs.files import ColumnChoice, read_table, size_limits
from calipers.inputs.files.column_roles import assign_roles
from calipers.inputs.files.columns_to_arrays import arguments_of_frame
from calipers.inputs.files.formats import ENDINGS, FORMATS, write_table


def table(n: int = 40, seed: int = 0) -> pl.DataFrame:
    """Probabilities, sets in another order of classes, a group, an ease, weights, ids and a feature."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n).round(3)
    P[:, 2] = 1 - P[:, 0] - P[:, 1]
    columns = {"y_true": rng.choice(["ant", "cat", "dog"], n)}
    columns |= {f"p_{name}": P[:, k] for k, name in enumerate(("ant", "cat", "dog"))}
    columns |= {f"set_{name}": P[:, k] > 0.2 for k, name in reversed(list(enumerate(("ant", "cat", "dog"))))}
    columns |= {
        "group": rng.choice(["a", "b"], n),
        "ease": rng.random(n).round(2),
        "age": rng.integers(20, 60, n),
    }
    return pl.DataFrame(columns | {"sample_weight": rng.integers(1, 4, n), "row_id": rng.permutation(n)})


def by_argument(frame: pl.DataFrame) -> dict[str, np.ndarray]:
    """The same table by the arguments of an audit."""
    classes = ("ant", "cat", "dog")
    return {
        "y_true": frame["y_true"].to_numpy().astype(str),
        "probabilities": frame.select(f"p_{c}" for c in classes).to_numpy(),
        "sets": frame.select(f"set_{c}" for c in classes).to_numpy(),
        "groups": frame["group"].to_numpy().astype(str),
        "ease": frame["ease"].to_numpy(),
        "sample_weight": frame["sample_weight"].to_numpy().astype(float),
        "row_id": frame["row_id"].to_numpy(),
    }


NAMES = [f"rows{ending}" for ending in ENDINGS]


def write(frame: pl.DataFrame, path: Path) -> None:
    if path.suffix == ".npz":
        arrays = by_argument(frame) | {
            "X": frame.select("age").to_numpy(),
            "feature_names": np.array(["age"]),
        }
        np.savez(path, classes=np.array(["ant", "cat", "dog"]), **arrays)
    else:
        write_table(frame, str(path))


def joined(source: FileSource) -> dict[str, np.ndarray]:
    """What the blocks of a source give, one after the other."""
    blocks = [block for piece in source.pieces() for block in piece.blocks()]
    names = [*by_argument(table(3)), "covered", "size", "ranks"]
    return {name: np.concatenate([np.asarray(block[name]) for block in blocks]) for name in names} | {
        "keys": np.concatenate([block.keys() for block in blocks])
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_rows_in_memory_streamed_and_by_pattern(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One table in every ending: what is loaded, what is streamed in blocks of 7 rows, what a pattern finds."""
    frame = table()
    write(frame, tmp_path / name)
    expected = by_argument(frame)
    loaded = FileSource(str(tmp_path / name), features=True).load()
    for argument, column in expected.items():
        assert loaded.given[argument].tolist() == column.tolist()
    assert loaded.classes == ["ant", "cat", "dog"]
    assert loaded.given["X"]["age"].to_list() == frame["age"].to_list()
    monkeypatch.setattr("calipers.inputs.files.pieces.rows_per_piece", lambda n: 7)
    monkeypatch.setattr("calipers.inputs.files.pieces.block_rows", lambda given: 3)
    block = loaded.rows()
    for place in (str(tmp_path / name), str(tmp_path / f"*{name[4:]}"), str(tmp_path)):
        streamed = joined(FileSource(place, features=True, piece_rows=7))
        for argument, column in streamed.items():
            here = block.keys() if argument == "keys" else np.asarray(block[argument])
            assert here.dtype.kind == column.dtype.kind
            assert here.tolist() == column.tolist(), argument


@pytest.mark.parametrize("name", NAMES)
def test_what_is_loaded_has_the_numbers_of_what_is_streamed(name: str, tmp_path: Path) -> None:
    """Bit for bit: the pieces of what is loaded are those of the file."""
    write(table(300), tmp_path / name)
    source = FileSource(str(tmp_path / name), piece_rows=64)
    metrics = ["coverage", "proper_scores", "t_cv", "coverage_gap"]
    options = {"t_cv": {"random_state": 0}, "coverage_gap": {"random_state": 0}}
    here, there = (measure(s, metrics, options=options) for s in (source.load(), source))
    assert {k: (e.value, e.low, e.p_value) for k, e in here.items()} == {
        k: (e.value, e.low, e.p_value) for k, e in there.items()
    }


def test_several_files_are_loaded_as_they_are_streamed(tmp_path: Path) -> None:
    """Rows keep the names they have by file and position; labels that are text in one file are text in all."""
    frame = (
        table(30).drop("row_id").with_columns(pl.col("y_true").replace_strict({"ant": 0, "cat": 1, "dog": 2}))
    )
    frame = frame.rename(
        {f"{k}_{c}": f"{k}_{i}" for i, c in enumerate(("ant", "cat", "dog")) for k in ("p", "set")}
    )
    frame[:11].write_parquet(tmp_path / "a.parquet")
    frame[11:].with_columns(pl.col("y_true").cast(pl.String)).write_csv(tmp_path / "b.csv.x")
    (tmp_path / "b.jsonl").write_text(
        frame[11:].with_columns(pl.col("y_true").cast(pl.String)).write_ndjson(), encoding="utf-8"
    )
    source = FileSource(str(tmp_path))
    loaded = source.load()
    assert (loaded.given["y_true"].tolist(), loaded.classes) == (
        [str(y) for y in frame["y_true"]],
        ["0", "1", "2"],
    )
    keys = np.concatenate([block.keys() for piece in source.pieces() for block in piece.blocks()])
    assert loaded.rows().keys().tolist() == keys.tolist()
    assert float(measure(loaded)["coverage"]) == float(measure(source)["coverage"])


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.jsonl.gz", "rows.npz"])
def test_folders_are_columns_for_every_format(name: str, tmp_path: Path) -> None:
    for number, year in enumerate((2023, 2024)):
        (tmp_path / f"year={year}").mkdir()
        write(
            table(10, number).drop("group"), tmp_path / f"year={year}" / name
        ) if name != "rows.npz" else np.savez(
            tmp_path / f"year={year}" / name, y_true=np.zeros(10), intervals=np.zeros((10, 2))
        )
    loaded = FileSource(str(tmp_path), ColumnChoice(group="year")).load()
    assert loaded.given["groups"].tolist() == [2023] * 10 + [2024] * 10


def test_a_file_is_not_modified(tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"
    table().write_csv(place)
    before, stamp = place.read_bytes(), place.stat().st_mtime_ns
    FileSource(str(place)).load()
    assert (place.read_bytes(), place.stat().st_mtime_ns) == (before, stamp)


def test_integer_labels_make_integer_classes(tmp_path: Path) -> None:
    pl.DataFrame({"y_true": [2, 5], "p_2": [0.9, 0.2], "p_5": [0.1, 0.8]}).write_csv(tmp_path / "r.csv")
    assert FileSource(str(tmp_path / "r.csv")).load().classes == [2, 5]


def test_one_probability_column_is_the_positive_class(tmp_path: Path) -> None:
    pl.DataFrame({"label": [0, 1], "score": [0.2, 0.7]}).write_csv(tmp_path / "r.csv")
    found = FileSource(str(tmp_path / "r.csv"), ColumnChoice(y="label", probabilities=("score",))).load()
    assert found.given["probabilities"].tolist() == [0.2, 0.7]
    assert found.classes is None


def test_a_text_column_that_names_its_rows_is_no_feature_in_any_block(tmp_path: Path) -> None:
    """Whether text names its rows is decided once for a source, not block by block."""
    n = 120
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
    source = FileSource(str(tmp_path / "r.csv"), features=True, piece_rows=40)
    assert source.load().roles["id"] == "ignored (names its rows)"
    assert {tuple(b.given["X"].columns) for p in source.pieces() for b in p.blocks()} == {("site",)}


def two_levels(path: Path, *, n: int = 400) -> np.ndarray:
    """Intervals of a standard normal at 0.05 and 0.2, the wider ones first in the file."""
    y = np.random.default_rng(0).normal(size=n)
    ends = {"0.05": 1.96, "0.2": 1.28}
    if path.suffix == ".npz":
        layers = np.stack([np.tile([-w, w], (n, 1)) for w in ends.values()], axis=-1)
        np.savez(path, y_true=y, intervals=layers, alpha=[0.05, 0.2])
    else:
        columns = {
            f"{side}@{a}": np.full(n, s * w)
            for a, w in ends.items()
            for side, s in (("lower", -1), ("upper", 1))
        }
        write_table(pl.DataFrame({"y_true": y} | columns), str(path))
    return np.abs(y)


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.jsonl.gz", "r.npz"])
@pytest.mark.parametrize("load", [True, False], ids=["in memory", "streamed"])
def test_levels_that_a_file_states_are_honoured(name: str, load: bool, tmp_path: Path) -> None:
    distance = two_levels(tmp_path / name)
    widths = {0.05: 1.96, 0.2: 1.28}

    def covered(alpha: object) -> list[float]:
        source = FileSource(str(tmp_path / name), alpha=alpha, piece_rows=150)
        (first, *others) = [b for p in (source.load() if load else source).pieces() for b in p.blocks()]
        blocks = [first, *others]
        return [
            float(np.concatenate([b.at(level)["covered"] for b in blocks]).mean())
            for level in range(len(first.alphas))
        ]

    def expected(*alphas: float) -> list[float]:
        return [float((distance <= widths[alpha]).mean()) for alpha in alphas]

    assert covered(None) == expected(0.05, 0.2)
    assert covered([0.2, 0.05]) == expected(0.2, 0.05)
    assert covered(0.2) == expected(0.2)
    assert covered(1 - 0.8) == expected(0.2)
    assert FileSource(str(tmp_path / name)).stated_levels() == [0.05, 0.2]
    with pytest.raises(CalipersError, match=r"states predictions at alpha = 0.05, 0.2; 0.1 is none of them"):
        covered(0.1)


def test_levels_are_numbers_however_they_are_written(tmp_path: Path) -> None:
    frame = pl.DataFrame({"y_true": [1.0], "lower_0.20": [0.5], "upper@.2": [1.5]})
    frame.write_csv(tmp_path / "r.csv")
    found = FileSource(str(tmp_path / "r.csv")).load()
    assert (found.alpha, found.given["intervals"].tolist()) == ((0.2,), [[0.5, 1.5]])


BAD_LEVELS = {
    "some without": (["lower", "upper", "lower@0.2", "upper@0.2"], None, "some columns of .* state a level"),
    "twice": (["lower@0.2", "lower_0.2", "upper@0.2"], None, "'lower@0.2' and 'lower_0.2' are both lower"),
    "one end": (["lower@0.2", "upper@0.1"], None, "has no column of intervals for lower at alpha = 0.1"),
    "two for one": (["lower", "upper"], [0.1, 0.2], r"intervals holds 1 level\(s\) in .* and alpha 2"),
}


@pytest.mark.parametrize("case", BAD_LEVELS)
def test_levels_that_do_not_fit_are_refused(case: str, tmp_path: Path) -> None:
    columns, alpha, said = BAD_LEVELS[case]
    pl.DataFrame({"y_true": [1.0]} | {name: [0.0] for name in columns}).write_csv(tmp_path / "r.csv")
    with pytest.raises(CalipersError, match=said):
        FileSource(str(tmp_path / "r.csv"), alpha=alpha).pieces()


def test_npz_files_say_what_holds_for_all_rows(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "r.npz", y_true=[0, 1], sets=np.eye(2, dtype=bool), X=[[1.0], [2.0]], feature_names=["age"],
        n_calibration=500, alpha=0.2,
    )  # fmt: skip
    found = FileSource(str(tmp_path / "r.npz"), features=True).load()
    assert found.given["X"]["age"].to_list() == [1.0, 2.0]
    assert (found.arguments()["n_calibration"], found.arguments()["alpha"]) == (500, 0.2)


def test_npz_keys_may_be_the_names_of_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "r.npz", y_true=["b", "a"], p_a=[0.2, 0.7], p_b=[0.8, 0.3], group=[1, 2])
    found = FileSource(str(tmp_path / "r.npz")).load()
    assert found.classes == ["a", "b"]
    assert found.given["probabilities"].tolist() == [[0.2, 0.8], [0.7, 0.3]]
    assert found.given["groups"].tolist() == [1, 2]


@pytest.mark.parametrize("name", ["r.parquet", "r.csv.gz", "r.npz"])
def test_a_sample_is_drawn_while_the_file_streams_by(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    write_table(pl.DataFrame({"y_true": range(1000), "lower": range(1000), "upper": range(1000)}), str(place))
    source = FileSource(str(place), piece_rows=300)
    first, again = (source.load(max_rows=50, random_state=3) for _ in range(2))
    drawn = first.given["y_true"].tolist()
    assert drawn == again.given["y_true"].tolist() == sorted(set(drawn))
    assert len(drawn) == len(set(first.rows().keys().tolist())) == 50
    assert drawn != source.load(max_rows=50, random_state=4).given["y_true"].tolist()
    assert source.load(max_rows=5000).rows().n == 1000
    for refused in (-5, 0):
        with pytest.raises(CalipersError, match="max_rows must be a whole number of at least 1"):
            FileSource(str(place)).load(max_rows=refused)


def text(content: str | bytes):
    return lambda path: path.write_bytes(content.encode() if isinstance(content, str) else content)


def arrays(**given: object):
    return lambda path: np.savez(path, **given)


def one_name_twice(path: Path) -> None:
    arrays(y_true=Y, **ENDS)(path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("y_true.npy", archive.read("y_true.npy"))


def corrupt(path: Path) -> None:
    table().write_parquet(path)
    path.write_bytes(path.read_bytes()[:200])


def decimals(path: Path) -> None:
    pl.DataFrame({"y_true": [1.5, 2.5], "lower": ["0", "x"], "upper": [2, 2]}).cast(
        {"y_true": pl.Decimal(10, 2)}
    ).write_parquet(path)


Y = np.zeros(2)
ENDS = {"intervals": np.zeros((2, 2))}
BAD_FILES = {
    "missing": ("none.csv", lambda path: None, "does not exist"),
    "a name too long": ("n" * 300 + ".csv", lambda path: None, "is not a file name"),
    "empty folder": ("folder.csv", lambda path: path.mkdir(), "no file matches"),
    "empty": ("r.csv", lambda path: path.touch(), "is empty"),
    "only a header": ("r.csv", text("y_true,p_a\n"), "there are no rows in"),
    "unknown ending": ("r.xlsx", text("x"), "must end in .csv"),
    "cut parquet": ("r.parquet", corrupt, "could not be read as parquet"),
    "text as parquet": ("r.parquet", text("y,p\n1,2\n"), "could not be read as parquet"),
    "text as npz": ("r.npz", text("y,p\n1,2\n"), "could not be read as npz"),
    "text as gzip": ("r.csv.gz", text("y_true\n1\n"), "could not be read as csv"),
    "broken json": ("r.jsonl", text('{"y_true": 1}\n{"y_tr'), "could not be read"),
    "no outcome": ("r.csv", text("a,b\n1,2\n"), "has no column 'y_true'; it has a, b"),
    "another separator": ("r.csv", text("y_true;lower\n1;2\n"), "separated by ';': use --sep"),
    "tabs": ("r.csv", text("y_true\tlower\n1\t2\n"), "separated by tab: use --sep"),
    "one end": ("r.csv", text("y_true,lower\n1,2\n"), "has no column of intervals for upper"),
    "text ends": ("r.csv", text("y_true,lower,upper\n1,a,b\n"), "column 'lower' of .* must hold numbers, got 'a'"),
    "a bad cell": (
        "r.csv", text("y_true,lower,upper\n1,0,2\n1.5,oops,3\n"), "'lower' .* got 'oops' at row 1",
    ),
    "a bad outcome": (
        "r.csv", text("y_true,lower,upper\n1,0,2\n1.5,0,3\nn/a,0,3\n"), "'y_true' .* got 'n/a' at row 2",
    ),
    "a late bad cell": (
        "r.csv", text("y_true,lower,upper\n" + "1,0,2\n" * 100_001 + "oops,0,2\n"), "'y_true' of .* holds 'oops'",
    ),
    "a bad cell beside decimals": ("r.parquet", decimals, "'lower' .* got 'x' at row 1"),
    "decimal commas": (
        "r.csv", text('y_true,lower,upper\n"1,5","0,5","2,5"\n'), "'1,5' at row 0. It has a decimal comma: export",
    ),
    "decimal commas between commas": (
        "r.csv", text("y_true,lower,upper\n1,5,0,5,2,5\n"), "more cells than its header.* use --sep.* with decimal points",
    ),
    "one long line": (
        "r.csv", text("y_true,lower,upper,x\n" + "1,0,2,5\n" * 9 + "1,5,0,2,5\n"), "a line with more cells than its header",
    ),
    "a cell nan": ("r.csv", text("y_true,lower,upper\n1,0,2\nnan,0,3\n"), "'y_true' .* got 'nan' at row 1"),
    "a cell Infinity": (
        "r.csv", text("y_true,lower,upper\n1,0,2\n1,0,Infinity\n"), "'upper' .* got 'Infinity' at row 1",
    ),
    "blanks around names": (
        "r.csv", text("y_true, lower, upper\n1, 0, 2\n"), "column ' lower' of .* has blanks around its name. Write cells",
    ),
    "carriage returns": ("r.csv", text("y_true,lower,upper\r1,0,2\r"), "end in a carriage return alone"),
    "a level that is none": (
        "r.csv", text("y_true,lower@90,upper@90\n1,0,2\n"), "'lower@90' of .* states no level: after '@' stands",
    ),
    "whole numbers beyond 64 bits": (
        "r.csv", text("y_true,lower,upper\n" + "9" * 30 + ",0,2\n"), "column 'y_true' of .* of more than 64 bits. Divide",
    ),
    "utf-16": ("r.csv", text("y_true,lower\n1,0\n".encode("utf-16")), "is written in UTF-16. Save it as UTF-8"),
    "utf-16 without a mark": ("r.csv", text("y_true,lower\n1,0\n".encode("utf-16-le")), "is written in UTF-16"),
    "utf-16 in gzip": ("r.csv.gz", text(gzip.compress("y_true\n1\n".encode("utf-16"))), "is written in UTF-16"),
    "latin-1": ("r.csv", text("y_true,group\n1,M\u00fcll\n".encode("latin-1")), "is not written in UTF-8"),
    "missing outcome": (
        "r.csv", text("y_true,lower,upper\n1,0,2\n,0,2\n"), r"column 'y_true' .* 1 missing of 2 values \(first at row 1\)",
    ),
    "empty numbers": ("r.csv", text("y_true,lower,upper\n1,,2\n1,,2\n"), "column 'lower' of .* is empty"),
    "empty weights": ("r.csv", text("y_true,lower,upper,sample_weight\n1,0,2,\n"), "'sample_weight' of .* is empty"),
    "empty sets": ("r.csv", text("y_true,set_a,set_b\na,,1\n"), "'set_a' of .* is empty"),
    "two headers alike": ("r.csv", text("y_true,lower,y_true\n1,0,2\n"), "two columns called 'y_true'"),
    "lists as labels": ("r.jsonl", text('{"y_true": [1], "p_a": 1.0}\n'), "'y_true' .* must hold text, numbers or times"),
    "classes that differ": ("r.csv", text("y_true,p_a,p_b,set_a,set_c\na,0.5,0.5,1,0\n"), "class 'b' is in one of"),
    "classes of another kind": ("r.csv", text("y_true,p_a,p_b\n1,0.5,0.5\n"), "are not of the kind y_true holds"),
    "a class with two columns": (
        "r.csv", text("y_true,set_a@0.1,set_a@0.10,set_b@0.1\na,1,1,1\n"), "are both sets of class a",
    ),
    "npz: objects": ("r.npz", arrays(y_true=np.array([{"a": 1}], dtype=object)), "could not be read as npz"),
    "npz: unknown array": ("r.npz", arrays(y_true=[0, 1], probs=[0.1, 0.2]), "an array 'probs' that an audit does not"),
    "npz: features named twice": (
        "r.npz", arrays(y_true=Y, X=np.zeros((2, 2)), feature_names=["a", "a"], **ENDS), "holds 'a' twice",
    ),
    "npz: part of a row": ("r.npz", arrays(y_true=Y, n_calibration=100.9, **ENDS), "n_calibration .* got 100.9"),
    "npz: no level": ("r.npz", arrays(y_true=Y, alpha=90, **ENDS), "alpha.* strictly between 0 and 1"),
    "npz: a single outcome": ("r.npz", arrays(y_true=1.0, **ENDS), "one entry per row, got y_true: a single value"),
    "npz: lengths": ("r.npz", arrays(y_true=np.zeros(3), **ENDS), "one entry per row, got y_true: 3, intervals: 2"),
    "npz: intervals and their ends": (
        "r.npz", arrays(y_true=Y, lower=Y - 9, upper=Y + 9, **ENDS), "r.npz holds intervals twice, also as 'lower'. Leave",
    ),
    "npz: one name twice": ("r.npz", one_name_twice, "holds two arrays of one name"),
    "npz: complex": ("r.npz", arrays(y_true=np.zeros(2, complex), **ENDS), "must hold numbers, text or times"),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("load", [True, False], ids=["in memory", "streamed"])
@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_gets_one_sentence_that_names_it(case: str, load: bool, tmp_path: Path) -> None:
    name, make, expected = BAD_FILES[case]
    make(tmp_path / name)
    source = FileSource(str(tmp_path / name), features=True)
    with pytest.raises(CalipersError, match=expected) as caught:
        source.load() if load else [block["y_true"] for piece in source.pieces() for block in piece.blocks()]
    assert name[-20:] in str(caught.value) or "are both" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "schema" not in str(caught.value)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_line_with_too_many_cells_is_refused_where_only_some_columns_are_read(
    ending: str, tmp_path: Path
) -> None:
    # Its cells are shifted: 1,5 with a decimal comma. polars sees it only when it reads all columns.
    content = b"y_true,lower,upper,x\n" + b"1,0,2,5\n" * 9 + b"1,5,0,2,5\n"
    place = tmp_path / f"rows{ending}"
    place.write_bytes(gzip.compress(content) if ending == ".csv.gz" else content)
    with pytest.raises(InputError, match="has a line with more cells than its header"):
        measure(FileSource(str(place)), ["coverage"])
    with pytest.raises(InputError, match="has a line with more cells than its header"):
        FileSource(str(place)).load()


def test_columns_of_a_chosen_pattern_are_not_taken_by_a_default_one() -> None:
    """The default of probabilities is p_*, which here was chosen for p-values."""
    roles = assign_roles(["y_true", "p_a", "p_b"], ColumnChoice(p_values=("p_*",)), place="rows.csv")
    assert list(roles.columns) == ["y_true", "p_values"]


def test_columns_named_for_one_field_are_not_taken_for_another(tmp_path: Path) -> None:
    frame = pl.DataFrame({"y_true": ["a"], "p_a": [0.5], "p_b": [0.5], "p_region": ["x"], "time": [3]})
    frame.write_csv(tmp_path / "r.csv")
    found = FileSource(
        str(tmp_path / "r.csv"), ColumnChoice(group="p_region", features="time"), features=True
    ).load()
    assert found.classes == ["a", "b"]
    assert found.given["groups"].tolist() == ["x"]
    assert found.given["X"].columns == ["time"]
    assert "time" not in found.given


@pytest.mark.parametrize("name", ["group", "ease", "weight", "lower", "upper", "time", "row_id", "proba"])
def test_a_column_that_was_named_and_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    table().write_csv(tmp_path / "r.csv")
    with pytest.raises(CalipersError, match="has no column 'nope'"):
        FileSource(str(tmp_path / "r.csv"), ColumnChoice(**{name: "nope"})).load()


def test_a_field_nobody_knows_cannot_be_chosen() -> None:
    with pytest.raises(CalipersError, match="no column can be chosen for 'colour'; there are y, proba"):
        ColumnChoice(colour="c")


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_cells_may_be_separated_by_other_characters(separator: str, tmp_path: Path) -> None:
    frame = table()
    frame.write_csv(tmp_path / "r.csv", separator=separator)
    source = FileSource(str(tmp_path / "r.csv"), separator=separator)
    assert source.load().given["ease"].tolist() == frame["ease"].to_list()
    assert [block.n for piece in source.pieces() for block in piece.blocks()] == [40]
    (tmp_path / "r.csv").write_text(separator.join(["y_true", "lower", "upper\n1,5", "0,5", "2,5"]), "utf-8")
    with pytest.raises(
        CalipersError, match="got '1,5' at row 0. It has a decimal comma: export the file again"
    ):
        source.load()


def test_decimals_and_wide_integers_are_numbers(tmp_path: Path) -> None:
    frame = pl.DataFrame({"y_true": [1, 2], "p_1": [0.25, 0.5], "p_2": [0.75, 0.5], "age": [1.5, 2.5]})
    kinds = {
        "y_true": pl.Int128,
        "p_1": pl.Decimal(10, 4),
        "p_2": pl.Decimal(10, 4),
        "age": pl.Decimal(10, 2),
    }
    frame.cast(kinds).write_parquet(tmp_path / "r.parquet")
    found = FileSource(str(tmp_path / "r.parquet"), features=True).load()
    assert found.classes == [1, 2]
    assert found.given["probabilities"].tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert found.given["X"]["age"].to_list() == [1.5, 2.5]


def test_a_file_larger_than_memory_is_refused_with_the_command_that_streams_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r.parquet"
    table().write_parquet(place)
    source = FileSource(str(place))
    assert source.fits_memory()
    monkeypatch.setattr(size_limits, "available_memory", lambda: 100)
    assert not source.fits_memory()
    for load in (lambda: read_table(place), source.load):
        with pytest.raises(
            CalipersError, match=r"'calipers audit .*r\.parquet --engine local' streams all rows"
        ):
            load()
    assert source.load(max_rows=2).rows().n == 2
    assert [block.n for piece in source.pieces() for block in piece.blocks()] == [40]


def bomb(path: Path, megabytes: int) -> None:
    """A small file that unpacks to many megabytes of zeros."""
    block = b"0.0,0.0,0.0\n" * (1 << 16)
    if path.suffix == ".npz":
        np.savez_compressed(path, y_true=np.zeros(megabytes << 17), intervals=np.zeros((megabytes << 17, 2)))
        return
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"y_true,lower,upper\n")
        for _ in range((megabytes << 20) // len(block)):
            file.write(block if "line" not in path.name else block.replace(b"\n", b"0"))


@pytest.mark.parametrize("name", ["r.csv.gz", "line.csv.gz", "r.npz"])
def test_a_file_that_unpacks_to_far_more_than_its_size_is_not_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size_limits, "_ALWAYS_ALLOWED", 8 << 20)
    monkeypatch.setattr(size_limits, "_MOST_EXPANSION", 20)
    bomb(tmp_path / name, 40)
    for read in (FileSource(str(tmp_path / name)).pieces, lambda: read_table(tmp_path / name)):
        with pytest.raises(
            CalipersError, match=r"unpacks to more than .* MB, over 20 times its size, and was not"
        ):
            read()
    monkeypatch.setattr(size_limits, "_MOST_EXPANSION", 2000)
    if "line" not in name:
        assert FileSource(str(tmp_path / name)).pieces()[0].rows > 1000


def test_unpacking_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is packed, no more is unpacked than the limit and one chunk."""
    read = []
    monkeypatch.setattr(size_limits, "_ALWAYS_ALLOWED", 4 << 20)
    monkeypatch.setattr(size_limits, "_MOST_EXPANSION", 1)
    bomb(tmp_path / "r.csv.gz", 64)
    opened = size_limits.open_packed

    class Counted(io.BufferedReader):
        def read(self, size: int | None = -1) -> bytes:
            read.append(size)
            return super().read(size)

    monkeypatch.setattr(size_limits, "open_packed", lambda *a: Counted(opened(*a)))
    with pytest.raises(CalipersError, match="unpacks to more than"):
        size_limits.refuse_bomb(str(tmp_path / "r.csv.gz"))
    assert sum(read) <= (4 << 20) + 2 * (1 << 20)


def test_an_archive_that_lies_about_its_length_is_damaged(tmp_path: Path) -> None:
    import zipfile

    np.savez(tmp_path / "r.npz", y_true=np.zeros(10))
    content = io.BytesIO()
    np.lib.format.write_array(content, np.zeros(10))
    lying = content.getvalue().replace(b"'shape': (10,), }" + b" " * 12, b"'shape': (10000000000,), }   ")
    with zipfile.ZipFile(tmp_path / "r.npz", "w") as archive:
        archive.writestr("y_true.npy", lying)
    with pytest.raises(CalipersError, match="y_true.npy is shorter than it says"):
        FileSource(str(tmp_path / "r.npz")).load()


def test_the_table_of_formats_writes_what_it_reads(tmp_path: Path) -> None:
    frame = table().drop("group")
    for kind in FORMATS:
        for ending in kind.endings:
            write_table(
                frame, str(tmp_path / f"r{ending}"), stated={"n_calibration": 5} if kind.name == "npz" else {}
            )
            assert read_table(tmp_path / f"r{ending}").to_dict(as_series=False) == frame.to_dict(
                as_series=False
            )


def encrypted(path: Path) -> None:
    np.savez(path, y_true=Y, **ENDS)
    content = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # bit 0 of the flags: encrypted
        at = content.find(mark)
        while at >= 0:
            content[at + flags] |= 1
            at = content.find(mark, at + 4)
    path.write_bytes(content)


def huge_header(path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"1," * 40_000 + b"), }\n"
    member = b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y_true.npy", member + bytes(8))


@pytest.mark.parametrize("make", [encrypted, huge_header])
def test_an_archive_that_numpy_would_not_read_gets_one_sentence(make: Any, tmp_path: Path) -> None:
    make(tmp_path / "r.npz")
    with pytest.raises(CalipersError, match=r"r\.npz could not be read as npz") as caught:
        read_table(tmp_path / "r.npz")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["p_a", "set_a", "lower", "y_true", "x", "group", "ease", "time"])
def test_a_column_without_any_value_is_named_or_left_out(name: str, tmp_path: Path) -> None:
    n = 40
    columns: dict[str, Any] = {"y_true": ["a", "b"] * 20, "p_a": [0.5] * n, "p_b": [0.5] * n, "x": range(n)}
    if name in {"lower", "set_a"}:
        columns = {"y_true": [1.0] * n, "lower": [0.0] * n, "upper": [2.0] * n, "set_a": [1] * n}
        columns = {
            key: columns[key] for key in (("y_true", name, "upper") if name == "lower" else ("y_true", name))
        }
    pl.DataFrame(columns | {name: [None] * n}).write_csv(tmp_path / "r.csv")
    if name == "x":  # a feature may be missing everywhere; it says nothing
        assert calipers.audit(source=str(tmp_path / "r.csv"), random_state=0).rows == n
        return
    with pytest.raises(CalipersError, match=rf"{name}.* (is empty|missing)") as caught:
        calipers.audit(source=str(tmp_path / "r.csv"), random_state=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", [".pkl", ".pickle", ".joblib"])
def test_a_pickle_is_no_file_of_predictions(ending: str, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    content = pickle.dumps(Trap())
    for name in (f"r{ending}", "r.npz", "r.csv", "r.parquet"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CalipersError):
            read_table(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (2, 10)])
def test_the_positive_class_of_two_does_not_depend_on_the_order_of_columns(labels: Any) -> None:
    # A file with p_1 before p_0 was audited for "probability of class 0".
    negative, positive = labels
    rows = {"y_true": [negative, positive], f"p_{positive}": [0.25, 0.75], f"p_{negative}": [0.75, 0.25]}
    loaded = arguments_of_frame(pl.DataFrame(rows))
    assert list(loaded["classes"]) == [negative, positive]
    np.testing.assert_array_equal(np.asarray(loaded["probabilities"])[:, 1], [0.25, 0.75])


@pytest.mark.parametrize("body", [1 << 61, -1, 10_000])
def test_an_arrow_file_whose_index_names_rows_beyond_its_end_is_refused_before_it_is_read(body, tmp_path):
    """polars made room for what the index states: 3 kB took all memory of the machine."""
    place = tmp_path / "rows.arrow"
    frame = pl.DataFrame(
        {"y_true": [0.5] * 40, "lower": [0.0] * 40, "upper": [1.0] * 40, "group": ["a", "b"] * 20}
    )
    frame.with_columns(pl.col("group").cast(pl.Categorical)).write_ipc(place, record_batch_size=10)
    whole, size = place.read_bytes(), place.stat().st_size
    blocks = size_limits._arrow_blocks(str(place), size)
    assert len(blocks) >= 4
    size_limits.refuse_damaged_index(str(place))
    for block in blocks:
        entry = struct.pack("<qi4xq", *block)
        assert whole.count(entry) == 1
        place.write_bytes(whole.replace(entry, struct.pack("<qi4xq", *block[:2], body)))
        with pytest.raises(InputError, match="its index names rows beyond its end"):
            read_table(place)
