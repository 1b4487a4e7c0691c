"""Tangent distance against least squares, and against transformations it should not notice."""

import numpy as np
import pytest
from scipy import ndimage

from calipers.conformal import tangent_distances
from calipers.conformal.tangent import DIRECTIONS, TangentImages, tangent_vectors
from calipers.exceptions import InputError


def least_squares(a, b, sides):
    """Distance between the planes by numpy's least squares on the raw tangent vectors."""
    Ta, Tb = tangent_vectors(a[None])[0].T, tangent_vectors(b[None])[0].T
    T = np.hstack([Ta, -Tb]) if sides == "two" else Ta
    gap = (b - a).ravel()
    return np.linalg.norm(T @ np.linalg.lstsq(T, gap, rcond=None)[0] - gap)


def a_stroke(angle=0.0, shift=(0.0, 0.0), width=2.0, scale=1.0, shear=0.0):
    """A smooth bent stroke on 16 x 16 pixels after a known transformation."""
    y, x = np.mgrid[:16, :16] - 7.5
    x, y = x - shift[0], y - shift[1]
    x, y = np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y
    x, y = x / scale + shear * y, y / scale
    return np.exp(-((x - 0.08 * y**2 + 1) ** 2) / (2 * width**2)) * np.exp(-((y / 5) ** 4))


