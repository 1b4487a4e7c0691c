"""No answer says more than its findings: none contradicts a fault, none is given with too few rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import calipers
from calipers.auditing import Audit
from calipers.exceptions import DoubtfulInputWarning
from calipers.results import severity_rank

GREEN = {"yes", "mostly"}
N = 600


def _regression(seed: int, half: float, *, n: int = N, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y, middle = rng.normal(size=n), np.zeros(n)
    return {"y_true": y, "intervals": np.stack([middle - half, middle + half], axis=1)} | more


def _classes(seed: int, *, sharpened: float = 1.0, n: int = N) -> dict[str, Any]:
    """Labels of three classes, and probabilities that are right at ``sharpened=1``."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(3), size=n)
    y = np.array([rng.choice(3, p=p) for p in true])
    stated = true**sharpened
    return {"y_true": y, "probabilities": stated / stated.sum(axis=1, keepdims=True), "classes": [0, 1, 2]}


def _binary(seed: int, shift: float, n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    return {"y_true": (rng.random(n) < np.clip(p + shift, 0, 1)).astype(int), "probabilities": p}


def _drifting(*, timed: bool) -> dict[str, Any]:
    given, late = _regression(3, 2.5), np.arange(N) > 400
    given["y_true"] = given["y_true"] * np.where(late, 3.0, 1.0)
    return given | ({"time": np.arange(N)} if timed else {})


def _grouped() -> dict[str, Any]:
    given, group = _regression(4, 2.1), np.repeat(["a", "b"], N // 2)
    given["y_true"] = given["y_true"] * np.where(group == "b", 1.8, 1.0)
    return given | {"groups": group, "X": np.random.default_rng(5).normal(size=(N, 2))}


def _by_class(seed: int, size: float) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"y_true": rng.integers(3, size=N), "sets": rng.random((N, 3)) < size, "classes": [0, 1, 2]}


def _outcomes(seed: int, share: float, **more: Any) -> dict[str, Any]:
    return {"covered": np.random.default_rng(seed).random(N) < share} | more


def _losses(seed: int, mean: float) -> dict[str, Any]:
    loss = np.random.default_rng(seed).beta(2 * mean, 2 * (1 - mean), N)
    return {"loss": loss, "bound": 0.3, "groups": np.repeat(["a", "b"], N // 2)}


def _large_sets() -> dict[str, Any]:
    """Sets around the likeliest labels that hold one label more where the probabilities are unsure."""
    given = _classes(3, n=1500)
    P = given["probabilities"]
    order = np.argsort(np.argsort(-P, axis=1), axis=1)
    return given | {
        "sets": order < np.where(P.max(axis=1) < 0.95, 2, 1)[:, None] + (P.max(axis=1) < 0.55)[:, None]
    }


def _slight_excess() -> dict[str, Any]:
    """A mean loss of 0.31 over a bound of 0.3, of so many rows that it is not an accident."""
    loss = np.random.default_rng(0).beta(31, 69, 20_000)
    return {"loss": loss, "bound": 0.3}


def _quantiles(factor: float) -> dict[str, Any]:
    y = np.random.default_rng(7).normal(size=N)
    return {"y_true": y, "quantiles": np.tile([-1.2816 * factor, 0.0, 1.2816 * factor], (N, 1)),
            "quantile_levels": [0.1, 0.5, 0.9]}  # fmt: skip


WORLDS: dict[str, Callable[[], dict[str, Any]]] = {
    "healthy intervals": lambda: _regression(0, 1.645),
    "four sigma": lambda: _regression(1, 4.0),
    "four sigma with features": lambda: _regression(
        1, 4.0, X=np.random.default_rng(0).normal(size=(N, 2))
    ),
    "too narrow": lambda: _regression(2, 1.0),
    "two levels": lambda: {"y_true": np.random.default_rng(8).normal(size=N), "alpha": [0.1, 0.3],
                           "intervals": np.tile([[-1.645, -0.5], [1.645, 0.5]], (N, 1, 1))},
    "infinite intervals": lambda: _regression(6, np.inf),
    "drift along the file": lambda: _drifting(timed=False),
    "drift with time": lambda: _drifting(timed=True),
    "a group is off": _grouped,
    "right probabilities": lambda: _classes(0),
    "sharp probabilities": lambda: _classes(1, sharpened=3.0),
    "flat probabilities": lambda: _classes(2, sharpened=0.3),
    "binary, right": lambda: _binary(0, 0.0),
    "binary, shifted": lambda: _binary(1, 0.2),
    "small sets": lambda: _by_class(0, 0.6),
    "large sets": lambda: _by_class(1, 0.97),
    "large sets with probabilities": _large_sets,
    "covered too rarely": lambda: _outcomes(0, 0.8),
    "covered as promised": lambda: _outcomes(1, 0.9),
    "promised per row": lambda: _outcomes(2, 0.6, promised=np.full(N, 0.9)),
    "loss within bound": lambda: _losses(0, 0.25),
    "loss beyond bound": lambda: _losses(1, 0.45),
    "loss slightly beyond bound": _slight_excess,
    "right quantiles": lambda: _quantiles(1.0),
    "narrow quantiles": lambda: _quantiles(0.5),
    "PIT": lambda: {"pit": np.random.default_rng(0).uniform(size=N)},
    "PIT in the middle": lambda: {"pit": np.random.default_rng(0).beta(3, 3, size=N)},
}  # fmt: skip


@cache
def audited(world: str) -> Audit:
    return calipers.audit(**WORLDS[world](), random_state=0)


def answers(found: Audit) -> dict[str, dict[str, Any]]:
    return {answer["question"]: answer for answer in found.to_dict()["questions"]}


@pytest.mark.parametrize("world", WORLDS)
def test_no_answer_contradicts_a_fault(world: str) -> None:
    found = audited(world)
    for finding in found.faults:
        answer = answers(found)[finding.question]
        own = finding.details.get("own_severity", finding.severity)
        assert answer["answer"] != "yes", finding
        assert answer["label"] not in {"yes", "about the same"}, finding
        if severity_rank(own) >= severity_rank("warning"):
            assert answer["answer"] not in GREEN, finding


def test_what_covers_too_rarely_over_all_rows_does_not_cover_everywhere() -> None:
    given = _regression(2, 0.6) | {"groups": np.repeat(["a", "b"], N // 2)}
    everywhere = answers(calipers.audit(**given, random_state=0))["everywhere"]
    assert (everywhere["answer"], everywhere["severity"]) == ("no", "issue")
    assert everywhere["sentence"].startswith("Over all rows they cover less often than promised (CAL101). No")


@pytest.mark.parametrize("world", WORLDS)
def test_no_broken_cell_stands_under_a_yes(world: str) -> None:
    found = audited(world)
    question_of = {finding.code: finding.question for finding in found.findings}
    for cell in found.promises.values():
        if cell.answer == "broken":
            assert answers(found)[question_of[cell.code]]["answer"] not in GREEN, cell


def test_the_worlds_have_answers_of_every_kind() -> None:
    """Otherwise the two properties would hold of nothing."""
    given = [answer["answer"] for world in WORLDS for answer in answers(audited(world)).values()]
    assert {"no", "doubtful", "cannot tell", "yes", "not asked"} <= set(given)


def test_intervals_that_are_larger_than_they_need_to_be_are_not_as_narrow_as_they_could_be() -> None:
    found = answers(audited("four sigma"))
    assert "larger than they need to be" in found["coverage"]["sentence"]
    assert found["narrow"]["answer"] == "doubtful"


def test_sets_that_cover_too_often_are_not_as_narrow_as_they_could_be() -> None:
    """Whether or not a rival is clearly smaller: the fault itself says that they are larger than needed."""
    found = audited("large sets with probabilities")
    over = next(f for f in found.faults if f.code == "CAL102")
    assert "larger than they need to be" in over.sentence
    assert [f.outcome for f in found.findings if f.code == "CAL302"] == ["clean"]
    answer = answers(found)["narrow"]
    assert (answer["answer"], answer["severity"]) == ("doubtful", over.severity)
    assert answer["sentence"].startswith("They cover more often than promised (CAL102)")


@pytest.mark.parametrize("world", WORLDS)
def test_no_cell_of_the_promises_contradicts_its_finding(world: str) -> None:
    """A fault, however small, is never "kept"; what is kept has no fault of its promise in its slice."""
    found = audited(world)
    for finding in found.faults:
        cells = [cell for cell in found.promises.cells if cell.code == finding.code]
        own = finding.details.get("own_severity", finding.severity)
        told = {cell.answer for cell in cells if cell.promise == finding.details["promise"]}
        above = own == "note" and finding.details["effect"] < 0  # more than promised, and told for that
        if cells:
            assert ("kept" if above else "mostly kept" if own == "note" else "broken") in told, finding


def test_a_bound_that_is_slightly_exceeded_is_mostly_kept_everywhere() -> None:
    found = audited("loss slightly beyond bound")
    (finding,) = found.faults
    assert (finding.code, finding.severity) == ("CAL602", "note")
    assert finding.title == "the mean loss exceeds its bound"
    assert found.promises["mean loss", "all rows"].answer == "mostly kept"
    answer = answers(found)["forecast"]
    assert (answer["answer"], answer["label"]) == ("mostly", "slightly worse than promised")
    assert "mostly kept" in found.to_html()


def test_a_constant_interval_alone_is_not_called_narrow() -> None:
    assert answers(audited("healthy intervals"))["narrow"]["answer"] == "cannot tell"


@pytest.mark.parametrize(
    ("world", "label"), [("drift along the file", "it may drift"), ("drift with time", "it drifts")]
)
def test_losses_that_drift_are_not_forecast_to_stay_as_here(world: str, label: str) -> None:
    answer = answers(audited(world))["forecast"]
    assert "no forecast holds" in answer["sentence"].lower()
    assert answer["label"] == label
    assert answer["answer"] not in GREEN


def test_a_broken_risk_bound_is_not_called_drift() -> None:
    answer = answers(audited("loss beyond bound"))["forecast"]
    assert (answer["answer"], answer["label"]) == ("no", "worse than promised")


FEW: dict[str, Callable[[int], dict[str, Any]]] = {
    "intervals": lambda n: _regression(0, 1.6, n=n),
    "probabilities": lambda n: _classes(0, n=n),
    "binary": lambda n: {"y_true": np.arange(n) % 2, "probabilities": np.full(n, 0.5), "classes": [0, 1]},
    "sets": lambda n: {"y_true": np.zeros(n, dtype=int), "sets": np.tile([True, True, False], (n, 1)),
                       "classes": [0, 1, 2]},
    "covered": lambda n: {"covered": np.ones(n, dtype=bool)},
    "promised": lambda n: {"covered": np.ones(n, dtype=bool), "promised": np.full(n, 0.99)},
    "loss": lambda n: {"loss": np.full(n, 0.1), "bound": 0.2},
    "loss without a bound": lambda n: {"loss": np.full(n, 0.1)},
    "pit": lambda n: {"pit": (np.arange(n) + 0.5) / n},
    "quantiles": lambda n: {"y_true": np.zeros(n), "quantiles": np.tile([-1.0, 1.0], (n, 1)),
                            "quantile_levels": [0.1, 0.9]},
    "features, groups and time": lambda n: _regression(
        0, 1.6, n=n, X=np.arange(2.0 * n).reshape(n, 2), groups=np.arange(n) % 2, time=np.arange(n)
    ),
}  # fmt: skip


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("kind", FEW)
def test_nothing_is_said_of_too_few_rows(kind: str, rows: int) -> None:
    found = calipers.audit(**FEW[kind](rows), random_state=0)
    assert {answer["answer"] for answer in answers(found).values()} <= {"cannot tell", "not asked"}
    assert "nothing can be said" in str(found)
    assert "No fault found" not in str(found)


def test_fewest_rows_are_what_the_user_says() -> None:
    given = _regression(0, 1.645, n=100)
    assert answers(calipers.audit(**given, random_state=0))["coverage"]["answer"] == "cannot tell"
    assert answers(calipers.audit(**given, min_rows=50, random_state=0))["coverage"]["answer"] == "yes"
    many = calipers.audit(**_regression(0, 1.645), min_rows=1000, random_state=0)
    assert answers(many)["coverage"]["answer"] == "cannot tell"
    assert "min_rows" in answers(many)["coverage"]["sentence"]


def test_a_fault_is_told_below_the_fewest_rows_too() -> None:
    found = calipers.audit(**_regression(2, 1.0), min_rows=1000, random_state=0)
    assert answers(found)["coverage"]["answer"] == "no"


def test_a_level_above_one_half_asks_whether_confidence_was_meant() -> None:
    given = _regression(0, 1.645)
    with pytest.warns(DoubtfulInputWarning, match=r"If 90 % was meant, give alpha=0\.1"):
        calipers.audit(**given, alpha=0.9, random_state=0)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_seed_that_was_given_is_shown(seed: int) -> None:
    assert calipers.audit(**_outcomes(0, 0.9), random_state=seed).to_dict()["about"]["seed"] == seed


def test_the_seed_shown_gives_the_same_audit_again() -> None:
    first = calipers.audit(**_grouped())
    again = calipers.audit(**_grouped(), random_state=first.to_dict()["about"]["seed"])
    assert again.to_json() == first.to_json()


def test_errors_of_the_midpoint_are_called_so() -> None:
    given = _regression(0, 1.645)
    assert "absolute error of the midpoint" in answers(audited("healthy intervals"))["forecast"]["sentence"]
    stated = calipers.audit(**given, y_pred=np.full(N, 3.0), random_state=0)
    sentence = answers(stated)["forecast"]["sentence"]
    assert "midpoint" not in sentence
    # |y - 3| of standard normal outcomes has a mean of about 3.
    assert float(sentence.split("it is ")[1].split(" here")[0]) == pytest.approx(3.0, abs=0.15)


def test_the_forecast_is_rounded_outward() -> None:
    found = calipers.audit(loss=np.tile([0.2, 15.46], 400), random_state=0)
    text = answers(found)["forecast"]["sentence"]
    low, high = (float(word) for word in re.findall(r"between ([\d.]+) and ([\d.]+)", text)[0])
    forecast = next(e for name, e in found.estimates.items() if "of the next" in name)
    assert low <= forecast.low
    assert high >= forecast.high
    assert "%;" not in text.replace("90 %;", "")  # a loss is not a share


def test_a_row_of_numbers_at_another_level_says_so() -> None:
    found = audited("healthy intervals")
    line = next(x for x in found.to_markdown().splitlines() if "of the next" in x and x.startswith("|"))
    assert "(at 90 %)" in line
    assert "(at 90 %)" not in next(
        x for x in found.to_markdown().splitlines() if x.startswith("| coverage |")
    )


@pytest.mark.parametrize(
    ("world", "question", "add"),
    [
        ("large sets", "probabilities", "Add probabilities"),
        ("healthy intervals", "probabilities", "Add quantiles"),
        ("covered as promised", "probabilities", "Add promised"),
        ("right quantiles", "coverage", "Add sets, p_values or intervals"),
    ],
)
def test_what_to_add_would_let_the_question_be_asked(world: str, question: str, add: str) -> None:
    answer = answers(audited(world))[question]
    assert answer["answer"] == "not asked"
    assert answer["sentence"].startswith(add)


def test_a_group_beyond_the_bound_is_not_called_worse_for_all() -> None:
    rng, group = np.random.default_rng(4), np.tile(["a", "b"], 500)
    loss = rng.beta(2 * np.where(group == "b", 0.4, 0.15), 2 * np.where(group == "b", 0.6, 0.85))
    found = calipers.audit(loss=loss, bound=0.3, groups=group, random_state=0)
    assert [finding.code for finding in found.faults] == ["CAL603"]
    assert answers(found)["forecast"]["label"] == "worse in a group"


def test_a_shifted_distribution_is_not_called_too_wide() -> None:
    """Outcomes one standard deviation above the predictions: their PIT values crowd near 1."""
    pit = stats.norm.cdf(1.0 + np.random.default_rng(5).normal(size=1000))
    assert np.std(pit) < 0.95 / np.sqrt(12)
    (finding,) = calipers.audit(pit=pit, random_state=0).faults
    assert finding.sentence.startswith("The predictive distributions are shifted")


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_a_change_of_losses_agrees_with_its_test(seed: int) -> None:
    """Few errors, none in the last rows: the largest change was chosen among many."""
    rng = np.random.default_rng(seed)
    covered = rng.random(1500) > 0.05
    covered[-80:] = True
    change = calipers.audit(covered=covered, random_state=0).estimates["change of the mean loss"]
    assert change.low is not None
    assert change.high is not None
    assert change.p_value is not None
    assert (change.low <= 0 <= change.high) == (change.p_value > 0.05)


def test_probabilities_beyond_the_noise_are_not_said_to_agree() -> None:
    """What the correction for many tests saves from being a fault is not "as noise alone would"."""
    seen = set()
    for seed in range(40):
        given = _binary(seed, 0.03, 400)
        for finding in calipers.audit(**given, min_rows=1, random_state=0).findings:
            if finding.code in {"CAL501", "CAL502", "CAL503"} and finding.outcome == "clean":
                assert finding.evidence is not None
                assert finding.evidence.null_high is not None
                inside = float(finding.evidence) <= finding.evidence.null_high
                assert ("as noise alone would" in finding.sentence) == inside
                seen.add(inside)
    assert seen == {True, False}


def test_sets_alone_are_asked_for_probabilities_where_probabilities_are_missing() -> None:
    y = np.arange(300) % 3
    found = calipers.audit(y, sets=np.eye(3, dtype=bool)[y], random_state=0)
    (plan,) = (plan for plan in found.plan if plan.question == "probabilities")
    assert {add for _, add in plan.missing} == {
        "Add probabilities: one column per class, or the positive class of two."
    }


def test_times_are_written_as_people_write_them() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=1000) * np.where(np.arange(1000) > 700, 3.0, 1.0)
    times = np.datetime64("2026-01-01T00:00:00") + 90 * np.arange(1000).astype("timedelta64[m]")
    found = calipers.audit(y, intervals=np.tile([-1.645, 1.645], (1000, 1)), time=times, random_state=0)
    change = next(finding for finding in found.faults if finding.code == "CAL204")
    assert re.search(r"Since 2026-02-1\d \d\d:\d\d the intervals cover", change.sentence)
    assert re.fullmatch(r"since 2026-02-1\d \d\d:\d\d", change.where)
    drift = next(finding for finding in found.faults if finding.code == "CAL601")
    assert re.search(r"Since 2026-02-1\d \d\d:\d\d the", drift.sentence)
    assert found.rows_of("CAL204").sum() > 200


def test_classes_that_are_left_out_for_few_rows_are_mentioned() -> None:
    rng = np.random.default_rng(6)
    y = np.repeat([0, 1, 2], [300, 300, 12])
    sets = rng.random((612, 3)) < 0.9
    sets[y == 2, 2] = False
    found = calipers.audit(y, sets=sets, random_state=0)
    finding = next(f for f in found.findings if f.code == "CAL205")
    assert finding.sentence.endswith("Classes of fewer than 20 rows are left out.")
    whole = calipers.audit(y[:600], sets=sets[:600], random_state=0)
    assert "left out" not in next(f for f in whole.findings if f.code == "CAL205").sentence
