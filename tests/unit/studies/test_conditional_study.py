"""The conditional-coverage study: its quick run, its cache, the noise it takes out of votes."""

from types import SimpleNamespace

import numpy as np
import pytest

from calipers.exceptions import InputError
from studies import run_study
from studies.conditional import benchmark, synthetic
from studies.conditional.benchmark import PartitionClassifier
from studies.conditional.claims import recovered
from studies.conditional.humans import direct_excess
from studies.conditional.rows import pick, write_rows
from studies.progress import study_progress


def test_the_quick_study_writes_every_table_and_figure(data_dir, tmp_path):
    # A table of another run is not taken for this one: before, any file of that name was read back.
    (tmp_path / "one_dimension.csv").write_text("sets,x,predicted,true,ert\nmarginal,0,0,0,0.5\n")
    report = run_study("conditional", data_dir, tmp_path, quick=True)
    assert "0,0,0,0.5" not in (tmp_path / "one_dimension.csv").read_text(encoding="utf-8")
    assert len(report.claims) == 12
    assert all(claim.agrees is None for claim in report.claims)
    assert all(path.stat().st_size > 0 for path in report.files)
    assert {p.suffix for p in report.files} == {".csv", ".png"}


def test_samples_are_kept_and_more_seeds_add_to_them(tmp_path, monkeypatch):
    def rows(sizes, seeds):
        with study_progress() as progress:
            return synthetic.sample_efficiency(sizes, seeds, tmp_path, progress)

    first = rows((120,), 1)
    assert len(first) == 8  # four measures of two kinds of sets
    assert rows((120,), 2)[:8] == first
    monkeypatch.setattr(synthetic, "_measures", lambda *_: iter([("none", 0.0, 0.0)]))
    assert rows((120,), 1) == first
    assert {row["measure"] for row in rows((121,), 1)} == {"none"}


def test_a_table_is_written_as_it_is_returned(tmp_path):
    rows = write_rows(tmp_path / "t.csv", ("name", "value"), iter([{"name": "a", "value": 1.5, "more": 2}]))
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == "name,value\na,1.5\n"
    assert pick(rows, "value", name="a") == [1.5]


def test_the_noise_of_votes_is_taken_out_without_bias():
    rng = np.random.default_rng(0)
    coverage = rng.uniform(0.7, 1.0, size=20_000)
    inside = rng.binomial(50, coverage)
    counts = np.column_stack([inside, 50 - inside])
    sets = np.tile([True, False], (20_000, 1))
    naive, direct, error = direct_excess(sets, counts)
    truth = np.mean((coverage - 0.9) ** 2)
    assert abs(direct - truth) < 4 * error
    assert naive > truth + 4 * error


def test_a_partition_predicts_the_share_of_its_cell():
    X = np.repeat([[0.0], [10.0]], 50, axis=0)
    y = np.concatenate([np.ones(50), np.zeros(50)])
    share = PartitionClassifier(n_cells=2, random_state=0).fit(X, y).predict_proba(X)[:, 1]
    assert share[0] == pytest.approx(50.5 / 51)
    assert share[-1] == pytest.approx(0.5 / 51)


def test_the_share_recovered_is_relative_to_the_best_and_never_negative():
    common = {"data": "d", "repeat": 0.0, "n": 1000.0, "kl": 0.0, "seconds": 2.0}
    rows = [
        common | {"classifier": "a", "l1": 0.1, "l2": 0.02},
        common | {"classifier": "b", "l1": 0.05, "l2": -0.01},
    ]
    assert recovered(rows) == {"a": (1.0, 1.0, 2.0), "b": (0.5, 0.0, 2.0)}


def test_optional_classifiers_need_their_part_or_their_weights(tmp_path, monkeypatch):
    monkeypatch.delenv("CALIPERS_TABICL_WEIGHTS", raising=False)
    monkeypatch.delenv("CALIPERS_TABPFN_WEIGHTS", raising=False)
    monkeypatch.setattr(benchmark, "is_installed", lambda name: name == "lightgbm")
    assert benchmark.optional_classifiers() == {"LightGBM": "lightgbm"}
    monkeypatch.setattr(benchmark, "is_installed", lambda name: False)
    assert benchmark.optional_classifiers() == {}
    monkeypatch.setenv("CALIPERS_TABICL_WEIGHTS", str(tmp_path / "missing.ckpt"))
    with pytest.raises(InputError, match="CALIPERS_TABICL_WEIGHTS must name a file"):
        benchmark.optional_classifiers()


def test_foundation_models_get_the_path_of_their_weights_and_no_leave_to_download(tmp_path, monkeypatch):
    weights = tmp_path / "weights.ckpt"
    weights.write_bytes(b"weights")
    made = {}

    def library(package, **_):
        def make(name):
            return lambda **options: made.setdefault(name, options) or name

        return SimpleNamespace(TabICLClassifier=make("TabICL"), TabPFNClassifier=make("TabPFN"))

    monkeypatch.setattr(benchmark, "import_optional", library)
    monkeypatch.setattr(benchmark, "is_installed", lambda name: False)
    monkeypatch.setenv("CALIPERS_TABICL_WEIGHTS", str(weights))
    monkeypatch.setenv("CALIPERS_TABPFN_WEIGHTS", str(weights))
    assert set(benchmark.optional_classifiers()) == {"TabICL", "TabPFN"}
    assert made["TabICL"] == {"model_path": str(weights), "allow_auto_download": False}
    assert made["TabPFN"] == {"model_path": str(weights)}
