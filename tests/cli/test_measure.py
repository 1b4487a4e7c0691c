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
