"""The adaptivity study in its quick form, its predictors over stored outputs, and the path for folders of pictures."""

import csv

import numpy as np
import pytest
from scipy import stats

from calipers.datasets import REGRESSION_SETS
from calipers.exceptions import InputError
from calipers.metrics import deficit, escv, excess, sscv, t_cv, t_ss
from studies import adaptivity, run_study
from studies.adaptivity import cases
from studies.adaptivity.cases import FULL, QUICK, Case, outputs_of, splits
from studies.adaptivity.claims import ranks_first
from studies.adaptivity.classification import (
    RIVALS,
    Effort,
    correlation_ranks,
    noise_floor,
    rank_frequencies,
    rank_over_cases,
    table_1_rows,
    table_2_rows,
)
from studies.adaptivity.methods import BASELINES, METHODS, bare_t_ss, run_method
from studies.adaptivity.outputs import (
    Outputs,
    compute_outputs,
    outputs_from_folder,
    read_image_folder,
)
from studies.adaptivity.pictures import PictureWorld, picture_outputs, picture_rows, write_pictures_table
from studies.adaptivity.regression import DenoisingLoss, regression_rows
from studies.adaptivity.scale import synthetic_rows

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def outputs():
    rng = np.random.default_rng(0)
    hardness = rng.beta(1, 2, 800)
    labels = rng.integers(0, 6, 800)
    logits = rng.normal(size=(800, 6))
    logits[np.arange(800), labels] += 4 * (1 - hardness)
    P = np.exp(logits)
    ease = 1 - 0.5 * hardness + 0.05 * rng.normal(size=800)
    return Outputs(
        "invented", P / P.sum(axis=1, keepdims=True), labels, {"gaussian": ease, "shift": ease[::-1]}
    )


