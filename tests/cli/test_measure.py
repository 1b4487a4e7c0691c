import json

import numpy as np
import polars as pl
import pytest

from calipers.cli import main
from calipers.metrics import coverage


@pytest.fixture
def lake(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    frame = pl.DataFrame({"y_true": y, "lower": np.full(500, -1.6), "upper": np.full(500, 1.6)})
    frame[:200].write_parquet(tmp_path / "a.parquet")
    frame[200:].write_parquet(tmp_path / "b.parquet")
    return str(tmp_path / "*.parquet"), y


def test_measure_streams_a_pattern_of_files(lake, capsys):
    pattern, y = lake
    assert main(["measure", pattern, "--alpha", "0.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["result"]["estimates"]["coverage"]
    expected = coverage(y, np.tile([-1.6, 1.6], (500, 1)), alpha=0.1)
    assert found["value"] == expected.value
    assert found["p_value"] == pytest.approx(expected.p_value)


def test_bad_words_get_one_sentence(lake, capsys):
    pattern, _ = lake
    assert main(["measure", pattern, "--metrics", "nothing"]) == 2
    assert "there is no metric 'nothing'" in capsys.readouterr().err
    assert main(["measure", pattern + "x"]) == 2
    assert "no file matches" in capsys.readouterr().err
    assert main(["measure", pattern, "--alpha", "90"]) == 2
    assert "--alpha must be one level such as 0.1, got '90'" in capsys.readouterr().err


def test_columns_are_chosen_as_in_an_audit_and_every_metric_that_draws_is_seeded(tmp_path, capsys):
    rng = np.random.default_rng(1)
    sets, q = rng.random((300, 2)) < 0.9, rng.random(300)
    columns = {"truth": rng.integers(0, 2, 300), "region": rng.integers(0, 3, 300), "calm": rng.random(300)}
    columns |= {"in_0": sets[:, 0], "in_1": sets[:, 1], "q_0": 1 - q, "q_1": q}
    pl.DataFrame(columns).write_parquet(tmp_path / "rows.parquet")
    words = ["measure", str(tmp_path / "rows.parquet"), "--metrics", "coverage_gap,t_ss", "--seed", "3"]
    words += ["--y", "truth", "--set", "in_*", "--proba", "q_*", "--group", "region", "--ease", "calm"]
    found = []
    for _ in range(2):
        assert main([*words, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["result"]["estimates"])
    assert found[0] == found[1]
    assert found[0]["t_ss"]["p_value"] is not None
    assert json.dumps(found[0]["coverage_gap"]["n"]) == "300"
