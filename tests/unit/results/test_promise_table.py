"""The table promises x slices: one answer per cell, the worst of several."""

from __future__ import annotations

from calipers.results import PromiseTable

ROWS = [
    {"promise": "sets at 90 %", "slice": "all rows", "answer": "kept", "value": 0.905, "low": 0.89,
     "high": 0.92, "p_value": 0.4, "n": 12000, "code": "CAL101", "where": ""},
    {"promise": "sets at 90 %", "slice": "groups", "answer": "kept", "value": 0.9},
    {"promise": "sets at 90 %", "slice": "groups", "answer": "broken", "value": 0.71, "low": 0.6,
     "high": 0.8, "p_value": 2e-7, "n": 80, "code": "CAL201", "where": "group b"},
    {"promise": "probabilities", "slice": "all rows", "answer": "cannot tell", "value": None},
]  # fmt: skip


def test_the_worst_of_several_answers_is_shown() -> None:
    grid = PromiseTable.of(ROWS)
    assert grid.cell("sets at 90 %", "groups").answer == "broken"
    assert grid.words("sets at 90 %", "groups") == (
        "sets at 90 %, groups: broken; 0.71, interval 0.60 to 0.80, p < 0.001, 80 rows; group b"
    )


def test_what_was_never_looked_at_is_not_asked() -> None:
    grid = PromiseTable.of(ROWS)
    assert (grid.promises, grid.slices) == (("sets at 90 %", "probabilities"), ("all rows", "groups"))
    assert grid.cell("probabilities", "groups").answer == "not asked"
    assert grid.number("probabilities", "groups") == ""
    assert grid.words("probabilities", "groups") == "probabilities, groups: not asked"


def test_counts_have_their_thousands_apart() -> None:
    assert "12\u202f000 rows" in PromiseTable.of(ROWS).words("sets at 90 %", "all rows")


def test_an_empty_table_is_an_empty_grid() -> None:
    assert PromiseTable.of([]).promises == ()
