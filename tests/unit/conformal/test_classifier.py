"""ConformalClassifier: the promises of its interface."""

from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from calipers.conformal import ConformalClassifier, aps, conformal_p_values, conformal_quantile, raps, saps
from calipers.exceptions import InputError, InputTypeError, SmallSampleWarning, UnseenGroupWarning
from tests.unit.conformal.worlds import KnownProbabilities, labelled


def frozen(K=4):
    return FrozenEstimator(KnownProbabilities(labels=list(range(K))))


@pytest.fixture
def world():
    rng = np.random.default_rng(5)
    return *labelled(rng, 120), labelled(rng, 80)[0]


@pytest.mark.parametrize("nonconformity", ["lac", "aps", "raps", "saps", "margin", "top_k"])
@pytest.mark.parametrize("randomized", [False, True])
@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_sets_hold_the_labels_with_p_above_alpha(
    world, nonconformity, randomized, label_conditional, grouped
):
    if randomized and nonconformity in ("lac", "margin"):
        return
    P, y, Q = world
    model = ConformalClassifier(
        frozen(),
        nonconformity=nonconformity,
        randomized=randomized,
        label_conditional=label_conditional,
        random_state=0,
    )
    kinds = (np.arange(120) % 3, np.arange(80) % 3) if grouped else (None, None)
    model.conformalize(P, y, groups=kinds[0])
    p = model.predict_p(Q, groups=kinds[1])
    alphas = [0.25, Fraction(1, 3), 0.5]
    sets = model.predict_set(Q, alphas, groups=kinds[1])
    assert sets.shape == (80, 4, 3)
    for level, alpha in enumerate(alphas):
        np.testing.assert_array_equal(sets[:, :, level], p > float(alpha))
    np.testing.assert_array_equal(model.predict_set(Q, 0.5, groups=kinds[1]), sets[:, :, 2])


@pytest.mark.parametrize("options", [{}, {"smoothed": True}, {"nonconformity": "aps"}], ids=str)
@pytest.mark.parametrize("label_conditional", [False, True])
def test_every_label_can_have_a_level_of_its_own(world, options, label_conditional):
    P, y, Q = world
    model = ConformalClassifier(frozen(), label_conditional=label_conditional, random_state=0, **options)
    model.conformalize(P, y)
    levels = [0.2, 0.4, 0.2, 0.7]
    sets = model.predict_set(Q, label_alpha=levels)
    np.testing.assert_array_equal(sets, model.predict_p(Q) > np.array(levels))
    named = dict(zip(model.classes_.tolist(), levels, strict=True))
    np.testing.assert_array_equal(model.predict_set(Q, label_alpha=named), sets)
    labels = model.predict_labels(Q, label_alpha=levels)
    assert labels == [np.flatnonzero(row).tolist() for row in sets]


