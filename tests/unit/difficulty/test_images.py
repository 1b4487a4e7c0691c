import numpy as np
import pytest
from scipy import ndimage

from calipers.difficulty import ease
from calipers.difficulty.images import draw, spatial_axes
from calipers.exceptions import InputError

SHAPES = [(5, 8, 9), (5, 8, 9, 3), (5, 3, 8, 9), (5, 8, 9, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["color_jitter", "shift", "rotation", "blur"])
def test_every_layout_keeps_its_shape_and_changes_a_little(kind, shape):
    images = np.random.default_rng(0).random(shape)
    changed = draw(kind, shape, 3, 0.1, None, np.random.default_rng(1))
    for change in changed:
        new = change(images)
        assert new.shape == shape
        assert 0 < np.abs(new - images).mean() < 0.5
    # A constant image has nothing to shift, turn or blur.
    if kind != "color_jitter":
        np.testing.assert_allclose(changed[0](np.full(shape, 0.3)), 0.3, atol=1e-12)


@pytest.mark.parametrize(("shape", "axes"), [(SHAPES[0], (1, 2)), (SHAPES[1], (1, 2)), (SHAPES[2], (2, 3))])
def test_height_and_width_are_found(shape, axes):
    assert spatial_axes(shape) == axes


def test_shift_moves_whole_pixels_and_repeats_the_border():
    image = np.arange(20.0).reshape(1, 4, 5)
    seen = set()
    for change in draw("shift", image.shape, 40, 0.25, None, np.random.default_rng(0)):
        moved = change(image)[0]
        found = [
            (dy, dx)
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
            if np.array_equal(moved, ndimage.shift(image[0], (dy, dx), order=0, mode="nearest"))
        ]
        assert len(found) == 1
        seen.add(found[0])
    assert (0, 0) not in seen
    assert len(seen) > 4


def test_jitter_scales_brightness_and_contrast_within_bounds():
    image = np.random.default_rng(0).random((1, 6, 6))
    for change in draw("color_jitter", image.shape, 20, 0.2, None, np.random.default_rng(0)):
        new = change(image)
        assert 0.8 <= new.mean() / image.mean() <= 1.2
        assert 0.8**2 <= new.std() / image.std() <= 1.2**2


def test_flattened_images_are_transformed_as_images():
    images = np.random.default_rng(0).random((6, 8, 8))
    flat = images.reshape(6, -1)

    def model(X):
        p = X.reshape(len(X), 8, 8)[:, :, :4].mean(axis=(1, 2))
        return np.column_stack([p, 1 - p])

    options = {"transform": ["shift", "rotation", "blur", "color_jitter"], "random_state": 0}
    np.testing.assert_allclose(
        ease(model, flat, image_shape=(8, 8), **options), ease(model, images, **options)
    )


def test_bytes_become_floats():
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    seen = []

    def model(X):
        seen.append(X.dtype)
        return np.full((len(X), 2), 0.5)

    for transform in ("gaussian", "shift", "rotation"):
        ease(model, images, transform=transform, random_state=0)
    assert set(seen) == {np.dtype(np.float32)}


def test_torch_images_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    images = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    for kind in ("color_jitter", "shift", "rotation", "blur"):
        new = draw(kind, tuple(images.shape), 1, 0.1, None, np.random.default_rng(0))[0](images)
        host = draw(kind, tuple(images.shape), 1, 0.1, None, np.random.default_rng(0))[0](images.numpy())
        assert isinstance(new, torch.Tensor)
        np.testing.assert_allclose(new.numpy(), host, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axes"), [((5, 9, 7), (1, 2)), ((5, 9, 7, 3), (1, 2)), ((5, 3, 9, 7), (2, 3))]
)
@pytest.mark.parametrize("scale", [0.0, 0.02, 0.3])
def test_blur_is_the_gaussian_filter_of_scipy(shape, axes, scale):
    images = np.random.default_rng(0).random(shape)
    found = draw("blur", shape, 1, scale, None, np.random.default_rng(1))[0](images)
    width = 10 * scale * np.random.default_rng(1).uniform(0.5, 1.0)
    np.testing.assert_allclose(found, ndimage.gaussian_filter(images, width, axes=axes), atol=1e-12)


def test_image_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="has 60 pixels, but a row of X has 64"):
        ease(lambda X: X, np.ones((2, 64)), transform="shift", image_shape=(6, 10))
    with pytest.raises(InputError, match="got rows of shape"):
        ease(lambda X: X, np.ones((2, 5, 5, 5)), transform="blur")
