"""What an object is in one line, however much it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import narwhals as nw
from narwhals.dependencies import is_into_dataframe

_LONGEST_TEXT = 40
_MOST_ITEMS = 4


def short_repr(thing: Any) -> str:
    """The class with its fields in one line: arrays by type and shape, long collections by their length.

    Fields that are empty or hold their default are left out, and so are details. A class says
    ``__repr__ = short_repr``, a named tuple (for type checkers) ``def __repr__``.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from calipers.arrays import short_repr
    >>> class Sample(NamedTuple):
    ...     X: np.ndarray
    ...     name: str = ""
    ...     def __repr__(self): return short_repr(self)
    >>> Sample(np.zeros((300, 2)), "blobs")
    Sample(X=float64 (300, 2), name='blobs')
    """
    shown = ", ".join(f"{name}={_short(value)}" for name, value in _fields(thing))
    return f"{type(thing).__name__}({shown})"


def _fields(thing: Any) -> list[tuple[str, Any]]:
    if dataclasses.is_dataclass(thing):
        named = [(f.name, _default(f)) for f in dataclasses.fields(thing) if f.repr and f.name != "details"]
    else:
        defaults = getattr(thing, "_field_defaults", {})
        named = [(name, defaults.get(name, dataclasses.MISSING)) for name in thing._fields]
    stated = [(name, getattr(thing, name), default) for name, default in named]
    return [(name, value) for name, value, default in stated if not _is_silent(value, default)]


def _default(field: dataclasses.Field[Any]) -> Any:
    make = field.default_factory
    return field.default if make is dataclasses.MISSING else make()


def _is_silent(value: Any, default: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (str, tuple, list, Mapping)):
        return len(value) == 0 or value == default
    comparable = isinstance(value, (bool, int, float)) or dataclasses.is_dataclass(value)
    return comparable and type(value) is type(default) and bool(value == default)


def _short(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if is_into_dataframe(value):
        return f"{type(value).__module__.split('.')[0]} frame {nw.from_native(value, eager_only=True).shape}"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_TEXT else value[: _LONGEST_TEXT - 3] + "...")
    if isinstance(value, Mapping):
        return f"{{{_items([f'{k}: {_short(v)}' for k, v in value.items()])}}}"
    if isinstance(value, (list, tuple)):
        plain = all(isinstance(item, (str, int, float)) for item in value)
        if len(value) > _MOST_ITEMS and not plain:
            return f"{len(value)} {type(value[0]).__name__}"
        return f"({_items([_short(item) for item in value])})"
    if isinstance(value, float):
        return f"{value:.4g}"
    name = getattr(value, "name", None)
    if dataclasses.is_dataclass(value) and isinstance(name, str):
        return f"{type(value).__name__}({name!r})"
    return getattr(value, "__name__", None) or repr(value)


def _items(shown: list[str]) -> str:
    more = len(shown) - _MOST_ITEMS
    return ", ".join(shown) if more <= 0 else f"{', '.join(shown[:_MOST_ITEMS])}, and {more} more"
