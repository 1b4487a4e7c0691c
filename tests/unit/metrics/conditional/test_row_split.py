"""Repetitions of a row fall into either part, as the rows written out would."""

from __future__ import annotations

import numpy as np
import pytest

from calipers.inputs import check_features
from calipers.metrics import failing_regions, worst_slab_coverage
from calipers.metrics.conditional import row_split
from calipers.metrics.conditional.row_split import random_split
from calipers.metrics.promised_rows import check_promised_rows


@pytest.fixture
def written_out():
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, (400, 2)).astype(float), rng.random(400) < 0.85


@pytest.fixture
def compressed(written_out):
    X, covered = written_out
    table, counts = np.unique(np.column_stack([X, covered]), axis=0, return_counts=True)
    return table[:, :2], table[:, 2].astype(bool), counts


@pytest.mark.parametrize(
    ("metric", "options"), [(worst_slab_coverage, {}), (failing_regions, {"keep": "all"})]
)
def test_whole_weights_are_the_rows_written_out(written_out, compressed, metric, options):
    X, covered, counts = compressed
    options = options | {"alpha": 0.1, "random_state": 3}
    assert str(metric(X, covered, sample_weight=counts, **options)) == str(metric(*written_out, **options))


def split_of(compressed, most=10**9, **promise):
    X, covered, counts = compressed
    rows, _ = check_promised_rows(covered, alpha=0.1, sample_weight=counts, **promise)
    split = random_split(check_features(X), rows, rows.count // 2, np.random.default_rng(1), most=most)
    return rows, split


def totals(rows, split):
    searched = np.bincount(split.search, minlength=len(rows))
    measured = np.zeros(len(rows))
    measured[split.measure] = split.measured.mass
    return searched, measured


def test_every_repetition_is_in_one_part(compressed):
    rows, split = split_of(compressed)
    searched, measured = totals(rows, split)
    assert (searched + measured == rows.mass).all()
    assert ((searched > 0) & (measured > 0)).mean() > 0.9  # outcomes of one place are in both parts
    assert split.searched.weights is None
    assert len(split.searched) == 200


def test_very_many_repetitions_are_thinned(compressed, monkeypatch):
    monkeypatch.setattr(row_split, "_MOST_DEALT", 100)
    rows, split = split_of(compressed)
    searched, measured = totals(rows, split)
    assert (searched + measured == rows.mass).all()
    assert 150 < len(split.search) < 250


def test_a_large_first_part_is_searched_in_part(compressed):
    rows, split = split_of(compressed, most=50)
    assert 20 < len(split.search) < 80
    assert split.measured.count == rows.count // 2


def test_clusters_with_repetitions_are_not_torn_apart(compressed):
    cluster = np.arange(len(compressed[0])) % 6
    rows, split = split_of(compressed, cluster=cluster)
    assert not set(cluster[split.search]) & set(cluster[split.measure])
    searched, measured = totals(rows, split)
    assert (searched + measured == rows.mass).all()
