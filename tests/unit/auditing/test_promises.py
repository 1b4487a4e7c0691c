"""Promises x slices: what the audit used to clear, and now names, with the place."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calipers
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import PromiseRows, recalibrated
from calipers.auditing.slices import clustered_worst
from calipers.engines import FileSource
from calipers.exceptions import InputError

LEVELS = (0.1, 0.5, 0.9)


def fault(found: calipers.auditing.Audit, code: str) -> Any:
    """The finding of a code, which must be a fault."""
    finding = next(f for f in found.findings if f.code == code)
    assert finding.outcome == "fault", finding
    return finding


def grouped_probabilities(n: int = 6000, gap: float = 0.06) -> dict[str, Any]:
    """Group A: more happens than stated; group B: less; together as stated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    groups = rng.choice(["A", "B"], n)
    stated = 1 / (1 + np.exp(1.3 - 0.8 * X[:, 0]))
    happens = np.clip(stated + np.where(groups == "A", gap, -gap), 0, 1)
    return {"y_true": (rng.random(n) < happens).astype(int), "probabilities": stated, "groups": groups}


def test_probabilities_that_are_off_in_two_groups_are_found_and_named() -> None:
    rows = grouped_probabilities()
    found = calipers.audit(**rows, random_state=0)
    finding = fault(found, "CAL504")
    assert finding.severity == "issue"
    assert finding.where in {"group A", "group B"}
    assert found.promises["probability of class 1", "groups"].answer == "broken"
    assert found.promises["probability of class 1", "score"].answer == "kept"
    assert np.array_equal(found.rows_of("CAL504"), rows["groups"] == finding.where.removeprefix("group "))


def test_an_intersection_of_two_attributes_is_named() -> None:
    rng = np.random.default_rng(1)
    n = 6000
    sex, age = rng.choice(["f", "m"], n), rng.choice(["old", "young"], n)
    stated = rng.uniform(0.2, 0.8, n)
    inside = (sex == "f") & (age == "old")
    y = (rng.random(n) < np.where(inside, stated + 0.15, stated - 0.05)).astype(int)
    groups = {"sex": sex, "age": age}
    found = calipers.audit(y, probabilities=stated, groups=groups, random_state=0)
    assert fault(found, "CAL504").where == "group sex=f and age=old"
    assert np.array_equal(found.rows_of("CAL504"), inside)
    intervals = np.tile([-1.645, 1.645], (n, 1))
    z = rng.normal(size=n) * np.where(inside, 1.6, 1.0)
    covered = calipers.audit(z, intervals=intervals, groups=pl.DataFrame(groups), random_state=0)
    assert fault(covered, "CAL201").where == "group sex=f and age=old"


