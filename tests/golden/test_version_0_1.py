"""Files that version 0.1 wrote can still be read, and reports have at least the parts they had."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calipers
from calipers.conformal import load_predictor
from calipers.exceptions import InputError
from calipers.results import Curve, Estimate, EstimateTable, Finding, from_json, to_json
from tests.golden import version_0_1
from tests.golden.storage import VERSION_0_1

KINDS = {
    "estimate": Estimate,
    "estimate_odd": Estimate,
    "estimate_table": EstimateTable,
    "curve": Curve,
    "finding": Finding,
}
PREDICTIONS = json.loads((VERSION_0_1 / "predictions.json").read_text(encoding="utf-8"))
SERIES = tuple(calipers.__version__.split(".")[:2])


def stored(name):
    return (VERSION_0_1 / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KINDS)
def test_a_stored_result_is_read_in_full(name):
    found = from_json(stored(name))
    assert type(found) is KINDS[name]
    assert missing(json.loads(stored(name))["result"], json.loads(to_json(found))["result"]) == []


def test_the_values_of_a_stored_estimate_come_back():
    raw = json.loads(stored("estimate"))["result"]
    found = from_json(stored("estimate"))
    fields = (
        "name",
        "value",
        "std_error",
        "low",
        "high",
        "confidence",
        "n",
        "p_value",
        "alternative",
        "null_high",
        "null_level",
    )
    assert {name: getattr(found, name) for name in fields} == {name: raw[name] for name in fields}
    odd = from_json(stored("estimate_odd"))
    assert np.isnan(odd.value)
    assert (odd.high, odd.reason, odd.details["array"].tolist()) == (np.inf, "nothing to measure", [0, 1, 2])


@pytest.mark.parametrize("name", ["audit", "repair"])
def test_every_part_of_a_stored_audit_is_a_result(name):
    document = json.loads(stored(name))
    parts = {
        "Estimate": list(document["estimates"].values()),
        "Finding": document["findings"],
        "Curve": [curve for picture in document["pictures"] for curve in picture["curves"]],
    }
    assert all(parts.values())
    for kind, entries in parts.items():
        for entry in entries:
            found = from_json(json.dumps({"schema": 1, "kind": kind, "result": entry}))
            assert type(found).__name__ == kind


@pytest.mark.parametrize("name", ["audit", "comparison", "repair"])
def test_a_report_has_at_least_the_parts_it_had(name, tmp_path):
    version_0_1.write_commands(tmp_path)
    now = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert missing(json.loads(stored(name)), now) == []


def missing(old, new, place=""):
    """Places of what the old value has and the new one has not; the text and the numbers may differ."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return [place]
        gone = [f"{place}.{key}" for key in old if key not in new]
        return gone + [w for key in old if key in new for w in missing(old[key], new[key], f"{place}.{key}")]
    if isinstance(old, list) and old and isinstance(old[0], dict):
        if not isinstance(new, list) or not new:
            return [place]
        keys = set.intersection(*(set(entry) for entry in old))
        return [f"{place}[{i}].{key}" for i, entry in enumerate(new) for key in keys if key not in entry]
    return []


def test_the_comparison_of_reports_sees_a_lost_part():
    assert missing({"a": {"b": 1}, "c": [{"d": 1}]}, {"a": {}, "c": [{"e": 1}]}) == [".a.b", ".c[0].d"]


@pytest.mark.filterwarnings("ignore::calipers.exceptions.DegradedResultWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_saved_predictor_predicts_what_it_predicted(name):
    pytest.importorskip("skops", reason="saved predictors were not read: pip install skops")
    place = VERSION_0_1 / f"{name}.skops"
    if SERIES != ("0", "1"):  # a predictor of another series is refused, in words
        with pytest.raises(InputError, match=r"was written by calipers 0\.1"):
            load_predictor(place)
        return
    asked, answer = np.asarray(PREDICTIONS[name]["asked"]), PREDICTIONS[name]["answer"]
    np.testing.assert_allclose(version_0_1.predicted(load_predictor(place), asked), answer, rtol=1e-9)
