import pytest

from benchmarks import run as runner
from benchmarks import store
from tests.benchmarks import toy_tasks


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """The runner on the toy task alone, its history in a temporary folder, its steps counted."""
    monkeypatch.setattr(
        runner,
        "tasks",
        lambda word: [("tests.benchmarks.toy_tasks", t) for t in toy_tasks.TASKS if word in t.name],
    )
    monkeypatch.setattr(runner, "environments", lambda only: {})
    monkeypatch.setattr(runner, "LOCAL", tmp_path / "local")
    monkeypatch.setattr(store, "HISTORY", tmp_path)
    measured = []

    def measure(module, task, size, peers, repetitions):
        measured.append((task.name, size))
        return real(module, task, size, peers, 1)

    real = runner.measure
    monkeypatch.setattr(runner, "measure", measure)
    return measured


def test_a_run_is_stored_and_continued_without_measuring_twice(toy, capsys):
    assert runner.main(["--run", "r", "--only", "sum", "--seconds", "0"]) == 0
    assert toy == []
    assert runner.main(["--run", "r", "--only", "sum"]) == 0
    assert toy == [("sum", 10), ("sum", 100), ("sum", 1000), ("sum without truth", 5)]
    assert runner.main(["--run", "r", "--only", "sum"]) == 0
    assert len(toy) == 4
    assert runner.main(["--run", "r", "--only", "sum without", "--again"]) == 0
    assert len(toy) == 5
    stored = store.load("r")
    assert len(stored.measurements) == 7  # ours and the limit at three sizes, ours alone at one
    assert "calipers" in stored.content["versions"]
    assert "continue it with --run r" in capsys.readouterr().out


def test_the_quick_run_takes_the_smallest_size_and_leaves_the_history_alone(toy, capsys, tmp_path):
    assert runner.main(["--quick"]) == 0
    assert toy == [("sum", 10), ("sum without truth", 5)]
    assert store.history() == []
    assert (tmp_path / "local" / "quick.json").exists()
    assert "times the limit" in capsys.readouterr().out


def test_the_page_of_no_run_says_what_to_do(toy):
    with pytest.raises(SystemExit, match=r"there is no stored run yet; `python3 dev.py bench` makes one"):
        runner.main(["--page"])