@pytest.mark.parametrize("kind", ["dates", "text", "numbers"])
def test_coverage_that_changes_in_the_middle_is_dated(kind: str) -> None:
    rng = np.random.default_rng(2)
    n = 4000
    half = np.where(np.arange(n) < n // 2, 2.46, 1.38)
    day = np.datetime64("2024-01-01") + np.arange(n) // 20
    time = {"dates": day, "text": day.astype(str), "numbers": np.arange(n)}[kind]
    order = rng.permutation(n)
    y = rng.normal(size=n)[order]
    intervals = np.column_stack([-half, half])[order]
    found = calipers.audit(y, intervals=intervals, time=time[order], random_state=0)
    finding = fault(found, "CAL204")
    assert finding.severity == "issue"
    if kind == "numbers":
        since = float(finding.details["changed_at"])
        assert abs(since - n // 2) < 60
    else:
        since = np.datetime64(finding.details["changed_at"])
        assert abs(since - np.datetime64("2024-04-10")) < np.timedelta64(4, "D")
        assert "Since 2024-04" in finding.sentence
    assert abs(found.rows_of("CAL204").mean() - 0.5) < 0.02


def test_an_error_eight_times_as_large_is_no_note() -> None:
    rng = np.random.default_rng(3)
    n = 6000
    y = rng.integers(0, 10, n)
    wrong = rng.random(n) < np.where(np.arange(n) < n // 2, 0.007, 0.058)
    top = np.where(wrong, (y + 1) % 10, y)
    P = np.full((n, 10), 0.003)
    P[np.arange(n), top] = 1 - 9 * 0.003
    finding = fault(calipers.audit(y, probabilities=P, time=np.arange(n), random_state=0), "CAL601")
    assert finding.severity in {"warning", "issue"}
    assert "error rate" in finding.sentence
    assert 2500 < float(finding.where.removeprefix("since ")) < 3500


def test_plain_probabilities_promise_sets_and_four_questions_are_asked() -> None:
    rng = np.random.default_rng(4)
    P = rng.dirichlet([1, 1, 1, 1], 1500)
    y = (P.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    found = calipers.audit(y, probabilities=P, random_state=0)
    asked = [question.question for question in found.plan if question.answered]
    assert {"coverage", "adaptive", "probabilities", "forecast"} <= set(asked)
    stated = found.promises["coverage of sets implied by the probabilities", "all rows"]
    assert stated.answer == "kept"
    mass = -np.sort(-P, axis=1).cumsum(axis=1)
    order = np.argsort(-P, axis=1, kind="stable")
    size = 1 + (mass < 0.9 - 1e-12).sum(axis=1)
    inside = np.argmax(order == y[:, None], axis=1) < size
    assert stated.value == pytest.approx(inside.mean())


def test_a_promise_of_certainty_that_is_broken_rejects_by_itself() -> None:
    t = np.concatenate([np.full(400, 0.9), np.full(100, 1.0)])
    z = np.random.default_rng(5).random(500) < t
    z[-1] = False
    found = calipers.audit(covered=z, promised=t, random_state=0)
    assert next(f for f in found.findings if f.code == "CAL101").details["p_value"] < 1e-6


def test_outcomes_found_elsewhere_are_judged_at_their_own_promise() -> None:
    rng = np.random.default_rng(6)
    t = rng.uniform(0.5, 1, 5000)
    group = rng.choice(["x", "y"], 5000)
    z = rng.random(5000) < np.where(group == "x", t, t - 0.1)
    found = calipers.audit(covered=z, promised=t, groups=group, random_state=0)
    assert fault(found, "CAL201").where == "group y"
    assert fault(found, "CAL501")
    assert fault(found, "CAL101").sentence.startswith("The predictions cover")
    one = calipers.audit(covered=z, alpha=0.3, random_state=0)
    assert float(one.estimates["coverage"]) == pytest.approx(z.mean())


def test_quantiles_pit_and_risk_bounds_are_promises() -> None:
    rng = np.random.default_rng(7)
    y = rng.normal(size=4000)
    quantiles = np.tile(stats.norm.ppf(LEVELS), (4000, 1))
    clean = calipers.audit(y, quantiles=quantiles, quantile_levels=LEVELS, random_state=0)
    assert clean.severity == "none"
    narrow = calipers.audit(y, quantiles=0.7 * quantiles, quantile_levels=LEVELS, random_state=0)
    assert fault(narrow, "CAL507").where in {"quantile 0.1", "quantile 0.9"}
    # Too narrow: beyond the outer quantiles lie more than the stated tenth.
    assert 0.1 < narrow.rows_of("CAL507").mean() < 0.5
    assert "CRPS" in " ".join(narrow.estimates) or "crps" in " ".join(narrow.estimates)
    assert fault(calipers.audit(pit=rng.beta(0.6, 0.6, 3000), random_state=0), "CAL507").severity == "issue"
    loss = rng.beta(1, 9, 3000)
    assert fault(calipers.audit(loss=loss, bound=0.08, random_state=0), "CAL602").severity == "issue"
    kept = calipers.audit(loss=loss, bound=0.12, random_state=0)
    assert kept.promises["mean loss", "all rows"].answer == "kept"


def test_rows_that_depend_on_each_other_are_not_counted_as_independent() -> None:
    rng = np.random.default_rng(8)
    accused = {"clusters": 0, "rows": 0}
    for _ in range(40):
        shared = np.repeat(rng.normal(size=60), 20)
        covered = stats.norm.cdf((2 * shared + rng.normal(size=1200)) / np.sqrt(5)) < 0.9
        for name, given in (("clusters", {"cluster": np.repeat(np.arange(60), 20)}), ("rows", {})):
            found = calipers.audit(covered=covered, random_state=0, **given)
            accused[name] += found.severity in {"warning", "issue"}
    # 40 audits at 5 %: six or more have probability 0.014; taken as independent most are accused.
    assert accused["clusters"] <= 5
    assert accused["rows"] > 15


def test_few_clusters_cannot_tell() -> None:
    rng = np.random.default_rng(9)
    found = calipers.audit(covered=rng.random(400) < 0.6, cluster=np.repeat(np.arange(8), 50), random_state=0)
    finding = next(f for f in found.findings if f.code == "CAL101")
    assert finding.outcome == "cannot_tell"
    assert found.promises["coverage", "all rows"].answer == "cannot tell"


def test_outcomes_found_elsewhere_are_read_along_difficulty_without_a_size() -> None:
    rng = np.random.default_rng(16)
    ease = (rng.permutation(1500) + 0.5) / 1500
    covered = rng.random(1500) < np.where(ease < 0.2, 0.6, 0.95)
    found = calipers.audit(covered=covered, ease=ease, random_state=0)
    assert fault(found, "CAL401").where == "hardest fifth"


def test_a_dependence_on_the_features_is_described_even_where_half_of_the_rows_do_not_confirm_a_rule() -> (
    None
):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1000, 4))
    covered = rng.random(1000) < np.where(X[:, 2] > 0.7, 0.72, 0.94)
    places = []
    for seed in range(4):
        found = calipers.audit(covered=covered, X=X, random_state=seed)
        places.append(fault(found, "CAL202").where)
        in_place = found.rows_of("CAL202")
        assert covered[in_place].mean() < covered[~in_place].mean() - 0.1
    assert all("x2 >" in place for place in places), places


def test_the_place_of_a_fault_of_clustered_rows_is_named() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 3))
    covered = rng.random(2000) < np.where(X[:, 1] > 0.7, 0.6, 0.95)
    found = calipers.audit(covered=covered, X=X, cluster=np.arange(2000) // 4, random_state=0)
    assert "x1 >" in fault(found, "CAL202").where
    # No pattern of signs reached either half: the smallest p-value of 9999 draws, for two halves.
    assert fault(found, "CAL202").details["p_value"] == pytest.approx(2 / 10_000)


def too_narrow_where_hard(n: int = 3000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ease, outcomes and stated spread: the hardest fifth spreads twice as far as stated."""
    rng = np.random.default_rng(15)
    ease = (rng.permutation(n) + 0.5) / n
    return ease, rng.normal(size=n) * np.where(ease < 0.2, 2.0, 1.0), np.ones(n)


def test_quantiles_are_read_along_difficulty() -> None:
    ease, y, spread = too_narrow_where_hard()
    stated = np.outer(spread, stats.norm.ppf(LEVELS))
    found = calipers.audit(y, quantiles=stated, quantile_levels=LEVELS, ease=ease, random_state=0)
    assert fault(found, "CAL508").where.startswith("hardest fifth at quantile 0.")
    assert np.array_equal(found.rows_of("CAL508"), ease < 0.2)


def test_pit_values_are_read_in_every_slice() -> None:
    ease, y, spread = too_narrow_where_hard()
    place, pit = np.where(ease < 0.2, "hard", "easy"), stats.norm.cdf(y / spread)
    found = calipers.audit(pit=pit, groups=place, ease=ease, time=1 - ease, X=ease[:, None], random_state=0)
    assert fault(found, "CAL504").where.startswith("group hard at quantile 0.")
    for code in ("CAL505", "CAL506"):
        assert fault(found, code).severity in {"warning", "issue"}
    # The hard rows are those of the group, which came late: told once, by the group.
    assert fault(found, "CAL508").details["explained_by"] == "CAL504"
    alone = calipers.audit(pit=pit, ease=ease, random_state=0)
    assert fault(alone, "CAL508").severity in {"warning", "issue"}
    assert {"PIT", *(f"quantile {level}" for level in LEVELS)} <= set(found.promises.promises)


def test_one_fault_of_a_binary_model_is_told_once() -> None:
    rng = np.random.default_rng(10)
    p = rng.random(5000)
    y = (rng.random(5000) < np.clip(0.5 + 0.6 * (p - 0.5), 0, 1)).astype(int)
    found = calipers.audit(y, probabilities=p, random_state=0)
    serious = [f.code for f in found.faults if f.severity == "issue"]
    assert serious == ["CAL503"]
    assert next(f for f in found.faults if f.code == "CAL501").details["explained_by"] == "CAL503"


def test_a_fault_of_all_rows_is_not_told_again_for_every_group() -> None:
    rng = np.random.default_rng(11)
    p, groups = rng.random(6000), rng.choice(list("abc"), 6000)
    y = (rng.random(6000) < np.clip(0.5 + 0.6 * (p - 0.5), 0, 1)).astype(int)
    found = calipers.audit(y, probabilities=p, groups=groups, random_state=0)
    assert found.promises["probability of class 1", "score"].answer == "broken"
    assert found.promises["probability of class 1", "groups"].answer == "kept"


def test_recalibration_leaves_certainties_and_kept_promises_alone() -> None:
    rng = np.random.default_rng(12)
    t = np.concatenate([rng.uniform(0.05, 0.95, 3000), [0.0, 1.0]])
    z = rng.random(3002) < t
    assert np.array_equal(recalibrated(z, t), t)
    off = np.clip(t + 0.04, 0, 1)
    off[-2:] = t[-2:]
    found = recalibrated(z, off)
    assert found[-2:].tolist() == [0.0, 1.0]
    assert abs((z - found)[:-2].sum()) < 1e-3


@pytest.mark.parametrize(
    "true",
    [
        lambda t: np.where(t > 0.7, t - 0.1, t + 0.02),
        lambda t: np.where(np.abs(t - 0.5) < 0.1, t + 0.1, t),
        lambda t: np.clip(t - 0.15 * np.sin(6 * t), 0.01, 0.99),
    ],
)
def test_recalibration_follows_maps_that_are_not_logistic(true: Any) -> None:
    rng = np.random.default_rng(21)
    t = rng.uniform(0.02, 0.98, 20_000)
    found = recalibrated(rng.random(20_000) < true(t), t)
    # A spline of nine terms has a standard error of about sqrt(9 / n) / 2 = 0.011, more at jumps.
    assert np.sqrt(np.mean((found - true(t)) ** 2)) < 0.03


def test_recalibration_gives_each_of_few_promises_its_own_share() -> None:
    rng = np.random.default_rng(22)
    t = rng.choice([0.5, 0.8, 0.95], 4000)
    z = rng.random(4000) < np.where(t == 0.95, 0.85, t)
    found = recalibrated(z, t)
    for value in (0.5, 0.8, 0.95):
        assert found[t == value] == pytest.approx(z[t == value].mean(), abs=1e-6)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_features_are_not_blamed_for_a_fault_of_the_scores(seed: int) -> None:
    """Noise features beside probabilities that no logistic map corrects."""
    rng = np.random.default_rng(1000 + seed)
    t = rng.uniform(0.02, 0.98, 4000)
    y = rng.random(4000) < np.where(t > 0.7, t - 0.08, np.where(t < 0.3, t, t + 0.03))
    found = calipers.audit(y.astype(int), probabilities=t, X=rng.normal(size=(4000, 2)), random_state=seed)
    assert found.promises["probability of class 1", "score"].answer == "broken"
    assert found.promises["probability of class 1", "features"].answer == "kept"


def test_the_same_file_streamed_and_in_memory_keeps_the_same_promises(tmp_path: Any) -> None:
    rng = np.random.default_rng(13)
    n = 1200
    t = rng.uniform(0.6, 1, n)
    frame = pl.DataFrame(
        {
            "covered": rng.random(n) < t - 0.05,
            "promised": t,
            "group_sex": rng.choice(["f", "m"], n),
            "group_site": rng.choice(["a", "b", "c"], n),
            "time": (np.datetime64("2024-01-01") + np.arange(n) // 10).astype(str),
            "size": rng.random(n),
        }
    )
    path = tmp_path / "rows.parquet"
    frame.write_parquet(path)
    loaded = calipers.audit(source=FileSource(str(path)).load(), random_state=0)
    streamed = calipers.audit(source=FileSource(str(path), piece_rows=211), random_state=0)
    given = {
        "covered": frame["covered"],
        "promised": frame["promised"],
        "groups": frame.select(sex="group_sex", site="group_site"),
        "time": frame["time"],
        "size": frame["size"],
    }
    arrays = calipers.audit(
        **{k: v if k == "groups" else v.to_numpy() for k, v in given.items()}, random_state=0
    )
    assert loaded.promises.to_dict() == streamed.promises.to_dict()
    for key in ("all rows", "groups", "time"):
        cell = loaded.promises["promised probability", key]
        assert cell.value == pytest.approx(arrays.promises["promised probability", key].value)


def test_quantile_columns_and_a_column_called_size_alone_are_what_they_are(tmp_path: Any) -> None:
    rng = np.random.default_rng(14)
    y = rng.normal(size=300)
    frame = pl.DataFrame(
        {"y_true": y, "q_0.9": np.full(300, 1.28), "q_0.1": np.full(300, -1.28), "size": y**2}
    )
    path = tmp_path / "rows.csv"
    frame.write_csv(path)
    source = FileSource(str(path), features=True).load()
    assert dict(source.roles) == {
        "y_true": "outcome", "q_0.9": "quantile 0.9", "q_0.1": "quantile 0.1", "size": "feature"
    }  # fmt: skip
    assert source.given["quantiles"].columns == ["0.1", "0.9"]
    assert "quantile 0.1" in calipers.audit(source=source, random_state=0).promises.promises


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "promised alone": ({"promised": [0.9]}, "an audit needs what was predicted"),
    "promised without covered": ({"loss": [0.1], "promised": [0.9]}, "promised belongs to covered"),
    "bound outside": ({"loss": [0.1], "bound": 90}, "bound must lie in loss_range"),
    "quantiles without levels": ({"y_true": [1.0], "quantiles": [[1.0]]}, "quantiles need quantile_levels"),
    "sets and covered": (
        {"y_true": [0], "sets": [[True, False]], "covered": [True]},
        "either covered or sets",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_promises_that_make_no_sense_get_one_sentence(case: str) -> None:
    arguments, expected = BAD[case]
    with pytest.raises(InputError, match=expected):
        calipers.audit(**arguments)


def test_a_loss_outside_its_range_is_refused_with_its_row() -> None:
    with pytest.raises(InputError, match=r"loss must lie in loss_range \[0, 1\], 1 of 50 values do not"):
        calipers.audit(loss=[0.5] * 49 + [3.0], bound=0.2)


def test_rows_of_an_unknown_code_names_those_there_are() -> None:
    found = calipers.audit(covered=np.arange(2000) % 2 == 0, random_state=0)
    assert np.array_equal(found.rows_of("CAL101"), np.arange(2000) % 2 == 1)
    with pytest.raises(InputError, match="CAL101"):
        found.rows_of("CAL999")


@pytest.mark.parametrize(("n", "answer"), [(30, "cannot tell"), (300, "not asked")])
def test_a_forecast_that_cannot_be_made_stands_in_the_table_under_its_name(n: int, answer: str) -> None:
    """Too few rows, and rows in clusters, for which there is no test of drift."""
    rows = {"cluster": np.arange(n) // 3} if n == 300 else {}
    y = np.random.default_rng(3).normal(size=n)
    found = calipers.audit(
        y, intervals=np.tile([-1.6, 1.6], (n, 1)), time=np.arange(n), random_state=0, **rows
    )
    assert found.promises["forecast", "time"].answer == answer
    assert all(cell.promise for cell in found.promises.cells)


def three_labels(n: int = 3000) -> dict[str, Any]:
    """Three classes with right probabilities, and sets that leave out class 2 too often."""
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(3), size=n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    sets = (P > 0.1) & ~((np.arange(3) == 2) & (rng.random((n, 3)) < 0.4))
    return {"y_true": y, "sets": sets, "probabilities": P}


def test_coverage_by_true_class_is_described_and_not_tested() -> None:
    rows = three_labels()
    found = calipers.audit(**rows, random_state=0)
    cell = found.promises["coverage of the sets", "label"]
    assert (cell.answer, cell.p_value, cell.code) == ("descriptive", None, "CAL205")
    missed = rows["y_true"] == 2
    assert cell.value == pytest.approx(rows["sets"][missed, 2].mean())
    finding = next(f for f in found.findings if f.code == "CAL205")
    assert finding.outcome == "clean"
    assert f"{100 * cell.value:.1f} % of {missed.sum()} rows in class 2" in finding.sentence
    assert found.promises["probability of the top label", "label"].answer == "descriptive"


def test_coverage_of_every_class_is_tested_where_it_was_promised() -> None:
    rows = three_labels()
    found = calipers.audit(**rows, label_conditional=True, random_state=0)
    finding = fault(found, "CAL205")
    assert (finding.severity, finding.where) == ("issue", "class 2")
    assert found.promises["coverage of the sets", "label"].answer == "broken"
    assert np.array_equal(found.rows_of("CAL205"), rows["y_true"] == 2)


def test_a_class_above_its_promise_is_not_called_under_covered() -> None:
    rng = np.random.default_rng(31)
    y = rng.integers(0, 3, 6000)
    covered = rng.random(6000) < np.where(y == 2, 0.93, 0.995)
    sets = np.zeros((6000, 3), dtype=bool)
    sets[np.arange(6000), np.where(covered, y, (y + 1) % 3)] = True
    found = calipers.audit(y, sets=sets, label_conditional=True, random_state=0)
    finding = fault(found, "CAL205")
    assert (finding.title, finding.where) == ("coverage differs between true classes", "class 2")


def test_one_class_with_enough_rows_is_nothing_to_compare() -> None:
    y = np.array([0] * 400 + [1] * 3)
    sets = np.column_stack([np.ones(403), np.zeros(403)]).astype(bool)
    found = calipers.audit(y, sets=sets, random_state=0)
    finding = next(f for f in found.findings if f.code == "CAL205")
    assert finding.outcome == "not_applicable"
    assert finding.sentence.startswith("Fewer than two classes have")


@pytest.mark.parametrize("worse_first", [False, True])
@pytest.mark.parametrize("kind", ["coverage", "probability"])
def test_the_effect_of_a_change_is_the_gap_where_the_promise_is_kept_worse(
    kind: str, worse_first: bool
) -> None:
    rng = np.random.default_rng(32)
    t = np.full(4000, 0.9) if kind == "coverage" else rng.uniform(0.3, 0.7, 4000)
    late = np.arange(4000) >= 2000
    kept = rng.random(4000) < t - np.where(late != worse_first, 0.2, 0.0)
    given: dict[str, Any] = (
        {"covered": kept} if kind == "coverage" else {"y_true": kept.astype(int), "probabilities": t}
    )
    found = calipers.audit(**given, time=np.arange(4000), random_state=0)
    code = "CAL204" if kind == "coverage" else "CAL506"
    details = fault(found, code).details
    since = int(details["changed_at"])
    there = np.arange(4000) < since if worse_first else np.arange(4000) >= since
    assert details["effect"] == pytest.approx(abs(np.mean((kept - t)[there])))
    assert 0.15 < details["effect_low"] < details["effect"] < details["effect_high"] < 0.26


def heteroscedastic(n: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, the spread they give, and outcomes."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    spread = np.exp(0.6 * X[:, 0])
    return X, spread, spread * rng.normal(size=n)


def test_rows_that_intervals_call_hard_are_looked_at_without_an_ease() -> None:
    _, spread, y = heteroscedastic()
    half = 1.9 * np.sqrt(spread)
    found = calipers.audit(y, intervals=np.column_stack([-half, half]), random_state=0)
    finding = fault(found, "CAL401")
    assert finding.severity == "issue"  # intervals state no probability that foresees it
    assert "hardest fifth of rows (by the stated width)" in finding.sentence
    reach = np.outer(half, [-1, 0, 1]) * stats.norm.ppf(0.9) / 1.645
    quantiles = calipers.audit(y, quantiles=reach, quantile_levels=LEVELS, random_state=0)
    assert "outcomes lie at or below the stated" in fault(quantiles, "CAL508").sentence


@pytest.mark.parametrize("shift", [0.0, 1000.1])
def test_intervals_of_one_width_are_called_that(shift: float) -> None:
    X, _, y = heteroscedastic()
    centre = shift + X[:, 1]
    rows = {"y_true": y + centre, "intervals": np.column_stack([centre - 2.05, centre + 2.05])}
    alone = calipers.audit(**rows, random_state=0)
    (answer,) = (q for q in alone.to_dict()["questions"] if q["question"] == "adaptive")
    assert answer["answer"] == "not asked"
    assert answer["sentence"].startswith("All intervals have one width: they call no row harder")
    one_width = fault(calipers.audit(**rows, X=X, random_state=0), "CAL402")
    with_features = one_width.sentence
    assert one_width.evidence.name == "correlation of hardness and difficulty"
    assert one_width.evidence.p_value == one_width.details["p_value"]
    assert "by the error that a model of the features predicts, fitted on other rows" in with_features
    # The features tell where it misses, too: one fault is told once.
    assert with_features.endswith("but all intervals have one width, 4.100. This is part of CAL202.")


@pytest.mark.parametrize("draw", [7, 16])
def test_features_that_predict_nothing_leave_one_width_alone(draw: int) -> None:
    """Whether what the features predict agrees with the errors a little, by chance, or disagrees."""
    y, X = np.random.default_rng(6).normal(size=800), np.random.default_rng(draw).normal(size=(800, 3))
    found = calipers.audit(y, intervals=np.tile([-1.645, 1.645], (800, 1)), X=X, random_state=0)
    assert next(f for f in found.findings if f.code == "CAL402").outcome == "clean"
    # One width is not a proof that widths follow, and says nothing about coverage along difficulty.
    (answer,) = (q for q in found.to_dict()["questions"] if q["question"] == "adaptive")
    assert answer["answer"] == "cannot tell"
    assert found.promises["coverage of the intervals", "difficulty"].answer == "not asked"


def test_sets_of_both_labels_cannot_miss_in_any_slice_and_are_not_tested() -> None:
    rng = np.random.default_rng(8)
    stated = rng.uniform(0.2, 0.8, 1200)
    y = (rng.random(1200) < stated).astype(int)
    found = calipers.audit(y, probabilities=stated, groups=rng.choice(list("abc"), 1200), random_state=0)
    implied = [cell for cell in found.promises.cells if cell.promise.startswith("coverage of sets")]
    answers = {cell.slice: cell.answer for cell in implied}
    assert set(answers.values()) == {"descriptive"}
    assert {"all rows", "groups", "difficulty"} <= answers.keys()
    said = next(f.sentence for f in found.findings if f.code == "CAL102")
    assert said.startswith("No label reaches 90 %: every set")


def test_what_all_rows_lack_is_not_said_of_the_features() -> None:
    """Probabilities that are off everywhere and a little more where x0 is large."""
    rng = np.random.default_rng(9)
    X, n = rng.normal(size=(4000, 2)), 4000
    stated = rng.uniform(0.5, 0.95, n)
    y = (rng.random(n) < stated - 0.15 - 0.2 * (X[:, 0] > 0.5)).astype(int)
    sentence = fault(calipers.audit(y, probabilities=stated, X=X, random_state=0), "CAL505").sentence
    assert "from what was stated, corrected by one map for all rows, by" in sentence


def test_the_size_of_sets_does_not_stand_in_for_difficulty() -> None:
    """Sets of labels cover unevenly over their sizes even when they are right."""
    rows = three_labels()
    found = calipers.audit(rows["y_true"], sets=rows["sets"], random_state=0)
    assert next(f for f in found.findings if f.code == "CAL401").outcome == "not_applicable"


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("intervals", "by the stated width"),
        ("size", "by the stated size"),
        ("quantiles", "by the distance of the outer quantiles"),
        ("probabilities", "by the largest probability"),
        ("ease", "by ease"),
    ],
)
def test_every_stand_in_for_difficulty_is_named(stated: str, said: str) -> None:
    """The table of docs/decisions/0023: widths of noise, so that narrow rows are covered less often."""
    rng = np.random.default_rng(0)
    y, half = rng.normal(size=1500), rng.uniform(1.2, 2.2, 1500)
    ends = np.column_stack([-half, half])
    label = rng.integers(0, 2, 1500)
    rows = {
        "intervals": {"y_true": y, "intervals": ends},
        "size": {"covered": np.abs(y) <= half, "size": half},
        "quantiles": {
            "y_true": y, "quantiles": np.outer(half, [-1, 0, 1]), "quantile_levels": [0.05, 0.5, 0.95]
        },
        "probabilities": {
            "y_true": label, "sets": np.eye(2, dtype=bool)[label] | (rng.random((1500, 2)) < 0.1),
            "probabilities": rng.dirichlet([1, 1], 1500),
        },
        "ease": {"y_true": y, "intervals": ends, "ease": -half},
    }[stated]  # fmt: skip
    found = calipers.audit(**rows, random_state=0)
    sentences = [f.sentence for f in found.findings if f.code in {"CAL401", "CAL508"}]
    assert any(f"({said})" in sentence for sentence in sentences), sentences


def probabilities_of_four(n: int = 4000) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(11)
    P = np.exp(1.2 * rng.normal(size=(n, 4)) + [2.0, 0.0, 0.0, 0.0])
    return rng, P / P.sum(axis=1, keepdims=True)


def drawn(rng: np.random.Generator, P: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Labels as stated; in wrong rows three quarters of class 1 turn out as class 2."""
    y = (np.cumsum(P, axis=1) < rng.random((len(P), 1))).sum(axis=1)
    return np.where(wrong & (y == 1) & (rng.random(len(P)) < 0.75), 2, y)


@pytest.mark.parametrize(
    ("code", "slices"),
    [("CAL504", "groups"), ("CAL505", "features"), ("CAL506", "time"), ("CAL508", "difficulty")],
)
def test_a_class_that_is_off_in_a_slice_is_named_though_the_top_label_is_right(
    code: str, slices: str
) -> None:
    rng, P = probabilities_of_four()
    group, ease, day = rng.choice(list("abcd"), len(P)), rng.random(len(P)), rng.permutation(len(P)) // 20
    X = rng.normal(size=(len(P), 3))
    places = {"CAL504": group == "b", "CAL505": X[:, 1] > 0.8, "CAL506": day >= 130, "CAL508": ease < 0.2}
    wrong, slices_given = places[code], {"groups": group, "ease": ease, "time": day, "X": X}
    found = calipers.audit(drawn(rng, P, wrong), probabilities=P, **slices_given, random_state=0)
    finding = fault(found, code)
    assert finding.severity == "issue"
    assert "class 1" in finding.sentence or "class 2" in finding.sentence
    assert found.promises["probability of each class", slices].answer == "broken"
    assert found.promises["probability of the top label", slices].answer != "broken"
    assert "corrected for 4 classes" in finding.evidence.method
    kept = calipers.audit(drawn(rng, P, wrong & False), probabilities=P, **slices_given, random_state=0)
    assert kept.severity == "none"


def test_more_classes_than_are_looked_at_one_by_one_leave_the_top_label() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(21), size=600)
    y = (np.cumsum(P, axis=1) < rng.random((600, 1))).sum(axis=1)
    found = calipers.audit(y, probabilities=P, groups=rng.choice(list("ab"), 600), classes=range(21))
    assert ("probability of each class", "groups") not in found.promises
    assert ("probability of the top label", "groups") in found.promises


def test_a_small_region_that_is_far_off_is_an_issue_however_small_its_part_of_the_mean() -> None:
    rng = np.random.default_rng(3)
    n = 4000
    X = np.column_stack([np.where(rng.random(n) < 0.04, np.nan, rng.normal(size=n)), rng.normal(size=n)])
    stated = rng.uniform(0.2, 0.8, n)
    wrong = np.isnan(X[:, 0])
    y = (rng.random(n) < np.where(wrong, 0.25 * stated, stated)).astype(int)
    finding = fault(calipers.audit(y, probabilities=stated, X=X, random_state=0), "CAL505")
    assert finding.severity == "issue"
    assert finding.where == "x0 is missing"
    assert "-0" not in finding.sentence


def test_outcomes_found_elsewhere_are_called_predictions_in_every_finding() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    covered = rng.random(3000) < np.where(X[:, 0] > 0.8, 0.6, 0.93)
    found = calipers.audit(covered=covered, X=X, random_state=0)
    for code in ("CAL202", "CAL203"):
        assert "the predictions cover" in fault(found, code).sentence


def test_a_change_that_lasts_one_time_is_not_said_to_go_from_it_to_itself() -> None:
    rng = np.random.default_rng(0)
    month = rng.integers(1, 13, 4000)
    covered = rng.random(4000) < np.where(month == 6, 0.6, 0.9)
    assert fault(calipers.audit(covered=covered, time=month, random_state=0), "CAL204").sentence.startswith(
        "At 6 the predictions cover"
    )


def test_a_part_of_clusters_with_few_misses_does_not_stand_out_by_its_own_small_spread() -> None:
    rng, n, p_values = np.random.default_rng(1), 800, []
    promise = Promise(two_sided=True, kind="quantile", alpha=0.05)
    for _ in range(60):
        kept, part = rng.random(n) < 0.95, rng.permutation(n) % 5
        side = PromiseRows(None, kept, np.full(n, 0.95), np.full(n, kept.mean()), np.arange(n) // 2)
        p_values.append(clustered_worst(side, [part == k for k in range(5)], rng, promise)[1])
    assert np.sum(np.array(p_values) <= 0.0025) <= 1
    assert np.sum(np.array(p_values) <= 0.05) <= 7


@pytest.mark.parametrize(
    ("broken", "named"), [(("south",), ["group south"]), (("north", "east", "south"), [])]
)
def test_a_group_that_owns_a_range_of_probabilities_is_named(
    broken: tuple[str, ...], named: list[str]
) -> None:
    # Over-confident probabilities of one group are the largest ones: the map of all rows took its fault for
    # everybody's, so that a healthy group was named or none. Over-confidence of all groups names no group.
    rng, n = np.random.default_rng(2), 2000
    group, odds = rng.choice(["north", "east", "south"], n), 0.3 * rng.normal(size=(n, 3))
    right, stated = (
        np.exp(odds * scale[:, None]) for scale in (np.ones(n), np.where(np.isin(group, broken), 6.0, 1.0))
    )
    P = right / right.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1)
    found = calipers.audit(
        y, probabilities=stated / stated.sum(axis=1, keepdims=True), groups=group, random_state=0
    )
    assert [f.where for f in found.faults if f.code == "CAL504"] == named
