"""The repair loop: chosen and fitted on some rows, judged on others, never better inside the noise."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import calipers
from calipers.auditing.repair.changes import Change
from calipers.auditing.repair.repair_result import _line
from calipers.datasets import MixtureWorld
from calipers.exceptions import InputError
from calipers.results import Estimate


def heteroscedastic(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    hot = rng.random(n) < 0.3
    y = np.where(hot, 2.5, 1.0) * rng.normal(size=n)
    q = np.quantile(np.abs(y), 0.9)
    return {"y_true": y, "intervals": np.tile([-q, q], (n, 1)), "groups": np.where(hot, "hot", "cool")}


def test_a_bad_group_gets_its_own_threshold_and_the_fault_is_gone(seed: int) -> None:
    audit = calipers.audit(**heteroscedastic(4000, seed), random_state=seed)
    assert "CAL201" in {finding.code for finding in audit.faults}
    repaired = audit.repair()
    assert "CAL201" in repaired.gone
    changes = {change.measure: change for change in repaired.changes}
    assert changes["coverage of group hot"].verdict == "better"
    assert abs(float(changes["coverage of group hot"].after) - 0.9) < 0.05


def test_before_and_after_are_measured_on_the_same_untouched_rows(seed: int) -> None:
    audit = calipers.audit(**heteroscedastic(2000, seed), random_state=seed)
    repaired = audit.repair(held_out=0.25)
    assert repaired.before.data.n == repaired.after.data.n == 500
    assert repaired.before.data["y"].tolist() == repaired.after.data["y"].tolist()
    # Untouched rows keep their outcome and their group; only the prediction changes.
    assert repaired.after.data["groups"].tolist() == repaired.before.data["groups"].tolist()
    # Of the other 1500 rows 900 learned and chose, as many as leave 600 to conformalise.
    assert repaired.after.design.n_calibration == 600


def test_over_confident_probabilities_are_recalibrated(seed: int) -> None:
    world = MixtureWorld()
    rows = world.sample(4000, seed)
    P = world.distorted(rows.X, temperature=0.5)
    repaired = calipers.audit(rows.y, probabilities=P, random_state=seed).repair()
    assert "CAL501" in repaired.gone
    changes = {change.measure: change.verdict for change in repaired.changes}
    assert changes == {"Brier score": "better", "log loss": "better"}


def test_nothing_to_repair_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=1000)
    audit = calipers.audit(y, intervals=np.tile([-1.645, 1.645], (1000, 1)), random_state=0)
    repaired = audit.repair()
    if not audit.faults:
        assert repaired.steps == ()
        assert repaired.after is repaired.before
        assert "Nothing was changed" in str(repaired)


def test_sets_without_scores_cannot_be_conformalised_again() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1000)
    sets = np.zeros((1000, 3), dtype=bool)
    sets[np.arange(1000), np.where(rng.random(1000) < 0.7, y, (y + 1) % 3)] = True
    audit = calipers.audit(y, sets=sets, random_state=0)
    assert "CAL101" in {finding.code for finding in audit.faults}
    assert audit.repair().steps == ()


def change(
    low: float,
    high: float,
    before: float,
    after: float,
    target: float | None = 0.9,
    error: float | None = None,
) -> Change:
    estimates = [Estimate(name="coverage", value=value, std_error=error) for value in (before, after)]
    difference = Estimate(name="change", value=after - before, low=low, high=high)
    return Change(
        measure="coverage", target=target, before=estimates[0], after=estimates[1], difference=difference
    )


VERDICTS = {
    "inside the noise": (change(-0.01, 0.03, 0.85, 0.86), "no change beyond noise"),
    "towards the target": (change(0.01, 0.07, 0.85, 0.89), "better"),
    "past it and further off": (change(0.05, 0.11, 0.88, 0.96), "worse"),
    "past it and about as far": (change(0.01, 0.06, 0.887, 0.919, error=0.01), "past the target"),
    "past it and surely nearer": (change(0.06, 0.1, 0.83, 0.91, error=0.005), "better"),
    "smaller is better": (change(-0.5, -0.1, 2.0, 1.7, target=None), "better"),
    "a size is neither": (replace(change(0.1, 0.5, 2.0, 2.3, target=None), is_size=True), "larger"),
    "the same in every row": (
        replace(
            change(0, 0, 2.0, 2.3, target=None),
            is_size=True,
            # Widths that all grow by 0.3: there is no spread, so there is no interval.
            difference=Estimate(
                name="change", value=0.3, std_error=0.0, reason="all contributions are equal"
            ),
        ),
        "larger",
    ),
    "larger is worse": (change(0.1, 0.5, 2.0, 2.3, target=None), "worse"),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_change_is_better_only_beyond_the_noise_and_towards_its_target(case: str) -> None:
    found, expected = VERDICTS[case]
    assert found.verdict == expected


def risky_features(n: int, seed: int) -> dict[str, np.ndarray]:
    """Noise that follows two features; the groups have nothing to do with it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4))
    y = X[:, 2] + (0.3 + 2 * (X[:, 0] > 0.8) + X[:, 1]) * rng.normal(size=n)
    intervals = np.column_stack([X[:, 2] - 2.2, X[:, 2] + 2.2])
    return {"y_true": y, "intervals": intervals, "X": X, "groups": rng.choice(list("abc"), n)}


