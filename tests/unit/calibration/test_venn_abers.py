"""Venn-Abers by its definition: refit with the new row, once per label."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calipers.calibration import VennAbersCalibrator
from calipers.datasets import ScoreWorld


def refit(p: np.ndarray, y: np.ndarray, w: np.ndarray, s: float, label: int) -> float:
    model = IsotonicRegression().fit(np.append(p, s), np.append(y, label), sample_weight=np.append(w, 1))
    return float(model.predict([s])[0])


@pytest.mark.parametrize("digits", [1, 2, 8])
@pytest.mark.parametrize("link", ["with", "against", "none"])
def test_both_probabilities_are_those_of_a_refit(digits: int, link: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        n = int(rng.integers(1, 30))
        p = rng.random(n).round(digits)
        y = rng.random(n) < {"with": p, "against": 1 - p, "none": np.full(n, 0.5)}[link]
        w = rng.integers(1, 4, n)
        points = np.r_[p[:4], rng.random(4), 0.0, 1.0]
        found = VennAbersCalibrator().fit(p, y, sample_weight=w).predict_interval(points)
        expected = [[refit(p, y, w, s, label) for label in (0, 1)] for s in points]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_interval_is_ordered_and_shrinks(seed: int) -> None:
    widths = []
    for n in (100, 10_000):
        p, y = ScoreWorld("uniform", "square").sample(n, random_state=seed)
        pair = VennAbersCalibrator().fit(p, y).predict_interval(np.linspace(0, 1, 101))
        assert (pair[:, 0] <= pair[:, 1]).all()
        assert (np.diff(pair, axis=0) >= -1e-12).all()
        widths.append(float(np.mean(pair[:, 1] - pair[:, 0])))
    assert widths[1] < 0.3 * widths[0]


def test_the_merged_probability_lies_between() -> None:
    p, y = ScoreWorld().sample(200, random_state=0)
    venn = VennAbersCalibrator().fit(p, y)
    pair, merged = venn.predict_interval(p), venn.predict(p)
    assert ((pair[:, 0] <= merged) & (merged <= pair[:, 1])).all()
    np.testing.assert_allclose(merged, pair[:, 1] / (1 - pair[:, 0] + pair[:, 1]))


def test_torch_stays_torch() -> None:
    torch = pytest.importorskip("torch")
    p, y = ScoreWorld().sample(50, random_state=0)
    venn = VennAbersCalibrator().fit(torch.asarray(p), torch.asarray(y))
    assert isinstance(venn.predict_interval(torch.asarray(p)), torch.Tensor)
