import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial import distance
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from calipers.difficulty import ease, ease_from_outputs
from calipers.exceptions import InputError, InputTypeError


def softmax_model(X):
    logits = np.asarray(X)[:, :2] @ np.array([[2.0, -1.0, 0.5], [0.3, 1.0, -2.0]])
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(200, 4))


PAIR = np.random.default_rng(1).dirichlet(np.ones(5), size=(2, 40))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cosine", lambda p, q: 1 - distance.cosine(p, q)),
        ("total_variation", lambda p, q: 1 - 0.5 * sum(abs(a - b) for a, b in zip(p, q, strict=True))),
        ("jensen_shannon", lambda p, q: 1 - distance.jensenshannon(p, q, base=2) ** 2),
        ("agreement", lambda p, q: float(np.argmax(p) == np.argmax(q))),
    ],
)
def test_similarities_of_probabilities_are_the_textbook_ones(name, expected):
    ours = ease_from_outputs(PAIR[0], [PAIR[1]], similarity=name)
    np.testing.assert_allclose(ours, [expected(p, q) for p, q in zip(*PAIR, strict=True)], atol=1e-12)
    assert (ours >= 0).all()
    assert ease_from_outputs(PAIR[0], [PAIR[0]], similarity=name) == pytest.approx(1.0)


def test_ease_is_the_mean_over_transformations():
    many = np.random.default_rng(2).dirichlet(np.ones(5), size=(7, 40))
    one_by_one = np.mean([ease_from_outputs(PAIR[0], [m]) for m in many], axis=0)
    np.testing.assert_allclose(ease_from_outputs(PAIR[0], many), one_by_one)
    np.testing.assert_allclose(ease_from_outputs(PAIR[0], iter(many)), one_by_one)


def test_zero_probabilities_and_zero_rows_are_no_accident():
    clean, other = (
        np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]),
    )
    assert ease_from_outputs(clean, [other]).tolist() == [0.0, 1.0, 0.0]
    assert ease_from_outputs(clean[:1], [other[:1]], similarity="jensen_shannon").tolist() == [0.0]


def test_regression_similarity_is_exp_of_the_distance_in_units():
    clean, other = np.array([1.0, 5.0]), np.array([3.0, 5.0])
    np.testing.assert_allclose(ease_from_outputs(clean, [other], similarity="exp_abs"), [np.exp(-2), 1])
    np.testing.assert_allclose(ease_from_outputs(clean, [other], unit=4.0), [np.exp(-0.5), 1])
    np.testing.assert_allclose(ease_from_outputs(clean, [other], unit="spread"), [np.exp(-1), 1])
    column = ease_from_outputs(clean[:, None], [other[:, None]])
    np.testing.assert_allclose(column, [np.exp(-2), 1])


def test_labels_are_compared_for_agreement():
    assert ease_from_outputs(np.array(["a", "b"]), [np.array(["a", "c"])]).tolist() == [1.0, 0.0]


def test_ease_is_lower_near_the_decision(rows):
    found = ease(softmax_model, rows, random_state=0)
    top = np.sort(softmax_model(rows), axis=1)
    margin = top[:, -1] - top[:, -2]
    assert found.min() >= 0
    assert found.max() <= 1
    assert np.corrcoef(np.argsort(np.argsort(margin)), np.argsort(np.argsort(found)))[0, 1] > 0.6


def test_ease_does_not_depend_on_batches_or_the_order_of_rows(rows):
    whole = ease(softmax_model, rows, random_state=3)
    for batch_size in (1, 11, 77, 5000):
        np.testing.assert_allclose(ease(softmax_model, rows, random_state=3, batch_size=batch_size), whole)
    order = np.random.default_rng(1).permutation(200)
    np.testing.assert_allclose(ease(softmax_model, rows[order], random_state=3), whole[order])
    assert not np.allclose(ease(softmax_model, rows, random_state=4), whole)


def spy(seen):
    def predict(X):
        seen.append(X)
        return softmax_model(np.zeros((len(X), 2)))

    return predict