def test_levels_by_label_are_checked_and_small_labels_warn(world):
    P, y, Q = world
    model = ConformalClassifier(frozen(), label_conditional=True).conformalize(P, y)
    with pytest.raises(InputError, match="one level per label, 4, got 2"):
        model.predict_set(Q, label_alpha=[0.1, 0.2])
    with pytest.raises(InputError, match="as keys"):
        model.predict_set(Q, label_alpha={"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.1})
    with pytest.warns(SmallSampleWarning, match="1 group.*alpha=0.001; 999 are needed"):
        sets = model.predict_set(Q, label_alpha=[0.3, 0.001, 0.3, 0.3])
    assert sets[:, 1].all()


def test_each_label_is_covered_at_its_own_level():
    # P(miss | label k) <= alpha_k: 4000 rows of a label, binomial tolerance of four standard errors
    rng = np.random.default_rng(8)
    P, y = labelled(rng, 20_000)
    model = ConformalClassifier(frozen(), label_conditional=True, smoothed=True, random_state=0)
    model.conformalize(P[:4000], y[:4000])
    levels = np.array([0.05, 0.1, 0.2, 0.4])
    sets = model.predict_set(P[4000:], label_alpha=levels)
    for k, level in enumerate(levels):
        own, n = y[4000:] == k, np.sum(y[:4000] == k)
        spread = np.sqrt(level * (1 - level) * (1 / own.sum() + 1 / n))
        assert abs(1 - sets[own, k].mean() - level) < 4 * spread


def test_smoothed_sets_follow_the_smoothed_p_values(world):
    P, y, Q = world
    model = ConformalClassifier(frozen(), smoothed=True, random_state=3).conformalize(P, y)
    p = model.predict_p(Q)
    np.testing.assert_array_equal(model.predict_set(Q, 0.2), p > 0.2)
    assert (p != ConformalClassifier(frozen()).conformalize(P, y).predict_p(Q)).all()


def test_the_threshold_is_the_conformal_quantile_of_the_true_labels_scores(world):
    P, y, Q = world
    model = ConformalClassifier(frozen(), nonconformity="aps").conformalize(P, y)
    threshold = conformal_quantile(aps(P)[np.arange(120), y], 0.1)
    np.testing.assert_array_equal(model.predict_set(Q, 0.1), aps(Q) <= threshold)


def test_nine_rows_are_enough_at_ten_percent_and_eight_are_not():
    P, y = np.tile([0.9, 0.1], (9, 1)), np.zeros(9, dtype=int)
    model = ConformalClassifier(frozen(2)).conformalize(P, y)
    np.testing.assert_array_equal(model.predict_set([[0.95, 0.05]], 0.1), [[True, False]])
    model.conformalize(P[:8], y[:8])
    with pytest.warns(SmallSampleWarning, match=r"With 8 calibration rows no set .* at alpha=0\.1; 9 are"):
        assert model.predict_set([[0.95, 0.05]], 0.1).all()


def test_levels_given_as_one_minus_a_confidence_mean_what_people_mean():
    P, y = np.tile([0.9, 0.1], (9, 1)), np.zeros(9, dtype=int)
    model = ConformalClassifier(frozen(2)).conformalize(P, y)
    assert not model.predict_set([[0.95, 0.05]], 1 - 0.9)[0, 1]
    assert not model.predict_set([[0.95, 0.05]], np.float32(0.1))[0, 1]


def test_a_label_without_calibration_rows_is_in_every_set_with_a_warning(world):
    P, y, Q = world
    model = ConformalClassifier(frozen(), label_conditional=True).conformalize(P[y != 2], y[y != 2])
    with pytest.warns(UnseenGroupWarning, match=r"1 of 4 labels have no calibration rows \(2\)"):
        sets = model.predict_set(Q, 0.3)
    assert sets[:, 2].all()
    assert not sets.all()
    with pytest.warns(UnseenGroupWarning, match="cannot be excluded"):
        assert (model.predict_p(Q)[:, 2] == 1).all()


def test_a_group_without_calibration_rows_gets_the_full_set_with_a_warning(world):
    P, y, Q = world
    model = ConformalClassifier(frozen()).conformalize(P, y, groups=["a"] * 120)
    groups = np.array(["a"] * 79 + ["z"])
    with pytest.warns(UnseenGroupWarning, match="1 of 80 rows belong to groups without calibration rows"):
        sets = model.predict_set(Q, 0.3, groups=groups)
    assert sets[79].all()
    assert not sets[:79].all(axis=1).all()


def test_a_label_the_model_never_saw_counts_as_never_covered(world):
    P, y, Q = world
    model = ConformalClassifier(frozen())
    with pytest.warns(UnseenGroupWarning, match=r"unknown to the model \(first at row 0: 9\)"):
        model.conformalize(P, np.where(np.arange(120) < 12, 9, y))
    scores = (1 - P)[np.arange(120), y]
    scores[:12] = np.inf
    np.testing.assert_array_equal(model.predict_p(Q), conformal_p_values(scores, 1 - Q))
    with pytest.raises(InputError, match="no label the model knows"):
        model.conformalize(P, np.full(120, 9))


def test_predictions_need_conformalize_and_conformalize_needs_fit(world):
    P, y, Q = world
    with pytest.raises(NotFittedError, match="call fit first, or wrap a fitted model"):
        ConformalClassifier().conformalize(P, y)
    model = ConformalClassifier(LogisticRegression()).fit(P, y)
    assert model.predict(Q).shape == (80,)
    for method in (model.predict_p, model.predict_set, model.predict_labels, model.predict_confidence):
        with pytest.raises(NotFittedError, match="not conformalized yet"):
            method(Q)
    model.conformalize(P, y).predict_p(Q)
    with pytest.raises(NotFittedError, match="not conformalized yet"):
        model.fit(P, y).predict_p(Q)


def test_a_second_conformalize_replaces_the_first(world):
    P, y, Q = world
    model = ConformalClassifier(frozen())
    first = model.conformalize(P[:60], y[:60]).predict_p(Q)
    second = model.conformalize(P[60:], y[60:]).predict_p(Q)
    assert model.calibration_.n == 60
    assert (first != second).any()
    model.conformalize(P, y, groups=np.zeros(120)).conformalize(P[:60], y[:60])
    np.testing.assert_array_equal(model.predict_p(Q), first)


def test_empty_calibration_data_is_refused():
    with pytest.raises(InputError, match="at least one calibration row"):
        ConformalClassifier(frozen()).conformalize(np.empty((0, 4)), [])


def test_labels_and_confidence_say_what_the_p_values_say(world):
    P, y, Q = world
    model = ConformalClassifier(FrozenEstimator(KnownProbabilities(labels=list("abcd"))))
    model.conformalize(P, np.array(list("abcd"))[y])
    p = model.predict_p(Q)
    assert model.predict_labels(Q, 0.2) == [
        [label for label, v in zip("abcd", row, strict=True) if v > 0.2] for row in p
    ]
    ordered = np.sort(p, axis=1)
    np.testing.assert_array_equal(
        model.predict_confidence(Q), np.stack([1 - ordered[:, -2], ordered[:, -1]], axis=1)
    )
    with pytest.raises(InputError, match="predict_labels takes one alpha"):
        model.predict_labels(Q, [0.1, 0.2])


@pytest.mark.parametrize("options", [{"smoothed": True}, {"nonconformity": "aps", "randomized": True}])
def test_batches_do_not_change_the_draws(world, options):
    P, y, Q = world
    model = ConformalClassifier(frozen(), random_state=1, **options).conformalize(P, y)
    together = model.predict_p(Q)
    apart = np.concatenate([model.predict_p(Q[:33]), model.predict_p(Q[33:34]), model.predict_p(Q[34:])])
    np.testing.assert_array_equal(apart, together)
    np.testing.assert_array_equal(model.predict_p(Q), together)


def test_calibration_and_test_rows_never_share_a_draw(world):
    P, y, _ = world
    model = ConformalClassifier(frozen(), nonconformity="aps", randomized=True, random_state=1).conformalize(
        P, y
    )
    u_cal, u_test = (model._uniforms(P, stream) for stream in (0, 1))
    assert abs(np.corrcoef(u_cal, u_test)[0, 1]) < 0.3
    assert (u_cal != u_test).all()


def test_equal_rows_get_different_draws():
    P = np.tile([0.5, 0.5], (50, 1))
    model = ConformalClassifier(frozen(2), smoothed=True, random_state=0).conformalize(
        P, np.zeros(50, dtype=int)
    )
    assert len(np.unique(model.predict_p(P)[:, 0])) == 50


def test_a_seed_decides_everything_and_no_seed_varies():
    rng = np.random.default_rng(0)
    P, y = labelled(rng, 200)
    settings = {"calibration_size": 0.5, "smoothed": True}
    one, two = (ConformalClassifier(random_state=4, **settings).fit(P, y).predict_p(P) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert (ConformalClassifier(**settings).fit(P, y).predict_p(P) != one).any()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_dataframes_reach_the_model_untouched_and_columns_can_be_groups(make):
    class Checks(KnownProbabilities):
        def predict_proba(self, X):
            assert isinstance(X, make)
            return np.asarray(X[["a", "b"]], dtype=float)

    rng = np.random.default_rng(0)
    P, y = labelled(rng, 60, K=2)
    frame = make({"a": P[:, 0], "b": P[:, 1], "site": ["x", "y"] * 30})
    model = ConformalClassifier(FrozenEstimator(Checks(labels=[0, 1])), groups="site").conformalize(frame, y)
    by_hand = ConformalClassifier(frozen(2)).conformalize(P, y, groups=["x", "y"] * 30)
    np.testing.assert_array_equal(model.predict_p(frame), by_hand.predict_p(P, groups=["x", "y"] * 30))
    by_index = ConformalClassifier(FrozenEstimator(Checks(labels=[0, 1])), groups=2).conformalize(frame, y)
    np.testing.assert_array_equal(by_index.predict_p(frame), model.predict_p(frame))


class HalvesByTop:
    """A grouping estimator: which half of the calibration rows' top probabilities a row falls in."""

    def fit(self, X, predict):
        self.predict = predict
        self.cut = np.median(predict(X).max(axis=1))
        return self

    def assign(self, X):
        return (self.predict(X).max(axis=1) > self.cut).astype(int)


def test_groups_come_from_callables_and_grouping_estimators(world):
    P, y, Q = world
    source = HalvesByTop()
    model = ConformalClassifier(frozen(), groups=source).conformalize(P, y)
    assert not hasattr(source, "cut")
    cut = np.median(P.max(axis=1))
    as_function = ConformalClassifier(frozen(), groups=lambda X: np.asarray(X).max(axis=1) > cut)
    as_function.conformalize(P, y)
    np.testing.assert_array_equal(model.predict_p(Q), as_function.predict_p(Q))
    numbered = ConformalClassifier(frozen(), groups=1).conformalize(
        P.round(1) / P.round(1).sum(1, keepdims=True), y
    )
    assert len(numbered.group_labels_) > 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda P, y: ConformalClassifier(frozen(), groups="a").conformalize(P, y),
            InputError,
            "not a dataframe",
        ),
        (lambda P, y: ConformalClassifier(frozen(), groups=7).conformalize(P, y), InputError, "not a column"),
        (
            lambda P, y: ConformalClassifier(frozen(), groups=1.5).conformalize(P, y),
            InputTypeError,
            "groups must be",
        ),
        (
            lambda P, y: ConformalClassifier(frozen(), groups=0).conformalize(P, y, groups=y),
            InputError,
            "twice",
        ),
        (
            lambda P, y: ConformalClassifier(frozen()).conformalize(P, y, groups=y).predict_p(P),
            InputError,
            "groups must be given to",
        ),
        (lambda P, y: ConformalClassifier(frozen()).conformalize(P, y[:-1]), InputError, "same length"),
        (
            lambda P, y: ConformalClassifier(frozen(), nonconformity="hinge").conformalize(P, y),
            InputError,
            "nonconformity must",
        ),
        (
            lambda P, y: ConformalClassifier(frozen(), randomized=True).conformalize(P, y),
            InputError,
            "takes no u",
        ),
        (
            lambda P, y: ConformalClassifier(frozen()).conformalize(P, y).predict_set(P, 90),
            InputError,
            "percentage",
        ),
        (
            lambda P, y: ConformalClassifier(LinearSVC(random_state=0)).fit(P, y).conformalize(P, y),
            InputTypeError,
            "CalibratedClassifierCV",
        ),
        (
            lambda P, y: ConformalClassifier(calibration_size=1.5).fit(P, y),
            InputError,
            "calibration_size must be None",
        ),
        (
            lambda P, y: ConformalClassifier(calibration_size=120).fit(P, y),
            InputError,
            "both need at least one",
        ),
        (lambda P, y: ConformalClassifier().fit(P, y, groups=y), InputError, "groups belong to conformalize"),
    ],
)
def test_bad_input_is_refused_by_name(world, call, error, message):
    with pytest.raises(error, match=message):
        call(*world[:2])


