"""Single checks: what they search, which order they read, which words they use."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats

import calipers
from calipers.auditing import checks
from calipers.auditing.arguments import rows_of_arguments
from calipers.auditing.checks import adaptive, features, regions
from calipers.auditing.checks.forecast import later_rows
from calipers.auditing.checks.probabilities import range_in_words
from calipers.auditing.slices import Parts
from calipers.exceptions import InputError
from calipers.inference import ShareCounts, clopper_pearson, sidak_confidence
from calipers.metrics.conditional.regions import best_rule
from tests.unit.auditing.measured import measured


def finding(found: calipers.auditing.Audit, code: str) -> calipers.results.Finding:
    return next(f for f in found.findings if f.code == code)


def failing_corner(seed: int, n: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = rng.normal(size=n) * np.where(X[:, 1] > 0.5, 2.5, 1.0)
    return y, np.tile([-1.8, 1.8], (n, 1)), X


def test_the_search_for_regions_runs_once_per_alpha() -> None:
    y, intervals, X = failing_corner(0)
    both = np.stack([intervals, 1.3 * intervals], axis=-1)
    with patch.object(regions, "failing_regions", wraps=regions.failing_regions) as search:
        calipers.audit(y, intervals=both, X=X, alpha=[0.1, 0.05], random_state=0)
    assert search.call_count == 2


def test_coverage_along_the_features_names_the_region_that_was_found() -> None:
    y, intervals, X = failing_corner(0)
    found = calipers.audit(y, intervals=intervals, X=X, random_state=0)
    assert finding(found, "CAL202").where == finding(found, "CAL203").where
    # One fault is told once: the region is part of it, and no fault of its own.
    assert "Worst where" in finding(found, "CAL202").sentence
    assert finding(found, "CAL203").severity == "note"
    assert finding(found, "CAL203").details["explained_by"] == "CAL202"


def test_coverage_along_the_features_says_the_place_when_no_other_finding_does() -> None:
    y, intervals, X = failing_corner(0, 600)
    found = calipers.audit(y, intervals=intervals, X=X, mute=["CAL203"], random_state=0)
    assert f"Worst where {finding(found, 'CAL202').where} (" in finding(found, "CAL202").sentence


def test_regions_with_weights_say_why_there_is_no_test() -> None:
    y, intervals, X = failing_corner(1, 400)
    found = calipers.audit(y, intervals=intervals, X=X, sample_weight=np.full(400, 1.5), random_state=0)
    assert "with weights there is no exact test" in finding(found, "CAL203").sentence


def drifting(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    y = np.random.default_rng(2).normal(size=n) * np.linspace(0.5, 1.5, n)
    return y, np.tile([-1.8, 1.8], (n, 1))


def test_the_order_of_a_file_is_never_more_than_a_note_and_says_what_it_may_mean() -> None:
    y, intervals = drifting()
    found = finding(calipers.audit(y, intervals=intervals, random_state=0), "CAL601")
    assert (found.outcome, found.severity) == ("fault", "note")
    assert "if the file was sorted, it means nothing" in found.sentence


@pytest.mark.parametrize("kind", ["numbers", "dates", "text"])
def test_a_stated_time_finds_the_drift_of_shuffled_rows(kind: str) -> None:
    y, intervals = drifting()
    order = np.random.default_rng(3).permutation(len(y))
    day = np.datetime64("2024-01-01") + np.arange(len(y)) // 4
    time = {"numbers": np.arange(len(y)), "dates": day, "text": day.astype(str)}[kind]
    untimed = finding(calipers.audit(y[order], intervals=intervals, random_state=0), "CAL601")
    timed = finding(calipers.audit(y[order], intervals=intervals, time=time[order], random_state=0), "CAL601")
    assert untimed.outcome == "clean"
    assert (timed.outcome, timed.severity) == ("fault", "issue")
    assert re.match(
        "Losses change with time|Since .* the mean absolute error of the midpoint is", timed.sentence
    )


def test_shuffled_rows_are_accused_of_drift_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(4)
    measurements = [
        measured(rng.normal(size=200), intervals=np.tile([-1.6, 1.6], (200, 1)), code="CAL601", seed=i)
        for i in range(300)
    ]
    from calipers.auditing.checks.forecast import next_batch

    p = np.array([next_batch(m, None).p_value for m in measurements], dtype=float)
    assert np.sum(p <= 0.05) <= 28  # binomial(300, 0.05): 28 is passed in less than 1 of 1000


def test_rows_of_one_time_stay_in_one_half() -> None:
    rows = {"intervals": np.tile([0.0, 1.0], (6, 1))}
    material = rows_of_arguments(np.zeros(6), time=[1, 2, 2, 2, 2, 3], **rows)
    assert later_rows(material).tolist() == [False, False, False, False, False, True]
    same = rows_of_arguments(np.zeros(6), time=np.ones(6), **rows)
    assert later_rows(same).tolist() == [False, False, False, True, True, True]


@pytest.mark.parametrize(
    ("time", "says"),
    [(["3/14/2024"] * 6, "got '3/14/2024'"), (["2024-01-01"] * 5 + ["NaT"], "1 missing")],
)
def test_times_that_cannot_be_ordered_are_refused(time: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        rows_of_arguments(np.zeros(6), intervals=np.tile([0.0, 1.0], (6, 1)), time=time)


class Steep:
    """Probabilities that turn quickly around zero: rows there are hard."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = 1 / (1 + np.exp(-5 * np.asarray(X)[:, 0]))
        return np.column_stack([1 - p, p])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.predict_proba(X)[:, 1]


