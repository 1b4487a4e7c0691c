"""Tangent distance between images: how far apart they stay after small transformations of either.

An image is a point p in pixel space; shifting, scaling, rotating, shearing or thickening it a little
moves the point along a seven-dimensional surface, whose tangent plane at p is p + span T(p). The
tangent distance is the Euclidean distance between two planes (two-sided) or between a plane and a
point (one-sided), so images that differ by a small transformation are near each other.

With U and V orthonormal bases of the two spans, δ = p - q, u = U'δ, v = V'δ and M = U'V::

    one-sided   d² = |δ|² - |u|²
    two-sided   d² = |δ|² - |u|² - r' (I - M'M)⁻¹ r,    r = v - M'u

The second line projects δ and V on the complement of span U and solves the normal equations there.
M is one matrix product for a whole block of pairs; the 7 x 7 systems are solved by a Cholesky
factorisation whose every step works on the block at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from scipy.ndimage import correlate1d
from scipy.spatial.distance import cdist

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inputs.row_checks import numeric, require_finite

DIRECTIONS = (
    "shift_x",
    "shift_y",
    "scaling",
    "rotation",
    "hyperbolic_axis",
    "hyperbolic_diagonal",
    "thickness",
)
SIDES = ("one", "two")

# A cubic B-spline and its slope at the pixels -1, 0, 1.
_SPLINE, _SPLINE_SLOPE = (1 / 6, 2 / 3, 1 / 6), (-0.5, 0.0, 0.5)

# Pairs per block: few enough that the working arrays of the 7 x 7 systems stay near the processor.
_BLOCK_ROWS, _BLOCK_COLUMNS = 32, 256
# Squared sine of the angle below which a direction counts as lying in the other image's plane already.
_PARALLEL = 1e-12


def tangent_vectors(X: Any, *, image_shape: tuple[int, int] | None = None) -> np.ndarray:
    """Derivatives of every image along the seven transformations of ``DIRECTIONS``.

    Parameters
    ----------
    X : array of shape (n, h * w) or (n, h, w)
        Images, row-major.
    image_shape : (h, w), optional
        Needed when the rows are flat and not square.

    Returns
    -------
    ndarray of shape (n, 7, h * w)
        Not normalised, in the order of ``DIRECTIONS``.

    Notes
    -----
    With ∂x, ∂y the derivatives and x, y the pixel coordinates from the centre: shifts ∂x, ∂y; scaling
    x∂x + y∂y; rotation y∂x - x∂y; hyperbolic deformations x∂x - y∂y and y∂x + x∂y; thickness
    (∂x)² + (∂y)², which moves the edges of a stroke outwards. The first six span all affine maps, so
    the choice of the centre does not matter. The derivatives are those of the surface that has the pixels
    as its cubic B-spline coefficients; beyond the border the image repeats its last pixel.

    References
    ----------
    P. Simard, Y. LeCun, J. Denker, B. Victorri. Transformation invariance in pattern recognition:
    tangent distance and tangent propagation. 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.tangent import tangent_vectors
    >>> ramp = np.tile(np.arange(8.0), (8, 1))
    >>> shift_x, shift_y = tangent_vectors(ramp[None])[0, :2].reshape(2, 8, 8)
    >>> round(float(shift_x[4, 4]), 3), round(float(abs(shift_y).max()), 3)
    (1.0, 0.0)
    """
    images = _images(X, image_shape)
    dx, dy = _derivatives(images)
    height, width = images.shape[1:]
    y = (np.arange(height) - (height - 1) / 2)[:, None]
    x = (np.arange(width) - (width - 1) / 2)[None, :]
    vectors = (
        dx, dy, x * dx + y * dy, y * dx - x * dy, x * dx - y * dy, y * dx + x * dy, dx * dx + dy * dy
    )  # fmt: skip
    return np.stack(vectors, axis=1).reshape(len(images), len(DIRECTIONS), -1)


def _derivatives(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes along x and along y: cubic B-splines at the pixels, differentiated along one axis."""
    smoothed_y = correlate1d(images, _SPLINE, axis=1, mode="nearest")
    smoothed_x = correlate1d(images, _SPLINE, axis=2, mode="nearest")
    return (
        correlate1d(smoothed_y, _SPLINE_SLOPE, axis=2, mode="nearest"),
        correlate1d(smoothed_x, _SPLINE_SLOPE, axis=1, mode="nearest"),
    )