def test_the_quick_study_writes_tables_figures_and_undecided_claims(tmp_path):
    report = run_study("adaptivity", None, tmp_path, quick=True)
    names = {path.name for path in report.files}
    assert {
        "table_1.csv",
        "table_2.csv",
        "table_3.csv",
        "figure_1.png",
        "synthetic.csv",
        "claims.csv",
    } <= names
    # two cases and two repetitions cannot tell six methods apart: no diagram is drawn
    assert not any("critical_difference" in name or "figures_7" in name for name in names)
    assert report.agreement == f"all {len(report.claims)} claims undecided"
    assert all(path.stat().st_size > 0 for path in report.files)
    assert {claim.verdict for claim in report.claims} == {"undecided"}
    with (tmp_path / "table_2.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["alpha"] for row in rows} == {"0.05", "0.1", "0.15", "0.2"}
    assert all(method in rows[0] for method in METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_covers_over_stored_outputs(outputs, method):
    hits = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(800)
        found = run_method(method, outputs, order[:400], order[400:], (0.1, 0.2), seed)
        assert list(found) == [0.1, 0.2]  # in the order asked for: tables must not depend on hashing
        hits.append(found[0.1].covered.mean())
    assert np.mean(hits) == pytest.approx(0.9, abs=0.035)


def test_the_bare_reading_is_that_of_the_metric(outputs):
    size = 1 + outputs.ranks // 2
    ease = outputs.ease["gaussian"]
    full = t_ss(outputs.ranks, size, ease, n_bins=20, n_draws=1, random_state=0)
    assert bare_t_ss(outputs.ranks, size, ease, 20) == pytest.approx(float(full))


def test_table_rows_agree_with_the_public_metrics(outputs):
    rows = table_2_rows(outputs, Effort(repetitions=1, trials=2, pairs=20, rows=200, group=20))
    row = next(r for r in rows if r["method"] == "APS" and r["alpha"] == 0.1)
    validation, test = next(splits(800, 1))
    found = run_method("APS", outputs, validation, test, (0.05, 0.1, 0.15, 0.2), 0)[0.1]
    reading = t_cv(found.covered, outputs.ease["gaussian"][test], alpha=0.1, n_bins=30)
    assert row["t_cv_30"] == pytest.approx(float(reading))
    ranked = table_1_rows(outputs, Effort(repetitions=1, trials=4, pairs=20, rows=200, group=20))
    assert {r["method"] for r in ranked} == {"LAC", "APS", "RAPS", "SAPS"}
    assert all(1 <= r["rank of T-SS"] <= 5 for r in ranked)


def test_every_data_set_the_study_names_has_a_loader():
    assert set(adaptivity._REGRESSION) <= set(REGRESSION_SETS)
    assert {case.data for case in (*FULL, *QUICK)} <= {"fashion", "usps", "digits"}


def test_outputs_are_computed_once_per_case(tmp_path, monkeypatch):
    small, larger = Case("digits", "logistic", 100, 60), Case("digits", "logistic", 100, 80)
    first = outputs_of(small, None, tmp_path)
    assert len(outputs_of(larger, None, tmp_path).labels) == 80

    def refuse(*_, **__):
        raise AssertionError("computed again")

    monkeypatch.setattr(cases, "compute_outputs", refuse)
    second = outputs_of(small, None, tmp_path)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert list(second.ease) == ["gaussian", "shift", "blur"]
    for kind, values in second.ease.items():
        np.testing.assert_array_equal(values, first.ease[kind])
    # Other images are other outputs, whatever the case is called.
    X, y, shape = cases._digits(None)
    cases._source.cache_clear()
    monkeypatch.setitem(cases._LOADERS, "digits", lambda data: (1 - X, y, shape))
    with pytest.raises(AssertionError, match="computed again"):
        outputs_of(small, None, tmp_path)
    cases._source.cache_clear()


def test_synthetic_outputs_have_ease_that_follows_difficulty():
    rows = synthetic_rows(3000, 30, n_transforms=3)
    assert [row["score"] for row in rows] == ["lac", "aps", "raps", "saps"]
    for row in rows:
        assert row["coverage"] == pytest.approx(0.9, abs=0.04)
    # APS spreads its mass over many labels where the model hesitates.
    assert rows[1]["T-SS"] > 0.25


@pytest.fixture
def folder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for label, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        for i in range(7):
            pixels = rng.integers(0, 120, (20 + i, 24, 3), dtype=np.uint8) + 100 * label
            image.fromarray(pixels.astype(np.uint8)).save(tmp_path / name / f"{i}.png")
    (tmp_path / "cat" / "notes.txt").write_text("not a picture")
    return tmp_path


def test_folders_of_pictures_are_read_in_batches_like_imagenet(folder):
    batches = list(read_image_folder(folder, size=(16, 16), batch_size=5))
    assert [len(labels) for _, labels in batches] == [5, 5, 4]
    images = np.concatenate([images for images, _ in batches])
    labels = np.concatenate([labels for _, labels in batches])
    assert images.shape == (14, 3, 16, 16)
    assert images.min() >= 0
    assert images.max() <= 1
    assert labels.tolist() == [0] * 7 + [1] * 7
    assert images[labels == 1].mean() > images[labels == 0].mean()


def test_a_torchvision_style_model_gives_outputs_and_ease(folder):
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, 4, 3)
            self.head = torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.head(torch.relu(self.convolution(x)).mean(dim=(2, 3)))

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network().eval()

    @torch.no_grad()
    def predict(images):
        return torch.softmax(network(torch.as_tensor(images)), dim=1)

    options = {"transforms": {"gaussian": 0.1, "shift": 0.1, "rotation": 0.1}, "n_transforms": 3}
    found = outputs_from_folder("pictures", folder, predict, size=(16, 16), batch_size=5, **options)
    assert found.probabilities.shape == (14, 2)
    assert set(found.ease) == {"gaussian", "shift", "rotation"}
    # Batch by batch is what all at once gives.
    images = np.concatenate([images for images, _ in read_image_folder(folder, size=(16, 16))])
    whole = compute_outputs("pictures", predict, images, found.labels, **options)
    np.testing.assert_allclose(found.probabilities, whole.probabilities, rtol=1e-5)
    np.testing.assert_allclose(found.ease["shift"], whole.ease["shift"], rtol=1e-5)


def test_the_small_network_learns_and_leaves_torch_as_it_was():
    torch = pytest.importorskip("torch")
    from sklearn.datasets import load_digits

    from studies.adaptivity.network import SmallNetwork

    X, y = load_digits(return_X_y=True)
    before = torch.random.get_rng_state()
    model = SmallNetwork(epochs=6).fit(X[:600] / 16, y[:600])
    assert torch.equal(torch.random.get_rng_state(), before)
    P = model.predict_proba(X[600:] / 16)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert np.mean(model.predict(X[600:] / 16) == y[600:]) > 0.6
    np.testing.assert_allclose(
        SmallNetwork(epochs=6).fit(X[:600] / 16, y[:600]).predict_proba(X[600:] / 16), P
    )


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="found no picture"):
        next(read_image_folder(tmp_path, size=(8, 8)))


def test_an_undefined_correlation_is_not_zero_and_ranks_last(outputs):
    row = dict.fromkeys(RIVALS, -0.3) | {"T-SS": -0.5, "SSCV": float("nan")}
    ranks = correlation_ranks(row)
    assert ranks == {"Deficit": 1, "Excess": 1, "SSCV": 5, "ESCV": 1, "T-SS": 4}
    rows = table_1_rows(outputs, Effort(repetitions=1, trials=6, pairs=40, rows=300, group=20))
    for found in rows:
        for name in RIVALS:
            assert np.isnan(found[name]) or -1 <= found[name] <= 1
            assert 0 <= found[f"p-value of {name}"] <= 1
    table = rank_frequencies(rows)
    assert [row[0] for row in table] == [1, 2, 3, 4, 5, "Avg."]
    assert all(sum(row[i] for row in table[:5]) == len(rows) for i in range(1, 6))