def test_a_model_in_place_of_ease_is_asked_about_changed_rows() -> None:
    X = np.linspace(-2, 2, 101)[:, None]
    P = Steep().predict_proba(X)
    y = (np.random.default_rng(5).random(101) < P[:, 1]).astype(int)
    ease = rows_of_arguments(y, probabilities=P, X=X, ease=Steep(), seed=0)["ease"]
    assert abs(int(np.argmin(ease)) - 50) < 25
    assert ease[0] > ease[50]


def test_a_model_in_place_of_ease_needs_features() -> None:
    with pytest.raises(InputError, match="needs X"):
        rows_of_arguments([0, 1], probabilities=[0.2, 0.8], ease=Steep().predict_proba)


def test_the_part_named_beforehand_has_an_interval_of_its_own() -> None:
    parts = Parts(
        counts=ShareCounts(*(np.array([80.0, 90.0]), np.array([100.0, 100.0])) * 2), labels=("a", "b"),
        kind="difficulty", foremost=0,
    )  # fmt: skip
    low, high = parts.intervals(0.95)
    assert (low[0], high[0]) == pytest.approx(clopper_pearson(80, 100, confidence=0.95))
    assert (low[1], high[1]) == pytest.approx(clopper_pearson(90, 100, confidence=sidak_confidence(0.95, 2)))


def test_empty_sets_are_named_as_the_reason_that_hard_rows_are_missed() -> None:
    rng = np.random.default_rng(6)
    top = rng.uniform(0.5, 1, 1000)
    y = (rng.random(1000) > top).astype(int)
    P = np.column_stack([top, 1 - top])
    found = calipers.audit(y, probabilities=P, sets=P > 0.6, random_state=0)
    assert "of the sets are empty" in finding(found, "CAL401").sentence
    silent = finding(found, "CAL301")
    assert (silent.severity, "Empty sets mean" in silent.sentence) == ("note", True)


def test_sizes_are_not_said_to_follow_a_difficulty_that_nothing_shows() -> None:
    rng = np.random.default_rng(7)
    y, intervals = rng.normal(size=500), np.tile([-1.645, 1.645], (500, 1))
    found = calipers.audit(y, intervals=intervals, ease=rng.normal(size=500), random_state=0)
    assert finding(found, "CAL402").outcome == "clean"
    assert "do not show that some are harder" in finding(found, "CAL402").sentence


def test_the_worst_class_comes_with_its_range_and_both_frequencies() -> None:
    rng = np.random.default_rng(8)
    P = rng.dirichlet([1, 1, 1], size=3000)
    y = np.array([rng.choice(3, p=p) for p in 0.6 * P + 0.4 * np.array([0.1, 0.1, 0.8])])
    sentence = finding(calipers.audit(y, probabilities=P, random_state=0), "CAL503").sentence
    assert sentence.startswith("The probability of class 2 differs from how often it happens: with prob")
    assert "were stated and" in sentence


@pytest.mark.parametrize(
    ("ends", "words"),
    [((-np.inf, 1.0), "all probabilities"), ((0.25, 0.75), "probabilities from 0.25 to 0.75")],
)
def test_a_range_of_probabilities_leaves_out_what_says_nothing(ends: tuple[float, float], words: str) -> None:
    assert range_in_words(*ends) == words


def test_fewer_parts_along_difficulty_where_the_hardest_would_hold_too_few_rows() -> None:
    rng = np.random.default_rng(9)
    for n, parts in ((400, 4), (1500, 5), (5000, 10)):
        y, ease = rng.normal(size=n), rng.normal(size=n)
        m = measured(y, intervals=np.tile([-1.6, 1.6], (n, 1)), ease=ease, code="CAL401")
        result = adaptive.coverage_along_difficulty(m, m.design.levels[0])
        assert result.evidence is not None
        assert len(result.evidence.details["labels"]) == parts