def _images(X: Any, image_shape: tuple[int, int] | None) -> np.ndarray:
    array = np.asarray(numeric(as_numpy(X, name="X"), "X"), dtype=np.float64)
    if array.ndim == 3:
        return np.asarray(require_finite(array, name="X"))
    if array.ndim != 2:
        raise InputError(f"X must hold one image per row, (n, h * w) or (n, h, w), got shape {array.shape}.")
    side = isqrt(array.shape[1])
    shape = (side, side) if image_shape is None else tuple(int(length) for length in image_shape)
    if len(shape) != 2 or shape[0] * shape[1] != array.shape[1]:
        raise InputError(
            f"X has {array.shape[1]} pixels per row, which is not {' x '.join(map(str, shape))}. "
            "Pass image_shape=(height, width)."
        )
    return np.asarray(require_finite(array, name="X")).reshape(-1, *shape)


@dataclass(frozen=True, slots=True, eq=False)
class TangentImages:
    """Images with an orthonormal basis of each one's tangent directions.

    Parameters
    ----------
    stack : ndarray of shape (8, n, p)
        Seven basis vectors and then the image itself, direction first: a block of rows is one matrix.
        Where the directions depend on each other (a blank image has none) the surplus vectors are zero.
    along : ndarray of shape (7, n)
        Inner product of every image with its own basis vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.tangent import TangentImages
    >>> images = TangentImages.of(np.random.default_rng(0).random((3, 64)))
    >>> images.basis.shape, images.distances_to(images).diagonal().tolist()
    ((7, 3, 64), [0.0, 0.0, 0.0])
    """

    stack: np.ndarray
    along: np.ndarray

    @classmethod
    def of(cls, X: Any, *, image_shape: tuple[int, int] | None = None) -> TangentImages:
        """Prepare images: derivatives, then one small singular value decomposition per image."""
        vectors = tangent_vectors(X, image_shape=image_shape)
        n, k, p = vectors.shape
        # Vectors of one length first: which of them count as dependent must not hang on their units.
        lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        _, sizes, rows = np.linalg.svd(vectors, full_matrices=False)
        independent = sizes > np.finfo(np.float64).eps * max(k, p) * sizes[:, :1]
        stack = np.zeros((k + 1, n, p))
        stack[: rows.shape[1]] = (rows * independent[:, :, None]).transpose(1, 0, 2)
        stack[k] = _images(X, image_shape).reshape(n, p)
        return cls(stack, np.einsum("kip,ip->ki", stack[:k], stack[k]))

    @property
    def basis(self) -> np.ndarray:
        """Orthonormal tangent vectors, (7, n, p)."""
        return self.stack[:-1]

    @property
    def pixels(self) -> np.ndarray:
        """The images, flat, (n, p)."""
        return np.asarray(self.stack[-1])

    def __len__(self) -> int:
        return int(self.stack.shape[1])

    def rows(self, which: slice) -> TangentImages:
        """Some of the images."""
        return TangentImages(np.ascontiguousarray(self.stack[:, which]), self.along[:, which])

    def distances_to(self, others: TangentImages, *, sides: str = "two") -> np.ndarray:
        """Tangent distances (n, m); one-sided ones move these images, not the others."""
        squared = np.empty((len(self), len(others)))
        for j in range(0, len(others), _BLOCK_COLUMNS):
            columns = slice(j, j + _BLOCK_COLUMNS)
            theirs = others.rows(columns)
            for i in range(0, len(self), _BLOCK_ROWS):
                rows = slice(i, i + _BLOCK_ROWS)
                squared[rows, columns] = _squared_block(self.rows(rows), theirs, sides)
        return np.asarray(np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared))


def _squared_block(a: TangentImages, b: TangentImages, sides: str) -> np.ndarray:
    """Squared distances of a block of pairs, (rows, columns); may be negative by rounding."""
    k, p = len(DIRECTIONS), a.stack.shape[2]
    right = b.stack if sides == "two" else b.stack[k:]
    # products[s, i, t, j]: vector s of image i with vector t of image j; the last one is the image itself.
    products = (a.stack.reshape(-1, p) @ right.reshape(-1, p).T).reshape(k + 1, len(a), len(right), len(b))
    u = a.along[:, :, None] - products[:k, :, -1]
    squared: np.ndarray = cdist(a.pixels, b.pixels, "sqeuclidean") - np.einsum("kij,kij->ij", u, u)
    if sides == "one":
        return squared
    v = products[k, :, :k].transpose(1, 0, 2) - b.along[:, None]
    return np.asarray(squared - _explained(products[:k, :, :k], u, v))


