"""The estimator: the definition, scikit-learn's contract, exact sets, metrics by name."""

import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from calipers.conformal import (
    TransductiveKNNClassifier,
    tangent_distances,
    transduction,
    transductive_p_values,
)
from calipers.exceptions import InputError
from tests.unit.conformal import brute_force_neighbours as brute


def blobs(seed, *, n=60, m=15, d=4, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n + m)
    X = rng.normal(size=(n + m, d)) + 1.5 * np.eye(n_classes, d)[y]
    return X[:n], np.array(["ant", "bee", "cat"])[y[:n]], X[n:], np.array(["ant", "bee", "cat"])[y[n:]]


def run_scikit_learns_checks(estimator):
    state = np.random.get_state()  # noqa: NPY002 - the checks themselves seed the global generator
    try:
        check_estimator(estimator, on_skip=None)
    finally:
        np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize("measure", ["ratio", "probability"])
def test_p_values_are_those_of_the_definition(measure, seed):
    X, y, Z, _ = blobs(seed, n=30, m=6)
    model = TransductiveKNNClassifier(measure=measure, n_neighbors=2).fit(X, y)
    expected = brute.p_values(cdist(X, X), y, cdist(Z, X), 2, measure)
    np.testing.assert_allclose(model.predict_p(Z), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", [
    {}, {"measure": "probability", "n_neighbors": 3}, {"measure": "predictability", "n_neighbors": 3, "random_state": 0},
    {"metric": "manhattan"}, {"label_conditional": True},
])  # fmt: skip
def test_check_estimator_passes_without_exceptions(options):
    run_scikit_learns_checks(TransductiveKNNClassifier(**options))


def test_precomputed_distances_pass_scikit_learns_checks():
    run_scikit_learns_checks(TransductiveKNNClassifier(metric="precomputed"))


@pytest.mark.parametrize("measure", ["ratio", "probability", "predictability"])
def test_estimator_and_function_agree(measure, seed):
    X, y, Z, _ = blobs(seed)
    options = {"measure": measure, "n_neighbors": 4, "smoothed": True, "random_state": 11}
    expected = transductive_p_values(cdist(X, X), y, cdist(Z, X), **options)
    np.testing.assert_array_equal(TransductiveKNNClassifier(**options).fit(X, y).predict_p(Z), expected)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "chebyshev", "sqeuclidean", "l2"])
def test_any_metric_equals_its_precomputed_distances(metric, seed):
    from sklearn.metrics import pairwise_distances

    X, y, Z, _ = blobs(seed)
    named = TransductiveKNNClassifier(n_neighbors=2, metric=metric).fit(X, y).predict_p(Z)
    known = TransductiveKNNClassifier(n_neighbors=2, metric="precomputed")
    known.fit(pairwise_distances(X, metric=metric), y)
    np.testing.assert_allclose(named, known.predict_p(pairwise_distances(Z, X, metric=metric)), atol=1e-12)


def test_a_callable_metric_and_its_parameters_are_used(seed):
    X, y, Z, _ = blobs(seed, n=20, m=4)
    by_name = TransductiveKNNClassifier(metric="minkowski", metric_params={"p": 3}).fit(X, y).predict_p(Z)

    def cubic(a, b):
        return (abs(a - b) ** 3).sum() ** (1 / 3)

    by_hand = TransductiveKNNClassifier(metric=cubic).fit(X, y).predict_p(Z)
    np.testing.assert_allclose(by_name, by_hand, atol=1e-12)


@pytest.mark.parametrize("sides", ["one", "two"])
def test_the_tangent_metric_is_the_tangent_distance(sides, seed):
    rng = np.random.default_rng(seed)
    X, Z, y = rng.random((25, 30)), rng.random((6, 30)), rng.integers(0, 2, 25)
    shape = {"image_shape": (5, 6)}
    model = TransductiveKNNClassifier(
        n_neighbors=2, metric="tangent", metric_params={"sides": sides, **shape}
    )

    def symmetric(A, B):
        there, back = (
            tangent_distances(A, B, sides=sides, **shape),
            tangent_distances(B, A, sides=sides, **shape),
        )
        return np.minimum(there, back.T)

    expected = transductive_p_values(symmetric(X, X), y, symmetric(Z, X), n_neighbors=2)
    np.testing.assert_allclose(model.fit(X, y).predict_p(Z), expected, atol=1e-12)


