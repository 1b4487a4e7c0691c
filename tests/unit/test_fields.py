"""The table of fields agrees with everything that is made from it, and with the arguments of an audit."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.cli.options import FURTHER, SETTING_OPTIONS, Settings
from calipers.engines import FileSource
from calipers.fields import ARGUMENTS, FIELDS, STATED, field_named
from calipers.inputs.files import ColumnChoice

# Arguments of an audit that say how it is made and what it is asked, not what is in the rows.
HOW = {
    "random_state", "confidence", "mute", "name", "source", "progress", "engine", "origin", "sample_rows",
    "min_rows", "label_conditional",
}  # fmt: skip


def test_the_table_holds_every_argument_of_an_audit() -> None:
    taken = set(inspect.signature(calipers.audit).parameters) - HOW - {"row_id"}
    assert taken == (set(ARGUMENTS) - {"row_id"}) | (set(STATED) - {"feature_names"})


def test_every_name_means_one_field() -> None:
    names = [name for field in FIELDS for name in field.names]
    assert len(names) == len(set(names))
    assert all(field_named(name) is field for field in FIELDS for name in field.names)
    assert all(field.means.endswith(".") and field.option for field in FIELDS)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_column_can_be_chosen_for_every_field_by_every_name(field, tmp_path: Path) -> None:
    """By ColumnChoice, by calipers.toml and by the command line, the column lands in the argument."""
    frame = pl.DataFrame(
        {
            "y_true": [1.0, 2.0],
            "lower": [0.0, 0.0],
            "upper": [3.0, 3.0],
            "mine": [0.5, 0.6],
            "other": [7.0, 8.0],
        }
    )
    chosen, column = ("mine*", "mine0.5") if field.layout == "per level" else ("mine", "mine")
    frame = frame.rename({"mine": column})
    if field.layout == "per class":
        frame = frame.drop("lower", "upper").with_columns(y_true=pl.Series(["mine", "mine"]), mine=pl.lit(1))
    frame.write_parquet(tmp_path / "rows.parquet")
    for name in field.names:
        source = FileSource(str(tmp_path / "rows.parquet"), ColumnChoice(**{name: chosen}), features=True)
        assert column in next(source.opened()).roles.columns[field.argument].values()
    settings = Settings(**{field.option: "mine"})
    assert settings.columns().chosen == {field.name: ("mine",)}
    assert field.option in SETTING_OPTIONS


def test_the_settings_are_the_fields_and_little_else() -> None:
    assert list(Settings.model_fields) == [*(field.option for field in FIELDS), *FURTHER]
    assert set(SETTING_OPTIONS) == set(Settings.model_fields)


def test_npz_files_hold_any_argument_under_its_own_name(tmp_path: Path) -> None:
    rows = {
        "y_true": np.array([0, 1]), "probabilities": np.full((2, 2), 0.5), "sets": np.eye(2, dtype=bool),
        "p_values": np.full((2, 2), 0.3), "X": np.array([[1.0], [2.0]]), "groups": np.array(["a", "b"]),
        "ease": np.array([0.1, 0.2]), "time": np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]"),
        "sample_weight": np.array([1.0, 2.0]), "row_id": np.array([5, 6]),
        "covered": np.array([True, False]), "promised": np.array([0.9, 0.8]), "size": np.array([1.0, 2.0]),
        "loss": np.array([0.1, 0.2]), "y_pred": np.array([1.0, 2.0]), "pit": np.array([0.3, 0.4]),
        "cluster": np.array(["a", "a"]), "quantiles": np.array([[0.0, 1.0], [2.0, 3.0]]),
    }  # fmt: skip
    assert set(rows) == set(ARGUMENTS) - {"intervals"}
    np.savez(tmp_path / "rows.npz", **rows, quantile_levels=[0.1, 0.9])
    given = FileSource(str(tmp_path / "rows.npz"), features=True).load().given
    assert given["quantiles"].columns == ["0.1", "0.9"]
    assert {name: np.asarray(value).tolist() for name, value in given.items()} == {
        name: value.tolist() for name, value in rows.items()
    }


def test_the_page_of_serve_asks_for_every_field() -> None:
    page = (Path(calipers.__file__).parent / "report" / "templates" / "serve.html").read_text(
        encoding="utf-8"
    )
    assert "{% for field in fields %}" in page
    assert 'value="0.1"' not in page  # the level is the file's own unless one is chosen