def _explained(M: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What the second plane explains of the rest: r' (I - M'M)⁻¹ r with r = v - M'u, for every pair.

    With I - M'M = L L' it is the squared length of L⁻¹ r: a Cholesky factorisation column by column, the
    entry of ``L⁻¹ r`` found along with the column.
    """
    k = len(DIRECTIONS)
    columns = [[M[s, :, p] for s in range(k)] for p in range(k)]
    lower: list[list[np.ndarray]] = [[] for _ in range(k)]  # row q of L, up to the column reached
    solved: list[np.ndarray] = []
    explained = np.zeros(u.shape[1:])
    for p in range(k):
        pivot = 1.0 - _sum_of_products(columns[p], columns[p]) - _sum_of_products(lower[p], lower[p])
        # A zero pivot: the direction lies in the span of the earlier ones and explains nothing more.
        scale = np.where(pivot > _PARALLEL, 1.0 / np.sqrt(np.maximum(pivot, _PARALLEL)), 0.0)
        entry = v[p] - _sum_of_products(columns[p], u) - _sum_of_products(lower[p], solved)
        entry *= scale
        explained += entry * entry
        solved.append(entry)
        for q in range(p + 1, k):
            below = _sum_of_products(columns[p], columns[q]) + _sum_of_products(lower[q], lower[p])
            lower[q].append(-scale * below)
    return explained


def _sum_of_products(left: Iterable[np.ndarray], right: Iterable[np.ndarray]) -> Any:
    """Sum of elementwise products; 0 when there are none."""
    total: Any = None
    for a, b in zip(left, right, strict=True):
        product = a * b
        total = product if total is None else np.add(total, product, out=total)
    return 0.0 if total is None else total


def tangent_distances(
    X: Any,
    Y: Any = None,
    *,
    sides: str = "two",
    image_shape: tuple[int, int] | None = None,
) -> np.ndarray:
    """Tangent distance between every image of X and every image of Y.

    Parameters
    ----------
    X, Y : array of shape (n, h * w) or (n, h, w)
        Images; Y defaults to X.
    sides : {"two", "one"}
        "two" lets both images move and is symmetric; "one" moves the images of X only.
    image_shape : (h, w), optional
        Needed when the rows are flat and not square.

    Returns
    -------
    ndarray of shape (n, m)
        Non-negative; at most the Euclidean distance. With Y None and two sides exactly symmetric.

    Raises
    ------
    InputError
        When the rows are not images of that shape, or ``sides`` is unknown.

    Notes
    -----
    The formulas are in the module's docstring and derived in the guide. Two-sided, a pair of 16 x 16
    images costs about two microseconds of one core (64 x 256 multiplications in a matrix product and a
    7 x 7 system); memory beyond the result is a few megabytes and the seven vectors per image.
    It is a distance between planes, not a metric: the triangle inequality can fail.

    References
    ----------
    P. Simard, Y. LeCun, J. Denker. Efficient pattern recognition using a new transformation distance.
    Advances in Neural Information Processing Systems 5, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal import tangent_distances
    >>> y, x = np.mgrid[:16, :16] - 7.5
    >>> blob, shifted = np.exp(-(x**2 + y**2) / 18), np.exp(-((x - 0.5) ** 2 + y**2) / 18)
    >>> plain = np.linalg.norm(blob - shifted)
    >>> bool(tangent_distances([blob], [shifted])[0, 0] < 0.1 * plain)
    True
    """
    if sides not in SIDES:
        raise InputError(f"sides must be one of {', '.join(SIDES)}, got {sides!r}.")
    mine = TangentImages.of(X, image_shape=image_shape)
    if Y is not None:
        theirs = TangentImages.of(Y, image_shape=image_shape)
        if theirs.pixels.shape[1] != mine.pixels.shape[1]:
            raise InputError(
                "X and Y must hold images of one size, got "
                f"{mine.pixels.shape[1]} and {theirs.pixels.shape[1]} pixels."
            )
        return mine.distances_to(theirs, sides=sides)
    if sides == "one":
        return mine.distances_to(mine, sides=sides)
    result = np.zeros((len(mine), len(mine)))
    for rows, block in upper_blocks(mine):
        result[rows, rows.start :] = block
        result[rows.start :, rows] = block.T
    return result


def upper_blocks(images: TangentImages, size: int = 256) -> Iterator[tuple[slice, np.ndarray]]:
    """Row blocks of the symmetric two-sided matrix from the diagonal on: (rows, distances)."""
    for start in range(0, len(images), size):
        rows = slice(start, min(start + size, len(images)))
        block = images.rows(rows).distances_to(images.rows(slice(start, None)))
        corner = block[:, : rows.stop - start]
        # Either order of the two images gives the same number up to rounding; make it the same number.
        corner[:] = np.triu(corner, 1) + np.triu(corner, 1).T
        yield rows, block
