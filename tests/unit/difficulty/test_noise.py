"""Noise looked up by rows: few features in a pool, many on a tape."""

import pickle

import numpy as np
import pytest

from calipers.difficulty import ease
from calipers.difficulty.noise import NoiseSource
from calipers.difficulty.transformations import TransformOptions, draw_transforms


def noise_of(X, kind="gaussian", seed=0, count=3, **options):
    settings = TransformOptions(**({"scale": 0.5} | options))
    return draw_transforms(kind, X, count, settings, np.random.default_rng(seed))


def test_narrow_rows_take_rows_of_a_pool_and_wide_ones_windows_of_a_tape():
    rng = np.random.default_rng(0)
    pool = NoiseSource.draw((3, 4), 10, rng.standard_normal)
    tape = NoiseSource.draw((3, 224, 224), 10, rng.standard_normal)
    assert pool.numbers.shape == (4096, 3, 4)
    assert not pool.is_tape
    assert tape.numbers.shape == (1 << 22,)
    assert tape.is_tape


def test_large_images_do_not_share_their_noise():
    # 200 images of 224 x 224: with a pool of 27 noise images every one would be used by seven of them
    X = np.random.default_rng(1).random((200, 3, 224, 224), dtype=np.float32)[:, :, :, :]
    first = noise_of(X, count=1)[0]
    noise = (first(X) - X).reshape(200, -1)[:, ::997]
    assert len(np.unique(noise.round(5), axis=0)) == 200
    gram = np.corrcoef(noise) - np.eye(200)
    assert np.abs(gram).max() < 0.5  # 151 numbers each: six standard errors
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    assert abs(noise.mean()) < 0.02


def test_the_noise_of_a_wide_row_depends_on_the_row_only():
    X = np.random.default_rng(2).random((20, 2000))
    for transform in noise_of(X):
        whole = transform(X)
        np.testing.assert_array_equal(transform(X[::-1])[::-1], whole)
        np.testing.assert_array_equal(np.concatenate([transform(X[:7]), transform(X[7:])]), whole)


def test_turns_of_one_wide_row_are_independent():
    X = np.random.default_rng(3).random((1, 5000))
    noise = np.concatenate([t(X) - X for t in noise_of(X, count=10)])
    assert np.abs(np.corrcoef(noise) - np.eye(10)).max() < 0.1  # 5000 numbers: seven standard errors


def test_relative_noise_and_untouched_columns_of_wide_tables():
    X = np.random.default_rng(4).random((50, 1500)) * np.linspace(1, 9, 1500)
    (transform,) = noise_of(X, count=1, relative=True, categorical=[0, 7])
    noise = transform(X) - X
    assert (noise[:, [0, 7]] == 0).all()
    ratio = noise[:, 8:].std(axis=0) / X[:, 8:].std(axis=0)
    assert ratio.mean() == pytest.approx(0.5, rel=0.05)


def test_dropout_of_wide_rows_drops_the_share_and_leaves_categories():
    X = np.random.default_rng(5).random((50, 1500)) + 1
    (transform,) = noise_of(X, kind="dropout", count=1, scale=0.2, categorical=[3])
    changed = transform(X) != X
    assert not changed[:, 3].any()
    assert changed[:, 4:].mean() == pytest.approx(0.2, abs=0.01)
    assert np.isclose(transform(X)[changed], np.broadcast_to(X.mean(axis=0), X.shape)[changed]).all()


def test_transformations_can_be_stored():
    X = np.random.default_rng(6).random((4, 1100))
    transforms = noise_of(X)
    again = pickle.loads(pickle.dumps(transforms))
    np.testing.assert_array_equal(again[1](X), transforms[1](X))


def test_ease_of_wide_rows_is_seeded():
    X = np.random.default_rng(7).random((10, 1200))

    def predict(rows):
        share = 1 / (1 + np.exp(-(rows[:, :50].sum(axis=1) - 25)))
        return np.column_stack([share, 1 - share])

    first = ease(predict, X, scale=0.5, random_state=0)
    np.testing.assert_array_equal(first, ease(predict, X, scale=0.5, random_state=0))
    assert np.abs(first - ease(predict, X, scale=0.5, random_state=1)).max() > 0