def test_a_place_without_evidence_of_its_own_gives_way_to_the_rule_that_describes_all_rows_best() -> None:
    y, intervals, X = failing_corner(0, 600)
    m = measured(y, intervals=intervals, X=X, code="CAL202")
    level = m.design.levels[0]
    weak = {f"not {rule}": replace(e, p_value=0.4) for rule, e in regions.regions_below(m, level).items()}
    with patch.object(regions, "regions_below", return_value=weak):
        found = features.by_features(m, level)
    covered = m.rows_at(level)["covered"]
    alpha = 1.0 - min(0.9, float(covered.mean()))
    best = best_rule(m.features, covered, alpha, min_mass=regions.smallest_mass(len(covered)), below=True)
    assert weak
    assert best is not None
    # Described, not confirmed: the words differ.
    assert "Worst where" not in found.fault
    assert f"{features.DESCRIBED}{best[0]} (" in found.fault


def test_an_easy_part_that_is_missed_is_not_called_hard() -> None:
    rng = np.random.default_rng(10)
    ease = rng.random(2000)
    y = rng.normal(size=2000) * np.where(ease > 0.8, 3.0, 1.0)
    found = calipers.audit(y, intervals=np.tile([-1.8, 1.8], (2000, 1)), ease=ease, random_state=0)
    assert finding(found, "CAL401").where == "easiest fifth"
    assert finding(found, "CAL401").title == "coverage changes with difficulty"


@pytest.mark.parametrize("rises", [True, False])
def test_a_change_of_the_mean_loss_has_its_sign_and_its_place(rises: bool) -> None:
    rng = np.random.default_rng(41)
    late = np.arange(2000) >= 1500
    loss = rng.beta(2, 8, 2000) + 0.1 * (late == rises)
    found = finding(calipers.audit(loss=loss, time=np.arange(2000), random_state=0), "CAL601")
    before, after = loss[~late].mean(), loss[late].mean()
    assert abs(int(found.where.removeprefix("since ")) - 1500) <= 20
    change = found.evidence
    assert change.name == "change of the mean loss"
    assert float(change) == pytest.approx(after - before, abs=0.01)
    assert change.low < float(change) < change.high
    assert (float(change) > 0) == rises


def test_a_change_of_the_mean_is_standardised_where_it_is() -> None:
    """The p-value beyond all shuffles follows from the largest two-sample deviation, at any place."""
    rng = np.random.default_rng(42)
    loss = rng.beta(2, 8, 1000) + 0.12 * (np.arange(1000) >= 850)
    found = finding(calipers.audit(loss=loss, time=np.arange(1000), random_state=0), "CAL601")
    deviations = [
        abs(loss[k:].mean() - loss[:k].mean()) / (loss.std() * np.sqrt(1 / k + 1 / (1000 - k)))
        for k in range(50, 951)
    ]
    assert found.evidence.p_value == pytest.approx(80 * stats.norm.sf(max(deviations)), rel=1e-6)


@pytest.mark.parametrize("n", [2, 5, 19])
def test_a_handful_of_rows_has_no_rank_correlation(n: int) -> None:
    """Two rows in order are no proof that sizes follow difficulty, nor that they ignore it."""
    half = np.linspace(1.0, 2.0, n)
    found = calipers.audit(0.1 * half, intervals=np.column_stack([-half, half]), ease=-half, random_state=0)
    sizes = next(f for f in found.findings if f.code == "CAL402")
    assert (sizes.outcome, sizes.n_needed) == ("cannot_tell", 20)
    assert not any(name.startswith("correlation of") for name in found.estimates)


def test_a_perfect_order_has_a_p_value_above_0_inside_its_interval() -> None:
    half = np.linspace(1.0, 2.0, 200)
    found = calipers.audit(0.1 * half, intervals=np.column_stack([-half, half]), ease=-half, random_state=0)
    perfect = found.estimates["correlation of hardness and difficulty"]
    assert float(perfect) == perfect.high == 1.0
    assert 0 < perfect.p_value < 1e-100


def test_the_table_of_checks_names_the_file_of_every_code() -> None:
    lines = re.findall(r"^    \*(\w+)\.CHECKS,  # (.*)", inspect.getsource(checks), flags=re.MULTILINE)
    table = {name: set(re.findall(r"CAL\d{3}", codes)) for name, codes in lines}
    for name, codes in table.items():
        module = getattr(checks, name)
        own, worded = (
            {check.code for check in module.CHECKS},
            re.findall(r"CAL\d{3}", inspect.getsource(module)),
        )
        assert own <= codes <= own.union(worded), name
    assert sum(len(getattr(checks, name).CHECKS) for name in table) == len(checks.CHECKS)
