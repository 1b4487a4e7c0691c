"""The module script in the real evaluate package, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calipers
from calipers.integrations import flat_numbers, hugging_face_script
from tests.interop.peers import foreign, require

RNG = np.random.default_rng(0)
N = 400


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    require("evaluate")
    for name in ("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE", "HF_DATASETS_OFFLINE", "HF_UPDATE_DOWNLOAD_COUNTS"):
        monkeypatch.setenv(name, "0" if name.endswith("COUNTS") else "1")
    with foreign():
        import evaluate

        yield lambda *words: evaluate.load(hugging_face_script(), *words, cache_dir=str(tmp_path))


def agrees(result: dict[str, Any], found: calipers.auditing.Audit) -> None:
    assert result["severity"] == found.severity
    assert [fault["code"] for fault in result["findings"]] == [f.code for f in found.faults]
    numbers = {name: number for name, number in result.items() if name not in {"severity", "findings"}}
    assert numbers == pytest.approx(flat_numbers(found.estimates))
    name = next(
        name for name in found.estimates if name in {"coverage", "calibration error of the top label"}
    )
    assert result[name] == pytest.approx(float(found.estimates[name]))
    assert result[f"{name}.high"] == pytest.approx(found.estimates[name].high)


def test_intervals(load):
    v = RNG.normal(size=N)
    ends = np.tile([-1.2, 1.2], (N, 1))
    result = load("intervals").compute(predictions=ends, references=v, alpha=0.1)
    agrees(result, calipers.audit(v, intervals=ends, alpha=0.1, random_state=0))
    assert result["severity"] == "issue"


@pytest.mark.parametrize("labels", [np.arange(3), np.array(["a", "b", "c"])], ids=["numbers", "words"])
def test_probabilities_and_sets_of_labels(load, labels):
    P = RNG.dirichlet(np.ones(3), size=N)
    codes = np.array([RNG.choice(3, p=row) for row in P])
    y = labels[codes].tolist()
    result = load().compute(predictions=P, references=y, classes=labels.tolist())
    agrees(result, calipers.audit(y, probabilities=P, classes=labels.tolist(), random_state=0))
    sets = [labels[row > 0.1].tolist() for row in P]
    result = load("sets").compute(predictions=sets, references=y, alpha=0.2, n_calibration=100)
    agrees(result, calipers.audit(y, sets=sets, alpha=0.2, n_calibration=100, random_state=0))


def test_batches_add_up(load):
    v = RNG.normal(size=N)
    ends = np.tile([-1.7, 1.7], (N, 1))
    metric = load("intervals")
    for part in np.split(np.arange(N), 4):
        metric.add_batch(predictions=ends[part], references=v[part])
    agrees(metric.compute(), calipers.audit(v, intervals=ends, random_state=0))


def test_an_unknown_configuration_is_refused_with_the_known_ones(load):
    with pytest.raises(
        ValueError, match="config_name must be one of probabilities, p_values, sets, intervals"
    ):
        load("widths")
