"""Performance without labels: the formula by hand, shift, support, refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import optimize
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from calipers.calibration import IsotonicCalibrator
from calipers.exceptions import InputError
from calipers.performance import LabelFreePerformance
from calipers.performance.covariate_shift import CovariateShift
from calipers.performance.expected_loss import LabelModel, folds_of
from calipers.performance.label_losses import label_losses


def sample(seed, n, shift=0.0, slope=1.5):
    """Features, over-confident stated probabilities and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal([shift, 0.0], 1.0, size=(n, 2))
    odds = X[:, 0] - 0.5 * X[:, 1]
    return X, 1 / (1 + np.exp(-slope * odds)), (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def logistic_map(p, y):
    """Intercept and slope of the log-odds, each with a normal prior of one row's weight around 0 and 1."""
    odds = np.log(p / (1 - p))

    def objective(b):
        line = b[0] + b[1] * odds
        return np.sum(np.logaddexp(0, line) - y * line) + (b[0] ** 2 + (b[1] - 1) ** 2) / 2

    b = optimize.minimize(objective, [0.0, 1.0], tol=1e-12).x
    return lambda q: 1 / (1 + np.exp(-b[0] - b[1] * np.log(q / (1 - q))))


def test_without_features_the_interval_is_around_the_expected_loss_plus_the_mean_residual():
    _, p, y = sample(0, 400)
    _, q, _ = sample(1, 300)
    found = LabelFreePerformance(loss="zero_one", random_state=3).fit(p, y).estimate(q)
    folds = folds_of(400, _after_seed(3))
    chance = np.empty((2, 400))
    new = IsotonicCalibrator().fit(p, y).predict(q), logistic_map(p, y)(q)
    for fold in range(5):
        inside = folds == fold
        isotonic = IsotonicCalibrator().fit(p[~inside], y[~inside]).predict
        for at, one in enumerate((isotonic, logistic_map(p[~inside], y[~inside]))):
            chance[at, inside] = one(p[inside])
    # The share with the smallest Brier score, a parabola cut at 0 and 1.
    difference = chance[0] - chance[1]
    share = np.clip(difference @ (y - chance[1]) / (difference @ difference), 0, 1)
    expected, fresh = (share * values[0] + (1 - share) * values[1] for values in (chance, new))
    residual = ((p >= 0.5) != y) - np.where(p >= 0.5, 1 - expected, expected)
    plain = np.where(q >= 0.5, 1 - fresh, fresh).mean()
    correction, parts = residual.mean(), ((residual - residual.mean()) / 399) ** 2
    noise = parts.sum() + parts.max()  # the row that contributes most counts twice, as in the interval
    # The middle of the interval has the whole correction, the value what stands out of its noise.
    assert (found.low + found.high) / 2 == pytest.approx(plain + correction, abs=1e-6)
    assert found.value == pytest.approx(plain + correction * max(0, 1 - noise / correction**2), abs=1e-6)


def test_the_mixture_follows_the_map_that_is_right():
    # Probabilities off by a jump: no line of log-odds tells it, an isotonic map does.
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 4000)
    y = (rng.random(4000) < np.where(p > 0.5, 0.9, 0.1)).astype(int)
    table = label_losses("zero_one", np.arange(2))
    model = LabelModel(np.column_stack([1 - p, p]), y, table, folds_of(4000, rng))
    shares = [share for share, _ in model.fitted().parts]
    assert shares[0] > 0.9
    assert sum(shares) == pytest.approx(1.0)
    chance = model.fitted().of(np.array([[0.7, 0.3], [0.3, 0.7]]), None)[:, 1]
    assert chance == pytest.approx([0.1, 0.9], abs=0.04)


