"""Small changes of the input that leave its meaning alone: the t_l of eq. 1.

`draw_transforms` turns a name, a callable or several of them into L functions of X. Each is a fixed
function of a row: the noise a row gets is looked up by the row's own content in numbers drawn once, so the
same row gets the same answer in any batch and any order, and calibration and test rows are treated alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from calipers.arrays import Array, as_array, as_numpy, frame_columns, is_frame, namespace, on_device_of
from calipers.difficulty import images
from calipers.difficulty.noise import NoiseSource
from calipers.exceptions import InputError, InputTypeError

Transform = Callable[[Any], Any]
_TABLE = ("gaussian", "dropout")
NAMES = (*_TABLE, *images.NAMES)


@dataclass(frozen=True, slots=True)
class TransformOptions:
    """What every named transformation is told.

    Parameters
    ----------
    scale : float
        Strength: standard deviation (gaussian), share of features (dropout), relative change
        (color_jitter), share of the side (shift), radians (rotation), tenths of pixels (blur).
    relative : bool
        Gaussian noise in units of each feature's own spread (of the whole image for images).
    categorical : sequence of int or str, or None
        Columns that no transformation touches, beside those a dataframe marks as text, category or boolean.
    image_shape : tuple of int or None
        Shape of one image when rows are flattened images.
    """

    scale: float = 0.1
    relative: bool = False
    categorical: Sequence[Any] | None = None
    image_shape: tuple[int, ...] | None = None


def draw_transforms(
    transform: Any, X: Any, n_transforms: int, options: TransformOptions, rng: np.random.Generator
) -> list[Transform]:
    """L transformations; several kinds take turns. X tells shapes, spreads and column kinds."""
    kinds = list(transform) if isinstance(transform, (list, tuple)) else [transform]
    if not kinds:
        raise InputError("transform must name at least one transformation, got an empty list.")
    turns = [sum(1 for i in range(n_transforms) if i % len(kinds) == k) for k in range(len(kinds))]
    drawn = [
        _draw(kind, X, count, options, source)
        for kind, count, source in zip(kinds, turns, rng.spawn(len(kinds)), strict=True)
    ]
    return [drawn[i % len(kinds)][i // len(kinds)] for i in range(n_transforms)]


def _draw(
    kind: Any, X: Any, count: int, options: TransformOptions, rng: np.random.Generator
) -> list[Transform]:
    if callable(kind):
        return _users(kind, count, rng)
    if kind not in NAMES:
        raise InputError(f"transform must be one of {', '.join(NAMES)}, a callable or a list, got {kind!r}.")
    if not options.scale >= 0:
        raise InputError(f"scale must not be negative, got {options.scale}.")
    if kind in images.NAMES:
        return images.draw(kind, _shape(X), count, options.scale, options.image_shape, rng)
    numbers = _numeric_part(X, options.categorical)
    draw_noise = _gaussian_noise if kind == "gaussian" else _dropout_noise
    noise = draw_noise(numbers, count, options, rng)
    if is_frame(X):
        return [partial(_on_frame, noise, turn, options.categorical) for turn in range(count)]
    return [partial(noise, turn) for turn in range(count)]


def _users(function: Callable[..., Any], count: int, rng: np.random.Generator) -> list[Transform]:
    """A callable of X, or of X and a Generator; each of the L gets a Generator of its own."""
    if _positional(function) < 2:
        return [function] * count
    return [partial(_with_generator, function, source) for source in rng.spawn(count)]


def _with_generator(function: Callable[..., Any], source: np.random.Generator, X: Any) -> Any:
    return function(X, source)


def _positional(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # builtins without a signature take X alone
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(1 for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numeric part of X: spread and mean of each feature, and which ones are left alone."""

    shape: tuple[int, ...]
    spread: np.ndarray
    mean: np.ndarray
    untouched: np.ndarray


def _numeric_part(X: Any, categorical: Sequence[Any] | None) -> _Numbers:
    if is_frame(X):
        names = numeric_columns(X, categorical)
        if not names:
            raise InputError("X has no numeric column to perturb; pass a callable as transform.")
        columns = frame_columns(X)
        values = np.column_stack([_floats(columns[name]) for name in names])
        return _summary(values, np.zeros(len(names), dtype=bool))
    array = as_array(X, name="X")
    host = as_numpy(array)
    if host.dtype.kind not in "biuf":
        raise InputTypeError(
            f"X must hold numbers to be perturbed, got {host.dtype}. Pass a dataframe with typed columns, "
            "or a callable as transform."
        )
    if host.ndim < 2:
        raise InputError(f"X must have rows and features, got shape {host.shape}.")
    untouched = np.zeros(host.shape[1:], dtype=bool)
    if categorical is not None:
        if host.ndim != 2:
            raise InputError(f"categorical names columns of a table, but X has shape {host.shape}.")
        untouched[_column_numbers(categorical, host.shape[1])] = True
    return _summary(host, untouched)


