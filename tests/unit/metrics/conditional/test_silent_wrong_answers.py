"""Wrong numbers that another package returns without a word; each must be right here."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier

from calipers.exceptions import InputError, InputTypeError
from calipers.metrics import ert, ert_table


def integer_world(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, 3))
    return X, rng.random(n) < np.array([0.99, 0.95, 0.9, 0.75])[X[:, 0]]


@pytest.mark.parametrize("classifier", [None, LogisticRegression()], ids=["default", "logistic"])
def test_integer_and_boolean_features_do_not_truncate_probabilities(classifier):
    X, z = integer_world()
    whole = ert_table(X, z, alpha=0.1, classifier=classifier, random_state=0)
    floats = ert_table(X.astype(float), z, alpha=0.1, classifier=classifier, random_state=0)
    for key in whole:
        assert whole[key].value == pytest.approx(floats[key].value, rel=1e-9)
    # truth: |p - 0.9| averages (0.09 + 0.05 + 0 + 0.15) / 4 = 0.0725, squares 0.00828
    assert whole["l2"].value == pytest.approx(0.0083, abs=0.004)
    ints = (whole["l2"].details["predictions"] * 1.0) % 1
    assert (ints > 0).all()


def test_torch_inputs_do_not_flip_the_sign_of_kl():
    torch = pytest.importorskip("torch")
    X, z = integer_world(600)
    ours = ert(X, z, alpha=0.1, loss="kl", classifier=LogisticRegression(), random_state=0).value
    moved = ert(
        torch.asarray(X),
        torch.asarray(z),
        alpha=0.1,
        loss="kl",
        classifier=LogisticRegression(),
        random_state=0,
    ).value
    assert moved == pytest.approx(ours, rel=1e-9)
    assert ours > 0


@pytest.mark.parametrize(
    "classifier",
    [None, LogisticRegression(), HistGradientBoostingClassifier(max_iter=5)],
    ids=["default", "logistic", "boosting"],
)
def test_all_rows_covered_reads_plus_alpha(classifier):
    X = np.random.default_rng(0).uniform(size=(600, 2))
    table = ert_table(X, np.ones(600, bool), alpha=0.1, classifier=classifier, random_state=0)
    assert table["l1"].value == pytest.approx(0.1, abs=1e-9)
    assert table["l2"].value == pytest.approx(0.01, rel=0.01)
    assert table["kl"].value == pytest.approx(-np.log(0.9), rel=0.01)
    assert table["l1_under"].value == 0.0
    assert table["l1"].p_value < 1e-6


@pytest.mark.parametrize("classifier", [None, LogisticRegression()], ids=["default", "logistic"])
def test_one_miss_in_600_rows_is_no_crash(classifier):
    X, z = np.random.default_rng(0).uniform(size=(600, 2)), np.ones(600, bool)
    z[17] = False
    e = ert(X, z, alpha=0.1, classifier=classifier, random_state=0)
    assert e.value == pytest.approx(0.1 - 1 / 600, abs=1e-9)  # every h lies above 0.9


def test_no_row_covered_reads_one_minus_alpha():
    X = np.random.default_rng(0).uniform(size=(100, 2))
    assert ert(X, np.zeros(100, bool), alpha=0.1, random_state=0).value == pytest.approx(0.9, abs=1e-9)


def test_twenty_rows_give_an_answer():
    rng = np.random.default_rng(0)
    e = ert(rng.uniform(size=(20, 2)), rng.random(20) < 0.8, alpha=0.2, random_state=0)
    assert np.isfinite(e.value)
    assert e.p_value > 0.05


def test_a_pandas_alpha_is_read_by_position_not_by_label():
    X, z = integer_world(600)
    alpha = np.random.default_rng(1).choice([0.05, 0.2], size=600)
    shuffled = pd.Series(alpha, index=np.arange(600)[::-1])
    named = pd.Series(alpha, index=[f"row {i}" for i in range(600)])
    options = {"classifier": LogisticRegression(), "random_state": 0}
    values = {ert(X, z, alpha=a, **options).value for a in (alpha, shuffled, named)}
    assert len(values) == 1


def test_frames_with_different_indices_are_refused_and_one_index_changes_nothing():
    X, z = integer_world(300)
    frame = pd.DataFrame(X, index=np.arange(300)[::-1])
    series = pd.Series(z, index=np.arange(300) + 1000)
    options = {"alpha": 0.1, "loss": "kl", "classifier": LogisticRegression(), "random_state": 0}
    with pytest.raises(InputError, match="X and covered have different indexes"):
        ert(frame, series, **options)
    series.index = frame.index
    assert ert(frame, series, **options).value == pytest.approx(ert(X, z, **options).value)


def test_a_missing_alpha_is_refused():
    X, z = integer_world(100)
    alpha = np.full(100, 0.1)
    alpha[7] = np.nan
    with pytest.raises(InputError, match="row 7"):
        ert(X, z, alpha=alpha)


def test_hard_labels_are_refused_as_probabilities():
    X, z = integer_world(100)
    with pytest.raises(InputTypeError, match="Hard labels"):
        ert(X, z, alpha=0.1, classifier=SGDClassifier())


def test_a_fitted_classifier_is_neither_used_nor_changed():
    X, z = integer_world(600)
    fitted = LogisticRegression().fit(X, z)
    before = fitted.coef_.copy()
    options = {"alpha": 0.1, "random_state": 0}
    assert (
        ert(X, z, classifier=fitted, **options).value
        == ert(X, z, classifier=LogisticRegression(), **options).value
    )
    np.testing.assert_array_equal(fitted.coef_, before)


def test_a_prediction_one_rounding_step_from_the_target_gains_nothing():
    class Almost(LogisticRegression):
        def predict_proba(self, X):
            return np.tile([0.1, np.nextafter(0.9, 1.0)], (len(X), 1))

    X, z = integer_world(300)
    assert ert(X, z, alpha=0.1, classifier=Almost(), random_state=0).value == 0.0


def test_infinite_features_are_refused_and_missing_ones_are_not():
    X, z = integer_world(200)
    broken = X.astype(float)
    broken[3, 1] = np.nan
    assert np.isfinite(ert(broken, z, alpha=0.1, random_state=0).value)
    broken[4, 0] = np.inf
    with pytest.raises(InputError, match="infinite"):
        ert(broken, z, alpha=0.1)


@pytest.mark.parametrize("dtype", [np.float32, int, float, object])
def test_alpha_and_covered_of_any_numeric_kind_mean_the_same(dtype):
    X, z = integer_world(200)
    options = {"classifier": LogisticRegression(), "random_state": 0}
    reference = ert(X, z, alpha=0.1, **options).value
    assert ert(X, z.astype(dtype), alpha=np.float32(0.1), **options).value == pytest.approx(reference)
    assert ert(X, z.tolist(), alpha=np.array(0.1), **options).value == pytest.approx(reference)
