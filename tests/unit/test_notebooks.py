"""What a notebook shows: every result and every estimator has a picture of itself that cannot touch the page."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import calipers
from calipers import auditing
from calipers.auditing import keep_audit, read_history
from calipers.calibration import IsotonicCalibrator
from calipers.conformal import ConformalClassifier, ConformalRegressor
from calipers.results import PromiseCell, PromiseTable

HOSTILE = '<script>alert("x")</script>'


@cache
def found(half: float) -> auditing.Audit:
    y, group = np.random.default_rng(0).normal(size=600), np.arange(600) % 2
    ends = np.where(group == 1, half, 1.7)[:, None] * [-1.0, 1.0]
    return calipers.audit(y, intervals=ends, groups=np.where(group, HOSTILE, "b"), random_state=0)


@pytest.mark.parametrize("kind", ["audit", "comparison", "repair", "history"])
def test_pages_stand_in_a_frame_without_the_rights_of_the_notebook(kind, tmp_path) -> None:
    keep_audit(found(1.0), tmp_path)
    shown = {
        "audit": lambda: found(1.0),
        "comparison": lambda: calipers.compare({"a": found(1.0), "b": found(1.8)}),
        "repair": lambda: found(1.0).repair(),
        "history": lambda: read_history(tmp_path),
    }[kind]()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown
    assert "<script" not in shown


def test_a_table_of_promises_says_its_answers_and_numbers() -> None:
    shown = found(1.0).promises._repr_html_()
    assert "✗ broken" in shown
    assert 'scope="row"' in shown
    assert "coverage of the intervals, groups: broken; 0." in shown
    hostile = PromiseTable([PromiseCell(promise=HOSTILE, slice=HOSTILE, answer="kept", where=HOSTILE)])
    assert "<script" not in hostile._repr_html_()


def test_a_table_of_promises_draws_itself() -> None:
    pytest.importorskip("matplotlib", reason="pip install matplotlib")
    axes = found(1.0).promises.plot()
    assert len(axes.texts) == len(found(1.0).promises.promises) * len(found(1.0).promises.slices)


@pytest.mark.parametrize("estimator", [ConformalClassifier, ConformalRegressor, IsotonicCalibrator])
def test_estimators_show_their_parameters(estimator) -> None:
    assert estimator.__name__ in estimator()._repr_mimebundle_()["text/html"]
