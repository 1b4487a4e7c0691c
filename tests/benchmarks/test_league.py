import numpy as np
import pytest
from benchmarks.environments import pinned
from benchmarks.measure import verdict
from benchmarks.traps import CATALOGUE, TASKS

from benchmarks import league

ASKED = [task for task in TASKS if task.ours is not None]


def test_every_trap_has_a_row_and_every_row_a_trap():
    assert [task.name for task in TASKS] == list(dict.fromkeys(task.name for task in TASKS))
    assert {task.name for task in TASKS} == set(CATALOGUE)


def test_every_trap_has_an_exact_answer_and_its_question():
    for task in TASKS:
        assert task.exact is not None
        assert task.exact({})
        assert task.bar == CATALOGUE[task.name]


def test_every_peer_of_a_trap_is_pinned():
    assert {peer for task in TASKS for peer in task.peers} <= set(pinned())


def test_only_features_we_do_not_have_are_not_asked():
    assert {task.name for task in TASKS if task.ours is None} == {
        "online: the first row of a cold start",
        "predictive distribution: CRPS in other units",
    }


@pytest.mark.parametrize("task", ASKED, ids=lambda task: task.name)
def test_calipers_is_right(task):
    if task.name == "conditional: tensors":
        pytest.importorskip("torch")
    if task.name == "conditional: alpha by row with an index":
        pytest.importorskip("pandas")
    stored = {name: np.asarray(value)[()] for name, value in task.prepare(1).items()}
    found = {name: np.asarray(value) for name, value in task.ours(stored).items()}
    assert verdict(task, {}, found, task.exact({}), "ours") == "right", (found, task.exact({}))


ROWS = [
    {
        "trap": "a",
        "question": "is one one",
        "exact": {"x": 1.0},
        "found": {
            "ours": {"verdict": "right", "answers": {"x": 1.0}, "problem": ""},
            "crepes": {"verdict": "wrong", "answers": {"x": 2.0}, "problem": ""},
            "mapie": {"verdict": "refuses", "answers": {}, "problem": "ValueError"},
        },
    },
    {
        "trap": "b",
        "question": "only theirs",
        "exact": {"x": [float(i) / 7 for i in range(8)]},
        "found": {
            "ours": {"verdict": league.NOT_OFFERED, "answers": {}, "problem": ""},
            "crepes": {"verdict": "right", "answers": {}, "problem": ""},
        },
    },
]


def test_the_table_says_who_is_right_and_what_the_others_said():
    head, first, second = league.cells(ROWS)
    assert head == ["trap", "exact", "right", "wrong", "refuses"]
    assert first == ["is one one", "x 1", "Calipers", "crepes (x 2)", "mapie"]
    assert second == ["only theirs", "by counting", "crepes", "", ""]


def test_the_count_leaves_out_what_we_do_not_offer():
    assert league.score_cells(ROWS)[1:] == [
        ["crepes", "2", "1", "1", "0"],
        ["Calipers", "1", "1", "0", "0"],
        ["mapie", "1", "0", "0", "1"],
    ]


def test_only_wrong_and_refused_answers_of_ours_count_against_us():
    assert league.not_right(ROWS) == []
    worse = [ROWS[0] | {"found": ROWS[0]["found"] | {"ours": {"verdict": "refuses"}}}]
    assert league.not_right(worse) == ["a"]


def test_one_process_per_library_judges_every_trap():
    rows = league.answers_to_traps({}, [task for task in TASKS if task.name.startswith("rank: n = 9")])
    assert [row["trap"] for row in rows] == ["rank: n = 99, alpha = 0.1", "rank: n = 9, alpha = 0.1"]
    assert rows[0]["found"]["ours"] == {"verdict": "right", "answers": {"radius": 90.0}, "problem": ""}
    assert rows[0]["found"]["crepes"]["verdict"] == "did not install"
