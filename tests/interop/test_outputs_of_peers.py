"""What other libraries return goes straight into an audit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calipers
from calipers.exceptions import InputError
from calipers.inputs import sets_from_labels
from tests.interop import record_outputs

STORED = json.loads(Path(__file__).with_name("outputs.json").read_text(encoding="utf-8"))
ONE_ROW = 1.0 / 60.0


def outputs_of(library: str, source: str) -> dict[str, object]:
    if source == "stored":
        return STORED[library]
    pytest.importorskip(library, reason=f"{library} is not installed; its stored output is tested")
    state = np.random.get_state()  # noqa: NPY002 - peers reseed it; we put it back
    try:
        return getattr(record_outputs, library)()
    finally:
        np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize("source", ["stored", "installed"])
def test_sets_of_mapie_at_two_levels_are_audited_as_they_come(source):
    outputs = outputs_of("mapie", source)
    sets = np.asarray(outputs["sets"])
    found = calipers.audit(outputs["y"], sets=sets, alpha=[0.2, 0.1], n_calibration=40, random_state=0)
    y = np.asarray(outputs["y"])
    by_hand = [sets[np.arange(60), y, level].mean() for level in (0, 1)]
    measured = {round(float(e), 6) for name, e in found.estimates.items() if name.startswith("coverage")}
    assert {round(float(value), 6) for value in by_hand} <= measured


@pytest.mark.parametrize("library", ["mapie", "crepes"])
@pytest.mark.parametrize("source", ["stored", "installed"])
def test_intervals_are_audited_as_they_come(library, source):
    outputs = outputs_of(library, source)
    intervals, v = np.asarray(outputs["intervals"], dtype=float), np.asarray(outputs["v"])
    alpha = [0.2, 0.1] if intervals.ndim == 3 else 0.1
    found = calipers.audit(v, intervals=intervals, alpha=alpha, n_calibration=40, random_state=0)
    last = intervals[..., -1] if intervals.ndim == 3 else intervals
    by_hand = np.mean((last[:, 0] <= v) & (v <= last[:, 1]))
    assert any(
        abs(float(e) - by_hand) < ONE_ROW / 2 for n, e in found.estimates.items() if n.startswith("coverage")
    )


@pytest.mark.parametrize("source", ["stored", "installed"])
def test_p_values_and_label_lists_of_crepes_are_audited(source):
    outputs = outputs_of("crepes", source)
    y = np.asarray(outputs["y"])
    from_p = calipers.audit(y, p_values=outputs["p_values"], alpha=0.1, n_calibration=40, random_state=0)
    p = np.asarray(outputs["p_values"])[np.arange(60), y]
    assert float(from_p.estimates["coverage"]) == pytest.approx(np.mean(p > 0.1))
    sets = sets_from_labels(outputs["sets"], classes=[0, 1, 2])
    found = calipers.audit(y, sets=sets, alpha=0.1, n_calibration=40, random_state=0)
    by_hand = np.mean([label in labels for label, labels in zip(y, outputs["sets"], strict=True)])
    assert float(found.estimates["coverage"]) == pytest.approx(by_hand)


def test_a_tensor_of_zeros_and_ones_as_torchcp_returns_it_is_audited():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    scores = torch.tensor(np.random.default_rng(0).random((200, 3)))
    sets = (scores <= 0.8).int()  # the last line of TorchCP's predictors
    y = np.zeros(200, dtype=int)
    found = calipers.audit(y, sets=sets, classes=[0, 1, 2], alpha=0.1, random_state=0)
    assert float(found.estimates["coverage"]) == pytest.approx(float((scores[:, 0] <= 0.8).double().mean()))


def test_three_vectors_as_puncc_returns_them_are_audited():
    v = np.linspace(-2.0, 2.0, 41)
    _, lower, upper = np.zeros(41), np.full(41, -1.5), np.full(41, 1.5)
    found = calipers.audit(v, intervals=np.column_stack([lower, upper]), alpha=0.1, random_state=0)
    assert float(found.estimates["coverage"]) == pytest.approx(31 / 41)


def test_lists_of_numpy_labels_become_columns():
    lists = [np.array(["b"]), np.array([], dtype=str), ("a", "c")]
    expected = [[False, True, False], [False, False, False], [True, False, True]]
    assert sets_from_labels(lists, ["a", "b", "c"]).tolist() == expected


def test_a_label_that_is_no_class_is_refused_with_its_row():
    with pytest.raises(InputError, match="got 7 in row 1; known are 0, 1"):
        sets_from_labels([[0], [1, 7]], [0, 1])


def test_a_repeated_class_is_refused():
    with pytest.raises(InputError, match="classes must hold each label once"):
        sets_from_labels([[0]], [0, 0])
