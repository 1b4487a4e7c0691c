"""ERT: brute force twin, parts, weights, groups, splitters, tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calipers.exceptions import DeprecatedNameWarning, InputError, InputTypeError
from calipers.metrics import ert, ert_table
from calipers.metrics.conditional import CoverageClassifier, convex_distance, ert_curve
from calipers.metrics.conditional.cross_fit import make_splits


def world(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, rng.random(n) < np.where(X[:, 0] > 0, 0.75, 0.99)


LOGISTIC = LogisticRegression()


def test_the_value_is_the_pooled_mean_of_loss_differences_on_rows_not_seen():
    X, z = world()
    folds = [
        (np.flatnonzero(np.arange(400) % 3 != k), np.flatnonzero(np.arange(400) % 3 == k)) for k in range(3)
    ]
    t, brier, absolute, predicted = 0.9, [], [], []
    for train, test in folds:
        h = LogisticRegression().fit(X[train], z[train]).predict_proba(X[test])[:, 1]
        predicted.append(h)
        brier += list((t - z[test]) ** 2 - (h - z[test]) ** 2)
        absolute += list(np.sign(h - t) * (z[test] - t))
    table = ert_table(X, z, alpha=0.1, losses=("l1", "l2"), classifier=LOGISTIC, cv=folds, random_state=0)
    assert table["l2"].value == pytest.approx(np.mean(brier), rel=1e-9)
    assert table["l1"].value == pytest.approx(np.mean(absolute), rel=1e-9)
    # sqrt 2 times the row-wise standard error, with 1.92 imagined rows of either outcome; rows that were
    # covered or missed contribute +-0.1 and -+0.9 on average
    above = np.mean(np.sign(np.concatenate(predicted) - t))
    r, k, ends = np.array(absolute), 1.959964**2 / 2, np.array([0.1, -0.9]) * above
    total = 400 + 2 * k
    centre = (r.sum() + k * ends.sum()) / total
    squares = np.sum((r - centre) ** 2) + k * np.sum((ends - centre) ** 2)
    error = np.sqrt(2 * squares * 400 / 399) / total
    assert table["l1"].std_error == pytest.approx(error, rel=1e-6)
    half = stats.t(399).ppf(0.975) * error
    assert (table["l1"].low, table["l1"].high) == pytest.approx((centre - half, centre + half), rel=1e-6)
    assert table["l1"].details["fold_values"] == pytest.approx(
        [np.mean(absolute[:134]), np.mean(absolute[134:267]), np.mean(absolute[267:])]
    )


def test_over_and_under_add_up_to_the_total_exactly():
    X, z = world()
    quartic = convex_distance(lambda t, q: (q - t) ** 4, name="quartic")
    table = ert_table(
        X, z, alpha=0.1, losses=("l1", "l2", "kl", quartic), classifier=LOGISTIC, random_state=0
    )
    for loss in ("l1", "l2", "kl", "quartic"):
        assert table[f"{loss}_over"].value + table[f"{loss}_under"].value == table[loss].value


def test_ert_is_the_entry_of_its_table():
    X, z = world()
    table = ert_table(X, z, alpha=0.1, classifier=LOGISTIC, random_state=3)
    alone = ert(X, z, alpha=0.1, loss="kl", side="under", classifier=LOGISTIC, random_state=3)
    assert alone == table["kl_under"]


def test_per_row_alpha_becomes_a_feature_and_each_row_has_its_own_target():
    rng = np.random.default_rng(1)
    alpha = rng.choice([0.05, 0.3], size=600)
    z = rng.random(600) < 1 - alpha  # sound at every row, though not given X alone
    e = ert(rng.uniform(size=(600, 2)), z, alpha=alpha, loss="l2", random_state=0)
    assert abs(e.value) < 0.003
    assert e.details["p_target"] > 0.05
    assert e.details["p_flat"] > 0.05  # off by nothing, so off by the same everywhere
    h = e.details["predictions"]
    assert h[alpha == 0.05].mean() - h[alpha == 0.3].mean() == pytest.approx(0.25, abs=0.05)


def test_frames_with_categories_text_booleans_and_missing_values_work_by_default():
    rng = np.random.default_rng(2)
    city = rng.choice(["Bonn", "Rome", "Oslo"], size=600)
    z = rng.random(600) < np.where(city == "Rome", 0.6, 0.98)
    age = np.where(rng.random(600) < 0.1, np.nan, rng.uniform(20, 60, 600))
    columns = {"city": city, "age": age, "member": rng.random(600) < 0.5}
    values = [
        ert(frame, z, alpha=0.1, random_state=0).value
        for frame in (pl.DataFrame(columns), pd.DataFrame(columns, index=np.arange(600)[::-1]),
                      pd.DataFrame(columns).astype({"city": "category"}))
    ]  # fmt: skip
    assert values[0] == values[1] == values[2]
    assert values[0] > 0.1


def test_a_pipeline_gets_the_rows_of_the_frame_it_was_given():
    X, z = world()
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=[*("xyz" * 133), "q"])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert ert(frame, z, alpha=0.1, classifier=pipeline, random_state=0).value == pytest.approx(
        ert(X, z, alpha=0.1, classifier=pipeline, random_state=0).value
    )


def test_whole_weights_reach_a_pipeline_as_repeated_rows():
    X, z = world(200)
    weights = np.random.default_rng(0).integers(1, 4, size=200)
    folds = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), GaussianNB())
    options = {"alpha": 0.1, "loss": "l2", "cv": folds, "random_state": 0}
    ours = ert(X, z, classifier=pipeline, sample_weight=weights, **options)
    plain = ert(X, z, classifier=GaussianNB(), sample_weight=weights, **options)
    assert ours.value == pytest.approx(plain.value, rel=1e-6)
    twice = ert(X, z, classifier=pipeline, sample_weight=6 * weights, **options)
    assert twice.value == ours.value
    with pytest.raises(InputError, match="takes no sample_weight"):
        ert(X, z, alpha=0.1, classifier=pipeline, sample_weight=weights + 0.5)


@pytest.mark.parametrize("classifier", [None, LOGISTIC], ids=["default", "logistic"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "fractional"])
def test_a_common_factor_of_the_weights_changes_nothing(classifier, whole):
    X, z = world(600, seed=1)
    rng = np.random.default_rng(2)
    w = rng.integers(1, 5, size=600) if whole else rng.exponential(size=600)
    tables = [
        ert_table(X, z, alpha=0.1, classifier=classifier, sample_weight=w * scale, random_state=0)
        for scale in (1, 1 / 600, 250)
    ]
    for key, estimate in tables[0].items():
        for other in tables[1:]:
            for field in ("value", "std_error", "low", "high"):
                assert getattr(other[key], field) == pytest.approx(
                    getattr(estimate, field), rel=1e-9, abs=1e-13
                )
    assert tables[0]["l1"].value > 0.06


def test_weights_that_differ_have_a_linearised_error_and_no_test():
    X, z = world(400)
    w = np.random.default_rng(0).exponential(size=400)
    e = ert(X, z, alpha=0.1, classifier=LOGISTIC, sample_weight=w, n_repeats=1, random_state=0)
    assert e.p_value is None
    assert e.details["p_target"] is e.details["p_flat"] is None
    assert "weights that differ" in e.reason
    assert "linearised" in e.method
    assert "test" not in e.method
    r = np.sign(e.details["predictions"] - 0.9) * (z - 0.9)
    linearised = np.sqrt(2 * np.sum(w**2 * (r - e.value) ** 2)) / w.sum()
    assert e.std_error == pytest.approx(linearised, rel=0.05)
    assert e.n == 400


def test_equal_weights_and_rows_of_weight_zero_keep_the_exact_test():
    X, z = world(300)
    options = {"alpha": 0.1, "classifier": LOGISTIC, "random_state": 0}
    plain = ert(X, z, **options)
    third = ert(X, z, sample_weight=np.full(300, 1 / 3), **options)
    assert (third.value, third.p_value, third.std_error) == (plain.value, plain.p_value, plain.std_error)
    some = ert(X, z, sample_weight=(np.arange(300) < 250).astype(float), **options)
    assert some.n == 250
    assert some.p_value is not None


def test_clusters_stay_on_one_side_and_widen_the_error_bar():
    X, z = world(60, seed=4)
    X, z, cluster = np.repeat(X, 10, axis=0), np.repeat(z, 10), np.repeat(np.arange(60), 10)
    options = {"alpha": 0.1, "classifier": LOGISTIC, "random_state": 0}
    clustered = ert(X, z, cluster=cluster, **options)
    naive = ert(X, z, **options)
    assert clustered.std_error > 2 * naive.std_error
    assert clustered.p_value is None
    assert clustered.null_high is None
    assert "dependent" in clustered.reason
    with pytest.warns(DeprecatedNameWarning, match="groups is now called cluster"):
        assert ert(X, z, groups=cluster, **options) == clustered


def test_the_band_belongs_to_the_null_of_the_p_value():
    X, z = world(500)
    options = {"alpha": 0.1, "classifier": LOGISTIC, "random_state": 0}
    target = ert(X, z, null="target", **options)
    # c = 1.645 sqrt(2 * 0.9 * 0.1 / 500), downwards
    assert target.null_high == pytest.approx(1.644854 * np.sqrt(0.18 / 500))
    flat = ert(X, z, null="flat", **options)
    assert flat.value == target.value
    assert flat.null_high is flat.null_level is None
    assert flat.p_value == target.details["p_flat"]
    assert "does not depend on x" in flat.reason
    # The Beta law of 99 calibration rows has the variance 0.9 * 0.1 / 101.
    known = ert(X, z, n_calibration=99, **options)
    assert known.null_high == pytest.approx(1.644854 * np.sqrt(0.18 / 500 + 0.09 / 101))


def test_calibration_rows_excuse_a_level_that_is_off_by_their_luck():
    rng = np.random.default_rng(3)
    X, z = rng.uniform(size=(3000, 2)), rng.random(3000) < 0.87
    options = {"alpha": 0.1, "classifier": LOGISTIC, "random_state": 0}
    assert ert(X, z, **options).p_value < 0.001
    assert ert(X, z, n_calibration=100, **options).p_value > 0.05
    with pytest.raises(InputError, match="n_calibration"):
        ert(X, z, n_calibration=0, **options)
    varied = ert(X, z, **(options | {"alpha": rng.choice([0.1, 0.2], 3000)}), n_calibration=100)
    assert varied.p_value is None
    assert "one calibration sample" in varied.reason


def test_levels_of_zero_and_one_are_promises_too():
    rng = np.random.default_rng(4)
    X, alpha = rng.uniform(size=(400, 2)), rng.choice([0.0, 0.2, 1.0], size=400)
    z = rng.random(400) < 1 - alpha
    table = ert_table(X, z, alpha=alpha, random_state=0)
    assert all(np.isfinite(e.value) for e in table.values())
    assert abs(table["l2"].value) < 0.01
    assert table["l1"].p_value > 0.05
    broken = z.copy()
    broken[np.flatnonzero(alpha == 0.0)[0]] = False
    e = ert(X, broken, alpha=alpha, random_state=0)
    assert e.p_value == pytest.approx(1 / 1000)  # the resolution of the draws


@pytest.mark.parametrize("outcome", [True, False])
def test_equal_outcomes_have_an_error_bar(outcome):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    e = ert(X, np.full(300, outcome), alpha=0.1, random_state=0)
    assert e.value == pytest.approx(0.1 if outcome else 0.9)
    assert e.std_error > 0
    # As wide as the interval of 300 of 300 times sqrt 2, on the only side that is possible.
    assert e.high == pytest.approx(e.value)
    assert 0.01 < e.value - e.low < 0.03


def test_repeats_stop_when_seeds_no_longer_matter():
    X, clear = world(500)
    assert ert(X, clear, alpha=0.1, classifier=LOGISTIC, random_state=0).details["n_repeats"] == 1
    quiet = np.random.default_rng(0).random(500) < 0.9
    found = [ert(X, quiet, alpha=0.1, classifier=LOGISTIC, random_state=s) for s in range(3)]
    assert all(2 <= e.details["n_repeats"] <= 4 for e in found)
    folds = make_splits(5, X, quiet, False, None, np.random.default_rng(0))
    assert ert(X, quiet, alpha=0.1, classifier=LOGISTIC, cv=folds).details["n_repeats"] == 1


def test_stratified_folds_hold_equal_numbers_of_misses():
    z = np.arange(100) % 10 > 0  # ten misses
    splits = make_splits(5, np.zeros((100, 1)), z, True, None, np.random.default_rng(0))
    assert [int((~z[test]).sum()) for _, test in splits] == [2] * 5
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(100))


def test_repeats_average_the_cross_fits():
    X, z = world()
    e = ert(X, z, alpha=0.1, classifier=LOGISTIC, n_repeats=3, random_state=0)
    assert len(e.details["fold_values"]) == 15
    assert e.value == pytest.approx(np.mean(e.details["fold_values"]), abs=1e-12)


def test_rows_a_splitter_never_tests_are_left_out():
    X, z = world()
    e = ert(X, z, alpha=0.1, classifier=LOGISTIC, cv=TimeSeriesSplit(4), random_state=0)
    assert e.n == 320
    assert np.isnan(e.details["predictions"][:80]).all()
    assert e.p_value is not None


def test_the_same_seed_gives_the_same_answer_and_another_seed_another():
    X, z = world()
    first, second, other = (ert(X, z, alpha=0.1, loss="l2", random_state=s) for s in (1, 1, 2))
    assert first == second
    assert first.value != other.value


def test_no_null_saves_the_test_and_says_so():
    X, z = world()
    e = ert(X, z, alpha=0.1, classifier=LOGISTIC, null=None, random_state=0)
    assert e.p_value is None
    assert e.null_high is None
    assert "no null" in e.reason


def test_the_curve_over_levels_holds_the_single_estimates():
    rng = np.random.default_rng(5)
    X, y = rng.uniform(size=(300, 2)), rng.normal(size=300)
    radius = np.array([1.2815, 0.8416])
    ends = np.broadcast_to(np.stack([-radius, radius]), (300, 2, 2))
    curve = ert_curve(X, y, ends, alpha=[0.2, 0.4], classifier=LOGISTIC, random_state=0)
    assert curve.x.tolist() == [0.2, 0.4]
    assert curve.y.tolist() == [e.value for e in curve.details["estimates"]]
    with pytest.raises(InputError, match="one slice per level"):
        ert_curve(X, y, ends, alpha=[0.2])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"side": "left"}, InputError, '"both", "over" or "under"'),
        ({"null": "none"}, InputError, '"target", "flat"'),
        ({"cv": 1}, InputError, "at least 2"),
        ({"cv": 300}, InputError, "needs at least 600 rows"),
        ({"cv": "five"}, InputTypeError, "number of folds"),
        ({"cv": [(np.arange(50), np.arange(40, 60))]}, InputError, "must differ, 10 are in both"),
        ({"cv": [(np.arange(50), np.arange(390, 410))]}, InputError, "row numbers from 0 to 399"),
        ({"cv": [(np.arange(50), np.arange(0))]}, InputError, "empty part"),
        ({"cluster": np.zeros(400)}, InputError, "at least 5 clusters"),
        ({"classifier": LogisticRegression}, InputTypeError, "must be an instance"),
        ({"classifier": "forest"}, InputError, "lightgbm"),
        ({"alpha": 10}, InputError, "not a percentage"),
        ({"n_repeats": 0}, InputError, "n_repeats"),
    ],
)
def test_bad_options_are_refused_by_name(options, error, message):
    X, z = world()
    with pytest.raises(error, match=message):
        ert(X, z, **({"alpha": 0.1} | options))


def test_two_losses_of_one_name_are_refused():
    X, z = world()
    with pytest.raises(InputError, match="different names"):
        ert_table(
            X,
            z,
            alpha=0.1,
            losses=(lambda t, q: (q - t) ** 2, lambda t, q: np.abs(q - t)),
            classifier=LOGISTIC,
        )


def test_the_default_classifier_takes_options():
    X, z = world()
    e = ert(X, z, alpha=0.1, classifier=CoverageClassifier(n_bags=2, max_iter=20), random_state=0)
    assert e.value > 0.05
    with pytest.raises(InputError, match="n_bags"):
        CoverageClassifier(n_bags=1)


@pytest.mark.parametrize("seed", [0, 2, 3, 7])
def test_value_band_and_p_value_say_the_same(seed):
    """0.018 "up to 0.028" beside p = 0.013: the band holds for the value, the test sees more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 2))
    covered = rng.random(600) < 0.9 - 0.04 * np.sign(X[:, 0])
    e = ert(X, covered, alpha=0.1, random_state=0)
    if e.null_high is None:
        assert "no null band" in e.reason
    else:
        assert (float(e) > e.null_high) == (e.p_value <= 0.05)