def test_one_row_far_out_does_not_carry_the_weights():
    # A heavy tail: a logistic ratio would give the farthest reference row most of the weight.
    rng = np.random.default_rng(0)
    X, X_new = rng.standard_t(2, (2000, 2)), np.array([0.5, 0.0]) + rng.standard_t(2, (2000, 2))
    p = 1 / (1 + np.exp(-np.clip(X[:, 0], -4, 4)))
    y = (rng.random(2000) < p).astype(int)
    q = 1 / (1 + np.exp(-np.clip(X_new[:, 0], -4, 4)))
    found = LabelFreePerformance(random_state=0).fit(p, y, X).estimate(q, X_new)
    assert found.details["shift"]["found"]
    assert found.details["largest_weight"] <= np.sqrt(2000)
    assert found.details["effective_rows"] > 500


def _after_seed(seed):
    rng = np.random.default_rng(seed)
    rng.integers(2**63)  # the seed of the estimates is drawn before the folds
    return rng


def test_the_interval_is_for_the_realised_mean_of_these_rows():
    X, p, y = sample(0, 1500)
    few, many = (sample(2, n) for n in (100, 20_000))
    model = LabelFreePerformance(loss="brier", random_state=0).fit(p, y, X)
    narrow, wide = model.estimate(many[1], many[0]), model.estimate(few[1], few[0])
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)
    for found, (_, q, z) in ((narrow, many), (wide, few)):
        assert found.low < np.mean(2 * (q - z) ** 2) < found.high


def test_a_shift_is_found_weighted_and_told():
    X, p, y = sample(0, 2000)
    X_new, q, z = sample(1, 2000, shift=1.0)
    found = LabelFreePerformance(loss="brier", random_state=0).fit(p, y, X).estimate(q, X_new)
    shift = found.details["shift"]
    assert shift["found"]
    assert shift["p_value"] < 1e-6
    assert shift["tested"] == "features"
    assert 100 < found.details["effective_rows"] < 1500
    assert found.details["calibration_bound"] is None
    assert "shift was found" in found.details["calibration_bound_reason"]
    assert found.details["shares"]["weights"] > 0
    assert sum(found.details["shares"].values()) == pytest.approx(1.0)
    assert "weighted for the shift" in found.method
    assert found.low < np.mean(2 * (q - z) ** 2) < found.high


def test_without_a_shift_rows_weigh_the_same_and_calibration_is_bounded():
    X, p, y = sample(0, 1000)
    X_new, q, _ = sample(1, 1000)
    model = LabelFreePerformance(random_state=0).fit(p, y, X)
    found = model.estimate(q, X_new)
    assert not found.details["shift"]["found"]
    assert found.details["effective_rows"] == pytest.approx(1000)
    assert found.details["shares"]["weights"] == 0.0
    bound = found.details["calibration_bound"]
    assert 0.01 < bound < 0.2
    certified = LabelFreePerformance(random_state=0, certified=True).fit(p, y, X).estimate(q, X_new)
    assert certified.high - certified.low == pytest.approx(found.high - found.low + 2 * bound)
    assert certified.details["shares"]["calibration"] > 0.4
    assert model.set_params(loss="log").fit(p, y, X).estimate(q, X_new).details["calibration_bound"] is None


def test_estimates_can_be_repeated():
    X, p, y = sample(0, 500)
    X_new, q, _ = sample(1, 500, shift=0.6)
    model = LabelFreePerformance(random_state=5).fit(p, y, X)
    assert model.estimate(q, X_new) == model.estimate(q, X_new)


def test_rows_without_their_like_count_with_best_and_worst_loss():
    X, p, y = sample(0, 1000)
    X_new, q, _ = sample(1, 1000)
    model = LabelFreePerformance(random_state=0).fit(p, y, X)
    usual = model.estimate(q, X_new)
    X_new[:100] += 40.0
    strange = model.estimate(q, X_new)
    assert strange.details["unsupported_rows"] == 100
    assert "100 of 1000 rows have no like in the reference" in strange.reason
    assert strange.low < 0.9 * usual.value
    assert strange.high > 0.1 + 0.85 * usual.value
    nothing = model.estimate(q, X_new + 1000.0)
    assert np.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_a_category_the_reference_does_not_know_has_no_support():
    _, p, y = sample(0, 600)
    _, q, _ = sample(1, 300)
    old = pl.DataFrame({"city": ["Bonn", "Rome"] * 300})
    new = pl.DataFrame({"city": ["Rome", "Bonn", "Zug"] * 100})
    found = LabelFreePerformance(random_state=0).fit(p, y, old).estimate(q, new)
    assert found.details["unsupported_rows"] == 100