def test_sets_compare_whole_numbers():
    # 9 training objects, so p-values are tenths: p = 1/10 is not kept at alpha = 0.1, nor at 1 - 0.9.
    x = np.arange(9.0)[:, None]
    y = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    model = TransductiveKNNClassifier().fit(x, y)
    p = model.predict_p([[20.0], [-20.0], [4.4]])
    tenths = np.round(10 * p).astype(int)
    np.testing.assert_allclose(p, tenths / 10)
    assert (tenths == 1).any()
    for alpha in (0.1, 1 - 0.9, np.float32(0.1), Fraction(1, 10)):
        np.testing.assert_array_equal(model.predict_set([[20.0], [-20.0], [4.4]], alpha), tenths > 1)


def test_several_levels_add_a_last_axis(seed):
    X, y, Z, _ = blobs(seed)
    model = TransductiveKNNClassifier(n_neighbors=3).fit(X, y)
    sets = model.predict_set(Z, alpha=[0.05, 0.2, 0.5])
    assert sets.shape == (15, 3, 3)
    assert sets.dtype == bool
    for place, alpha in enumerate([0.05, 0.2, 0.5]):
        np.testing.assert_array_equal(sets[:, :, place], model.predict_set(Z, alpha))


def test_every_label_can_have_a_level_of_its_own(seed):
    X, y, Z, _ = blobs(seed)
    model = TransductiveKNNClassifier(n_neighbors=3, label_conditional=True).fit(X, y)
    levels = [0.05, 0.2, 0.5]
    sets = model.predict_set(Z, label_alpha=levels)
    expected = np.column_stack([model.predict_set(Z, a)[:, k] for k, a in enumerate(levels)])
    np.testing.assert_array_equal(sets, expected)
    assert model.predict_labels(Z, label_alpha=levels) == [model.classes_[row].tolist() for row in expected]


