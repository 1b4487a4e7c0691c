"""Loaders against the published shapes, counts and accuracies; clear errors without the data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from calipers.datasets import (
    REGRESSION_SETS,
    load_adult,
    load_cifar10_human,
    load_cifar10_resnet50,
    load_cifar100,
    load_cifar_n,
    load_covtype,
    load_fashion_mnist,
    load_regression,
    load_usps,
)
from calipers.exceptions import InputError

LOADERS = {
    "usps.npz": load_usps,
    "adult_train.csv.gz": load_adult,
    "covtype.npz": load_covtype,
    "fashion_mnist.npz": load_fashion_mnist,
    "cifar10_test_human_models.npz": load_cifar10_human,
    "cifar10_resnet50_val_test.npz": load_cifar10_resnet50,
    "cifar100_test_models.npz": load_cifar100,
    "cifar_n_train_labels.npz": load_cifar_n,
    "regression/star.csv.gz": lambda data_dir=None: load_regression("star", data_dir),
}


@pytest.mark.parametrize("file", LOADERS)
def test_a_missing_file_is_named_with_its_folder_and_origin(file, tmp_path):
    with pytest.raises(InputError, match=rf"{file} was not found in .*{tmp_path.name}; it is made from \w+"):
        LOADERS[file](tmp_path)


@pytest.mark.parametrize("file", LOADERS)
def test_no_folder_given_is_said_with_the_remedy(file, monkeypatch):
    monkeypatch.delenv("CALIPERS_DATA", raising=False)
    with pytest.raises(InputError, match=rf"data_dir must name the folder that holds {file}; pass data_dir="):
        LOADERS[file]()


def test_the_environment_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CALIPERS_DATA", str(tmp_path))
    with pytest.raises(InputError, match=f"usps.npz was not found in .*{tmp_path.name}"):
        load_usps()
    monkeypatch.setenv("CALIPERS_DATA", str(tmp_path / "gone"))
    with pytest.raises(InputError, match="CALIPERS_DATA must name an existing folder that holds usps.npz"):
        load_usps()


def test_an_archive_without_its_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "usps.npz", X_train=np.zeros(3))
    with pytest.raises(InputError, match=r"usps.npz must hold the array y_train, it has X_train\."):
        load_usps(tmp_path)


def test_another_version_of_a_table_is_refused(tmp_path):
    (tmp_path / "regression").mkdir()
    (tmp_path / "regression" / "yacht.csv.gz").write_text("x0,y\n1,2\n")
    with pytest.raises(InputError, match="must give 308 rows and 6 features, got 1 and 1"):
        load_regression("yacht", tmp_path)
    (tmp_path / "regression" / "yacht.csv.gz").write_text("x0,y\n1,2\nfive,3\n")
    with pytest.raises(InputError, match="must hold numbers in column 'x0', got 'five' at row 1"):
        load_regression("yacht", tmp_path)
    (tmp_path / "regression" / "yacht.csv.gz").write_text("x0,z\n1,2\n")
    with pytest.raises(InputError, match="must have the column 'y', it has x0, z"):
        load_regression("yacht", tmp_path)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: load_regression("boston", "."), "name must be one of bike, bio, blog"),
        (lambda: load_cifar10_human(".", models=["gpt"]), "models must be among densenet_bc_190_40"),
        (lambda: load_cifar10_resnet50(".", part="train"), 'part must be "val" or "test"'),
        (lambda: load_cifar_n(".", dataset="svhn"), 'dataset must be "cifar10" or "cifar100"'),
    ],
)
def test_unknown_names_are_refused(load, message):
    with pytest.raises(InputError, match=message):
        load()


def test_usps_has_the_published_counts_and_pixels(data_dir):
    data = load_usps(data_dir)
    assert np.bincount(data.train.y).tolist() == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(data.test.y).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert data.X.shape == (9298, 256)
    assert (data.X.min(), data.X.max()) == (-1.0, 1.0)
    np.testing.assert_allclose(data.X[:50], np.round(data.X[:50], 3), atol=1e-12)


def test_adult_keeps_the_missing_category_and_the_split(data_dir):
    data = load_adult(data_dir)
    assert np.bincount(data.train.y).tolist() == [24720, 7841]
    assert np.bincount(data.test.y).tolist() == [12435, 3846]
    assert len(data.categorical) == 8
    assert all(data.X[name].dtype == pl.String for name in data.categorical)
    assert (data.column("workclass") == "?").sum() == 2799
    assert data.X.null_count().sum_horizontal().item() == 0
    few = data.rows(np.array([0, 40000]))
    assert few.column("age").tolist() == [data.column("age")[0], data.column("age")[40000]]


def test_covtype_has_the_published_class_counts(data_dir):
    data = load_covtype(data_dir)
    assert data.X.shape == (581012, 54)
    assert np.bincount(data.y)[1:].tolist() == [211840, 283301, 35754, 2747, 9493, 17367, 20510]
    assert load_covtype(data_dir, binary=True).y.sum() == 283301


def test_fashion_mnist_is_balanced_in_its_test_part(data_dir):
    data = load_fashion_mnist(data_dir)
    assert data.X.shape == (40000, 784)
    assert np.bincount(data.test.y).tolist() == [1000] * 10
    assert len(data.train) == 30000


def test_cifar10_models_have_the_published_accuracies(data_dir):
    data = load_cifar10_human(data_dir)
    published = {
        "densenet_bc_190_40": 0.9668,
        "resnet110": 0.9389,
        "preresnet110": 0.9506,
        "cnn_unnamed": 0.8892,
        "wrn_16_4": 0.9109,
        "lenet5": 0.5308,
        "vgg16": 0.9359,
        "cleanlab_cv": 0.9294,
    }
    for model, accuracy in published.items():
        P = data.probabilities[model]
        assert np.mean(P.argmax(axis=1) == data.labels) == pytest.approx(accuracy, abs=1e-12)
        assert np.abs(P.sum(axis=1) - 1).max() < 2e-5
    assert data.models == (*published, "resnet50")
    assert data.human_counts.sum(axis=1).min() == 47
    assert data.human_counts.sum(axis=1).max() == 63


def test_only_the_asked_models_are_read(data_dir):
    assert load_cifar10_human(data_dir, models=["lenet5"]).models == ("lenet5",)
    assert load_cifar100(data_dir, models="lenet5").models == ("lenet5",)


def test_resnet50_parts_are_separate_and_agree_with_the_other_file(data_dir):
    val, test = (load_cifar10_resnet50(data_dir, part=part) for part in ("val", "test"))
    assert np.mean(val.logits["resnet50"].argmax(axis=1) == val.labels) == pytest.approx(0.9508)
    assert np.mean(test.logits["resnet50"].argmax(axis=1) == test.labels) == pytest.approx(0.9502)
    other = load_cifar10_human(data_dir, models=["resnet50"])
    np.testing.assert_array_equal(other.logits["resnet50"], test.logits["resnet50"])


def test_cifar100_models_have_the_published_accuracies(data_dir):
    data = load_cifar100(data_dir)
    accuracies = [np.mean(P.argmax(axis=1) == data.labels) for P in data.probabilities.values()]
    assert accuracies == pytest.approx([0.7541, 0.7543, 0.1246], abs=1e-12)


def test_cifar_n_has_the_published_noise_rates(data_dir):
    data = load_cifar_n(data_dir)
    published = {"aggre": 0.0901, "worse": 0.4021, "random1": 0.1723, "random2": 0.1812, "random3": 0.1764}
    for kind, rate in published.items():
        assert data.noise_rate(kind) == pytest.approx(rate, abs=5e-5)
    assert load_cifar_n(data_dir, dataset="cifar100").noise_rate("noisy") == pytest.approx(0.402, abs=5e-4)
    with pytest.raises(InputError, match="kind must be one of aggre"):
        data.noise_rate("none")


@pytest.mark.parametrize("name", REGRESSION_SETS)
def test_regression_sets_are_complete_and_of_the_stated_shape(name, data_dir):
    data = load_regression(name, data_dir)
    entry = REGRESSION_SETS[name]
    assert data.X.shape == (entry.n_rows, entry.n_features)
    assert len(set(data.feature_names)) == entry.n_features
    assert entry.target not in data.feature_names
    assert set(data.categorical) <= set(data.feature_names)
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert data.y.shape == (entry.n_rows,)
    assert data.y.std() > 0


def test_california_has_the_published_mean_value(data_dir):
    assert load_regression("california", data_dir).y.mean() == pytest.approx(206855.817, abs=5e-4)


def test_bike_time_is_parsed_and_the_parts_of_the_target_are_gone(data_dir):
    data = load_regression("bike", data_dir)
    assert {"casual", "registered", "datetime"}.isdisjoint(data.feature_names)
    # first row: Saturday 2011-01-01 00:00, season 1, 16 bikes
    first = {name: data.column(name)[0] for name in ("hour", "day", "month", "year", "season_1", "season_2")}
    assert first == {"hour": 0, "day": 5, "month": 1, "year": 0, "season_1": 1, "season_2": 0}
    assert data.y[0] == 16
    np.testing.assert_array_equal(sum(data.column(f"weather_{k}") for k in range(1, 5)), 1)


def test_star_target_sums_the_eight_scores_of_complete_rows(data_dir):
    data = load_regression("star", data_dir)
    # first complete row of the file: 447 507 568 587 473 538 579 593
    assert data.y[0] == 447 + 507 + 568 + 587 + 473 + 538 + 579 + 593
    assert set(np.unique(data.column("stark"))) == {0, 1, 2}
    assert "readk" not in data.feature_names


def test_community_fills_one_value_and_drops_the_sparse_columns(data_dir):
    data = load_regression("community", data_dir)
    assert "OtherPerCap" in data.feature_names
    assert {"LemasSwornFT", "state", "communityname"}.isdisjoint(data.feature_names)
    assert data.y[0] == pytest.approx(0.2)


def test_blog_parts_are_the_training_file_and_the_daily_files(data_dir):
    data = load_regression("blog", data_dir)
    assert (len(data.train), len(data.test)) == (52397, 7624)
