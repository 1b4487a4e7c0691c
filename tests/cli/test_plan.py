"""``calipers plan``: rows before the audit."""

from __future__ import annotations

import json

import pytest

from calipers.auditing import rows_needed
from calipers.cli import main


def test_the_answer_is_a_sentence(capsys):
    assert main(["plan", "--effect", "0.05", "--alpha", "0.1", "--power", "0.8"]) == 0
    assert capsys.readouterr().out == (
        "299 rows: coverage 0.05 below the promised 0.9 is found with probability 0.8 by a test at level 0.05.\n"
    )


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--effect", "-0.05", "--share", "0.25"], {"effect": -0.05, "share": 0.25}),
        (["--effect", "0.1", "--n-calibration", "300"], {"effect": 0.1, "n_calibration": 300}),
        (
            ["--effect", "0.1", "--check", "group", "--groups", "5", "--correction", "sidak"],
            {"effect": 0.1, "check": "group", "n_groups": 5, "correction": "sidak"},
        ),
        (["--effect", "0.1", "--check", "calibration"], {"effect": 0.1, "check": "calibration"}),
        (["--effect", "0.1", "--check", "quantile"], {"effect": 0.1, "check": "quantile"}),
        (["--effect", "0.1", "--check", "pit"], {"effect": 0.1, "check": "pit"}),
        (["--effect", "0.1", "--tests", "25"], {"effect": 0.1, "n_tests": 25}),
        (
            ["--effect", "0.1", "--check", "loss", "--spread", "0.2"],
            {"effect": 0.1, "check": "loss", "spread": 0.2},
        ),
        (
            ["--effect", "0.1", "--check", "difficulty", "--share", "0.2", "--seed", "3"],
            {"effect": 0.1, "check": "difficulty", "share": 0.2, "random_state": 3},
        ),
    ],
)
def test_json_holds_the_question_and_the_rows(words, options, capsys):
    assert main(["plan", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == rows_needed(**options)
    assert options.items() <= document.items()


def test_what_cannot_be_had_is_bad_input_with_the_power_that_can(capsys):
    assert main(["plan", "--effect", "0.05", "--n-calibration", "200"]) == 2
    assert "the power never exceeds 0.722" in capsys.readouterr().err


def test_the_sentence_about_groups_says_that_all_rows_are_counted(capsys):
    assert main(["plan", "--effect", "0.1", "--check", "group", "--groups", "4"]) == 0
    rows = rows_needed(effect=0.1, check="group", n_groups=4)
    said = capsys.readouterr().out
    assert said.startswith(
        f"{rows} rows: coverage 0.1 below the promised 0.9 in one of 4 groups, which has a"
    )
    assert "a 0.25 share of the rows, is found" in said
    assert main(["plan", "--effect", "0.1", "--check", "group", "--groups", "4", "--share", "0.1"]) == 0
    assert "a 0.1 share of the rows, is found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--check", "difficulty", "--share", "0.2"], "promised 0.9 in the hardest 0.2 share of the rows is"),
        (["--check", "quantile"], "rows: a share 0.1 below the 0.9 that the quantile states is found"),
        (["--check", "loss"], "rows: a mean loss 0.1 of its range above the bound of 0.1 is found"),
        (["--check", "loss", "--groups", "4"], "the bound of 0.1 in one of 4 groups, which has a 0.25 share"),
        (["--check", "pit"], "rows: a share 0.1 below the 0.9 of PIT values up to 0.9 is found"),
        (["--tests", "25"], "by a test at level 0.05, one of 25 in an audit."),
    ],
)
def test_the_sentence_says_where_and_what(words, said, capsys):
    assert main(["plan", "--effect", "0.1", *words]) == 0
    assert said in capsys.readouterr().out


def test_what_is_missing_points_to_the_help_of_the_command(capsys):
    assert main(["plan"]) == 2
    assert capsys.readouterr().err == "calipers: Missing option '--effect'. See 'calipers plan --help'.\n"
    assert main(["nonsense"]) == 2
    assert "See 'calipers --help'." in capsys.readouterr().err