def test_all_copies_of_a_block_go_to_the_model_together(rows):
    seen = []
    ease(spy(seen), rows, n_transforms=4, random_state=0)
    assert [len(x) for x in seen] == [5 * 200]
    np.testing.assert_array_equal(seen[0][:200], rows)


def test_gaussian_noise_has_the_scale_asked_for(rows):
    seen = []
    rows = rows * np.array([1.0, 10.0, 1.0, 1.0])
    ease(spy(seen), rows, scale=0.2, random_state=0)
    noise = (seen[0].reshape(11, 200, 4) - rows)[1:]
    np.testing.assert_allclose(noise.std(axis=(0, 1)), 0.2, rtol=0.06)
    assert abs(noise.mean()) < 0.01
    # Rows and turns get different noise.
    assert np.unique(noise[:, :, 0]).size > 1500
    seen.clear()
    ease(spy(seen), rows, scale=0.2, relative=True, random_state=0)
    noise = (seen[0].reshape(11, 200, 4) - rows)[1:]
    np.testing.assert_allclose(noise.std(axis=(0, 1)), 0.2 * rows.std(axis=0), rtol=0.06)


def test_named_columns_are_left_alone(rows):
    for transform in ("gaussian", "dropout"):
        for categorical in ([1, 3], np.array([False, True, False, True])):
            seen = []
            ease(spy(seen), rows, transform=transform, scale=0.5, categorical=categorical, random_state=0)
            copies = seen[0].reshape(11, 200, 4)
            np.testing.assert_array_equal(
                copies[:, :, [1, 3]], np.broadcast_to(rows[:, [1, 3]], (11, 200, 2))
            )
            assert (copies[1:, :, 0] != rows[:, 0]).mean() > 0.3


@pytest.mark.parametrize("library", [pd, pl])
def test_dataframes_keep_their_kind_and_their_categories(library):
    rng = np.random.default_rng(0)
    frame = library.DataFrame(
        {
            "age": rng.integers(20, 60, 50),
            "city": rng.choice(["Rome", "Bonn"], 50),
            "member": rng.random(50) < 0.5,
            "income": rng.normal(size=50),
        }
    )
    if library is pd:
        frame.index = np.arange(100, 150)
    seen = []
    ease(spy(seen), frame, n_transforms=2, scale=1.0, random_state=0)
    joined = seen[0]
    assert isinstance(joined, library.DataFrame)
    assert joined["city"].to_list() == frame["city"].to_list() * 3
    assert joined["member"].to_list() == frame["member"].to_list() * 3
    changed = np.asarray(joined["age"])[50:].reshape(2, 50)
    assert (np.abs(changed - np.asarray(frame["age"])) > 0).all()
    assert np.abs(changed - np.asarray(frame["age"])).max() < 6


def test_dropout_replaces_a_share_of_features_by_their_mean(rows):
    seen = []
    ease(spy(seen), rows, transform="dropout", scale=0.3, random_state=0)
    copies = seen[0].reshape(11, 200, 4)[1:]
    dropped = copies != rows
    np.testing.assert_allclose(copies[dropped], np.broadcast_to(rows.mean(axis=0), copies.shape)[dropped])
    assert dropped.mean() == pytest.approx(0.3, abs=0.03)


def test_several_transformations_take_turns(rows):
    seen = []
    ease(spy(seen), rows, transform=["gaussian", lambda X: X + 100.0], n_transforms=5, random_state=0)
    shift = (seen[0].reshape(6, 200, 4) - rows)[1:]
    assert [bool(np.allclose(s, 100.0)) for s in shift] == [False, True, False, True, False]