@pytest.mark.parametrize("sides", ["one", "two"])
def test_distances_are_those_of_least_squares(sides, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((37, 8, 8)), rng.random((9, 8, 8))
    expected = [[least_squares(a, b, sides) for b in Y] for a in X]
    np.testing.assert_allclose(tangent_distances(X, Y, sides=sides), expected, rtol=1e-10)


def test_blocks_cover_every_pair(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((35, 36)), rng.random((520, 36))  # more than a block of rows and of columns
    whole = tangent_distances(X, Y)
    some = [(0, 0), (31, 255), (32, 256), (34, 519), (3, 512)]
    expected = [least_squares(X[i].reshape(6, 6), Y[j].reshape(6, 6), "two") for i, j in some]
    np.testing.assert_allclose([whole[i, j] for i, j in some], expected, rtol=1e-10)


def test_the_symmetric_matrix_is_symmetric_to_the_last_bit(seed):
    X = np.random.default_rng(seed).random((300, 25))
    D = tangent_distances(X)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(np.diag(D), 0.0)
    np.testing.assert_allclose(D, tangent_distances(X, X), atol=1e-7)


def test_two_sides_are_nearer_than_one_and_one_than_euclidean(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((20, 64)), rng.random((20, 64))
    two, one = tangent_distances(X, Y), tangent_distances(X, Y, sides="one")
    euclidean = np.linalg.norm(X[:, None] - Y, axis=2)
    assert (two <= one + 1e-12).all()
    assert (one <= euclidean + 1e-12).all()


@pytest.mark.parametrize(
    "change",
    [
        {"shift": (0.4, 0.0)},
        {"shift": (0.0, 0.4)},
        {"scale": 1.06},
        {"angle": 0.08},
        {"shear": 0.06},
        {"width": 2.15},
    ],
    ids=["shift x", "shift y", "scaling", "rotation", "shear", "thickness"],
)
def test_small_transformations_are_hardly_noticed(change):
    plain, changed = a_stroke(), a_stroke(**change)
    euclidean = np.linalg.norm(plain - changed)
    assert tangent_distances([plain], [changed])[0, 0] < 0.2 * euclidean


def test_each_direction_is_the_derivative_of_its_transformation():
    # Finite differences of the transformed image, smoothed as the derivative is, at the pixels inside.
    image = a_stroke()
    spline = np.array([1 / 6, 2 / 3, 1 / 6])
    smooth = ndimage.correlate1d(ndimage.correlate1d(image, spline, axis=0), spline, axis=1)
    vectors = dict(zip(DIRECTIONS, tangent_vectors(image[None])[0].reshape(7, 16, 16), strict=True))
    h = 1e-3
    maps = {  # matrix of x, y -> moved x, y and a shift
        "shift_x": (np.eye(2), (1, 0)), "shift_y": (np.eye(2), (0, 1)),
        "scaling": (np.eye(2) * (1 + h), (0, 0)), "rotation": (np.array([[1, h], [-h, 1]]), (0, 0)),
        "hyperbolic_axis": (np.diag([1 + h, 1 - h]), (0, 0)),
        "hyperbolic_diagonal": (np.array([[1, h], [h, 1]]), (0, 0)),
    }  # fmt: skip
    y, x = np.mgrid[:16, :16] - 7.5
    for name, (matrix, shift) in maps.items():
        moved = np.einsum("ij,jab->iab", matrix, np.array([x, y])) + h * np.array(shift)[:, None, None]
        there = ndimage.map_coordinates(smooth, [moved[1] + 7.5, moved[0] + 7.5], order=3, mode="nearest")
        slope = ((there - smooth) / h)[3:13, 3:13]
        assert np.corrcoef(slope.ravel(), vectors[name][3:13, 3:13].ravel())[0, 1] > 0.99, name


def test_thickness_is_the_squared_slope_and_fattens_the_stroke():
    dx, dy, *_, thickness = tangent_vectors(a_stroke()[None])[0]
    np.testing.assert_allclose(thickness, dx**2 + dy**2)
    wider = (a_stroke(width=2.1) - a_stroke()).ravel()
    assert np.corrcoef(wider, thickness)[0, 1] > 0.5


def test_the_basis_is_orthonormal_and_spans_the_vectors(seed):
    X = np.random.default_rng(seed).random((5, 64))
    images, vectors = TangentImages.of(X), tangent_vectors(X)
    for i in range(5):
        basis = images.basis[:, i]
        np.testing.assert_allclose(basis @ basis.T, np.eye(7), atol=1e-12)
        np.testing.assert_allclose(vectors[i] @ basis.T @ basis, vectors[i], atol=1e-10)


def test_a_blank_image_has_no_directions_and_its_distance_is_one_sided():
    blank, other = np.full((1, 64), 0.3), np.random.default_rng(0).random((1, 64))
    assert not TangentImages.of(blank).basis.any()
    np.testing.assert_allclose(
        tangent_distances(blank, other), tangent_distances(other, blank, sides="one").T
    )
    assert tangent_distances(blank, blank)[0, 0] == 0.0


def test_an_image_with_a_multiple_of_the_same_directions_needs_no_inverse():
    # Twice the image has the same affine directions: I - M'M is singular there, and the answer finite.
    image = a_stroke()[None]
    found = tangent_distances(image, 2 * image)[0, 0]
    np.testing.assert_allclose(found, least_squares(image[0], 2 * image[0], "two"), rtol=1e-6)


def test_images_with_fewer_pixels_than_directions():
    X = np.array([[1.0, 0.2, 0.3, 0.9], [0.1, 0.5, 0.6, 0.2]])
    assert tangent_distances(X).shape == (2, 2)
    np.testing.assert_allclose(
        tangent_distances(X)[0, 1], least_squares(*X.reshape(2, 2, 2), "two"), atol=1e-7
    )


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1.0, 2.0, 3.0]],), {}, "X has 3 pixels per row, which is not 1 x 1"),
        (([[1.0, 2.0, 3.0]],), {"image_shape": (2, 2)}, "X has 3 pixels per row, which is not 2 x 2"),
        (([1.0, 2.0],), {}, "X must hold one image per row"),
        (([[1.0, np.nan, 1, 1]],), {}, "X has 1 NaN of 4 values"),
        ((np.ones((1, 4)), np.ones((1, 9))), {}, "images of one size, got 4 and 9 pixels"),
        ((np.ones((1, 4)),), {"sides": "three"}, "sides must be one of one, two, got 'three'"),
    ],
)
def test_bad_images_are_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        tangent_distances(*arguments, **options)
