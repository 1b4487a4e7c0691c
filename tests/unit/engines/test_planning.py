"""The cost model against runs over simulated partitions: pieces, bytes of states, passes."""

import numpy as np
import polars as pl
import pytest

from calipers.engines import ArraySource, FileSource, Rows, measure, plan_run, state_of
from calipers.engines.planning import light_piece, state_size
from calipers.engines.running import LocalEngine, absorb_piece, merged, run_states
from calipers.exceptions import InputError


def rows(n, seed=0, K=4):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    return {"y_true": y, "probabilities": P, "sets": P > 0.15, "ease": P.max(axis=1)}


class WeighingEngine:
    """The local engine, weighing every state that a worker would send."""

    def __init__(self):
        self.own, self.passes, self.pieces, self.moved, self.largest = LocalEngine(1), 0, 0, 0, 0

    def reduce(self, pieces, states, progress):
        self.passes += 1
        self.pieces += len(pieces)
        for piece in pieces:
            own = absorb_piece(piece, states)
            weight = sum(state_size(state) for state in own.values())
            self.moved, self.largest = self.moved + weight, max(self.largest, weight)
        return self.own.reduce(pieces, states, progress)


@pytest.mark.parametrize(
    ("metric", "passes"), [("coverage", 1), ("proper_scores", 1), ("calibration_error", 2), ("t_cv", 3)]
)
def test_the_plan_counts_pieces_passes_and_bytes_of_a_run(metric, passes, monkeypatch):
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    engine = WeighingEngine()
    run_states(
        {"it": state_of(metric, alpha=0.1)},
        ArraySource(rows(9000), piece_rows=700).pieces(),
        engine,
        lambda *_: None,
    )
    assert engine.passes == passes
    plan = plan_run(9000, row_bytes=40, state_bytes=engine.largest, passes=passes, piece_rows=700)
    assert plan.pieces * passes == engine.pieces
    # No state is larger than the one planned with, and the pass that moves most moves nearly that. The states
    # of 13 pieces go to one merger, their sum to the driver.
    leaves = plan.bytes_moved - plan.bytes_to_driver
    assert leaves / passes * 0.5 <= engine.moved <= leaves
    assert plan.bytes_moved == 14 * plan.bytes_to_driver


@pytest.mark.parametrize("metric", ["coverage", "efficiency", "proper_scores", "calibration_error", "sscv"])
def test_a_state_does_not_grow_with_the_partitions_it_has_merged(metric, monkeypatch):
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    monkeypatch.setattr("calipers.metrics.reliability.binned_states._SMALL", 0)
    sizes = []
    total = None
    for part in range(65):
        given = rows(300, seed=part) | {"p_values": np.random.default_rng(part).random((300, 4))}
        own = state_of(metric, alpha=0.1)
        own.absorb(Rows(given, classes=range(4)))
        total = own if total is None else total.merge(own)
        sizes.append(state_size(total))
    assert sizes[-1] <= sizes[7] + 64


def test_a_large_piece_is_read_in_parts_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr("calipers.inputs.block_sizes.PIECE_VALUES", 4 * 700)
    monkeypatch.setattr("calipers.inputs.block_sizes.BLOCK_ROWS", 256)
    n = 3000
    frame = pl.DataFrame({"y_true": np.arange(n) * 1.0, "lower": np.zeros(n), "upper": np.full(n, 1e9)})
    frame.write_parquet(tmp_path / "a.parquet")
    pieces = FileSource(str(tmp_path / "a.parquet"), piece_rows=n).pieces()
    assert [piece.rows for piece in pieces] == [n]
    blocks = list(pieces[0].blocks())
    assert max(block.n for block in blocks) <= 512
    assert (np.concatenate([block["outcomes"] for block in blocks]) == np.arange(n)).all()
    assert [block.place.start for block in blocks] == np.cumsum([0] + [b.n for b in blocks[:-1]]).tolist()


def test_pieces_are_large_enough_that_states_stay_light():
    for row_bytes, state_bytes in ((44, 1e3), (44, 4.2e6), (4, 5e5)):
        assert state_bytes <= 0.01 * row_bytes * light_piece(row_bytes, state_bytes)
    plan = plan_run(
        1e12,
        row_bytes=44,
        state_bytes=4.2e6,
        passes=2,
        seconds_per_row=1e-7,
        merge_seconds=0.01,
        workers=1000,
    )
    assert plan.bytes_moved <= 0.01 * plan.bytes_read
    # 59 605 pieces: 3726 groups of sixteen on 1000 workers, four turns; 233, 15 and one group a turn each, the
    # last of 15 states. A merge fewer than states in a turn.
    assert plan.pieces == 59_605
    assert plan.seconds == pytest.approx(2 * 1e12 * 1e-7 / 1000 + 2 * 0.01 * (4 * 15 + 15 + 15 + 14))
    assert plan.bytes_to_driver == 2 * 4.2e6
    with pytest.raises(InputError, match="must be positive, got 0 and 44"):
        plan_run(0, row_bytes=44, state_bytes=1)


@pytest.mark.parametrize("multiclass", ["top_label", "max"])
def test_no_pass_sends_back_what_every_worker_was_given(multiclass, monkeypatch):
    """Later passes of the calibration error know the buckets of the first; only what they find travels."""
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._SMALL", 0)
    monkeypatch.setattr("calipers.metrics.reliability.calibration_states._PACKED_ROWS", 0)
    monkeypatch.setattr("calipers.metrics.reliability.classwise_states._KEPT_VALUES", 0)
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 4000)
    y = np.array([rng.choice(3, p=p) for p in P])
    source = ArraySource({"y_true": y, "probabilities": P}, classes=range(3), piece_rows=500)
    travelled, passes = [], []

    class Weighing(LocalEngine):
        def reduce(self, pieces, states, progress):
            passes.append(sum(state_size(state) for state in states.values()))
            parts = [absorb_piece(piece, states) for piece in pieces]
            travelled.append(max(sum(state_size(s) for s in part.values()) for part in parts))
            return merged(parts)

    options = {"calibration_error": {"random_state": 0, "multiclass": multiclass}}
    found = measure(source, ["calibration_error"], options=options, engine=Weighing())
    assert found == measure(source, ["calibration_error"], options=options)
    assert len(passes) == 2
    # The last pass keeps rows of open buckets: a few kilobytes, beside megabytes that it was given.
    assert travelled[-1] < passes[-1] / 20
