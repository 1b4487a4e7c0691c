import json

import numpy as np
import polars as pl
import pytest

from calipers.cli import main
from calipers.inputs.files.formats import write_table
from calipers.metrics import coverage, metric_entries, metric_entry


@pytest.fixture
def predictions(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    frame = pl.DataFrame({"y_true": y, "lower": np.full(500, -1.6), "upper": np.full(500, 1.6)})
    frame[:200].write_parquet(tmp_path / "a.parquet")
    frame[200:].write_parquet(tmp_path / "b.parquet")
    return str(tmp_path / "*.parquet"), y


def test_measure_streams_a_pattern_of_files(predictions, capsys):
    pattern, y = predictions
    assert main(["measure", pattern, "--alpha", "0.1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["result"]["estimates"]["coverage"]
    expected = coverage(y, np.tile([-1.6, 1.6], (500, 1)), alpha=0.1)
    assert found["value"] == expected.value
    assert found["p_value"] == pytest.approx(expected.p_value)


def test_bad_words_get_one_sentence(predictions, capsys):
    pattern, _ = predictions
    assert main(["measure", pattern, "--metrics", "nothing"]) == 2
    assert "there is no metric 'nothing'" in capsys.readouterr().err
    assert main(["measure", pattern + "x"]) == 2
    assert "no file matches" in capsys.readouterr().err
    assert main(["measure", pattern, "--alpha", "90"]) == 2
    assert "alpha must lie strictly between 0 and 1, got 90.0" in capsys.readouterr().err


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


def coverages(capsys, *words):
    assert main(["measure", *words, "--json"]) == 0
    estimates = json.loads(capsys.readouterr().out)["result"]["estimates"]
    return {name: estimate["value"] for name, estimate in estimates.items()}


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".jsonl", ".npz"])
def test_the_columns_of_the_level_asked_for_are_measured(ending, tmp_path, capsys):
    y = np.random.default_rng(0).normal(size=400)
    columns = {
        f"{side}@{a}": np.full(400, s * w)
        for a, w in ((0.05, 1.96), (0.2, 1.28))
        for side, s in (("lower", -1), ("upper", 1))
    }
    place = str(tmp_path / f"rows{ending}")
    write_table(pl.DataFrame({"y_true": y} | columns), place)
    wide, narrow = (float(np.mean(np.abs(y) <= w)) for w in (1.96, 1.28))
    assert coverages(capsys, place, "--alpha", "0.2") == {"coverage": narrow}
    assert coverages(capsys, place) == {"coverage at alpha=0.05": wide, "coverage at alpha=0.2": narrow}
    assert coverages(capsys, place, "--max-rows", "400", "--alpha", "0.05") == {"coverage": wide}


def test_measure_and_audit_share_their_settings(predictions, tmp_path, monkeypatch, capsys):
    """alpha and n_calibration of calipers.toml, whole tests of coverage alike."""
    pattern, _ = predictions
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calipers.toml").write_text("[audit]\nalpha = 0.2\nn_calibration = 80\n", encoding="utf-8")
    assert main(["measure", pattern, "--json"]) == 0
    here = json.loads(capsys.readouterr().out)["result"]["estimates"]["coverage"]
    assert main(["audit", pattern, "--json", "--fail-on", "never"]) == 0
    there = json.loads(capsys.readouterr().out)["estimates"]["coverage"]
    assert (here["value"], here["p_value"]) == (there["value"], pytest.approx(there["p_value"]))
    y = pl.read_parquet(pattern)["y_true"].to_numpy()
    expected = coverage(y, np.tile([-1.6, 1.6], (500, 1)), alpha=0.2, n_calibration=80)
    assert here["p_value"] == pytest.approx(expected.p_value)


def test_the_seed_is_0_unless_given_and_features_are_read_where_needed(tmp_path, capsys):
    rng = np.random.default_rng(2)
    columns = {"y_true": rng.normal(size=300), "lower": np.full(300, -1.6), "upper": np.full(300, 1.6)}
    pl.DataFrame(columns | {"age": rng.random(300), "site": rng.choice(["a", "b"], 300)}).write_csv(
        tmp_path / "r.csv"
    )
    words = [str(tmp_path / "r.csv"), "--metrics", "ert"]
    first = coverages(capsys, *words)
    assert first == coverages(capsys, *words) == coverages(capsys, *words, "--seed", "0")
    assert first != coverages(capsys, *words, "--seed", "1")
    assert first != coverages(capsys, *words, "--features", "age")


def columns_of(kind, rng, n=200):
    """A small file of one kind of statement, with its outcome."""
    if kind == "probabilities":
        p = rng.random(n)
        return {"y_true": (rng.random(n) < p).astype(int), "p_0": 1 - p, "p_1": p}
    if kind == "quantiles":
        y = rng.normal(size=n)
        return {"y_true": y, "q_0.1": np.full(n, -1.28), "q_0.5": np.zeros(n), "q_0.9": np.full(n, 1.28)}
    width = 1 + rng.random(n)
    more = {"group": rng.integers(0, 3, n), "ease": rng.random(n), "x": rng.normal(size=n)}
    return {"y_true": rng.normal(size=n), "lower": -width, "upper": width} | more


@pytest.mark.parametrize("kind", ["probabilities", "quantiles", "intervals"])
def test_the_listed_metrics_are_those_that_can_be_measured(kind, tmp_path, capsys):
    path = str(tmp_path / "rows.csv")
    pl.DataFrame(columns_of(kind, np.random.default_rng(2))).write_csv(path)
    assert main(["measure", path, "--metrics", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed
    assert main(["measure", path, "--metrics", ",".join(listed), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)["result"]["estimates"]
    assert {name.split(".")[0] for name in measured} == set(listed)
    for entry in metric_entries():
        if entry.name not in listed:
            assert main(["measure", path, "--metrics", entry.name]) == 2
            said = capsys.readouterr().err
            if entry.name == "escv" and kind == "intervals":  # refused for its values: widths are no labels
                assert "whole numbers of labels" in said
                continue
            assert f"{entry.name} needs " in said
            named = said.split("Metrics of these rows: ")[1].strip(".\n").split(", ")
            assert set(named) <= set(listed)
            assert named == [name for name in listed if "X" not in metric_entry(name).inputs or name in named]


def test_a_refusal_for_another_reason_does_not_speak_of_metrics(tmp_path, capsys):
    columns = columns_of("intervals", np.random.default_rng(2)) | {"lower": np.full(200, 9.0)}
    pl.DataFrame(columns).write_csv(tmp_path / "rows.csv")
    assert main(["measure", str(tmp_path / "rows.csv"), "--metrics", "coverage,efficiency"]) == 2
    assert "Metrics of these rows" not in capsys.readouterr().err
