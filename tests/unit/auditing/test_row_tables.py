"""The rows behind a finding, as tables and in the report."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.auditing.row_tables import examples, rows_table, spreadsheet_safe


def _grouped() -> calipers.auditing.Audit:
    rng = np.random.default_rng(0)
    group = rng.choice(["=north()", "south"], 2000)
    y = rng.normal(size=2000) * np.where(group == "south", 1.8, 1.0)
    X = pl.DataFrame({"age": rng.normal(size=2000), "city": rng.choice(["Rome", "-Bonn"], 2000)})
    return calipers.audit(y, intervals=np.tile([-2.1, 2.1], (2000, 1)), groups=group, X=X, random_state=0)


def test_the_table_holds_the_rows_of_the_fault_as_they_were_given() -> None:
    found = _grouped()
    table = rows_table(found, "CAL201")
    assert set(table.columns) == {"row", "y_true", "lower", "upper", "age", "city", "group"}
    assert table["row"].to_list() == np.flatnonzero(found.rows_of("CAL201")).tolist()
    assert set(table["group"]) == {"south"}
    assert np.array_equal(table["y_true"], np.asarray(found.data.given["y_true"])[table["row"]])
    assert set(table["city"]) == {"Rome", "-Bonn"}


def test_the_rows_of_under_coverage_are_the_misses() -> None:
    y = np.random.default_rng(0).normal(size=1000)
    found = calipers.audit(y, intervals=np.tile([-1.0, 1.0], (1000, 1)), random_state=0)
    assert np.array_equal(rows_table(found, "CAL101")["y_true"], y[np.abs(y) > 1])


def test_classes_and_levels_are_named_as_in_files() -> None:
    rng = np.random.default_rng(1)
    sets = rng.random((1000, 3, 2)) < 0.6
    found = calipers.audit(
        rng.integers(3, size=1000), sets=sets, alpha=[0.1, 0.3], classes=[0, 1, 2], random_state=0
    )
    table = rows_table(found, "CAL101")
    assert {"set_0@0.1", "set_2@0.3"} <= set(table.columns)
    assert np.array_equal(table["set_2@0.3"], sets[table["row"].to_numpy(), 2, 1])


def test_no_text_of_a_csv_is_a_formula() -> None:
    table = pl.DataFrame(
        {"=x": ["=1+2", "+SUM(A1)", "-cmd", "@a", "-0.5", "north"], "y": [1.0, -2.0, 3.0, 4.0, 5.0, 6.0]}
    )
    safe = spreadsheet_safe(table)
    assert safe.columns == ["'=x", "y"]
    assert safe["'=x"].to_list() == ["'=1+2", "'+SUM(A1)", "'-cmd", "'@a", "-0.5", "north"]
    assert safe["y"].to_list() == table["y"].to_list()


def test_the_report_shows_a_few_rows_of_every_fault() -> None:
    found = _grouped()
    shown = examples(found)["CAL201"]
    assert (len(shown["cells"]), shown["rows"]) == (5, int(found.rows_of("CAL201").sum()))
    page = found.to_html()
    assert f"The first of {shown['rows']} rows it is about" in page
    assert shown["cells"][0][1] in page


FORMULAS = ("-2+3+cmd|' /C calc'!A0", "+1+1", "-1\t=A1", "-1e5x", "\n=1", "\uff1d1+1", "-inf+A1")


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_only_begins_like_a_number_is_a_formula(text: str) -> None:
    assert spreadsheet_safe(pl.DataFrame({"x": [text]}))["x"].to_list() == [f"'{text}"]


@pytest.mark.parametrize("text", ["-0.5", "+3", "-.5", "-1.", "-1e-05", "-inf", "-5 %", "", "a=1"])
def test_numbers_and_other_text_stay(text: str) -> None:
    assert spreadsheet_safe(pl.DataFrame({"x": [text]}))["x"].to_list() == [text]