def test_groups_that_do_not_matter_do_not_hide_the_risky_rows() -> None:
    rows = risky_features(4000, 0)
    repaired = calipers.audit(**rows, random_state=0).repair()
    without = calipers.audit(**{k: v for k, v in rows.items() if k != "groups"}, random_state=0).repair()
    risky, other = (
        next(c for c in found.changes if "lowest predicted" in c.measure) for found in (repaired, without)
    )
    assert float(risky.before) < 0.7
    # Nothing is promised for rows with the lowest predicted coverage; groups that do not matter must not make it
    # worse: three standard deviations of a share of a fifth of 1000 calibration and 2000 untouched rows.
    assert float(risky.after) > float(risky.before) + 0.05
    assert float(risky.after) > float(other.after) - 3 * np.sqrt(0.09 / 200 + 0.09 / 400)


def test_every_candidate_is_listed_and_one_is_chosen() -> None:
    repaired = calipers.audit(**risky_features(2000, 1), random_state=0).repair()
    trials = [t for t in repaired.trials if t.promise == "coverage"]
    names = " | ".join(t.name for t in trials)
    for words in (
        "one threshold",
        "per group",
        "predicted coverage",
        "region",
        "normalised",
        "quantiles",
        "conditional",
    ):
        assert words in names, words
    assert sum(t.chosen for t in trials) == 1
    chosen = next(t for t in trials if t.chosen)
    best = min(trials, key=lambda t: t.shortfall)
    assert chosen.shortfall**2 <= best.shortfall**2 + max(best.noise, 0.01**2)
    assert chosen.mean_size <= 1.02 * best.mean_size
    assert repaired.to_dict()["repair"]["candidates"][0]["name"] == repaired.trials[0].name


def test_what_is_left_is_said() -> None:
    """A repair of coverage cannot mend that intervals are narrow where the ease says hard."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 1500)
    sets = rng.random((1500, 3)) < 0.7
    repaired = calipers.audit(y, sets=sets, random_state=0).repair()
    assert repaired.steps == ()
    assert {f.code for f in repaired.left} == set(repaired.unchanged) != set()
    document = repaired.to_dict()["repair"]
    assert document["unchanged"] == list(repaired.unchanged)
    assert len(document["left"]) == len(repaired.left)
    text = str(repaired)
    assert all(f"Left: {finding}" in text for finding in repaired.left)


def test_the_report_of_a_repair_shows_before_and_after() -> None:
    repaired = calipers.audit(**heteroscedastic(2000, 0), random_state=0).repair()
    page, text = repaired.to_html(), repaired.to_markdown()
    assert 'id="repair"' in page
    assert "coverage of group hot" in page
    assert "| measure | before | after | difference | |" in text


def test_too_few_rows_are_refused() -> None:
    audit = calipers.audit(np.zeros(100), intervals=np.tile([-1.0, 1.0], (100, 1)))
    with pytest.raises(InputError, match="at least 200 rows, got 100"):
        audit.repair()


def test_the_report_lists_candidates_and_what_is_left() -> None:
    repaired = calipers.audit(**heteroscedastic(2000, 0), random_state=0).repair()
    page, text = repaired.to_html(), repaired.to_markdown()
    for document in (page, text):
        assert "ends shifted, a threshold per group" in document
        assert "Faults gone: CAL201" in document
    assert "Guarantee: covers 1 - alpha in every cell" in page


@pytest.mark.parametrize("low", [-0.0004, -0.00004, -1e-9])
def test_no_line_of_a_repair_holds_a_negative_zero(low: float) -> None:
    line = _line(change(low, 0.03, 0.85, 0.85))
    assert "no change beyond noise" in line
    assert not re.search(r"-0\.?0*(?![\d.])", line), line
    shown = float(re.search(r"\[(\S+) to ", line)[1])  # type: ignore[index]
    assert shown <= low  # rounded outward


@pytest.mark.parametrize("kind", ["whole", "importance"])
def test_rows_that_weigh_more_count_more_in_a_repair(kind: str) -> None:
    """Half of the rows are four times as noisy and weigh eight times as much: thresholds are theirs."""
    rng = np.random.default_rng(3)
    noisy = np.arange(6000) % 2 == 1
    y = rng.normal(size=6000) * np.where(noisy, 4.0, 1.0)
    weights = np.where(noisy, 8.0, 1.0) * (1.0 if kind == "whole" else 0.37)
    found = calipers.audit(
        y, intervals=np.tile([-1.0, 1.0], (6000, 1)), sample_weight=weights, random_state=0
    )
    repaired = found.repair()
    new = rng.normal(size=20_000) * np.where(rng.random(20_000) < 8 / 9, 4.0, 1.0)
    ends = repaired.apply({"intervals": np.tile([-1.0, 1.0], (20_000, 1))})["intervals"]
    coverage = float(np.mean((ends[:, 0] <= new) & (new <= ends[:, 1])))
    # Weighted alike, the threshold would cover 0.83 of these rows; 700 calibration rows have an error of 0.011.
    assert coverage == pytest.approx(0.9, abs=0.035)


def test_a_rare_group_of_the_selection_rows_gives_no_warning() -> None:
    rng = np.random.default_rng(0)
    X, group = rng.uniform(size=(800, 2)), rng.choice(["a", "b"], 800).astype(object)
    group[:2] = "rare"
    y = X[:, 1] + (0.3 + (group == "b")) * rng.normal(size=800)
    intervals = np.column_stack([X[:, 1] - 1, X[:, 1] + 1])
    repaired = calipers.audit(y, intervals=intervals, groups=group.astype(str), random_state=1).repair()
    assert repaired.trials  # warnings are errors
