"""Ease (eq. 1): how little a model's answer moves when its input is changed a little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import narwhals as nw
import numpy as np

from calipers.arrays import (
    Array,
    RandomState,
    as_array,
    as_numpy,
    fused,
    generator,
    is_array,
    is_frame,
    namespace,
)
from calipers.difficulty.similarity import Kernel, similarity_of
from calipers.difficulty.transformations import Transform, TransformOptions, draw_transforms
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_count, require_finite
from calipers.inputs.row_checks import numeric, one_column

# Numbers handed to the model at once when no batch_size is given.
_ENTRIES = 1 << 23
# Arrays of answers compared in one compiled pass.
_TOGETHER = 16


def ease(
    predict: Any,
    X: Any,
    *,
    transform: Any = "gaussian",
    scale: float = 0.1,
    n_transforms: int = 10,
    similarity: Any = "cosine",
    relative: bool = False,
    categorical: Sequence[Any] | None = None,
    image_shape: tuple[int, ...] | None = None,
    unit: float | str = 1.0,
    batch_size: int | None = None,
    progress: bool = False,
    random_state: RandomState = None,
) -> np.ndarray:
    """Ease of every row, eq. 1: mean similarity of the answer for the row and for changed copies of it.

    Between 0 and 1 for probabilities: 1 where nothing moves the model, lower where it hesitates. Difficulty
    is 1 - ease. Only the order matters for bins; the level depends on ``scale``. Too strong a change makes
    every row look hard: look for a spread of values, not for a pile at either end.

    Parameters
    ----------
    predict : callable or estimator
        ``predict(X)`` gives (n, K) probabilities, (n,) numbers or (n,) labels, as numpy or torch arrays. An
        estimator is asked for ``predict_proba``, or ``predict`` without one.
    X : array, dataframe or tensor
        Tables (n, d), images (n, h, w) with or without channels, or dataframes; passed on as the same type.
    transform : str, callable or list of them
        "gaussian" (noise), "dropout" (features replaced by their mean), for images "color_jitter", "shift",
        "rotation", "blur"; or ``f(X)`` or ``f(X, generator)``. Several take turns.
    scale : float
        Strength: standard deviation of the noise in the units of X, share of features dropped, relative
        change of brightness and contrast, share of the side shifted, radians, tenths of pixels of blur.
    n_transforms : int
        Changed copies per row, L.
    similarity : str or callable
        "cosine", "total_variation" (1 - TV), "jensen_shannon" (1 - JS in bits), "agreement" (same top
        label), "exp_abs" (numbers), or a callable of two answers that gives one number per row. For
        one number per row, "cosine" means "exp_abs".
    relative : bool
        Gaussian noise in units of each feature's spread; for images, of all pixels.
    categorical : sequence, optional
        Columns no named transformation touches. Text, category and boolean columns of a dataframe
        never are.
    image_shape : tuple of int, optional
        Shape of one image where rows are flattened images.
    unit : float or "spread"
        Unit of "exp_abs", exp(-abs(y1 - y2) / unit); "spread" is the standard deviation of the answers.
    batch_size : int, optional
        Most rows in one call of ``predict``; default: about 8 million numbers.
    progress : bool
        Show a progress bar on standard error.
    random_state : int, Generator or None
        Source of the transformations.

    Returns
    -------
    float64 array (n,)

    Raises
    ------
    InputError
        When the answers are not finite, do not fit their rows, or do not fit the similarity.

    Notes
    -----
    The transformations are drawn once and are then fixed functions of a row (the noise a row gets is
    looked up by its content): the result depends neither on the order of rows nor on ``batch_size``, and
    ease of calibration and test rows under the same draws is exchangeable. A callable with a generator
    gives up both. Cost: L + 1 predictions per row; all copies of a block go to the model together.

    References
    ----------
    Jang and Lee (2025), Quantifying and improving adaptivity in conformal prediction through input
    transformations, eq. 1.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.difficulty import ease
    >>> def model(X):
    ...     p = 1 / (1 + np.exp(-5 * X[:, 0]))
    ...     return np.column_stack([1 - p, p])
    >>> ease(model, np.array([[0.0], [3.0]]), random_state=0).round(3)
    array([0.952, 1.   ])
    """
    row_count(X)
    options = TransformOptions(scale, relative, categorical, image_shape)
    transforms = draw_transforms(
        transform, X, check_count(n_transforms, name="n_transforms"), options, generator(random_state)
    )
    return ease_under(
        transforms, predict, X, similarity=similarity, unit=unit, batch_size=batch_size, progress=progress
    )


def ease_under(
    transforms: Sequence[Transform],
    predict: Any,
    X: Any,
    *,
    similarity: Any = "cosine",
    unit: float | str = 1.0,
    batch_size: int | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Ease under transformations already drawn; `ease` draws them first."""
    answer, n = as_predict(predict), row_count(X)
    if unit == "spread":
        unit = answer_spread(answer(X))
    copies = len(transforms) + 1
    step = _block(X, copies, batch_size)
    parts = []
    for start in _steps(n, step, progress):
        rows = _rows(X, start, min(start + step, n))
        outputs = answer(_join([rows, *(t(rows) for t in transforms)]))
        clean, *changed = _split(outputs, row_count(rows), copies)
        parts.append(as_numpy(ease_from_outputs(clean, changed, similarity=similarity, unit=unit)))
    return np.concatenate(parts).astype(np.float64)


