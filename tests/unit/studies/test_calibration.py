"""The calibration study: exact numbers of Table 1, honest verdicts, and a quick run of everything."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression

from studies import run_study
from studies.caching import remembered
from studies.calibration.documents import (
    draw_corpus,
    exact_frequency,
    exact_trivial_l1,
    fit_logistic,
    make_topics,
    topic_curve,
)
from studies.calibration.joint_learners import joint_gaps
from studies.calibration.settings import QUICK
from studies.calibration.statement_claims import statement_claims
from studies.calibration.tables import Stated, load_table, state_probabilities
from studies.calibration.theory import WORLDS, widths


def test_table_1_has_two_exact_numbers() -> None:
    assert exact_frequency(20) == pytest.approx(10 / 29)
    assert exact_frequency(20) == pytest.approx(0.3448, abs=5e-5)  # as printed
    assert exact_trivial_l1(20) == pytest.approx(0.20233, abs=5e-6)


def test_the_exact_numbers_agree_with_quadrature() -> None:
    share = beta(1, 19)

    def stated(theta: float) -> float:
        return 1 - (1 - theta) ** 10

    frequency = quad(lambda t: stated(t) * share.pdf(t), 0, 1)[0]
    kink = 1 - (1 - frequency) ** 0.1
    trivial = quad(lambda t: abs(stated(t) - frequency) * share.pdf(t), 0, 1, points=[kink])[0]
    assert exact_frequency(20) == pytest.approx(frequency, rel=1e-9)
    assert exact_trivial_l1(20) == pytest.approx(trivial, rel=1e-9)


def test_documents_have_the_stated_frequency_and_length() -> None:
    rng = np.random.default_rng(0)
    corpus = draw_corpus(4000, make_topics(QUICK, rng), rng)
    # Standard errors: about 0.3 for the mean length (14 / sqrt(4000) and ties), 0.001 for the frequency.
    assert corpus.counts.sum(axis=1).mean() == pytest.approx(200, abs=1)
    assert corpus.truth.mean() == pytest.approx(exact_frequency(6), abs=0.005)
    assert corpus.labels.mean() == pytest.approx(exact_frequency(6), abs=0.01)


def test_the_joint_solver_is_logistic_regression_per_label() -> None:
    rng = np.random.default_rng(1)
    corpus = draw_corpus(500, make_topics(QUICK, rng), rng)
    weights, intercepts = fit_logistic(corpus.counts, corpus.labels)
    fitted = expit(corpus.counts @ weights + intercepts)
    for k in (0, 5):
        model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8)
        model.fit(corpus.counts, corpus.labels[:, k])
        np.testing.assert_allclose(fitted[:, k], model.predict_proba(corpus.counts)[:, 1], atol=2e-3)


def test_the_certificate_is_tighter_than_the_theorem_by_the_promised_factors() -> None:
    for row in widths((1000, 10_000)):
        assert row.printed_massart > 10 * row.guaranteed
        assert row.printed_exact > 7 * row.guaranteed


def test_the_falling_world_is_a_probability_and_falls() -> None:
    f = np.linspace(0, 1, 1001)
    eta = WORLDS["link that falls in the middle"].link_at(f)
    assert ((eta >= 0) & (eta <= 1)).all()
    assert (np.diff(eta) < 0).any()


def test_a_quick_run_writes_everything_and_decides_nothing(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = run_study("calibration", data_dir, tmp_path, quick=True)
    assert all(path.is_file() and path.stat().st_size > 100 for path in report.files)
    assert len(report.files) == 16  # nine tables, six figures, the claims
    assert len(report.claims) == 28
    assert all(claim.agrees is None for claim in report.claims)
    with (tmp_path / "learners.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 10
    assert all(float(row["c_emp"]) <= float(row["guaranteed_high"]) for row in rows)
    assert all(float(row["c_emp_isotonic_own_rows"]) < 1e-14 for row in rows)
    # The learners are kept for the next run, which trains again only for other sizes or other rows.
    table = load_table("adult", data_dir, QUICK)
    monkeypatch.setattr("studies.calibration.tables.learners", _refuse)
    stated = Stated(*remembered(tmp_path / "cache", state_probabilities, "SVM", table, QUICK))
    assert len(stated.test) == len(table.y_test)
    fewer = table._replace(X_train=table.X_train[:-1], y_train=table.y_train[:-1])
    for rows, settings in ((table, replace(QUICK, n_trees=6)), (fewer, QUICK)):
        with pytest.raises(AssertionError, match="trained again"):
            remembered(tmp_path / "cache", state_probabilities, "SVM", rows, settings)


def _refuse(*_) -> None:
    raise AssertionError("trained again")


def test_two_steps_stay_close_to_the_joint_minimum() -> None:
    gaps = joint_gaps(replace(QUICK, joint_rows=300, joint_seeds=2, isotron_rounds=20), n_angles=90)
    for gap in gaps:
        # a grid of 90 directions may miss the best one by a little
        assert gap.joint <= gap.constrained + 0.005
        assert gap.joint < gap.unconstrained
        assert gap.constrained - gap.joint < 0.2 * (gap.unconstrained - gap.joint)


def test_the_sigmoid_of_figure_1_follows_the_truth() -> None:
    curve = topic_curve(QUICK, n_bins=8)
    assert curve.rows.sum() == QUICK.lda_documents
    assert np.all(np.diff(curve.score) > 0)
    assert np.all(np.diff(curve.stated) > 0)
    assert np.abs(curve.stated - curve.truth).max() < 0.15


def test_every_statement_holds_in_its_executable_form() -> None:
    claims = statement_claims(QUICK)
    assert len(claims) == 6
    assert all(claim.agrees for claim in claims)
