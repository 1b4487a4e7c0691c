"""What other libraries return goes straight into an audit, as they return it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calipers
from calipers.exceptions import InputError
from calipers.inputs import sets_from_labels
from tests.interop.peers import MODULES, N_CALIBRATION, PEERS, classes, classifier, foreign, require

STORED = json.loads(Path(__file__).with_name("outputs.json").read_text(encoding="utf-8"))
N_TEST = 60


def outputs_of(library: str) -> dict[str, Any]:
    """The outputs of the installed peer, run with its own warnings and its own use of the global random state."""
    require(library, MODULES.get(library, ""))
    with foreign():
        return PEERS[library]()


def coverages(found: calipers.auditing.Audit) -> list[float]:
    return [round(float(e), 9) for name, e in found.estimates.items() if name.startswith("coverage")]


def audited(y: Any, alpha: Any = 0.1, **predicted: Any) -> list[float]:
    found = calipers.audit(y, **predicted, alpha=alpha, n_calibration=N_CALIBRATION, random_state=0)
    return coverages(found)


def share(hits: Any) -> float:
    hits = list(hits)
    assert len(hits) == N_TEST
    return round(sum(map(bool, hits)) / N_TEST, 9)


def test_mapie_sets_and_intervals_at_two_levels():
    outputs = outputs_of("mapie")
    _, sets = outputs["sets"]
    y = outputs["y"]
    by_hand = [share(sets[np.arange(N_TEST), y, level]) for level in (0, 1)]
    assert set(by_hand) <= set(audited(y, [0.2, 0.1], sets=outputs["sets"]))
    assert set(by_hand) <= set(audited(y, [0.2, 0.1], sets=sets))
    _, ends = outputs["intervals"]
    v = outputs["v"]
    by_hand = [share((ends[:, 0, level] <= v) & (v <= ends[:, 1, level])) for level in (0, 1)]
    assert set(by_hand) <= set(audited(v, [0.2, 0.1], intervals=outputs["intervals"]))


def test_crepes_label_lists_zeros_and_ones_p_values_and_intervals():
    outputs = outputs_of("crepes")
    y, v = outputs["y"], outputs["v"]
    by_hand = share(label in labels for label, labels in zip(y, outputs["sets"], strict=True))
    assert by_hand in audited(y, sets=outputs["sets"])
    assert by_hand in audited(y, sets=outputs["zero_one"])
    assert share(outputs["p_values"][np.arange(N_TEST), y] > 0.1) in audited(y, p_values=outputs["p_values"])
    low, high = outputs["intervals"].T
    assert share((low <= v) & (v <= high)) in audited(v, intervals=outputs["intervals"])


def test_puncc_tuples_of_sets_and_of_ends():
    outputs = outputs_of("puncc")
    y, v = outputs["y"], outputs["v"]
    by_hand = share(label in labels for label, labels in zip(y, outputs["sets"][1], strict=True))
    assert by_hand in audited(y, sets=outputs["sets"])
    _, low, high = outputs["intervals"]
    assert share((low <= v) & (v <= high)) in audited(v, intervals=outputs["intervals"])


def test_torchcp_tensors_of_sets_p_values_and_intervals():
    outputs = outputs_of("torchcp")
    y, v = outputs["y"], outputs["v"]
    assert share(outputs["sets"][range(N_TEST), y] == 1) in audited(y, sets=outputs["sets"])
    by_hand = share(outputs["p_values"][range(N_TEST), y] > 0.1)
    assert by_hand in audited(y, p_values=outputs["p_values"])
    assert tuple(outputs["intervals"].shape) == (N_TEST, 1, 2)
    low, high = outputs["intervals"][:, 0, 0], outputs["intervals"][:, 0, 1]
    assert share((low <= v) & (v <= high)) in audited(v, intervals=outputs["intervals"])


def test_peers_agree_on_the_same_split_problem():
    ours, theirs = outputs_of("mapie")["intervals"][1][:, :, 1], outputs_of("puncc")["intervals"]
    np.testing.assert_allclose(ours, np.column_stack(theirs[1:]), rtol=1e-9)


def test_scikit_learn_probabilities_and_two_quantile_models():
    from sklearn.linear_model import QuantileRegressor

    X, y = classes()
    model = classifier()
    names = np.array(["setosa", "versicolor", "virginica"])
    found = calipers.audit(
        names[y[90:]],
        probabilities=model.predict_proba(X[90:]),
        classes=names[model.classes_],
        random_state=0,
    )
    assert found.design.classes == tuple(names.tolist())
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2))
    v = Z[:, 0] + rng.normal(size=200)
    ends = tuple(QuantileRegressor(quantile=q, alpha=0.0).fit(Z, v).predict(Z) for q in (0.05, 0.95))
    by_hand = round(float(np.mean((ends[0] <= v) & (v <= ends[1]))), 9)
    assert by_hand in coverages(calipers.audit(v, intervals=ends, random_state=0))


def test_stored_sets_and_intervals_of_mapie():
    outputs = STORED["mapie"]
    y, sets = np.asarray(outputs["y"]), np.asarray(outputs["sets"])
    by_hand = [share(sets[np.arange(N_TEST), y, level]) for level in (0, 1)]
    assert set(by_hand) <= set(audited(y, [0.2, 0.1], sets=(y, sets)))
    v, ends = np.asarray(outputs["v"]), np.asarray(outputs["intervals"])
    by_hand = [share((ends[:, 0, level] <= v) & (v <= ends[:, 1, level])) for level in (0, 1)]
    assert set(by_hand) <= set(audited(v, [0.2, 0.1], intervals=(v, ends)))


def test_stored_label_lists_p_values_and_intervals_of_crepes():
    outputs = STORED["crepes"]
    y, v = np.asarray(outputs["y"]), np.asarray(outputs["v"])
    by_hand = share(label in labels for label, labels in zip(y, outputs["sets"], strict=True))
    assert by_hand in audited(y, sets=outputs["sets"])
    p = np.asarray(outputs["p_values"])
    assert share(p[np.arange(N_TEST), y] > 0.1) in audited(y, p_values=p)
    low, high = np.asarray(outputs["intervals"]).T
    assert share((low <= v) & (v <= high)) in audited(v, intervals=outputs["intervals"])


def test_a_tensor_of_zeros_and_ones_is_audited():
    require("torch")
    import torch

    scores = torch.tensor(np.random.default_rng(0).random((200, 3)))
    found = calipers.audit(np.zeros(200, dtype=int), sets=(scores <= 0.8).int(), alpha=0.1, random_state=0)
    assert coverages(found) == [round(float((scores[:, 0] <= 0.8).double().mean()), 9)]


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