def test_callables_may_take_a_generator(rows):
    first, second = (
        ease(softmax_model, rows, transform=lambda X, rng: X + rng.normal(0, 0.3, X.shape), random_state=5)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_estimators_are_asked_for_probabilities(rows):
    y = (rows[:, 0] > 0).astype(int)
    model = LogisticRegression().fit(rows, y)
    np.testing.assert_allclose(
        ease(model, rows, random_state=0), ease(model.predict_proba, rows, random_state=0)
    )
    forest = RandomForestClassifier(5, random_state=0).fit(rows, y)
    assert ease(forest, rows, similarity="agreement", random_state=0).min() < 1


def test_progress_goes_to_standard_error(rows, capsys):
    ease(softmax_model, rows, progress=True, batch_size=300, random_state=0)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ease" in captured.err


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("similarity", ["cosine", "total_variation", "jensen_shannon", "agreement"])
def test_outputs_stay_in_their_library(library, similarity):
    xp = pytest.importorskip(library)
    many = np.random.default_rng(2).dirichlet(np.ones(5), size=(3, 40))
    host = ease_from_outputs(PAIR[0], many, similarity=similarity)
    there = ease_from_outputs(xp.asarray(PAIR[0]), [xp.asarray(m) for m in many], similarity=similarity)
    assert type(there).__module__.split(".")[0] == library
    np.testing.assert_allclose(np.asarray(there), host, atol=1e-12)


def test_torch_models_and_tensors():
    torch = pytest.importorskip("torch")
    weights = torch.tensor([[2.0, -1.0, 0.5], [0.3, 1.0, -2.0]])
    X = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    kinds = []

    def model(batch):
        kinds.append(type(batch))
        return torch.softmax(batch @ weights, dim=1)

    found = ease(model, X, random_state=0, batch_size=100)
    assert set(kinds) == {torch.Tensor}
    np.testing.assert_allclose(ease(model, X.flip(0), random_state=0), found[::-1], rtol=1e-6)
    dropped = ease(model, X, transform="dropout", scale=0.5, random_state=0)
    assert dropped.min() < 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda X: ease(softmax_model, X, transform="noise"),
            InputError,
            "transform must be one of gaussian",
        ),
        (lambda X: ease(softmax_model, X, transform=[]), InputError, "at least one transformation"),
        (lambda X: ease(softmax_model, X, similarity="dot"), InputError, "similarity must be one of cosine"),
        (lambda X: ease(softmax_model, X, similarity="exp_abs"), InputError, "compares one number per row"),
        (lambda X: ease(lambda Z: Z[:, 0], X, similarity="total_variation"), InputError, "Use exp_abs"),
        (lambda X: ease(softmax_model, X, scale=-1.0), InputError, "scale must not be negative"),
        (lambda X: ease(softmax_model, X, transform="dropout", scale=2), InputError, "share of features"),
        (lambda X: ease(softmax_model, X, n_transforms=0), InputError, "n_transforms must be a whole number"),
        (lambda X: ease(softmax_model, X, categorical=[9]), InputError, "column numbers below 4"),
        (lambda X: ease(softmax_model, X, transform="shift"), InputError, "need images of shape"),
        (lambda X: ease(softmax_model, X[:0]), InputError, "at least one row"),
        (lambda X: ease(lambda Z: softmax_model(Z)[:-1], X), InputError, "one answer per row"),
        (lambda X: ease(lambda Z: softmax_model(Z) * np.nan, X), InputError, r"predict\(X\) has .* NaN"),
        (lambda X: ease(3, X), InputTypeError, "predict must be a callable or an estimator"),
        (lambda X: ease(softmax_model, X.astype(str)), InputTypeError, "X must hold numbers to be perturbed"),
        (lambda X: ease_from_outputs(X, []), InputError, "at least one array"),
        (lambda X: ease_from_outputs(X, [X[:3]]), InputError, "must have the same shape"),
        (lambda X: ease_from_outputs(X[:, 0], [X[:, 0]], unit="range"), InputError, "unit must be"),
        (lambda X: ease_from_outputs(X[:, 0], [X[:, 0]], unit=-1.0), InputError, "unit must be positive"),
        (
            lambda X: ease_from_outputs(X[:, 0], [X[:, 0]], unit=10**400),
            InputError,
            "unit must be a finite number",
        ),
    ],
)
def test_bad_input_is_refused(call, error, message, rows):
    with pytest.raises(error, match=message):
        call(rows)