def _summary(values: np.ndarray, untouched: np.ndarray) -> _Numbers:
    axis = 0 if values.ndim == 2 else None
    known = np.where(np.isfinite(values), values, np.nan).astype(float)
    empty = np.isnan(known).all(axis=axis, keepdims=True)
    # A column without any value stays as it is.
    filled = np.where(empty, 0.0, known)
    spread, mean = np.nanstd(filled, axis=axis), np.nanmean(filled, axis=0)
    return _Numbers(values.shape[1:], np.asarray(spread), np.asarray(mean), untouched)


def numeric_columns(frame: Any, categorical: Sequence[Any] | None = None) -> list[str]:
    """Columns that may be perturbed: numbers, less those named categorical; booleans are categories."""
    columns = frame_columns(frame)
    left_alone = {str(name) for name in categorical or ()}
    unknown = sorted(left_alone - set(columns))
    if unknown:
        raise InputError(f"categorical names {unknown[0]!r}, which is not a column of X.")
    return [name for name, s in columns.items() if s.dtype.is_numeric() and name not in left_alone]


def _column_numbers(categorical: Sequence[Any], width: int) -> np.ndarray:
    given = np.asarray(categorical)
    if given.dtype == bool and given.shape == (width,):
        return np.flatnonzero(given)
    if given.size and (given.dtype.kind not in "iu" or given.min() < -width or given.max() >= width):
        raise InputError(f"categorical must hold column numbers below {width}, or a mask, got {categorical}.")
    return given.astype(np.int64)


def _floats(series: nw.Series[Any]) -> np.ndarray:
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)


def _gaussian_noise(
    numbers: _Numbers, count: int, options: TransformOptions, rng: np.random.Generator
) -> Callable[[int, Any], Any]:
    source = NoiseSource.draw(numbers.shape, count, lambda size: rng.standard_normal(size, dtype=np.float32))
    spread = options.scale * (numbers.spread if options.relative else np.ones(()))
    scale = np.where(numbers.untouched, 0.0, spread).astype(np.float32)
    if not source.is_tape:  # once, in place, and not at every call
        np.multiply(source.numbers, scale, out=source.numbers)
        return partial(_add_noise, source, None)
    return partial(_add_noise, source, scale)


def _add_noise(source: NoiseSource, scale: np.ndarray | None, turn: int, X: Any) -> Any:
    values = _as_floats(X)
    noise = source.rows(turn, values)
    if scale is None:
        return values + noise
    factor = on_device_of(scale, values)
    return values + noise * namespace(values).astype(factor, noise.dtype)


def _dropout_noise(
    numbers: _Numbers, count: int, options: TransformOptions, rng: np.random.Generator
) -> Callable[[int, Any], Any]:
    if options.scale > 1:
        raise InputError(f"scale is the share of features dropped, at most 1, got {options.scale}.")
    drawn = NoiseSource.draw(numbers.shape, count, lambda size: rng.random(size, dtype=np.float32))
    dropped = NoiseSource(drawn.numbers < options.scale, drawn.shape)
    return partial(_drop_features, dropped, numbers.untouched, numbers.mean)


def _drop_features(source: NoiseSource, untouched: np.ndarray, mean: np.ndarray, turn: int, X: Any) -> Any:
    values = _as_floats(X)
    xp = namespace(values)
    fill = on_device_of(mean.astype(np.float64), values)
    dropped = source.rows(turn, values) & ~on_device_of(untouched, values)
    return xp.where(dropped, xp.astype(fill, values.dtype), values)


def _as_floats(X: Any) -> Array:
    """X in a floating dtype: images of bytes in float32, other whole numbers in float64."""
    array = as_array(X, name="X")
    xp = namespace(array)
    if xp.isdtype(array.dtype, "real floating"):
        return array
    return xp.astype(array, xp.float32 if array.dtype == xp.uint8 else xp.float64)


def _on_frame(noise: Callable[[int, Any], Any], turn: int, categorical: Sequence[Any] | None, X: Any) -> Any:
    """The same frame with its numeric columns perturbed, in its own library."""
    names = numeric_columns(X, categorical)
    columns = frame_columns(X)
    values = noise(turn, np.column_stack([_floats(columns[name]) for name in names]))
    wrapped = nw.from_native(X, eager_only=True)
    backend = nw.get_native_namespace(wrapped)
    new = [nw.new_series(name, values[:, j], backend=backend) for j, name in enumerate(names)]
    return nw.to_native(_with_index(wrapped, new))


def _with_index(frame: nw.DataFrame[Any], series: list[nw.Series[Any]]) -> nw.DataFrame[Any]:
    # pandas would align by index; the new columns take the frame's own.
    index = nw.maybe_get_index(frame)
    aligned = series if index is None else [nw.maybe_set_index(s, index=index) for s in series]
    return frame.with_columns(aligned)


def _shape(X: Any) -> tuple[int, ...]:
    if is_frame(X):
        raise InputTypeError("image transformations need an array of images, got a dataframe.")
    return tuple(int(side) for side in as_array(X, name="X").shape)
