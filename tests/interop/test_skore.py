"""Calipers in real reports and projects of skore."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.naive_bayes import GaussianNB

from calipers.conformal import ConformalClassifier
from calipers.integrations import audit_model, skore_checks
from calipers.scorers import calibration_scorer, coverage_scorer, size_scorer
from tests.interop.peers import foreign, require


@pytest.fixture
def skore() -> Any:
    require("skore")
    with foreign():
        import skore

        yield skore


def report_of(skore: Any, model: Any, X: Any, y: Any) -> Any:
    half = np.arange(len(y)) % 2 == 0
    return skore.EstimatorReport(
        model, X_train=X[half], y_train=y[half], X_test=X[~half], y_test=y[~half], pos_label=None
    )


def outcomes(report: Any, *, fast_mode: bool = False) -> Any:
    """Our checks alone, one row each; skore's own ones fit models of their own."""
    with foreign():
        for entry in list(report.checks.available()):
            if not entry.startswith("CAL"):
                report.checks.remove(entry.partition(" - ")[0])
        return report.checks.summarize(fast_mode=fast_mode).frame().set_index("code")


def test_findings_become_checks_of_a_report(skore):
    X, y = load_breast_cancer(return_X_y=True)
    report = report_of(skore, GaussianNB(), X, y)
    report.checks.add(skore_checks(random_state=0))
    ours = outcomes(report)
    found = audit_model(report.estimator_, X[1::2], y[1::2], random_state=0)
    shown = {f.code for f in found.faults if f.severity in {"warning", "issue"}}
    assert shown
    assert set(ours[ours["section"] == "issue"].index) == shown
    sentence = next(f.sentence for f in found.faults if f.code in shown)
    assert any(sentence in text for text in ours["explanation"].dropna())
    absent = {f.code for f in found.findings if f.outcome in {"not_applicable", "cannot_tell"}}
    assert absent <= set(ours[ours["section"] == "not_applicable"].index)


def test_an_audit_is_skipped_in_fast_mode(skore):
    X, y = load_breast_cancer(return_X_y=True)
    report = report_of(skore, GaussianNB(), X, y)
    checks = skore_checks()
    report.checks.add(checks)
    found = outcomes(report, fast_mode=True)
    assert sorted(found.index) == sorted(check.code for check in checks)
    assert set(found["section"]) == {"skipped"}


def test_scorers_are_metrics_of_a_report(skore):
    X, y = load_iris(return_X_y=True)
    report = report_of(skore, ConformalClassifier(calibration_size=0.4, random_state=0), X, y)
    for name, scorer in {"coverage_gap": coverage_scorer(0.1), "set_size": size_scorer(0.1)}.items():
        report.metrics.add(scorer, name=name)
        assert report.metrics.get(name) == pytest.approx(scorer(report.estimator_, X[1::2], y[1::2]))
    assert {"coverage_gap", "set_size"} <= set(report.metrics.available())


def test_a_report_with_our_metrics_and_checks_goes_through_a_project(skore, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    report = report_of(skore, GaussianNB(), X, y)
    report.metrics.add(calibration_scorer(), name="calibration")
    report.checks.add(skore_checks())
    before = report.metrics.get("calibration")
    first = outcomes(report)
    with foreign():
        project = skore.Project("calipers", workspace=tmp_path, mode="local")
        project.put("naive-bayes", report)
        again = project.get(
            project.summarize().frame(report_type="estimator").index.get_level_values("id")[0]
        )
    assert again.metrics.get("calibration") == pytest.approx(before)
    again.checks.add(skore_checks())  # skore keeps the metrics that were added, not the checks
    assert outcomes(again)["section"].to_dict() == first["section"].to_dict()
