"""Transformations of images: colour jitter, shift, small rotation, blur.

Images are (n, h, w), (n, h, w, c) or (n, c, h, w), c being 1, 3 or 4. The parameters of each
transformation are drawn once and it changes every image alike: it is a function of the image, and one call
treats a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calipers.arrays import Array, as_array, as_numpy, namespace, on_device_of
from calipers.exceptions import InputError

NAMES = ("color_jitter", "shift", "rotation", "blur")
_CHANNELS = (1, 3, 4)


def draw(
    kind: str,
    shape: tuple[int, ...],
    count: int,
    scale: float,
    image_shape: tuple[int, ...] | None,
    rng: np.random.Generator,
) -> list[Callable[[Any], Any]]:
    """``count`` transformations of one kind for images of this shape."""
    sides = shape[1:] if image_shape is None else tuple(image_shape)
    if image_shape is not None and int(np.prod(sides)) != int(np.prod(shape[1:])):
        raise InputError(
            f"image_shape={sides} has {int(np.prod(sides))} pixels, but a row of X has "
            f"{int(np.prod(shape[1:]))}."
        )
    axes = spatial_axes((1, *sides))
    parameters = {"color_jitter": _jitter, "shift": _shift, "rotation": _rotation, "blur": _blur}[kind]
    lengths = tuple((1, *sides)[axis] for axis in axes)
    return [partial(_apply, sides, parameters(scale, lengths, axes, rng)) for _ in range(count)]


def spatial_axes(shape: tuple[int, ...]) -> tuple[int, int]:
    """The axes of height and width."""
    if len(shape) == 3:
        return 1, 2
    if len(shape) == 4 and shape[3] in _CHANNELS:
        return 1, 2
    if len(shape) == 4 and shape[1] in _CHANNELS:
        return 2, 3
    raise InputError(
        "image transformations need images of shape (n, h, w), (n, h, w, c) or (n, c, h, w) with 1, 3 or 4 "
        f"channels, got rows of shape {shape[1:]}. Give image_shape for flattened images."
    )


def _apply(sides: tuple[int, ...], change: Callable[[Array], Array], X: Any) -> Any:
    array = as_array(X, name="X")
    xp = namespace(array)
    if not xp.isdtype(array.dtype, "real floating"):
        array = xp.astype(array, xp.float32)
    pictures = xp.reshape(array, (array.shape[0], *sides))
    return xp.reshape(change(pictures), array.shape)


def _jitter(
    scale: float, lengths: tuple[int, ...], axes: tuple[int, int], rng: np.random.Generator
) -> Callable[[Array], Array]:
    """Brightness and contrast by factors within 1 +- scale, contrast around each image's own mean."""
    brightness, contrast = (float(v) for v in 1 + scale * rng.uniform(-1, 1, 2))

    def change(pictures: Array) -> Array:
        xp = namespace(pictures)
        mean = xp.mean(pictures, axis=tuple(range(1, pictures.ndim)), keepdims=True)
        return brightness * (mean + contrast * (pictures - mean))

    return change


def _shift(
    scale: float, lengths: tuple[int, ...], axes: tuple[int, int], rng: np.random.Generator
) -> Callable[[Array], Array]:
    """Whole pixels in both directions, up to a share ``scale`` of the side; the border is repeated."""
    reach = [max(1, round(scale * side)) if scale > 0 else 0 for side in lengths]
    steps = [int(rng.integers(-r, r + 1)) for r in reach]
    if scale > 0 and not any(steps):
        steps[int(rng.integers(2))] = 1

    def change(pictures: Array) -> Array:
        xp = namespace(pictures)
        for axis, step, side in zip(axes, steps, lengths, strict=True):
            source = np.clip(np.arange(side) - step, 0, side - 1)
            pictures = xp.take(pictures, on_device_of(source, pictures), axis=axis)
        return pictures

    return change


def _rotation(
    scale: float, lengths: tuple[int, ...], axes: tuple[int, int], rng: np.random.Generator
) -> Callable[[Array], Array]:
    """By an angle within +- scale radians, linear interpolation, border repeated; on the host."""
    angle = float(np.degrees(scale * rng.uniform(-1, 1)))

    def change(pictures: Array) -> Array:
        from scipy import ndimage

        turned = ndimage.rotate(
            as_numpy(pictures), angle, axes=axes, reshape=False, order=1, mode="nearest", prefilter=False
        )
        return on_device_of(turned, pictures)

    return change


def _blur(
    scale: float, lengths: tuple[int, ...], axes: tuple[int, int], rng: np.random.Generator
) -> Callable[[Array], Array]:
    """Gaussian blur with a standard deviation between 5 and 10 times scale, in pixels."""
    width = 10 * scale * float(rng.uniform(0.5, 1.0))
    from scipy import ndimage

    # The filter is linear: what it makes of every unit vector is its matrix, for any device.
    blurs = [ndimage.gaussian_filter(np.eye(side), (width, 0.0)) for side in lengths]

    def change(pictures: Array) -> Array:
        xp = namespace(pictures)
        for axis, blur in zip(axes, blurs, strict=True):
            matrix = xp.astype(on_device_of(blur, pictures), pictures.dtype)
            pictures = xp.moveaxis(xp.tensordot(pictures, matrix, axes=((axis,), (1,))), -1, axis)
        return pictures

    return change
