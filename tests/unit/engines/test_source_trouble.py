"""Files as they are found: what can be read gives the answer of memory, what cannot is named with its remedy."""

import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.auditing import audit
from calipers.cli import main
from calipers.engines import FileSource, measure
from calipers.engines.running import LocalEngine
from calipers.exceptions import CalipersError, InputError
from calipers.inputs.files import ColumnChoice

LABELS = ("cat", "dog", "eel")
METRICS = ("coverage", "proper_scores", "calibration_error")
MUTED = ("CAL103", "CAL202", "CAL203", "CAL601")


def rows(seed, n=150):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    columns = {"y_true": np.array(LABELS)[y]} | {f"p_{name}": P[:, k] for k, name in enumerate(LABELS)}
    return pl.DataFrame(columns | {f"set_{name}": P[:, k] > 0.15 for k, name in enumerate(LABELS)})


def numbered(frame):
    """The same rows with the labels 0, 1, 2."""
    names = {name: str(k) for k, name in enumerate(LABELS)}
    renamed = frame.rename(lambda c: next((c.replace(name, k) for name, k in names.items() if name in c), c))
    return renamed.with_columns(pl.col("y_true").replace_strict(names).cast(pl.Int64))


def where(frame, row, column, value):
    return frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)
    )


def other_order(folder):
    rows(0).write_parquet(folder / "a.parquet")
    frame = rows(1)
    frame.select(frame.columns[::-1]).write_parquet(folder / "b.parquet")
    return pl.concat([rows(0), rows(1)])


def other_types(folder):
    first, second = numbered(rows(0)), numbered(rows(1))
    small = first.with_columns(pl.col("^p_.*$").cast(pl.Float32), pl.col("y_true").cast(pl.Int8))
    small.with_columns(pl.col("^set_.*$").cast(pl.Int64)).write_parquet(folder / "a.parquet")
    second.write_parquet(folder / "b.parquet")
    return pl.concat([small.cast(dict(zip(first.columns, first.dtypes, strict=True))), second])


def text_and_categories(folder):
    rows(0).write_parquet(folder / "a.parquet")
    rows(1).with_columns(pl.col("y_true").cast(pl.Categorical)).write_parquet(folder / "b.parquet")
    return pl.concat([rows(0), rows(1)])


def numbers_and_their_text(folder):
    numbered(rows(0)).with_columns(pl.col("y_true").cast(pl.String)).write_parquet(folder / "a.parquet")
    numbered(rows(1)).write_parquet(folder / "b.parquet")
    return pl.concat([numbered(rows(0)), numbered(rows(1))])


def label_in_one_file_only(folder):
    first = rows(0).filter(pl.col("y_true") != "eel")
    first.write_parquet(folder / "a.parquet")
    rows(1).write_parquet(folder / "b.parquet")
    return pl.concat([first, rows(1)])


def empty_files(folder):
    rows(0)[:0].write_parquet(folder / "0.parquet")
    rows(0).write_parquet(folder / "a.parquet")
    rows(0)[:0].write_csv(folder / "b.csv")
    rows(1).write_csv(folder / "c.csv")
    return pl.concat([rows(0), rows(1)])


def groups_of_one_row(folder):
    rows(0, 40).write_parquet(folder / "a.parquet", row_group_size=1)
    return rows(0, 40)


def one_row(folder):
    rows(0, 1).write_parquet(folder / "a.parquet")
    return rows(0, 1)


def csv_with_late_decimals(folder):
    frame = numbered(rows(0)).with_columns(pl.Series("age", [3] * 140 + [2.5] * 10, strict=False))
    lines = frame.write_csv().replace(",3.0\n", ",3\n")
    (folder / "a.csv").write_text(lines, encoding="utf-8")
    return frame


