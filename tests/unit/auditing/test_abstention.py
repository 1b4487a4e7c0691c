"""CAL604: the certified share of the surest rows; it describes and is never a fault."""

from __future__ import annotations

import numpy as np
import pytest

import calipers
from calipers.auditing.checks.abstention import RISKS, chosen_risk


def sure_model(n: int, seed: int, low: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """A model that is right as often as it says, and its largest probability."""
    rng = np.random.default_rng(seed)
    top = rng.uniform(low, 1, n)
    return (rng.random(n) > top).astype(int), np.column_stack([top, 1 - top])


def finding(audit: calipers.auditing.Audit) -> calipers.results.Finding:
    return next(f for f in audit.findings if f.code == "CAL604")


def test_the_sentence_tells_the_share_the_risk_and_the_probability() -> None:
    y, P = sure_model(15_000, 0)
    audit = calipers.audit(y, probabilities=P, random_state=0)
    found = finding(audit)
    assert (found.outcome, found.severity) == ("clean", "none")
    share, lowest = float(found.evidence), found.evidence.details["lowest_kept"]
    # The error of all rows is near 0.2, half of it just below 0.1: the next risk is told.
    assert found.evidence.details["risk"] == 0.05
    kept = P[:, 0] >= lowest
    assert share == pytest.approx(kept.mean())
    assert 0.15 < share < 0.25  # rows from 0.9 on, a quarter of all, have an expected error of 0.05
    assert f"Answering only the surest {np.floor(1000 * share) / 10:g} % of the rows" in found.sentence
    assert "at 5 % or less (certified at 95 %)" in found.sentence
    assert any(picture.name == "CAL604_selective_risk" for picture in audit.pictures)
    assert audit.severity == "none"


def test_the_certificate_holds_and_the_finding_leads_to_no_other_answer() -> None:
    """In 60 samples of a world whose risk at every threshold is known; 5 % of 60 leaves at most 7 (0.3 %)."""
    broken = 0
    for seed in range(60):
        y, P = sure_model(400, seed)
        found = finding(calipers.audit(y, probabilities=P, random_state=0, mute=["CAL503", "CAL601"]))
        details = {} if found.evidence is None else found.evidence.details
        if details:
            # The expected error of rows with a probability of at least t is (1 - t) / 2.
            broken += (1 - max(0.6, details["threshold"])) / 2 > details["risk"]
    assert broken <= 7


def test_promised_outcomes_of_any_kind_are_read_too() -> None:
    rng = np.random.default_rng(1)
    t = rng.uniform(0.5, 1, 3000)
    found = finding(calipers.audit(covered=rng.random(3000) < t, promised=t, random_state=0))
    assert "keeps the share of misses at" in found.sentence


def wide_misses(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of width 1 to 5 that miss with a probability of a twentieth of (width - 1)."""
    rng = np.random.default_rng(seed)
    width = rng.uniform(1, 5, n)
    missed = rng.random(n) < (width - 1) / 20
    return np.where(missed, 100.0, 0.0), np.column_stack([-width / 2, width / 2])


def test_intervals_are_sure_where_they_are_narrow() -> None:
    y, intervals = wide_misses(8000, 0)
    found = finding(calipers.audit(y, intervals=intervals, random_state=0))
    width, missed = intervals[:, 1] - intervals[:, 0], y > 50
    share, risk = float(found.evidence), found.evidence.details["risk"]
    # A tenth of all rows is missed; the narrower half, up to width 3, misses 5 %.
    assert risk == 0.05
    assert 0.3 < share < 0.5  # what can be certified of it
    kept = width <= -found.evidence.details["lowest_kept"]
    assert share == pytest.approx(kept.mean())
    assert missed[kept].mean() < risk
    assert found.sentence.endswith(f"They are those with a width of {width[kept].max():.3g} or less.")
    assert "keeps the share of misses at 5 % or less" in found.sentence


def test_the_certificate_of_intervals_holds() -> None:
    """Rows up to width w miss with probability (w - 1) / 40; 5 % of 60 samples leaves at most 7."""
    broken = 0
    for seed in range(60):
        y, intervals = wide_misses(400, seed)
        found = finding(calipers.audit(y, intervals=intervals, random_state=0))
        if found.evidence is not None:
            details = found.evidence.details
            broken += (min(5.0, -details["threshold"]) - 1) / 40 > details["risk"]
    assert broken <= 7


@pytest.mark.parametrize(
    ("beside", "words"),
    [("ease", "an ease of"), ("size", "a size of"), ("promised", "a stated probability")],
)
def test_a_column_beside_the_outcomes_says_which_rows_are_sure(beside: str, words: str) -> None:
    rng = np.random.default_rng(1)
    u = rng.random(4000)
    column = {"ease": 3 * u, "size": 5 - 4 * u, "promised": 0.5 + 0.49 * u}[beside]
    found = finding(
        calipers.audit(covered=rng.random(4000) < 0.6 + 0.4 * u, random_state=0, **{beside: column})
    )
    assert f"They are those with {words}" in found.sentence
    assert found.sentence.endswith("or less." if beside == "size" else "or more.")
    assert found.evidence.details["risk"] == 0.1


def test_intervals_of_one_width_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    found = finding(
        calipers.audit(rng.normal(size=500), intervals=np.tile([-1.6, 1.6], (500, 1)), random_state=0)
    )
    assert found.outcome == "not_applicable"
    assert "All rows have the same width" in found.sentence


def test_infinite_widths_are_the_least_sure() -> None:
    y, intervals = wide_misses(4000, 0)
    intervals[:50] = [-np.inf, np.inf]
    found = finding(calipers.audit(y, intervals=intervals, random_state=0))
    assert 0.3 < float(found.evidence) < 0.5


def test_a_model_that_is_always_right_may_answer_every_row() -> None:
    y, P = np.zeros(3000, dtype=int), np.tile([0.999, 0.001], (3000, 1))
    assert finding(calipers.audit(y, probabilities=P, random_state=0)).sentence.startswith(
        "Answering every row keeps the error rate at 0.2 % or less"
    )


def test_certainty_that_knows_nothing_certifies_nothing() -> None:
    rng = np.random.default_rng(0)
    top = rng.uniform(0.6, 1, 1000)
    found = finding(calipers.audit((rng.random(1000) < 0.5).astype(int), probabilities=top, random_state=0))
    assert found.sentence.startswith("No share of the surest rows is certified")


def test_few_dependent_or_weighted_rows_are_not_asked() -> None:
    y, P = sure_model(300, 0)
    assert finding(calipers.audit(y[:60], probabilities=P[:60], random_state=0)).outcome == "not_applicable"
    for further in ({"cluster": np.arange(300) // 3}, {"sample_weight": np.linspace(0.5, 1.5, 300)}):
        assert (
            finding(calipers.audit(y, probabilities=P, random_state=0, **further)).outcome == "not_applicable"
        )


def test_the_largest_risk_up_to_half_the_loss_is_told() -> None:
    assert chosen_risk(dict.fromkeys(RISKS, 0.5), 0.11) == 0.05
    assert chosen_risk(dict.fromkeys(RISKS, 0.5), 0.0015) == 0.001
    assert chosen_risk(dict.fromkeys(RISKS, 0.0) | {0.2: 1.0}, 0.15) == 0.2
    assert chosen_risk(dict.fromkeys(RISKS, 0.0) | {0.2: 0.9}, 0.15) is None


def test_probabilities_near_one_are_not_said_to_be_one_or_more() -> None:
    rng = np.random.default_rng(7)
    sure = rng.random(2000) < 0.5
    top = np.where(sure, 1 - 1e-9 * rng.random(2000), 0.7)
    y = (rng.random(2000) < np.where(sure, 0.01, 0.4)).astype(int)
    found = finding(calipers.audit(y, probabilities=np.column_stack([top, 1 - top]), random_state=0))
    assert found.sentence.endswith("They are those with a stated probability of 1, up to a millionth.")
