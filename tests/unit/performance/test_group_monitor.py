"""One promise in many groups: parts of the rate, merged evidence, the state stored and resumed."""

import json

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.performance import GroupMonitor, PromiseMonitor, RiskMonitor

RNG = np.random.default_rng(0)
SITE = RNG.choice(["a", "b", "c"], 3000)
COVERED = RNG.random(3000) < np.where(SITE == "c", 0.8, 0.9)


def test_each_group_is_its_own_monitor_at_its_part_of_the_rate():
    found = GroupMonitor(["a", "b", "c"], alpha=0.1).update(COVERED, SITE)
    for name in "abc":
        alone = PromiseMonitor(alpha=0.1, false_alarm_rate=0.05 / 3).update(COVERED[name == SITE])
        assert found.monitors_[name].e_value_ == alone.e_value_
        assert found.monitors_[name].alarm_at_ == alone.alarm_at_
    assert list(found.alarms_) == ["c"]
    at = PromiseMonitor(alpha=0.1, false_alarm_rate=0.05 / 3).update(COVERED[SITE == "c"]).alarm_at_
    assert found.alarms_["c"] == np.flatnonzero(SITE == "c")[at] == found.alarm_at_


def test_the_merged_evidence_is_the_weighted_mean():
    known = GroupMonitor(["a", "b", "c"], alpha=0.1).update(COVERED[:300], SITE[:300])
    assert known.e_value_ == pytest.approx(np.mean([m.e_value_ for m in known.monitors_.values()]))
    opened = GroupMonitor(alpha=0.1).update(COVERED[:300], SITE[:300])
    e = [m.e_value_ for m in opened.monitors_.values()]
    # Parts 1/2, 1/6, 1/12; the remaining quarter has not been staked.
    assert opened.e_value_ == pytest.approx(e[0] / 2 + e[1] / 6 + e[2] / 12 + 1 / 4)


def test_many_groups_that_are_a_little_worse_alarm_together():
    rng = np.random.default_rng(3)
    groups = np.arange(4000) % 40
    covered = rng.random(4000) < 0.82
    found = GroupMonitor(range(40), alpha=0.1)
    for rows in np.split(np.arange(4000), 40):
        found.update(covered[rows], groups[rows])
    single = [m.e_value_ for m in found.monitors_.values()]
    assert found.e_value_ == pytest.approx(np.mean(single))
    assert found.alarm_


def test_updates_of_any_length_give_the_same_group_alarms():
    once = GroupMonitor(alpha=0.1).update(COVERED, SITE)
    parts = GroupMonitor(alpha=0.1)
    for rows in np.array_split(np.arange(3000), 17):
        parts.update(COVERED[rows], SITE[rows])
    # Groups are opened in the order of their names within an update; here all appear in the first.
    assert parts.alarms_ == once.alarms_
    assert parts.e_value_ == pytest.approx(once.e_value_)


def test_losses_and_promises_per_row():
    losses = np.where(SITE == "b", 0.4, 0.1) * RNG.random(3000) * 2
    found = GroupMonitor(["a", "b", "c"], bound=0.2).update(losses, SITE)
    assert list(found.alarms_) == ["b"]
    assert isinstance(found.monitors_["a"], RiskMonitor)
    stated = RNG.beta(5, 1, 3000)
    happened = RNG.random(3000) < np.where(SITE == "a", stated**3, stated)
    assert list(GroupMonitor().update(happened, SITE, stated).alarms_) == ["a"]


def test_a_stored_monitor_goes_on():
    half = GroupMonitor(alpha=0.1).update(COVERED[:1500], SITE[:1500])
    again = GroupMonitor.from_dict(json.loads(json.dumps(half.to_dict())))
    again.update(COVERED[1500:], SITE[1500:])
    whole = half.update(COVERED[1500:], SITE[1500:])
    assert again.to_dict() == whole.to_dict()
    assert str(again) == str(whole)


def test_results_are_those_of_the_groups():
    table = GroupMonitor(["a", "b", "c"], alpha=0.1).update(COVERED, SITE).result()
    assert set(table) == {"a", "b", "c"}
    assert table["c"].p_value < 0.05 / 3


def test_refusals():
    with pytest.raises(InputError, match="'d' is not among the groups"):
        GroupMonitor(["a"], alpha=0.1).update([True], ["d"])
    with pytest.raises(InputError, match="at least one group"):
        GroupMonitor([], alpha=0.1)
    with pytest.raises(InputError, match="alpha"):
        GroupMonitor(alpha=3)
    with pytest.raises(InputError, match="damaged"):
        GroupMonitor.from_dict({"kind": "GroupMonitor", "schema": 1})
    with pytest.raises(InputError, match="must be what"):
        GroupMonitor.from_dict({"kind": "PromiseMonitor"})


def test_groups_that_appear_are_counted_in_the_order_of_their_rows():
    order = np.array(["b", "a"] * 40)
    at_once = GroupMonitor(alpha=0.1).update(np.ones(80), order)
    in_pieces = GroupMonitor(alpha=0.1)
    for start in range(80):
        in_pieces.update(np.ones(1), order[start : start + 1])
    rates = {name: monitor.false_alarm_rate for name, monitor in at_once.monitors_.items()}
    assert rates == {"b": 0.05 / 2, "a": 0.05 / 6}
    assert at_once.to_dict() == in_pieces.update([], []).to_dict()


@pytest.mark.parametrize(
    ("options", "rows", "promised"),
    [({"bound": 0.2}, [0.1, 0.1, 1.5], None), ({}, [True, True, True], [0.5, 0.5, 1.5])],
)
def test_rows_that_are_refused_leave_every_group_as_it_was(options, rows, promised):
    monitor = GroupMonitor(**options)
    with pytest.raises(InputError, match="must lie"):
        monitor.update(rows, ["a", "b", "c"], promised)
    assert monitor.to_dict() == GroupMonitor(**options).to_dict()
