"""p-values of online-cp 0.4.0 (numpy 1.26.4), stored as counts out of 41.

Made in an environment with ``online-cp==0.4.0``, on the data of ``rows`` below, by::

    class One:                                   # tau = 1: unsmoothed p-values
        def uniform(self, low, high): return high
    model = ConformalNearestNeighboursClassifier(k=k, label_space=np.arange(3))
    model.rnd_gen = One()
    model.learn_initial_training_set(X, y)
    [[round(41 * model.predict(z, return_p_values=True)[1][c]) for c in range(3)] for z in Z]
"""

import numpy as np
import pytest

from calipers.conformal import TransductiveKNNClassifier

COUNTS = {
    1: [[34, 10, 10], [8, 17, 26], [27, 16, 7], [27, 16, 5], [30, 15, 4], [15, 31, 5]],
    3: [[30, 12, 10], [11, 12, 7], [23, 18, 5], [23, 18, 1], [32, 12, 7], [26, 10, 2]],
    5: [[31, 8, 9], [18, 11, 7], [23, 18, 6], [16, 20, 2], [32, 8, 6], [28, 7, 5]],
}


def rows():
    """Forty training rows in three classes of 24, 13 and 3 members, fewer than K = 5; six new rows."""
    i, t = np.arange(40), np.arange(6)
    shift_x, shift_y = 0.6 * (i % 3 == 1), 0.6 * (i % 3 == 2)
    X = np.column_stack([np.sin(i * 1.7) + shift_x, np.cos(i * 2.3) + shift_y, np.sin(i * 0.9 + 1)])
    y = np.where(i % 3 == 1, 1, np.where((i % 3 == 2) & (i % 4 == 0), 2, 0))
    Z = np.column_stack([np.sin(t * 3.1) + 0.3, np.cos(t * 1.3), np.sin(t * 2.9)])
    return X, y, Z


@pytest.mark.parametrize("k", COUNTS)
def test_p_values_equal_those_of_online_cp(k):
    X, y, Z = rows()
    assert np.bincount(y).tolist() == [24, 13, 3]
    p = TransductiveKNNClassifier(n_neighbors=k).fit(X, y).predict_p(Z)
    np.testing.assert_allclose(p, np.array(COUNTS[k]) / 41, rtol=0, atol=1e-12)
