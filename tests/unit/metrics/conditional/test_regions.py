"""Failing regions: the planted one is found, sound predictors are left alone, rules mean what they say."""

import numpy as np
import polars as pl
import pytest

from calipers.exceptions import InputError
from calipers.inputs import check_features
from calipers.metrics import failing_regions
from calipers.metrics.conditional import ert_attribution
from calipers.metrics.conditional.conditions import Condition, rule_holds, rule_in_words, simplified


def people(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 70, size=n)
    city = rng.choice(["Bonn", "Rome", "Oslo"], size=n)
    hours = np.where(rng.random(n) < 0.1, np.nan, rng.uniform(10, 70, size=n))
    frame = pl.DataFrame({"age": age, "city": city, "hours": hours})
    bad = (age < 30) & (city == "Rome")
    return frame, rng.random(n) < np.where(bad, 0.6, 0.92), bad


def test_a_planted_region_is_found_in_words_and_measured_honestly():
    frame, z, bad = people(8000, 0)
    table = failing_regions(frame, z, alpha=0.1, random_state=0)
    first = next(iter(table))
    assert "age" in first
    assert "city is Rome" in first
    e = table[first]
    assert e.details["side"] == "under"
    assert e.low < 0.62
    assert e.high < 0.8
    assert e.p_value < 1e-6
    assert f"{first}: covers" in table.notes[0]
    assert e.details["mass"] == pytest.approx(bad.mean(), abs=0.04)


def test_sound_predictors_are_accused_of_no_region_more_often_than_allowed():
    accused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        accused += (
            len(
                failing_regions(
                    rng.normal(size=(600, 4)), rng.random(600) < 0.9, alpha=0.1, random_state=seed
                )
            )
            > 0
        )
    assert accused <= 10  # 0.9999 point of Binomial(60, 0.05)


def test_the_intervals_of_all_regions_hold_together():
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(1500, 3))
        p = np.where(X[:, 0] > 0.8, 0.7, 0.95)
        table = failing_regions(X, rng.random(1500) < p, alpha=0.1, keep="all", random_state=seed)
        fresh = rng.uniform(size=(40_000, 3))
        truth = np.where(fresh[:, 0] > 0.8, 0.7, 0.95)
        held += all(
            e.low - 0.01 <= truth[evaluate(words, fresh)].mean() <= e.high + 0.01
            for words, e in table.items()
        )
    assert held >= 33  # 0.0001 point of Binomial(40, 0.95)


def evaluate(words, X):
    """Read the rule back from its words: what is printed is what was measured."""
    held = np.ones(len(X), bool)
    for part in words.split(" and "):
        tokens = part.split(" ")
        column = X[:, int(next(t for t in tokens if t.startswith("x"))[1:])]
        if len(tokens) == 5:
            held &= (float(tokens[0]) < column) & (column <= float(tokens[4]))
        else:
            held &= column <= float(tokens[2]) if tokens[1] == "<=" else column > float(tokens[2])
    return held


def test_missing_values_satisfy_no_bound_and_have_a_rule_of_their_own():
    frame, z, _ = people(3000, 1)
    missing = np.isnan(frame["hours"].to_numpy())
    z = np.where(missing, np.random.default_rng(0).random(3000) < 0.5, z)
    words = list(failing_regions(frame, z, alpha=0.1, random_state=0))
    assert any("hours is missing" in w for w in words)
    features = check_features([[np.nan], [1.0]])
    assert rule_holds((Condition(0, "<=", 5.0),), features).tolist() == [False, True]
    assert rule_holds((Condition(0, "!=", 5.0),), features).tolist() == [False, True]


def test_rules_are_simplified_and_written_as_intervals():
    features = check_features(pl.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}))
    rule = simplified(
        (Condition(1, "!=", 0.0), Condition(0, "<=", 9.0), Condition(0, ">", 2.0), Condition(0, "<=", 5.0))
    )
    assert rule_in_words(rule, features) == "2 < a <= 5 and b is not u"


def test_over_coverage_is_reported_too():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(4000, 2))
    z = rng.random(4000) < np.where(X[:, 0] > 0.5, 1.0, 0.9)
    e = next(iter(failing_regions(X, z, alpha=0.1, random_state=0).values()))
    assert e.details["side"] == "over"


def test_an_empty_table_says_what_was_tested():
    rng = np.random.default_rng(4)
    table = failing_regions(np.ones((100, 1)), rng.random(100) < 0.9, alpha=0.1, random_state=0)
    assert len(table) == 0
    assert "does not prove" in table.notes[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"keep": "some"}, "keep"), ({"min_mass": 2}, "min_mass"), ({"max_conditions": 0}, "max_conditions")],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        failing_regions(np.ones((50, 1)), np.ones(50, bool), alpha=0.1, **options)
    with pytest.raises(InputError, match="at least 20 rows"):
        failing_regions(np.ones((9, 1)), np.ones(9, bool), alpha=0.1)


def test_attribution_names_the_feature_the_failure_hangs_on():
    frame, z, _ = people(3000, 5)
    table = ert_attribution(frame, z, alpha=0.1, random_state=0)
    assert set(list(table)[:2]) == {"age", "city"}
    assert table["hours"].low <= 0.0
    assert table["city"].low > 0.0


def test_of_two_categories_the_failing_one_is_named():
    rng = np.random.default_rng(3)
    city = np.where(rng.random(1500) < 0.3, "Rome", "Bern")
    covered = rng.random(1500) < np.where(city == "Rome", 0.6, 0.9)
    table = failing_regions(pl.DataFrame({"city": city}), covered, alpha=0.1, random_state=0)
    assert list(table) == ["city is Rome"]


def test_rules_do_not_grow_by_the_luckiest_of_many_useless_conditions():
    added = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(800, 4))
        z = rng.random(800) < np.where(X[:, 0] > 0.75, 0.6, 0.95)
        rules = failing_regions(X, z, alpha=0.1, keep="all", random_state=seed)
        added += [rule.count(" and ") for rule in rules if "x0 >" in rule][:1]
    assert len(added) == 12
    assert sum(added) <= 2  # 5 when 15 % more was enough
