"""Named losses against scikit-learn's means, unseen labels, batches and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from calipers.exceptions import InputError, InputTypeError
from calipers.performance import AlgorithmPerformance, CandidatePerformance, LogLoss, PinballLoss
from calipers.performance.batches import batch_losses
from calipers.performance.losses import NAMED_LOSSES, is_scorer, loss_limits, resolve_loss
from calipers.performance.rows import check_rows


@pytest.fixture(scope="module")
def regression():
    X, y = load_diabetes(return_X_y=True)
    return LinearRegression().fit(X[:200], y[:200]), X[200:], y[200:]


@pytest.fixture(scope="module")
def classification():
    X, y = load_iris(return_X_y=True)
    return LogisticRegression(C=0.1).fit(X[::2], y[::2]), X[1::2], y[1::2]


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("squared", metrics.mean_squared_error),
        ("absolute", metrics.mean_absolute_error),
        ("absolute_percentage", metrics.mean_absolute_percentage_error),
        ("pinball", metrics.mean_pinball_loss),
        ("poisson", metrics.mean_poisson_deviance),
    ],
)
def test_regression_losses_average_to_scikit_learns(regression, name, theirs):
    model, X, y = regression
    losses = NAMED_LOSSES[name](model, X, y)
    assert losses.shape == y.shape
    assert losses.mean() == pytest.approx(theirs(y, model.predict(X)), rel=1e-12)


def test_classification_losses_average_to_scikit_learns(classification):
    model, X, y = classification
    table = model.predict_proba(X)
    assert NAMED_LOSSES["log"](model, X, y).mean() == pytest.approx(metrics.log_loss(y, table), rel=1e-12)
    assert NAMED_LOSSES["zero_one"](model, X, y).mean() == pytest.approx(
        1 - metrics.accuracy_score(y, model.predict(X))
    )
    indicator = (y[:, None] == np.arange(3)).astype(float)
    brier = ((table - indicator) ** 2).sum(axis=1)
    assert NAMED_LOSSES["brier"](model, X, y) == pytest.approx(brier, rel=1e-12)
    assert brier.mean() == pytest.approx(metrics.brier_score_loss(y, table), rel=1e-12)


@pytest.mark.parametrize("labels", [2, 3])
def test_hinge_averages_to_scikit_learns(labels):
    X, y = load_iris(return_X_y=True)
    keep = y < labels
    # Two overlapping features: the margins must not all exceed 1.
    X, y = X[keep][:, :2], y[keep]
    model = LinearSVC(C=0.05, random_state=0).fit(X[::2], y[::2])
    decision = model.decision_function(X[1::2])
    expected = metrics.hinge_loss(y[1::2], decision, labels=np.arange(labels))
    assert NAMED_LOSSES["hinge"](model, X[1::2], y[1::2]).mean() == pytest.approx(expected, rel=1e-12)


def test_a_label_the_model_has_not_seen_gets_the_stated_probability(classification):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression().fit(X[y < 2], y[y < 2])
    new = X[y == 2]
    assert LogLoss(floor=1e-3)(model, new, np.full(len(new), 2)) == pytest.approx(-np.log(1e-3))
    assert (NAMED_LOSSES["zero_one"](model, new, np.full(len(new), 2)) == 1).all()
    assert np.isposinf(
        NAMED_LOSSES["hinge"](LinearSVC(random_state=0).fit(X[y < 2], y[y < 2]), new, np.full(len(new), 2))
    ).all()
    # Brier with an unseen label: sum of squares plus one, on the scale of the model's two classes.
    table = model.predict_proba(new)
    brier = NAMED_LOSSES["brier"](model, new, np.full(len(new), 2))
    assert brier == pytest.approx(((table**2).sum(axis=1) + 1) / 2)


def test_text_labels_work():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    by_name = LogisticRegression(max_iter=1000).fit(X, names)
    by_number = LogisticRegression(max_iter=1000).fit(X, y)
    assert NAMED_LOSSES["log"](by_name, X, names) == pytest.approx(
        NAMED_LOSSES["log"](by_number, X, y), rel=1e-6
    )


def test_pinball_at_another_level(regression):
    model, X, y = regression
    expected = metrics.mean_pinball_loss(y, model.predict(X), alpha=0.9)
    assert PinballLoss(0.9)(model, X, y).mean() == pytest.approx(expected)


def test_two_targets_are_added():
    X, y = load_diabetes(return_X_y=True)
    both = np.column_stack([y, 2 * y])
    model = LinearRegression().fit(X, both)
    assert NAMED_LOSSES["squared"](model, X, both) == pytest.approx(
        ((both - model.predict(X)) ** 2).sum(axis=1)
    )


def test_batches_average_rows_and_call_scorers_once_per_batch(classification):
    model, X, y = classification
    rows = check_rows(X[:60], y[:60])
    losses = NAMED_LOSSES["log"](model, X[:60], y[:60])
    assert batch_losses(resolve_loss("log"), model, rows, 20) == pytest.approx(
        losses.reshape(3, 20).mean(axis=1)
    )
    scores = batch_losses(resolve_loss("accuracy"), model, rows, 20)
    assert scores == pytest.approx(
        [metrics.accuracy_score(y[i : i + 20], model.predict(X[i : i + 20])) for i in (0, 20, 40)]
    )
    spread = batch_losses(lambda m, A, b: float(np.std(m.predict_proba(A))), model, rows, 30)
    assert spread == pytest.approx(
        [np.std(model.predict_proba(X[:30])), np.std(model.predict_proba(X[30:60]))]
    )


def test_scorers_are_recognised():
    assert is_scorer(resolve_loss("roc_auc"))
    assert not is_scorer(resolve_loss("log"))


@pytest.mark.parametrize(
    ("loss", "kind", "message"),
    [
        ("sqared", InputError, "loss must be one of squared, .* got 'sqared'"),
        (3, InputTypeError, r"loss must be a name or a callable loss\(estimator, X, y\), got int"),
    ],
)
def test_unknown_losses_are_refused(loss, kind, message):
    with pytest.raises(kind, match=message):
        resolve_loss(loss)


def test_wrong_shapes_and_nan_are_refused(regression):
    model, X, y = regression
    rows = check_rows(X[:10], y[:10])
    with pytest.raises(InputError, match=r"one value per row \(10\) or a single number, got shape \(3,\)"):
        batch_losses(lambda m, A, b: np.zeros(3), model, rows, 1)
    with pytest.raises(InputError, match=r"the loss is NaN for 10 of 10 evaluations \(first: 0\)"):
        batch_losses(lambda m, A, b: np.full(10, np.nan), model, rows, 1)
    with pytest.raises(InputError, match="floor must lie strictly between 0 and 1"):
        LogLoss(floor=0.0)
    with pytest.raises(InputError, match="level must lie strictly between 0 and 1"):
        PinballLoss(1.5)


@pytest.mark.parametrize("name", sorted(NAMED_LOSSES))
def test_losses_stay_within_their_limits(name, regression, classification):
    of_labels = name in ("log", "brier", "zero_one", "hinge")
    model, X, y = classification if of_labels else regression
    values = resolve_loss(name)(model, X, y)
    low, high = loss_limits(resolve_loss(name))
    assert low == 0 <= values.min()
    assert values.max() <= high


def test_what_is_not_ours_has_no_limits():
    everything = (-np.inf, np.inf)
    assert loss_limits(lambda model, X, y: y) == everything
    assert loss_limits(resolve_loss("accuracy")) == everything
    assert loss_limits(LogLoss(floor=0.01)) == (0.0, pytest.approx(-np.log(0.01)))
    assert loss_limits(PinballLoss(0.9)) == (0.0, np.inf)


DENSITIES = [
    KernelDensity(bandwidth=0.5),
    GaussianMixture(2, random_state=0),
    make_pipeline(StandardScaler(), GaussianMixture(2, random_state=0)),
    PCA(1),
]


@pytest.mark.parametrize("model", DENSITIES, ids=lambda m: type(m).__name__)
def test_the_log_loss_of_a_density_is_minus_its_log_density(model):
    X = np.random.default_rng(0).normal(size=(200, 2))
    fitted = model.fit(X[:100])
    found = LogLoss()(fitted, X[100:], None)
    np.testing.assert_allclose(found, -fitted.score_samples(X[100:]))
    assert loss_limits(LogLoss(), model) == (-np.inf, np.inf)


def test_a_one_point_kernel_density_by_hand():
    # -log of the standard normal density at distance 2 from the only point
    model = KernelDensity(bandwidth=1.0).fit([[0.0]])
    assert LogLoss()(model, [[2.0]], None) == pytest.approx([2.0 + 0.5 * np.log(2 * np.pi)])


def test_forecasts_of_densities_may_be_negative():
    X = 0.01 * np.random.default_rng(1).normal(size=(400, 1))  # densities far above 1
    candidate = CandidatePerformance(KernelDensity(bandwidth=0.005), loss="log", random_state=0).fit(X)
    assert candidate.interval()[0] < -2
    algorithm = AlgorithmPerformance(
        GaussianMixture(1), loss="log", n_points=25, random_state=0, modulation="quantile"
    )
    assert algorithm.fit(X).predict_interval(X[:3])[:, 0].max() < 0


def test_an_outlier_detector_is_no_density():
    X = np.random.default_rng(2).normal(size=(50, 2))
    model = IsolationForest(n_estimators=5, random_state=0).fit(X)
    with pytest.raises(InputTypeError, match="IsolationForest has neither"):
        LogLoss()(model, X, None)