GOOD = [
    other_order, other_types, text_and_categories, numbers_and_their_text, label_in_one_file_only, empty_files,
    groups_of_one_row, one_row, csv_with_late_decimals,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::calipers.exceptions.CalipersWarning")  # one row is a small sample
@pytest.mark.parametrize("write", GOOD, ids=lambda write: write.__name__)
def test_files_of_all_sorts_give_the_numbers_of_one_table(write, tmp_path):
    (tmp_path / "rows").mkdir()
    write(tmp_path / "rows").write_parquet(tmp_path / "one.parquet")
    options = {"calibration_error": {"random_state": 0}}
    found = measure(FileSource(str(tmp_path / "rows"), piece_rows=64), METRICS, options=options)
    expected = measure(FileSource(str(tmp_path / "one.parquet")), METRICS, options=options)
    assert list(found) == list(expected)
    for name, estimate in found.items():
        assert estimate.value == pytest.approx(expected[name].value, rel=1e-12)
        assert estimate.n == expected[name].n


def test_classes_are_matched_by_name_where_files_order_them_differently(tmp_path):
    (tmp_path / "rows").mkdir()
    other_order(tmp_path / "rows").write_parquet(tmp_path / "one.parquet")
    streamed = audit(source=FileSource(str(tmp_path / "rows")), random_state=0, mute=MUTED)
    given = FileSource(str(tmp_path / "one.parquet")).load().arguments()
    alone = calipers.audit(**given, random_state=0, mute=MUTED)
    name = "calibration error of the worst class"
    assert streamed.estimates[name].value == pytest.approx(alone.estimates[name].value, rel=1e-12)


def test_a_file_is_counted_once_however_its_path_is_spelled(tmp_path, monkeypatch):
    rows(0).write_parquet(tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    spellings = ["a.parquet", "./a.parquet", str(tmp_path / "a.parquet"), "*.parquet", "../" + tmp_path.name]
    assert len(FileSource(["a.parquet", *spellings[:4]]).pieces()) == 1
    assert len(FileSource(spellings).files()) == 1  # links are followed as the operating system follows them


def test_folders_are_groups_of_csv_files_too(tmp_path):
    for seed, region in enumerate(("north", "south")):
        (tmp_path / f"region={region}").mkdir()
        rows(seed).write_csv(tmp_path / f"region={region}" / "part.csv")
    source = FileSource(str(tmp_path), choice=ColumnChoice(group="region"))
    found = audit(source=source, random_state=0, mute=MUTED)
    assert set(found.data["groups"]) == {"north", "south"}


# What is written as b.parquet beside a good a.parquet -> what is said about it.
BAD = {
    "lacks a class": (lambda f: f.drop("p_eel"), r"b.parquet has no column 'p_eel' \(probabilities of class eel\)"),
    "has another class": (lambda f: f.rename({"p_eel": "p_emu", "set_eel": "set_emu"}), "has no column 'p_eel'"),
    "lacks outcomes": (lambda f: f.drop("y_true"), "b.parquet has no column 'y_true'; .* with --y"),
    "lacks sets": (lambda f: f.drop("^set_.*$"), r"b.parquet has no column 'set_cat' \(sets of class cat\), which .*a.parquet has"),
    "has a group": (lambda f: f.with_columns(group=pl.lit("x")), r"a.parquet has no column 'group' \(group\), which .*b.parquet has"),
    "null outcome": (lambda f: where(f, 7, "y_true", None), r"'y_true' of .*b.parquet has 1 missing of 150 values \(first at row 7\)"),
    "null probability": (lambda f: where(f, 7, "p_dog", None), r"b.parquet: probabilities has 1 NaN of 450 values \(first at row 7, column 1\)"),
    "null set": (lambda f: where(f, 7, "set_dog", None), r"b.parquet: sets must hold booleans, .* neither \(first at row 7, column 1: nan\)"),
    "set of 2": (lambda f: f.with_columns(set_dog=pl.lit(2)), "b.parquet: sets must hold booleans, or zeros and ones; .*: 2"),
    "probability above 1": (lambda f: where(f, 7, "p_dog", 1.5), r"b.parquet: probabilities must lie in \[0, 1\]"),
    "text for numbers": (lambda f: f.with_columns(p_dog=pl.lit("x")), "column 'p_dog' of .*b.parquet must hold numbers, got 'x' at row 0"),
    "unknown label": (lambda f: where(f, 7, "y_true", "fox"), "b.parquet: y_true holds 'fox' at row 7, which is not in classes"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_file_is_said_with_its_name(case, tmp_path, capsys):
    change, said = BAD[case]
    rows(0).write_parquet(tmp_path / "a.parquet")
    change(rows(1)).write_parquet(tmp_path / "b.parquet")
    place = str(tmp_path / "*.parquet")
    with pytest.raises(CalipersError, match=said):
        measure(FileSource(place), METRICS)
    for command in (["audit"], ["measure", "--metrics", ",".join(METRICS)]):
        assert main([*command, place, "--quiet"]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_p_values_above_one_are_refused_with_their_file(tmp_path):
    frame = rows(0).drop("^set_.*$").rename(lambda name: name.replace("p_", "pvalue_"))
    frame.write_parquet(tmp_path / "a.parquet")
    where(frame, 9, "pvalue_dog", 1.25).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(
        InputError, match=r"b.parquet: p_values must lie in \[0, 1\], 1 of 450 .*row 9, column 1"
    ):
        measure(FileSource(str(tmp_path)), ["coverage"])


def test_rows_are_counted_from_the_start_of_the_file(tmp_path):
    where(rows(0), 107, "p_dog", 1.5).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a.parquet, counting from row 100: .*first at row 7, column 1"):
        measure(FileSource(str(tmp_path), piece_rows=50), ["proper_scores"])


def test_features_that_differ_between_files_are_refused_with_the_remedy(tmp_path):
    rows(0).with_columns(age=pl.lit(3.0)).write_parquet(tmp_path / "a.parquet")
    rows(1).write_parquet(tmp_path / "b.parquet")
    assert measure(FileSource(str(tmp_path)))["coverage"].n == 300  # nobody asks for features here
    with pytest.raises(
        InputError, match=r"b.parquet has no column 'age' \(feature\), which .* with --features"
    ):
        audit(source=FileSource(str(tmp_path), features=True))
    rows(1).with_columns(age=pl.lit("three")).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(
        InputError, match=r"column 'age' holds numbers in .*a.parquet and text in .*b.parquet"
    ):
        audit(source=FileSource(str(tmp_path), features=True))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "b.parquet is empty (0 bytes)"),
        (b"hello", "b.parquet could not be read as parquet"),
        ("half", "b.parquet could not be read as parquet"),
        ("noise", "b.parquet could not be read as parquet"),
    ],
)
def test_a_damaged_file_is_named(content, said, tmp_path, capsys):
    rows(0).write_parquet(tmp_path / "a.parquet")
    rows(1, 5000).write_parquet(tmp_path / "b.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    noise = whole[:100] + np.random.default_rng(0).bytes(2900) + whole[3000:]
    (tmp_path / "b.parquet").write_bytes(
        {"half": whole[: len(whole) // 2], "noise": noise}.get(content, content)
    )
    assert main(["measure", str(tmp_path / "*.parquet")]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1


def test_places_without_files_are_named(tmp_path, monkeypatch):
    rows(0).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    cases = {
        "*.csv": r"no file matches \*.csv; files that end in .csv",
        "empty": "no file matches empty",
        "nowhere/": "nowhere/ does not exist",
        "b.parquet": "b.parquet does not exist",
    }
    for place, said in cases.items():
        with pytest.raises(InputError, match=said):
            FileSource(["a.parquet", place]).pieces()
    rows(0)[:0].write_parquet(tmp_path / "empty" / "a.parquet")
    with pytest.raises(InputError, match="there are no rows in empty/a.parquet"):
        FileSource("empty").pieces()


class Replacing(LocalEngine):
    """Between two passes somebody writes one of the files anew."""

    def __init__(self, place, by):
        super().__init__(1)
        self.place, self.by, self.passes = place, by, 0

    def reduce(self, pieces, states, progress):
        self.passes += 1
        if self.passes == 2:
            shutil.copy(self.by, self.place)
            os.utime(self.place, ns=(1, 1))
        return super().reduce(pieces, states, progress)


@pytest.mark.parametrize("n", [100, 150])
def test_a_file_that_changes_between_two_passes_is_refused(n, tmp_path):
    (tmp_path / "rows").mkdir()
    ease = pl.col("p_cat").alias("ease")
    rows(0).with_columns(ease).write_parquet(tmp_path / "rows" / "a.parquet")
    rows(3, n).with_columns(ease).write_parquet(tmp_path / "other.parquet")
    engine = Replacing(tmp_path / "rows" / "a.parquet", tmp_path / "other.parquet")
    with pytest.raises(
        InputError, match=r"a.parquet changed while it was read. Run again when nothing writes"
    ):
        measure(FileSource(str(tmp_path / "rows")), ["t_cv"], engine=engine)
    assert engine.passes >= 2


class Saving(LocalEngine):
    """Writes a file to the working folder while rows are read, as a notebook that saves itself."""

    def reduce(self, pieces, states, progress):
        Path("saved.ipynb").write_text("{}", encoding="utf-8")
        return super().reduce(pieces, states, progress)


def test_a_file_in_the_working_folder_does_not_disturb_rows_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.utime(tmp_path, ns=(1, 1))
    y = np.random.default_rng(0).normal(size=200)
    intervals = np.tile([-1.645, 1.645], (200, 1))
    found = calipers.audit(y, intervals=intervals, random_state=0, engine=Saving(1))
    assert (tmp_path / "saved.ipynb").exists()
    assert found.rows == 200
