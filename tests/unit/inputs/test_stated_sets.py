"""The sets that plain probabilities promise, against a loop over sorted labels."""

import numpy as np
import pytest

from calipers.inputs.rows import Rows


def slow(P, y, alpha):
    rows = []
    for p, label in zip(P, y, strict=True):
        order, inside, mass = sorted(range(len(p)), key=lambda k: (-p[k], k)), [], 0.0
        for k in order:
            inside.append(k)
            mass += p[k]
            if mass >= 1 - alpha - 1e-12:
                break
        rows.append((label in inside, len(inside), 1.0 if len(inside) == len(p) else min(mass, 1.0)))
    return [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.001])
@pytest.mark.parametrize("digits", [1, 16])
def test_the_sets_of_stated_mass_are_those_of_a_loop(alpha, digits):
    rng = np.random.default_rng(1)
    P = np.round(rng.dirichlet(np.full(5, 0.5), 300), digits)
    P /= P.sum(axis=1, keepdims=True)
    y = rng.integers(0, 5, 300)
    rows = Rows({"y_true": y, "probabilities": P}, classes=range(5), alpha=alpha)
    covered, size, mass = slow(P, y, alpha)
    assert rows["stated_covered"].tolist() == covered
    assert rows["stated_size"].tolist() == size
    assert rows["stated_mass"] == pytest.approx(mass)
    assert (rows["stated_mass"] >= 1 - alpha - 1e-9).all()


def test_true_probabilities_keep_their_promise():
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.full(4, 0.7), 20_000)
    y = (P.cumsum(axis=1) < rng.random(20_000)[:, None]).sum(axis=1)
    rows = Rows({"y_true": y, "probabilities": P}, classes=range(4), alpha=0.1)
    z, t = rows["stated_covered"], rows["stated_mass"]
    assert abs((z - t).sum()) <= 4 * np.sqrt((t * (1 - t)).sum())
