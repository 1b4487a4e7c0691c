"""One call, six answers: planted faults get their code, missing inputs are named."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calipers
from calipers.auditing.checks import CHECKS
from calipers.auditing.slices import flat_p_values
from calipers.exceptions import InputError
from calipers.inference import ShareCounts


def normal_rows(n: int, seed: int, half_width: float = 1.6448536) -> tuple[np.ndarray, np.ndarray]:
    y = np.random.default_rng(seed).normal(size=n)
    return y, np.tile([-half_width, half_width], (n, 1))


def codes(found: calipers.auditing.Audit) -> dict[str, str]:
    return {finding.code: finding.severity for finding in found.faults}


def test_too_narrow_intervals_are_an_issue(seed: int) -> None:
    y, intervals = normal_rows(2000, seed, half_width=1.3)
    found = calipers.audit(y, intervals=intervals, alpha=0.1, random_state=seed)
    assert codes(found)["CAL101"] == "issue"
    assert found.severity == "issue"


def test_too_wide_intervals_are_a_warning_of_their_own_code(seed: int) -> None:
    y, intervals = normal_rows(2000, seed, half_width=2.4)
    found = calipers.audit(y, intervals=intervals, alpha=0.1, n_calibration=10_000, random_state=seed)
    assert codes(found)["CAL102"] == "warning"


def test_a_bad_group_is_named_and_the_healthy_ones_are_not(seed: int) -> None:
    y, intervals = normal_rows(4000, seed)
    groups = np.array(["north", "south", "west", "east"])[np.arange(4000) % 4]
    intervals[groups == "south"] *= 1.15 / 1.645  # about 75 %
    found = calipers.audit(y, intervals=intervals, groups=groups, alpha=0.1, random_state=seed)
    finding = next(f for f in found.faults if f.code == "CAL201")
    assert finding.severity == "issue"
    assert finding.where == "group south"
    assert "In group south the intervals cover" in finding.sentence


def test_the_place_where_coverage_fails_is_named_in_words() -> None:
    rng = np.random.default_rng(5)
    n = 2000
    age, hours = rng.normal(size=n), rng.normal(size=n)
    y = rng.normal(size=n) * np.where(hours > 0.5, 2.5, 1.0)
    X = pd.DataFrame({"age": age, "hours": hours}, index=rng.integers(0, 5, n))
    intervals = np.column_stack([np.full(n, -1.8), np.full(n, 1.8)])
    found = calipers.audit(y, intervals=intervals, X=X, random_state=0)
    place = next(finding for finding in found.findings if finding.code == "CAL202")
    assert place.severity == "issue"
    assert place.where.startswith("hours >")
    assert (
        f"Where {place.where} the intervals cover"
        in next(finding for finding in found.findings if finding.code == "CAL203").sentence
    )
    assert f"coverage where {place.where}" in found.estimates


def test_infinite_intervals_are_forecast_by_their_misses_without_noise() -> None:
    y = np.random.default_rng(0).normal(size=300)
    found = calipers.audit(y, intervals=np.tile([-np.inf, np.inf], (300, 1)), random_state=0)
    assert any(name.startswith("share of misses") for name in found.estimates)


def test_a_wrong_level_everywhere_is_not_blamed_on_a_group(seed: int) -> None:
    y, intervals = normal_rows(4000, seed, half_width=1.2)
    groups = np.arange(4000) % 4
    found = calipers.audit(y, intervals=intervals, groups=groups, alpha=0.1, random_state=seed)
    assert "CAL101" in codes(found)
    assert "CAL201" not in codes(found)


def test_group_p_values_are_those_of_fishers_exact_test() -> None:
    hits, rows = np.array([30.0, 45.0, 41.0]), np.array([50.0, 50.0, 50.0])
    for group, p in enumerate(flat_p_values(ShareCounts(hits, rows, hits, rows))):
        inside, outside = hits[group], hits.sum() - hits[group]
        table = [
            [inside, rows[group] - inside],
            [outside, rows.sum() - rows[group] - outside],
        ]
        assert p == pytest.approx(stats.fisher_exact(table, alternative="less").pvalue, rel=1e-10)


def test_unknown_calibration_is_given_the_benefit_of_the_doubt() -> None:
    # 87 % of 5000 rows: far outside the binomial band, ordinary for 300 calibration rows.
    y = np.r_[np.zeros(4350), np.full(650, 9.0)]
    intervals = np.tile([-1.0, 1.0], (5000, 1))
    doubtful = calipers.audit(y, intervals=intervals, random_state=0)
    assert codes(doubtful)["CAL101"] == "warning"
    assert "state n_calibration" in doubtful.faults[0].sentence
    assert "CAL101" not in codes(calipers.audit(y, intervals=intervals, n_calibration=300, random_state=0))
    assert (
        codes(calipers.audit(y, intervals=intervals, n_calibration=10**6, random_state=0))["CAL101"]
        == "issue"
    )


def test_several_alphas_are_audited_at_once_and_the_bad_one_is_named() -> None:
    y, wide = normal_rows(3000, 1)
    _, narrow = normal_rows(3000, 1, half_width=1.0)
    intervals = np.stack([wide, narrow], axis=-1)
    found = calipers.audit(y, intervals=intervals, alpha=[0.1, 0.2], random_state=0)
    assert {"coverage at alpha=0.1", "coverage at alpha=0.2"} <= set(found.estimates)
    finding = next(f for f in found.faults if f.code == "CAL101")
    assert finding.where == "at alpha=0.2"
    assert finding.details["levels"] == 2


def test_few_rows_are_cannot_tell_with_the_rows_needed() -> None:
    y, intervals = normal_rows(40, 2)
    found = calipers.audit(y, intervals=intervals, random_state=0)
    finding = next(f for f in found.findings if f.code in {"CAL101", "CAL102"})
    assert finding.outcome == "cannot_tell"
    assert finding.n_needed == 865  # 1.96^2 0.1 0.9 / 0.02^2, rounded up


def test_the_plan_says_what_to_add() -> None:
    y, intervals = normal_rows(200, 0)
    found = calipers.audit(y, intervals=intervals, random_state=0)
    plan = {question.question: question for question in found.plan}
    assert plan["coverage"].answered
    assert any("Add groups" in add for _, add in plan["everywhere"].missing)
    skipped = {finding.code: finding for finding in found.findings if finding.outcome == "not_applicable"}
    assert "Add groups" in skipped["CAL201"].sentence


def test_the_plan_does_not_ask_for_what_was_given() -> None:
    y = np.arange(200) % 2
    P = np.tile([0.5, 0.5], (200, 1))
    found = calipers.audit(y, probabilities=P, groups=y, random_state=0)
    plan = {question.question: question for question in found.plan}
    assert "CAL201" in plan["everywhere"].checks  # plain probabilities promise sets too
    assert dict(plan["everywhere"].missing)["CAL202"].startswith("Add X")


def test_a_question_that_does_not_apply_says_so() -> None:
    y, intervals = normal_rows(200, 0)
    found = calipers.audit(y, intervals=intervals, random_state=0)
    plan = {question.question: question for question in found.plan}
    assert str(plan["probabilities"]).startswith("Can its probabilities be read as probabilities? Not asked.")
    assert str(plan["probabilities"]).count("Add quantiles") == 1
    assert not plan["probabilities"].answered


def test_every_finding_is_in_the_json_and_nothing_is_lost() -> None:
    y, intervals = normal_rows(500, 0, half_width=1.0)
    found = calipers.audit(y, intervals=intervals, random_state=0)
    document = json.loads(found.to_json())
    assert [f["code"] for f in document["findings"]] == [f.code for f in found.findings]
    assert document["estimates"]["coverage"]["value"] == float(found.estimates["coverage"])
    assert document["verdict"]["severity"] == "issue"


def test_the_same_seed_gives_the_same_document() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=400)
    y = np.array([rng.choice(3, p=p) for p in P])
    X = rng.normal(size=(400, 3))
    documents = [
        calipers.audit(y, probabilities=P, sets=P > 0.2, X=X, random_state=5).to_json() for _ in range(2)
    ]
    assert documents[0] == documents[1]


def test_muted_checks_do_not_run() -> None:
    y, intervals = normal_rows(500, 0, half_width=1.0)
    found = calipers.audit(y, intervals=intervals, mute=["CAL101"], random_state=0)
    assert not found.faults
    with pytest.raises(InputError, match="mute must name checks, got 'CAL000'"):
        calipers.audit(y, intervals=intervals, mute=["CAL000"])


def test_codes_are_unique_and_belong_to_their_question() -> None:
    hundreds = {
        "coverage": "1",
        "everywhere": "2",
        "narrow": "3",
        "adaptive": "4",
        "probabilities": "5",
        "forecast": "6",
    }
    assert len({check.code for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.code[:4] == f"CAL{hundreds[check.question]}"
        assert check.add.endswith(".")


BAD = {
    "nothing predicted": ({}, "needs what was predicted"),
    "both tasks": (
        {"intervals": [[0, 1.0]], "probabilities": [[0.5, 0.5]]},
        "intervals belong to regression and probabilities to classification",
    ),
    "lengths": ({"intervals": [[0.0, 1.0]] * 3}, "must have the same length"),
    "levels": ({"intervals": [[0.0, 1.0]], "alpha": [0.1, 0.2]}, "intervals holds 1 level"),
    "widths": (
        {"probabilities": [[0.5, 0.5]], "sets": [[True, False, True]]},
        "must have one column per class, got probabilities: 2, sets: 3",
    ),
    "features": ({"intervals": [[0.0, 1.0]], "X": [[1.0], [2.0]]}, "X must have one row per outcome"),
    "alpha": ({"intervals": [[0.0, 1.0]], "alpha": 90}, "alpha must lie strictly between 0 and 1, got 90"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_get_one_sentence(case: str) -> None:
    arguments, expected = BAD[case]
    with pytest.raises(InputError, match=expected):
        calipers.audit([0], **arguments)


def test_the_catalogue_describes_every_code() -> None:
    from pathlib import Path

    text = (Path(__file__).resolve().parents[3] / "docs" / "findings.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| (CAL\d{3}) \|", text, flags=re.MULTILINE))
    assert described == {check.code for check in CHECKS} | {"CAL102", "CAL502"}  # two sides of 101 and 501
