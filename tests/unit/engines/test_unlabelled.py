"""Estimates without labels over a stream: the same as in memory, however the rows are split."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from calipers.engines import ArraySource, FileSource, estimate_without_labels
from calipers.exceptions import InputError
from calipers.inputs.files import ColumnChoice
from calipers.performance import LabelFreePerformance, label_free_state
from calipers.performance.expected_loss_interval import Population

N = 4000


def rows(seed, n, shift=0.0):
    """Features with a category and gaps, over-confident probabilities, labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(shift, 1, n)
    odds = 1.2 * x
    city = np.where(rng.random(n) < 0.3, "Rome", "Bonn")
    gaps = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    return pl.DataFrame({"x": x, "city": city, "gaps": gaps}), 1 / (1 + np.exp(-1.5 * odds)), y


def reference(loss, features=True):
    X, p, y = rows(0, 800)
    return LabelFreePerformance(loss=loss, random_state=0).fit(p, y, X if features else None)


@pytest.fixture(params=[1000, 100_000], ids=["a sample", "all rows"])
def sampled(request, monkeypatch):
    """Rows up to which all are looked at."""
    monkeypatch.setattr(label_free_state, "SAMPLED_ROWS", request.param)
    return min(request.param, N)


@pytest.mark.parametrize(("loss", "shift"), [("zero_one", 0.0), ("brier", 0.7), ("f1", 0.7), ("auroc", 0.0)])
def test_any_split_of_the_rows_gives_the_estimate_of_all_in_memory(loss, shift, sampled):
    X, q, _ = rows(1, N, shift)
    model = reference(loss)
    whole = model.estimate(q, X)
    assert whole.details["sampled_rows"] == sampled
    assert whole.n == N - whole.details["unsupported_rows"] * (loss in ("f1", "auroc"))
    for pieces in (1, 7, 100):
        source = ArraySource({"probabilities": q, "X": X}, piece_rows=-(-N // pieces))
        found = estimate_without_labels({loss: model}, source)[loss]
        assert (found.value, found.low, found.high) == pytest.approx((whole.value, whole.low, whole.high))
        assert found.details["unsupported_rows"] == whole.details["unsupported_rows"]
        assert found.method == whole.method


def test_a_regression_is_streamed_too(sampled):
    rng = np.random.default_rng(0)

    def drawn(n, centre):
        x = rng.normal(centre, 1, n)
        return x, x + (0.2 + np.abs(x)) * rng.normal(size=n)

    (x, y), (x_new, _) = drawn(800, 0.0), drawn(N, 0.5)
    model = LabelFreePerformance(loss="absolute", random_state=0).fit(x, y, x)
    whole = model.estimate(x_new, x_new)
    source = ArraySource({"y_pred": x_new, "X": x_new[:, None]}, piece_rows=700)
    found = estimate_without_labels({"absolute": model}, source)["absolute"]
    assert (found.value, found.low, found.high) == pytest.approx((whole.value, whole.low, whole.high))


@pytest.mark.parametrize("loss", ["zero_one", "brier", "f1", "auroc"])
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_a_sample_says_what_all_rows_say(loss, shift, monkeypatch):
    X, q, _ = rows(1, 15_000, shift)
    model = reference(loss)
    whole = model.estimate(q, X)
    monkeypatch.setattr(label_free_state, "SAMPLED_ROWS", 4000)
    found = model.estimate(q, X)
    # A sample of 4000 adds little to the noise of 800 labelled rows. With a shift the width contains the
    # variance of weights from 15 refits, which is itself known to 40 % only.
    width = whole.high - whole.low
    assert found.value == pytest.approx(whole.value, abs=0.15 * width)
    assert found.high - found.low == pytest.approx(width, rel=0.5 if shift else 0.1)
    assert "from 4000 sampled rows" in found.method


def test_without_a_shift_means_over_all_rows_are_exact(monkeypatch):
    _, q, _ = rows(1, N)
    model = reference("brier", features=False)
    whole = model.estimate(q)
    monkeypatch.setattr(label_free_state, "SAMPLED_ROWS", 500)
    assert model.estimate(q).value == pytest.approx(whole.value, abs=1e-12)


def test_rows_without_their_like_are_counted_one_by_one(monkeypatch):
    X, q, _ = rows(1, N)
    X = X.with_columns(
        x=pl.when(pl.int_range(N) < 37).then(pl.lit(40.0)).otherwise("x"),
        city=pl.when(pl.int_range(N) == 100).then(pl.lit("Zug")).otherwise("city"),
    )
    monkeypatch.setattr(label_free_state, "SAMPLED_ROWS", 500)
    source = ArraySource({"probabilities": q, "X": X}, piece_rows=900)
    found = estimate_without_labels({"error": reference("zero_one")}, source)["error"]
    assert found.details["unsupported_rows"] == 38
    assert found.reason.startswith("38 of 4000 rows have no like in the reference")


def test_a_file_without_outcomes_is_read_as_arrays_are(tmp_path, sampled):
    X, q, _ = rows(1, N, 0.7)
    X.with_columns(p_1=q, note=pl.lit("-")).write_parquet(tmp_path / "new.parquet")
    choice = ColumnChoice(y=(), features=["x", "city", "gaps"], probabilities="p_1")
    model = reference("zero_one")
    source = FileSource(str(tmp_path / "new.parquet"), choice, features=True, piece_rows=600)
    found = estimate_without_labels({"error": model}, source)["error"]
    whole = model.estimate(q, X)
    # Rows of a file have draws of their own: other rows are sampled, all are the same.
    same = {} if sampled == N else {"abs": 0.2 * (whole.high - whole.low)}
    assert found.value == pytest.approx(whole.value, **same)
    assert found.details["unsupported_rows"] == whole.details["unsupported_rows"]


def test_rows_unlike_the_reference_are_refused_with_their_file(tmp_path):
    pl.DataFrame({"p_a": [0.2, 0.3], "p_b": [0.2, 0.3], "p_c": [0.6, 0.4]}).write_csv(tmp_path / "new.csv")
    source = FileSource(str(tmp_path / "new.csv"), ColumnChoice(y=()))
    with pytest.raises(InputError, match=r"new\.csv: probabilities must have the 2 columns of fit, got 3"):
        estimate_without_labels({"error": reference("zero_one", features=False)}, source)
    with pytest.raises(InputError, match="these rows have no X"):
        estimate_without_labels({"error": reference("zero_one")}, ArraySource({"probabilities": [0.5, 0.2]}))


def test_the_noise_of_a_sample_is_that_of_drawing_without_replacement():
    rng = np.random.default_rng(0)
    pilot = rng.normal(size=(300, 1))
    expected = 2.0 * pilot[:, 0] + rng.normal(size=300)
    draws = [rng.choice(300, 100, replace=False) for _ in range(4000)]
    mix = np.array([2.0])
    found = [Population(300, pilot[d], pilot.mean(axis=0)).mean(expected[d], mix) for d in draws]
    values, variances = np.array(found).T
    assert values.mean() == pytest.approx(expected.mean(), abs=0.01)
    # A variance of 4000 draws is known to 2 %; N / (N - 1) is another 1 %.
    assert variances.mean() == pytest.approx(values.var(), rel=0.1)