def test_callables_and_partials_serve_as_scores(world):
    P, y, Q = world
    named = ConformalClassifier(frozen(), nonconformity=partial(raps, penalty=0.2)).conformalize(P, y)
    free = ConformalClassifier(frozen(), nonconformity=lambda P: raps(P, penalty=0.2)).conformalize(P, y)
    np.testing.assert_array_equal(named.predict_set(Q, 0.3), free.predict_set(Q, 0.3))
    with pytest.raises(InputError, match=r"must return scores of shape \(120, 4\)"):
        ConformalClassifier(frozen(), nonconformity=lambda P: P[:, 0]).conformalize(P, y)


def test_it_lives_in_pipelines_searches_and_clones():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 3))
    y = np.where(X[:, 0] + rng.normal(size=240) > 0, "up", "down")
    model = ConformalClassifier(calibration_size=0.4, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    assert pipeline.score(X, y) > 0.6
    assert pipeline[-1].predict_labels(pipeline[:-1].transform(X[:3]), 0.2)
    grid = {"nonconformity": ["lac", "aps"], "estimator__C": [0.1, 1.0]}
    search = GridSearchCV(
        ConformalClassifier(LogisticRegression(), calibration_size=50, random_state=0), grid, cv=2
    )

    def mean_size(fitted, X, y):
        return -fitted.predict_set(X, alpha=0.2).sum(axis=1).mean()

    search.set_params(scoring=mean_size).fit(X, y)
    assert search.best_params_["nonconformity"] in ("lac", "aps")
    copy = clone(search.best_estimator_)
    assert copy.get_params()["calibration_size"] == 50
    assert not hasattr(copy, "calibration_")


class RemembersWeights(KnownProbabilities):
    """Records the sample weights it was trained with."""

    def fit(self, X, y, sample_weight=None):
        self.weights_ = sample_weight
        return super().fit(X, y)


def test_sample_weights_reach_the_model_without_the_held_out_rows(world):
    P, y, _ = world
    weights = np.arange(120.0)
    plain = ConformalClassifier(RemembersWeights(), calibration_size=40, random_state=0)
    assert len(plain.fit(P, y, sample_weight=weights).estimator_.weights_) == 80
    with sklearn.config_context(enable_metadata_routing=True):
        inner = RemembersWeights().set_fit_request(sample_weight=True)
        routed = ConformalClassifier(inner, calibration_size=40, random_state=0)
        routed.set_score_request(sample_weight=False)
        search = GridSearchCV(routed, {"nonconformity": ["lac"]}, cv=2).fit(P, y, sample_weight=weights)
        assert search.best_estimator_.estimator_.weights_.shape == (80,)


@pytest.mark.parametrize("nonconformity", ["lac", saps])
def test_float32_probabilities_give_the_same_ranks(world, nonconformity):
    P, y, Q = world
    single = [a.astype(np.float32) for a in (P, Q)]

    class Single(KnownProbabilities):
        def predict_proba(self, X):
            return np.asarray(X)

    model = ConformalClassifier(FrozenEstimator(Single(labels=range(4))), nonconformity=nonconformity)
    double = ConformalClassifier(frozen(), nonconformity=nonconformity)
    np.testing.assert_array_equal(
        model.conformalize(single[0], y).predict_p(single[1]),
        double.conformalize(single[0].astype(float), y).predict_p(single[1].astype(float)),
    )


@pytest.mark.parametrize("options", [{"nonconformity": "lacs"}, {"nonconformity": "lac", "randomized": True}])
def test_wrong_options_are_refused_before_the_model_is_trained(options):
    X, y = np.arange(8.0)[:, None], np.array([0, 1] * 4)
    with pytest.raises(InputError, match="nonconformity"):
        ConformalClassifier(**options).fit(X, y)