def test_an_unbounded_loss_has_no_upper_end_where_support_is_missing():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(500, 1)), rng.normal(size=(300, 1))
    y = X[:, 0] + rng.normal(size=500)
    model = LabelFreePerformance(loss="squared", random_state=0).fit(X[:, 0], y, X)
    assert np.isfinite(model.estimate(X_new[:, 0], X_new).high)
    X_new[0] = 50.0
    found = model.estimate(X_new[:, 0], X_new)
    assert found.high == np.inf
    assert "the upper end is infinite, because their loss has no bound" in found.reason
    assert np.isfinite(found.value)
    assert found.low >= 0.0


def test_regression_follows_the_loss_where_it_moves():
    rng = np.random.default_rng(0)

    def rows(n, centre):
        x = rng.normal(centre, 1, n)
        return x, x + (0.2 + np.abs(x)) * rng.normal(size=n)

    (x, y), (x_new, y_new) = rows(4000, 0.0), rows(4000, 1.0)
    found = LabelFreePerformance(loss="absolute", random_state=0).fit(x, y, x).estimate(x_new, x_new)
    realised = np.abs(y_new - x_new).mean()
    assert abs(found.value - realised) < 0.3 * abs(np.abs(y - x).mean() - realised)
    assert found.low < realised < found.high
    own = LabelFreePerformance(loss=lambda y, f: np.abs(y - f), task="regression", random_state=0)
    assert own.fit(x, y, x).estimate(x_new, x_new).value == found.value


def test_accuracy_is_one_minus_the_error():
    X, p, y = sample(0, 800)
    X_new, q, _ = sample(1, 800)
    error = LabelFreePerformance(random_state=0).fit(p, y, X).estimate(q, X_new)
    accuracy = LabelFreePerformance(loss="accuracy", random_state=0).fit(p, y, X)
    found = accuracy.estimate(q, X_new)
    assert (found.value, found.low, found.high) == pytest.approx(
        (1 - error.value, 1 - error.high, 1 - error.low)
    )
    assert accuracy.reference_loss_ == pytest.approx(np.mean((p >= 0.5) == y))


@pytest.mark.parametrize("metric", ["precision", "recall", "f1", "auroc"])
def test_metrics_come_near_what_is_realised(metric):
    _, p, y = sample(0, 4000)
    _, q, z = sample(1, 4000)
    found = LabelFreePerformance(loss=metric, random_state=0).fit(p, y).estimate(q)
    act = q >= 0.5
    realised = {
        "precision": z[act].mean(),
        "recall": act[z == 1].mean(),
        "f1": 2 * (act & (z == 1)).sum() / (act.sum() + z.sum()),
        "auroc": roc_auc_score(z, q),
    }[metric]
    assert found.low < realised < found.high
    assert found.value == pytest.approx(realised, abs=0.03)
    assert 0.02 < found.high - found.low < 0.08


def test_the_area_counts_ties_half():
    # Constant scores: every comparison is a tie.
    y = np.arange(200) % 2
    found = LabelFreePerformance(loss="auroc", random_state=0).fit(np.full(200, 0.4), y)
    assert found.estimate(np.full(50, 0.4)).value == pytest.approx(0.5)


def test_recall_without_events_is_undefined_with_a_reason():
    p = np.full(100, 0.01)
    found = LabelFreePerformance(loss="recall", random_state=0).fit(p, np.zeros(100, dtype=int)).estimate(p)
    assert np.isnan(found.value)
    assert found.low is None
    assert "recall is undefined" in found.reason


