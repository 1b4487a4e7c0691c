"""The USPS study on stand-in digits: what it writes, that it resumes, how claims are decided."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from calipers.conformal import TransductiveKNNClassifier, tangent_distances
from calipers.metrics import efficiency
from studies import run_study
from studies.efficiency import claims, predictors
from studies.efficiency.digits import Digits, normalise
from studies.efficiency.digits import load_digits as load_study_digits
from studies.efficiency.matrices import MatrixStore
from studies.efficiency.predictors import MEASURES, Reading
from studies.progress import study_progress


@pytest.fixture(scope="module")
def usps_folder(tmp_path_factory):
    """A usps.npz of the real shape, drawn from the digits that scikit-learn ships, twice as large."""
    folder = tmp_path_factory.mktemp("data")
    images, labels = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(np.arange(9298) % len(images))
    large = np.kron(images[rows].reshape(-1, 8, 8), np.ones((1, 2, 2))).reshape(-1, 256)
    noise = np.random.default_rng(1).integers(-40, 41, large.shape)
    X = np.clip(large * 125 - 1000 + noise, -1000, 1000).astype(np.int16)
    y = labels[rows].astype(np.uint8)
    np.savez(folder / "usps.npz", X_train=X[:7291], y_train=y[:7291], X_test=X[7291:], y_test=y[7291:])
    return folder


@pytest.fixture(scope="module")
def quick_run(usps_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return run_study("efficiency", usps_folder, out, quick=True), out


def read(path):
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_quick_run_writes_tables_figure_and_claims(quick_run):
    report, out = quick_run
    assert [path.name for path in report.files] == [
        "predictors.csv",
        "nearest_neighbour.csv",
        "figure1.png",
        "figure2.png",
        "claims.csv",
    ]
    assert all(path.stat().st_size > 100 for path in report.files)
    assert (out / "figure2.png").read_bytes()[:4] == b"\x89PNG"
    assert [claim.agrees for claim in report.claims] == [None] * 10
    rows = read(out / "predictors.csv")
    assert len(rows) == 2 * (10 + 9 + 9)  # two metrics; K from 1 for the ratio, from 2 for the votes
    assert {row["measure"] for row in rows} == set(MEASURES.values())
    assert {(row["metric"], row["pixels"]) for row in read(out / "nearest_neighbour.csv")} == {
        ("euclidean", "normalised"), ("euclidean", "raw"), ("tangent", "normalised"), ("tangent", "raw"),
    }  # fmt: skip


@pytest.mark.parametrize(("metric", "k"), [("euclidean", 1), ("tangent", 4)])
def test_a_row_of_the_table_is_what_the_estimator_and_the_metric_say(quick_run, usps_folder, metric, k):
    _, out = quick_run
    digits = load_study_digits(usps_folder, quick=True)
    model = TransductiveKNNClassifier(n_neighbors=k, metric=metric, smoothed=True, random_state=0)
    p = model.fit(digits.train, digits.y_train).predict_p(digits.test)
    expected = efficiency(digits.y_test, p)
    (row,) = (
        r for r in read(out / "predictors.csv")
        if (r["measure"], r["metric"], r["K"]) == ("KNN-ratio", metric, str(k))
    )  # fmt: skip
    for name in ("U", "OF"):
        assert float(row[name]) == pytest.approx(float(expected[name]), rel=1e-7)
        assert float(row[f"{name}_std_error"]) == pytest.approx(expected[name].std_error, rel=1e-7)


def test_a_second_run_computes_nothing_again(quick_run, usps_folder, monkeypatch):
    report, out = quick_run
    before = (out / "predictors.csv").read_text(encoding="utf-8")

    def refuse(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr(predictors, "transductive_p_values", refuse)
    monkeypatch.setattr(predictors, "nearest_rows", refuse)
    monkeypatch.setattr("calipers.conformal.distances.Distances.between", refuse)
    assert run_study("efficiency", usps_folder, out, quick=True).claims == report.claims
    assert (out / "predictors.csv").read_text(encoding="utf-8") == before


def some_digits(seed, n=300, m=20):
    rng = np.random.default_rng(seed)
    X, y = rng.random((n + m, 36)), rng.integers(0, 10, n + m)
    return Digits(normalise(X[:n]), normalise(X[n:]), X[:n], X[n:], y[:n], y[n:])


def test_an_interrupted_matrix_is_continued_block_by_block(tmp_path, seed):
    digits = some_digits(seed)
    store = MatrixStore(digits, tmp_path)
    with study_progress() as progress:
        store.compute("tangent", progress)
        whole = store.load("tangent")
        (lost,) = tmp_path.rglob("train-00256.npz")
        kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz") if path != lost}
        assert len(kept) == 2
        lost.unlink()
        store.compute("tangent", progress)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    for again, first in zip(store.load("tangent"), whole, strict=True):
        np.testing.assert_array_equal(again, first)
    np.testing.assert_allclose(whole[0], tangent_distances(digits.train), atol=1e-9)
    np.testing.assert_array_equal(whole[0], whole[0].T)


def test_a_damaged_block_is_computed_again(tmp_path, seed):
    store = MatrixStore(some_digits(seed), tmp_path)
    with study_progress() as progress:
        store.compute("euclidean", progress)
    whole = store.load("euclidean")
    (block,) = tmp_path.rglob("test-00000.npz")
    block.write_bytes(block.read_bytes()[:-200])
    for again, first in zip(store.load("euclidean"), whole, strict=True):
        np.testing.assert_array_equal(again, first)


def test_stored_euclidean_distances_are_those_of_the_images(tmp_path, seed):
    digits = some_digits(seed)
    store = MatrixStore(digits, tmp_path)
    with study_progress() as progress:
        store.compute("euclidean", progress)
    train, test = store.load("euclidean")
    np.testing.assert_allclose(train, pairwise_distances(digits.train), atol=1e-6)
    np.testing.assert_allclose(test, pairwise_distances(digits.test, digits.train), atol=1e-6)


def test_other_images_and_other_metrics_have_distances_of_their_own(tmp_path, seed):
    first, second = some_digits(seed), some_digits(seed + 1)
    for digits in (first, second, first):
        assert (MatrixStore(digits, tmp_path).load("euclidean")[0] > 0).any()
    assert len(list(tmp_path.iterdir())) == 2
    for store, digits in ((MatrixStore(d, tmp_path), d) for d in (first, second)):
        np.testing.assert_allclose(
            store.load("euclidean")[1], pairwise_distances(digits.test, digits.train), atol=1e-6
        )
    MatrixStore(first, tmp_path).load("tangent")
    assert len(list(tmp_path.iterdir())) == 3


def test_normalised_images_have_mean_0_and_deviation_1(seed):
    images = normalise(np.random.default_rng(seed).random((5, 256)) * 7 + 3)
    np.testing.assert_allclose(images.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(images.std(axis=1), 1)


def readings(best):
    """A table in which one predictor is better than all others."""
    return [
        Reading(measure, metric, k, name, 0.01 if (measure, metric, k) == best else 0.02 + 0.01 * (metric != "tangent"), 0.001)
        for measure in MEASURES for metric in ("euclidean", "tangent") for k in range(2, 30) for name in ("U", "OF")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("best", "agrees"),
    [(("ratio", "tangent", 2), True), (("ratio", "tangent", 25), False), (("probability", "tangent", 2), False),
     (("ratio", "euclidean", 2), False)],
)  # fmt: skip
def test_the_best_predictor_must_be_ratio_tangent_and_small_k(best, agrees):
    claim = claims.best_predictor(readings(best), "U")
    assert claim.agrees is agrees
    assert f"K = {best[2]}: 0.01000" in claim.ours


def test_tangent_must_be_below_everywhere():
    assert claims.tangent_below(readings(("ratio", "tangent", 2)), "OF").agrees is True
    claim = claims.tangent_below(readings(("ratio", "euclidean", 2)), "OF")
    assert (claim.agrees, claim.ours) == (False, "83 of 84 pairs")


@pytest.mark.parametrize(("wins_from", "agrees"), [(2, True), (10, True), (11, False), (30, False)])
def test_votes_are_compared_from_the_last_lost_k_on(wins_from, agrees):
    # OF is the sum of the false labels' p-values; the first predictor is better from wins_from on, K = 2..29.
    m, n_k = 6, 28
    p = np.full((m, 3, n_k), 0.2)
    rival = np.where(np.arange(2, 30) >= wins_from, 0.3, 0.1) + np.zeros((m, 3, n_k))
    rival += 0.001 * np.arange(m)[:, None, None]
    claim = claims.votes(
        np.zeros(m, int), {("probability", "tangent"): p, ("predictability", "tangent"): rival}, "tangent", "OF",
        better="probability",
    )  # fmt: skip
    assert claim.agrees is agrees
    expected = "not at K = 29" if wins_from == 30 else f"at every K from {wins_from} to 29"
    assert claim.ours.startswith(expected)


@pytest.mark.parametrize(("error", "agrees"), [(0.0563, True), (0.049, False)])
def test_the_published_error_is_that_of_raw_pixels(error, agrees):
    found = claims.one_neighbour(
        "euclidean", [("euclidean", "raw", error, 0.005), ("euclidean", "normalised", 0.05, 0.005)]
    )
    assert found.agrees is agrees
    assert f"{100 * error:.2f} ± 0.50 % raw" in found.ours