def test_ranking_first_means_alone():
    shared = dict.fromkeys(METHODS, 1.0)
    assert ranks_first(shared) is None
    assert ranks_first(shared | {"LAC": 2.0}) is False  # three baselines still share the first rank
    assert ranks_first(shared | dict.fromkeys(BASELINES, 2.0)) is True


def test_tables_6_and_7_hold_the_public_metrics(outputs):
    rows = table_2_rows(outputs, Effort(repetitions=1, trials=2, pairs=20, rows=200, group=20))
    validation, test = next(splits(800, 1))
    for method in ("APS", "O-LAC"):
        row = next(r for r in rows if r["method"] == method and r["alpha"] == 0.1)
        found = run_method(method, outputs, validation, test, (0.05, 0.1, 0.15, 0.2), 0)[0.1]
        ranks = outputs.ranks[test]
        assert row["sscv"] == pytest.approx(float(sscv(found.covered, found.size, alpha=0.1)))
        assert row["escv"] == pytest.approx(float(escv(found.covered, found.size, alpha=0.1)))
        assert row["deficit"] == pytest.approx(float(deficit(ranks, found.size)))
        assert row["excess"] == pytest.approx(float(excess(ranks, found.size)))
        assert row["rows"] == len(test)


def test_the_noise_floor_is_that_of_the_paper_s_setting():
    # T-CV of a perfect predictor with 20 000 rows, 50 bins and alpha = 0.1
    assert noise_floor(20_000, 50, 0.1) == pytest.approx(0.0375, abs=0.002)


def test_a_diagram_needs_blocks_enough_to_differ():
    rng = np.random.default_rng(0)
    table = {f"case {i}": dict(zip(METHODS, rng.random(6), strict=True)) for i in range(8)}
    assert rank_over_cases(dict(list(table.items())[:2]), higher=True) is None
    assert rank_over_cases(table, higher=True) is not None


def test_bins_of_width_give_r_squared_and_tau_of_the_same_points():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 2))
    y = X[:, 0] + np.abs(X[:, 1]) * rng.normal(size=900)
    rows = regression_rows("invented", X, y, seeds=1, rows=900, n_bins=10)
    row = next(r for r in rows if r["method"] == "CP-A" and r["alpha"] == 0.3)
    assert len(row["widths"]) == len(row["errors"]) == 10
    assert row["tau"] == pytest.approx(stats.kendalltau(row["widths"], row["errors"]).statistic)
    correlation = np.corrcoef(row["widths"], row["errors"])[0, 1]
    assert row["r_squared"] == pytest.approx(np.sign(correlation) * correlation**2)
    assert next(r for r in rows if r["method"] == "CP")["widths"] == []


def test_the_self_supervised_loss_is_larger_off_the_curve_the_rows_lie_on():
    # rows on a circle: a linear code cannot tell the centre from the circle, a denoising network can
    rng = np.random.default_rng(2)
    angle = rng.uniform(0, 2 * np.pi, 600)
    rows = np.column_stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)])
    loss = DenoisingLoss(rows + 0.02 * rng.normal(size=rows.shape), seed=0)
    inside = loss(rows[:200])
    outside = loss(rng.normal(size=(200, 4)) * 1.2)
    assert np.median(outside) > 2 * np.median(inside)
    assert (inside >= loss.floor).all()


def test_a_model_on_a_device_answers_a_folder_of_invented_pictures(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("PIL")
    world = PictureWorld(n_classes=4, side=16)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # where training starts decides how far harder pictures move the model
        model = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 4))
    found, seconds = picture_outputs(model, world, 240, tmp_path / "pictures", device="cpu", steps=150)
    assert found.probabilities.shape == (240, 4)
    assert np.array_equal(np.bincount(found.labels), [60] * 4)
    assert set(seconds) == {"writing the pictures", "training", "reading, changing and answering"}
    assert 0.5 < found.accuracy < 1
    # harder pictures move the model more: -0.14 to -0.19 over starts, with a noise of 0.065
    assert stats.spearmanr(found.ease["gaussian"], found.ranks, alternative="less").pvalue < 0.01
    rows = picture_rows(found)
    assert [(row["alpha"], row["method"]) for row in rows] == [(a, m) for a in (0.1, 0.05) for m in METHODS]
    assert all(row["coverage"] > 1 - row["alpha"] - 0.1 for row in rows)
    assert {p.name for p in write_pictures_table(rows, seconds, tmp_path)} == {
        "pictures.csv",
        "pictures_seconds.csv",
    }
