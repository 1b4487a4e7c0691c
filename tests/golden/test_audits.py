"""Audits of a dozen small data sets give the stored outcomes and numbers, in memory and streamed."""

from __future__ import annotations

import pytest

from tests.golden import audits
from tests.golden.samples import SAMPLES, weighted_rows
from tests.golden.storage import load

STORED = load("audits")


@pytest.fixture(scope="module", params=STORED["samples"])
def sample(request):
    return STORED["samples"][request.param], SAMPLES[request.param]()


def missing_or_other(stored, found):
    """Stored name -> (stored, found) where they differ."""
    return {name: (value, found.get(name)) for name, value in stored.items() if found.get(name) != value}


def test_an_audit_gives_the_stored_outcomes_and_numbers(sample):
    stored, given = sample
    found = audits.audit_in_memory(given, seed=0)
    numbers = audits.numbers(found)
    assert found.rows == stored["rows"]
    assert missing_or_other(stored["findings"], audits.outcomes(found)) == {}
    assert audits.unequal(stored["exact"], numbers) == {}
    far = {
        name: (value, numbers.get(name))
        for name, (value, allowed) in stored["drawn"].items()
        if name not in numbers or abs(numbers[name] - value) > allowed
    }
    assert far == {}


def test_a_streamed_audit_gives_the_stored_outcomes_and_numbers(sample):
    stored, given = sample
    found = audits.audit_streamed(given, seed=0)
    assert found.rows == stored["rows"]
    assert missing_or_other(stored["streamed_findings"], audits.outcomes(found)) == {}
    expected = {name: stored["exact"][name] for name in stored["streamed"]}
    assert audits.unequal(expected, audits.numbers(found)) == {}


def test_whole_number_weights_of_a_streamed_audit_are_repeated_rows():
    weights, repeats = weighted_rows()
    for rows in (weights, repeats):
        assert audits.unequal(STORED["weighted"], audits.numbers(audits.audit_streamed(rows, seed=0))) == {}


def test_the_samples_hold_what_audits_are_made_of():
    given = [make() for make in SAMPLES.values()]
    assert {
        "probabilities",
        "p_values",
        "sets",
        "intervals",
        "X",
        "groups",
        "ease",
        "time",
        "n_calibration",
    } <= {name for sample in given for name in sample}
    assert {sample["sets"].ndim for sample in given if "sets" in sample} == {2, 3}
    assert {sample["intervals"].ndim for sample in given if "intervals" in sample} == {2, 3}


def test_planted_faults_are_among_the_stored_outcomes():
    faults = {
        code
        for stored in STORED["samples"].values()
        for code, o in stored["findings"].items()
        if o[0] == "fault"
    }
    assert {
        "CAL101", "CAL102", "CAL103", "CAL201", "CAL202", "CAL203", "CAL301", "CAL401", "CAL402", "CAL501", "CAL503", "CAL601",
    } <= faults  # fmt: skip
