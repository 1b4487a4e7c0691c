"""The tree of mergers: its shape is the engines' own affair only in who merges, never in what."""

import numpy as np
import pytest

from calipers.engines import ArraySource, measure, plan_run
from calipers.engines.planning import tree_levels
from calipers.engines.running import FAN_IN, MergeInOrder, MergeTree
from calipers.engines.spark_engine import _merge_group, _under_group


class Word:
    """A state that remembers how it was merged."""

    def __init__(self, said):
        self.said = said

    def merge(self, other):
        self.said = [*(self.said if isinstance(self.said, list) else [self.said]), other.said]
        return self


def said(states):
    return states["it"].said


def leaves(n):
    return [{"it": Word(str(k))} for k in range(n)]


def by_groups(n):
    """Spark's way: level by level, each group sorted by number, whatever the order of arrival."""
    rows = list(enumerate(leaves(n)))
    while len(rows) > 1:
        groups = {}
        for group, member in map(_under_group, rows[::-1]):
            groups.setdefault(group, []).append((group, member))
        rows = [found for group in sorted(groups) for found in _merge_group(groups[group])]
    return said(rows[0][1])


def by_tree(n):
    """Dask's way: a merge as soon as a group is complete."""

    def merge(group):
        first, *others = group
        for other in others:
            first["it"].merge(other["it"])
        return first

    tree = MergeTree(merge)
    for leaf in leaves(n):
        tree.add(leaf)
    return said(tree.root())


def one_by_one(n):
    """The way of one process."""
    merger = MergeInOrder()
    for leaf in leaves(n):
        merger.add(leaf)
    assert merger.done == n
    return said(merger.root())


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, 272, 273, 600, 4096, 4113])
def test_every_engine_merges_in_the_same_shape(n):
    assert by_tree(n) == by_groups(n) == one_by_one(n)


def test_the_shape_is_groups_of_neighbours(monkeypatch):
    monkeypatch.setattr("calipers.engines.running.FAN_IN", 2)
    # Leaves 0 to 4: pairs 01 and 23, the pair of pairs, and 4 carried up to meet them.
    # Merging appends to what is there: [0, 1] with [2, 3] reads [0, 1, [2, 3]].
    assert one_by_one(5) == by_tree(5) == ["0", "1", ["2", "3"], "4"]


class Future:
    """What a cluster promises; remembers when its value is fetched."""

    status = "finished"

    def __init__(self, value, fetched):
        self.value, self.fetched = value, fetched

    def result(self):
        self.fetched.append(self.value)
        return self.value


class SimulatedCluster:
    """A Dask client whose one worker works at once; counts what travels."""

    def __init__(self):
        self.fetched, self.sent, self.merged = [], 0, []

    def nthreads(self):
        return {"worker": 1}

    def submit(self, function, *given, **_):
        plain = [
            [f.value for f in g] if isinstance(g, list) else g.value if isinstance(g, Future) else g
            for g in given
        ]
        self.sent += function.__name__ == "_as_they_are"
        if function.__name__ == "merged_copies":
            self.merged.append(len(plain[0]))
        return Future(function(*plain), self.fetched)


def rows(n, seed=0, K=3):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    return {"y_true": y, "probabilities": P, "sets": P > 0.2, "ease": P.max(axis=1)}


@pytest.mark.parametrize(("metric", "passes"), [("proper_scores", 1), ("calibration_error", 2), ("t_cv", 3)])
@pytest.mark.parametrize("pieces", [1, 3, 16, 17, 150])
def test_one_state_per_pass_reaches_the_driver_as_planned(metric, passes, pieces, monkeypatch):
    pytest.importorskip("distributed")
    from calipers.engines.dask_engine import DaskEngine

    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    monkeypatch.setattr("distributed.wait", lambda future: None)
    size = 9000 // pieces
    n, cluster = size * pieces, SimulatedCluster()
    source = ArraySource(rows(n), piece_rows=size)
    options = {metric: {"random_state": 0}} if metric != "proper_scores" else {}
    found = measure(source, [metric], engine=DaskEngine(cluster), options=options)
    plan = plan_run(n, row_bytes=40, state_bytes=1000, passes=passes, piece_rows=size)
    assert plan.pieces == pieces
    assert cluster.sent == passes
    assert len(cluster.fetched) * 1000 == plan.bytes_to_driver == passes * 1000
    # Everything that is merged has moved to who merges it.
    assert sum(cluster.merged) * 1000 == plan.bytes_moved - plan.bytes_to_driver
    assert max(cluster.merged, default=0) <= FAN_IN
    alone = measure(source, [metric], options=options)
    for name, estimate in found.items():
        assert (estimate.value, estimate.std_error) == (alone[name].value, alone[name].std_error)


def test_levels_of_the_tree_are_counted():
    assert tree_levels(1) == []
    assert tree_levels(16) == [16]
    assert tree_levels(17) == [17, 2]
    # 60 000 states: 3750 groups, 235, 15, and the root.
    assert tree_levels(60_000) == [60_000, 3750, 235, 15]