def ease_from_outputs(
    clean: Any, transformed: Any, *, similarity: Any = "cosine", unit: float | str = 1.0
) -> Array:
    """Ease, eq. 1, from answers that are already at hand.

    Parameters
    ----------
    clean : array (n, K) or (n,)
        The model's answers for the rows.
    transformed : array (L, n, K) or (L, n), or a sequence of L arrays like ``clean``
        Its answers for changed copies. A sequence or iterator needs only one of them in memory.
    similarity, unit
        As in `ease`.

    Returns
    -------
    array (n,)
        In the library, dtype and on the device of ``clean``.

    Raises
    ------
    InputError
        When shapes differ, a value is not finite, or no transformed answers are given.

    Notes
    -----
    On a CUDA device up to 16 transformations are compared in one compiled pass, so that the time is that
    of reading the memory; elsewhere one array at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.difficulty import ease_from_outputs
    >>> clean = np.array([[1.0, 0.0], [0.5, 0.5]])
    >>> ease_from_outputs(clean, [clean, clean[:, ::-1]])
    array([0.5, 1. ])
    """
    first = _answers(clean, "clean")
    add_up = fused(_SumOfSimilarities(similarity_of(similarity, first, unit)), first)
    total, count = None, 0
    for group in _groups(transformed, _TOGETHER if getattr(first, "is_cuda", False) else 1):
        others = [_answers(one, "transformed") for one in group]
        for other in others:
            if tuple(other.shape) != tuple(first.shape):
                raise InputError(
                    f"clean and transformed must have the same shape, got {tuple(first.shape)} and "
                    f"{tuple(other.shape)}."
                )
        value = add_up(first, *others)
        total, count = (value if total is None else total + value), count + len(others)
    if total is None:
        raise InputError("transformed must hold at least one array of answers, got none.")
    return require_finite(total / count, name="the similarity of clean and transformed answers")


def _groups(transformed: Iterable[Any], size: int) -> Iterator[list[Any]]:
    if not isinstance(transformed, Iterable) or (hasattr(transformed, "ndim") and transformed.ndim == 0):
        raise InputTypeError(
            f"transformed must hold arrays of answers, got {type(transformed).__name__}. Pass a list of them."
        )
    source = iter(transformed)
    while group := list(islice(source, size)):
        yield group


def as_predict(predict: Any) -> Callable[[Any], Any]:
    """The function that gives answers: a callable as it is, an estimator's predict_proba or predict."""
    for name in ("predict_proba", "predict"):
        if hasattr(predict, name):
            method: Callable[[Any], Any] = getattr(predict, name)
            return method
    if callable(predict):
        function: Callable[[Any], Any] = predict
        return function
    raise InputTypeError(
        "predict must be a callable or an estimator with predict_proba or predict, "
        f"got {type(predict).__name__}."
    )


def _answers(values: Any, name: str) -> Array:
    array = one_column(as_array(values, name=name))
    if array.ndim not in (1, 2):
        raise InputError(f"{name} must be (n, K) or (n,), got shape {tuple(array.shape)}.")
    if array.ndim == 2:
        array = require_finite(numeric(array, name), name=name)
    return array


@dataclass(frozen=True, slots=True)
class _SumOfSimilarities:
    """Sum over transformed answers of their similarity to the clean ones, in one function of all of them.

    Compiled as one, the clean answers are read once for all transformations.
    """

    kernel: Kernel

    def __call__(self, xp: Any, clean: Array, *transformed: Array) -> Array:
        total = self.kernel(xp, clean, transformed[0])
        for other in transformed[1:]:
            total = total + self.kernel(xp, clean, other)
        return total


def answer_spread(outputs: Any) -> float:
    """Standard deviation of the answers, 1 where they are all equal."""
    values = as_numpy(outputs).astype(float).ravel()
    return float(values.std()) or 1.0


def row_count(X: Any) -> int:
    """Rows of X, at least one."""
    shape = getattr(X, "shape", None)
    n = int(shape[0]) if shape is not None else len(X)
    if n == 0:
        raise InputError("X must have at least one row, got none.")
    return n


def _block(X: Any, copies: int, batch_size: int | None) -> int:
    if batch_size is not None:
        return max(1, check_count(batch_size, name="batch_size") // copies)
    shape = getattr(X, "shape", (1, 1))
    features = max(1, int(np.prod([int(side) for side in shape[1:]])))
    return max(1, _ENTRIES // (features * copies))


def _rows(X: Any, start: int, stop: int) -> Any:
    if is_frame(X):
        return nw.to_native(nw.from_native(X, eager_only=True)[start:stop])
    return (X if is_array(X) else as_array(X, name="X"))[start:stop]


def _join(parts: list[Any]) -> Any:
    if is_frame(parts[0]):
        frames = [nw.from_native(part, eager_only=True) for part in parts]
        # Perturbed columns are floats; the clean copy follows, so that one frame holds all.
        schema = frames[-1].schema
        casts = [nw.col(name).cast(kind) for name, kind in schema.items() if frames[0].schema[name] != kind]
        first = frames[0].with_columns(casts) if casts else frames[0]
        return nw.to_native(nw.concat([first, *frames[1:]], how="vertical"))
    xp = namespace(*parts)
    dtype = next((p.dtype for p in parts if xp.isdtype(p.dtype, "real floating")), parts[0].dtype)
    return xp.concat([xp.astype(part, dtype, copy=False) for part in parts])


def _split(outputs: Any, rows: int, copies: int) -> list[Array]:
    array = _answers(outputs, "predict(X)")
    if int(array.shape[0]) != rows * copies:
        raise InputError(
            f"predict must give one answer per row, got {int(array.shape[0])} for {rows * copies} rows."
        )
    if not isinstance(array, np.ndarray) or array.dtype.kind == "f":
        require_finite(array, name="predict(X)")
    return [array[i * rows : (i + 1) * rows] for i in range(copies)]


def _steps(n: int, step: int, progress: bool) -> Iterator[int]:
    starts = range(0, n, step)
    if not progress:
        yield from starts
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(starts, description="ease", console=Console(stderr=True))
