"""ERT: brute force twin, parts, weights, groups, splitters, tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calipers.exceptions import InputError, InputTypeError
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
    t, brier, absolute = 0.9, [], []
    for train, test in folds:
        h = LogisticRegression().fit(X[train], z[train]).predict_proba(X[test])[:, 1]
        brier += list((t - z[test]) ** 2 - (h - z[test]) ** 2)
        absolute += list(np.sign(h - t) * (z[test] - t))
    table = ert_table(X, z, alpha=0.1, losses=("l1", "l2"), classifier=LOGISTIC, cv=folds, random_state=0)
    assert table["l2"].value == pytest.approx(np.mean(brier), rel=1e-9)
    assert table["l1"].value == pytest.approx(np.mean(absolute), rel=1e-9)
    # sqrt 2 times the row-wise standard error
    assert table["l1"].std_error == pytest.approx(np.sqrt(2) * np.std(absolute, ddof=1) / 20, rel=1e-9)
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
    assert e.details["p_flat"] < 0.01
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
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), LogisticRegression())
    ours = ert(
        X, z, alpha=0.1, loss="l2", classifier=pipeline, cv=folds, sample_weight=weights, random_state=0
    )
    plain = ert(
        X, z, alpha=0.1, loss="l2", classifier=LOGISTIC, cv=folds, sample_weight=weights, random_state=0
    )
    assert ours.value == pytest.approx(plain.value, rel=1e-4)
    with pytest.raises(InputError, match="takes no sample_weight"):
        ert(X, z, alpha=0.1, classifier=pipeline, sample_weight=weights + 0.5)


def test_groups_stay_on_one_side_and_widen_the_error_bar():
    X, z = world(60, seed=4)
    X, z, groups = np.repeat(X, 10, axis=0), np.repeat(z, 10), np.repeat(np.arange(60), 10)
    grouped = ert(X, z, alpha=0.1, groups=groups, classifier=LOGISTIC, random_state=0)
    naive = ert(X, z, alpha=0.1, classifier=LOGISTIC, random_state=0)
    assert grouped.std_error > 2 * naive.std_error
    assert grouped.p_value is None
    assert "dependent" in grouped.reason


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
        ({"groups": np.zeros(400)}, InputError, "at least 5 groups"),
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