def test_several_classes_and_text_labels():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 1500)
    labels = np.array(["a", "b", "c"])
    y = labels[(P.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)]
    model = LabelFreePerformance(loss="log", random_state=0).fit(P[:1000], y[:1000])
    found = model.estimate(P[1000:])
    own = P[1000:][np.arange(500), np.searchsorted(labels, y[1000:])]
    assert found.low < -np.log(own).mean() < found.high
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_no_errors_in_the_reference_still_leave_an_interval():
    p = np.tile([0.1, 0.9], 100)
    found = LabelFreePerformance(random_state=0).fit(p, (p > 0.5).astype(int)).estimate(p[:50])
    assert found.value == 0.0
    # Clopper-Pearson for 0 of 200: 0.018, and 50 new rows add nothing where no error is expected.
    assert 0.018 < found.high < 0.03


def test_a_classifier_of_ones_own_tells_the_rows_apart():
    X, p, y = sample(0, 600)
    X_new, q, _ = sample(1, 600, shift=1.0)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    found = LabelFreePerformance(classifier=tree, random_state=0).fit(p, y, X).estimate(q, X_new)
    assert found.details["shift"]["found"]


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"loss": "hinge"}, {}, "loss must be one of zero_one, log, brier"),
        ({"task": "ranking"}, {}, "task must be one of classification, regression or None, got 'ranking'"),
        ({"task": "regression"}, {}, "the loss of a regression must be squared, absolute or a function"),
        ({"confidence": 2}, {}, "confidence must lie strictly between 0 and 1"),
        ({}, {"X": np.zeros((3, 1))}, "probabilities and X must have the same length, got 40 and 3"),
        ({}, {"y": np.zeros(3)}, "probabilities and y must have the same length"),
        ({"loss": "f1"}, {"probabilities": np.full((40, 4), 0.25)}, "f1 is for two classes, got 4"),
        ({}, {"probabilities": np.full(40, 1.5)}, "probabilities"),
    ],
)
def test_a_fit_that_makes_no_sense_is_refused(options, arguments, message):
    given = {"probabilities": np.linspace(0, 1, 40), "y": np.arange(40) % 2} | arguments
    with pytest.raises(InputError, match=message):
        LabelFreePerformance(**options).fit(**given)


def test_rows_to_estimate_must_look_like_the_reference():
    X, p, y = sample(0, 100)
    model = LabelFreePerformance(random_state=0).fit(p, y, X)
    with pytest.raises(InputError, match="X must be given to fit and to estimate, or to neither"):
        model.estimate(p)
    with pytest.raises(InputError, match="probabilities must have the 2 columns of fit, got 3"):
        model.estimate(np.full((5, 3), 1 / 3), X[:5])
    with pytest.raises(InputError, match="only X of the reference has 'x1'"):
        model.estimate(p, X[:, :1])


def test_the_shift_test_is_calm_without_a_shift_and_sees_a_spread():
    rng = np.random.default_rng(0)
    from calipers.inputs import check_features

    def p_value(scale):
        tables = [check_features(rng.normal(0, s, (300, 2))) for s in (1.0, scale)]
        return CovariateShift(*tables, classifier=None, generator=rng).test().p_value

    calm = [p_value(1.0) for _ in range(60)]
    assert np.mean(np.array(calm) < 0.05) < 0.15
    assert np.median([p_value(1.5) for _ in range(10)]) < 0.01


def test_expected_losses_of_reference_rows_come_from_other_rows():
    # A label model that saw its own row would fit these labels, which are pure noise, too well.
    rng = np.random.default_rng(0)
    p, y = rng.random(300), rng.integers(0, 2, 300)
    model = LabelModel(np.column_stack([1 - p, p]), y, label_losses("log", np.arange(2)), folds_of(300, rng))
    chances, _ = model.calibrated(np.array([[0.5, 0.5]]))
    assert abs(np.corrcoef(chances[:, 1], y)[0, 1]) < 0.15