def test_labels_and_confidence_are_read_from_the_p_values(seed):
    X, y, Z, _ = blobs(seed)
    model = TransductiveKNNClassifier(n_neighbors=3).fit(X, y)
    sets, p = model.predict_set(Z, 0.2), np.sort(model.predict_p(Z), axis=1)
    assert model.predict_labels(Z, 0.2) == [model.classes_[row].tolist() for row in sets]
    np.testing.assert_array_equal(model.predict_confidence(Z), np.column_stack([1 - p[:, 1], p[:, 2]]))
    one_label = TransductiveKNNClassifier().fit(X, ["ant"] * len(X))
    np.testing.assert_array_equal(one_label.predict_confidence(Z[:2]), [[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(InputError, match="predict_labels takes one alpha"):
        model.predict_labels(Z, [0.1, 0.2])


def test_memory_stays_far_below_the_distance_matrix(monkeypatch):
    n = 1500
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    monkeypatch.setattr(transduction, "_BATCH_CELLS", 2**17)
    tracemalloc.start()
    try:
        TransductiveKNNClassifier(n_neighbors=3).fit(X, y).predict_p(X[:100])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * n * 8 / 4


def test_smoothed_sets_follow_the_smoothed_p_values(seed):
    X, y, Z, _ = blobs(seed)
    model = TransductiveKNNClassifier(measure="probability", n_neighbors=3, smoothed=True, random_state=1)
    model.fit(X, y)
    np.testing.assert_array_equal(model.predict_set(Z, alpha=0.3), model.predict_p(Z) > 0.3)


def test_one_tau_per_object_is_shared_by_its_labels():
    # One training object per label, far apart, all scores equal: every p-value of a row is its tau.
    D = np.full((4, 4), 2.0)
    model = TransductiveKNNClassifier(metric="precomputed", smoothed=True, random_state=0).fit(
        D, list("abcd")
    )
    p = model.predict_p(np.full((50, 4), 2.0))
    # As a: the new object and a pair up (ratio 1), b, c and d are alone with their label (ratio 0): p = (3 + 2 tau) / 5.
    tau = (p * 5 - 3) / 2
    np.testing.assert_allclose(tau, np.broadcast_to(tau[:, :1], tau.shape), atol=1e-12)
    assert 0 <= tau.min() < 0.2 < 0.8 < tau.max() < 1


def test_draws_of_training_and_test_rows_are_not_shared(seed):
    X, y, _, _ = blobs(seed)
    model = TransductiveKNNClassifier(measure="predictability", n_neighbors=2, random_state=seed).fit(X, y)
    from calipers.arrays import spawn
    from calipers.conformal.transduction import NewDraws

    new = NewDraws.of(len(X), spawn(seed, 2)[1], smoothed=False).objects
    mine = model._bag.measure.draws
    assert not np.isin(new.vote, mine.vote).any()
    assert not np.isin(new.priority, mine.priority).any()


def test_predict_returns_the_label_with_the_largest_p_value(seed):
    X, y, Z, truth = blobs(seed)
    model = TransductiveKNNClassifier(n_neighbors=3).fit(X, y)
    p = model.predict_p(Z)
    columns = np.searchsorted(model.classes_, model.predict(Z))
    np.testing.assert_array_equal(p[np.arange(len(Z)), columns], p.max(axis=1))
    assert model.score(Z, truth) > 0.5


def test_an_integer_seed_makes_calls_repeatable(seed):
    X, y, Z, _ = blobs(seed)
    model = TransductiveKNNClassifier(measure="predictability", n_neighbors=4, smoothed=True, random_state=5)
    first = model.fit(X, y).predict_p(Z)
    np.testing.assert_array_equal(first, model.predict_p(Z))
    np.testing.assert_array_equal(first, clone(model).fit(X, y).predict_p(Z))
    np.testing.assert_array_equal(first[:5], model.predict_p(Z[:5]))
    np.testing.assert_array_equal(first, pickle.loads(pickle.dumps(model)).predict_p(Z))


def test_it_works_inside_pipelines_and_searches(seed):
    X, y, Z, _ = blobs(seed)
    pipeline = make_pipeline(StandardScaler(), TransductiveKNNClassifier())
    assert pipeline.fit(X, y).predict(Z).shape == (15,)
    search = GridSearchCV(TransductiveKNNClassifier(), {"n_neighbors": [1, 5]}, cv=3).fit(X, y)
    assert search.best_params_["n_neighbors"] in {1, 5}
    precomputed = TransductiveKNNClassifier(metric="precomputed")
    np.testing.assert_allclose(
        cross_val_score(precomputed, cdist(X, X), y, cv=3),
        cross_val_score(TransductiveKNNClassifier(), X, y, cv=3),
    )


def test_equal_rows_are_at_distance_zero_whatever_their_size():
    X = np.array([[1e8 + 0.1, 3.0], [1e8 + 0.1, 3.0], [1e8, 1.0], [1e8 + 2.0, 1.0]])
    model = TransductiveKNNClassifier().fit(X, [0, 0, 1, 1])
    assert model._bag.measure.lists.same[0, 0] == 0.0
    np.testing.assert_array_equal(model.predict_p(X[:1]), [[1.0, 0.2]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "vote"}, "measure must be one of ratio, probability, predictability, got 'vote'"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, got 0"),
        ({"n_neighbors": 1.5}, "n_neighbors must be a whole number of at least 1, got 1.5"),
        (
            {"metric": "tangent", "metric_params": {"sides": "three"}},
            "sides must be one of one, two, got 'three'",
        ),
        ({"metric": "tangent"}, r"X has 5 pixels per row, which is not 2 x 2. Pass image_shape="),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        TransductiveKNNClassifier(**options).fit(np.eye(5), [0, 0, 1, 1, 0])


def test_asymmetric_precomputed_distances_are_refused():
    D = cdist(np.arange(5.0)[:, None], np.arange(5.0)[:, None])
    D[3, 1] = 7.0
    with pytest.raises(
        InputError, match="must be symmetric, got 2.0 at row 1, column 3 and 7.0 the other way"
    ):
        TransductiveKNNClassifier(metric="precomputed").fit(D, [0, 1, 0, 1, 0])
    with pytest.raises(InputError, match=r"X must have shape \(4, 4\)"):
        TransductiveKNNClassifier(metric="precomputed").fit(np.ones((4, 3)), [0, 1, 0, 1])


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        TransductiveKNNClassifier().predict_p([[1.0]])
