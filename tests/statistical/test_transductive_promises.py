"""Full conformal prediction keeps its promise with ties, rare labels and random choices."""

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from calipers.conformal import transductive_p_values

BAGS = 500
MEASURES = ("ratio", "probability", "predictability")
# A bag of 15: every label has at least two members, so one is left to be known when one is new; the last
# label has fewer others than K = 3.
LABELS = np.array([0] * 7 + [1] * 6 + [2] * 2)


def true_label_p_values(rng, **options):
    """p-values of the true label of a random member of each bag; one per bag, so they are independent.

    Objects lie on a small grid: ties, duplicates and 0/0 are common.
    """
    found = np.empty(BAGS)
    for i in range(BAGS):
        y = rng.permutation(LABELS)
        X = (rng.integers(0, 3, (len(y), 2)) + (y == 1)[:, None]).astype(float)
        D = cdist(X, X)
        p = transductive_p_values(D[:-1, :-1], y[:-1], D[-1:, :-1], random_state=rng, **options)
        found[i] = p[0, y[-1]]
    return found


@pytest.mark.parametrize("measure", MEASURES)
def test_unsmoothed_p_values_of_true_labels_are_at_most_u_with_probability_at_most_u(measure, seed):
    p = true_label_p_values(np.random.default_rng(seed), measure=measure, n_neighbors=3)
    for u in (0.07, 0.2, 0.34, 0.5, 0.8):
        assert (p <= u).sum() <= stats.binom.ppf(1 - 1e-5, BAGS, u)


@pytest.mark.parametrize("measure", MEASURES)
def test_smoothed_p_values_of_true_labels_are_uniform(measure, seed):
    p = true_label_p_values(np.random.default_rng(seed), measure=measure, n_neighbors=3, smoothed=True)
    assert stats.kstest(p, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("measure", MEASURES)
def test_smoothed_label_conditional_p_values_are_uniform_for_every_label(measure, seed):
    rng = np.random.default_rng(seed)
    for label in (0, 2):
        y = np.append(
            np.delete(LABELS, np.flatnonzero(label == LABELS)[0]), label
        )  # the new object's label is fixed
        p = []
        for _ in range(BAGS // 2):
            X = rng.integers(0, 3, (len(y), 2)) + 1.0 * (y == 1)[:, None]
            D = cdist(X, X)
            found = transductive_p_values(
                D[:-1, :-1], y[:-1], D[-1:, :-1], measure=measure, n_neighbors=3, label_conditional=True,
                smoothed=True, random_state=rng,
            )  # fmt: skip
            p.append(found[0, label])
        assert stats.kstest(p, "uniform").pvalue > 1e-4
