"""The line of evidence names what it is compared with, and value, band and p-value belong to that."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import calipers
from calipers.auditing import Audit


@pytest.fixture(scope="module")
def narrow() -> Audit:
    """Intervals of +-0.6 on noise that grows with a feature: 39 % are covered on average."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.where(X[:, 0] > 0.7, 2.5, 0.9) * rng.normal(size=3000)
    return calipers.audit(y, intervals=np.tile([-0.6, 0.6], (3000, 1)), X=X, random_state=0)


def test_a_flat_null_far_below_the_promise_is_not_called_a_valid_predictor(narrow: Audit) -> None:
    (region,) = (finding for finding in narrow.faults if finding.code == "CAL203")
    assert float(narrow.estimates["coverage"]) == pytest.approx(0.39, abs=0.05)
    line = str(region.evidence)
    assert "a predictor whose coverage does not depend on the features would read" in line
    assert "valid predictor" not in line
    assert "perfect predictor" not in line


def test_every_band_of_a_valid_predictor_holds_the_promise(narrow: Audit) -> None:
    """A valid predictor reads about 90 %: a band elsewhere is that of another null."""
    shown = [str(e) for e in narrow.estimates.values() if str(e).startswith("coverage")]
    bands = [re.search(r"a valid predictor would read (\S+) to (\S+)", line) for line in shown]
    found = [tuple(map(float, band.groups())) for band in bands if band is not None]
    assert found
    assert all(low < 0.9 < high for low, high in found)


@pytest.fixture(scope="module")
def bayes() -> Audit:
    """Naive Bayes on digits: certain, and often wrong."""
    X, y = load_digits(return_X_y=True)
    P = GaussianNB().fit(X[::2], y[::2]).predict_proba(X[1::2])
    return calipers.audit(y[1::2], probabilities=P, random_state=0)


def test_no_p_value_is_printed_as_zero(bayes: Audit) -> None:
    texts = [str(bayes), bayes.to_markdown(), bayes.to_html()]
    assert all(finding.details["p_adjusted"] > 0 for finding in bayes.faults)
    for text in texts:
        assert not re.search(r"p = -|p = 0(?!\.)|p = 0\.0+(?!\d)|up to 0\.0+(?!\d)|-0\.0+(?!\d)", text)


def test_an_error_that_its_test_rejects_has_a_lower_end_above_zero(bayes: Audit) -> None:
    for name, error in bayes.estimates.items():
        if name.startswith("calibration error"):
            assert error.p_value is not None
            assert error.p_value <= 0.05
            assert error.low is not None
            assert error.low > 0
            assert "each end one-sided" in str(error)


def test_a_p_value_without_a_band_names_its_null(narrow: Audit, bayes: Audit) -> None:
    """What would read so only rarely: groups, features, sizes and averages have nulls of their own."""
    (by_features,) = (finding for finding in narrow.faults if finding.code == "CAL202")
    said = "against a predictor whose coverage does not depend on the features"
    assert str(by_features.evidence).endswith(f"p < 0.001 {said}")
    for audit in (narrow, bayes):
        for finding in audit.faults:
            line = str(finding.evidence)
            assert "would read" in line or re.search(r"p [<=] [\d.]+ against ", line), line
