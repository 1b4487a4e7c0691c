"""What states have seen as plain values and arrays, so that it can be stored without pickle.

A stored state is read back into a copy of the state with which its pass began: functions, options and fitted
models come from there, and the file holds data only.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np

from calipers.exceptions import InputTypeError

_OWN = "calipers."
_PLAIN = (bool, int, float, str)
_BIT_GENERATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
}
_SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


def content_of(value: Any, foreign: Callable[[Any], Any] | None = None) -> Any:
    """Lists, dictionaries with text keys, numbers, text and arrays that stand for a value.

    Parameters
    ----------
    value : object
        A state of Calipers, or what is found in one.
    foreign : callable, optional
        What stands for functions and objects of other packages.

    Returns
    -------
    object
        For `with_content`. A function stands for the one at the same place of the state it is read into.

    Raises
    ------
    InputTypeError
        For objects of other packages, without ``foreign``.

    Examples
    --------
    >>> from calipers.engines.state_content import content_of, with_content
    >>> stored = content_of({("a", True): (1.0, 2)})
    >>> stored
    ['dict', [[['tuple', ['a', True]], ['tuple', [1.0, 2]]]]]
    >>> with_content(None, stored)
    {('a', True): (1.0, 2)}
    """
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic):
        return ["scalar", np.array(value)]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value
    if isinstance(value, (np.ndarray, list, tuple, set, frozenset, dict)) and not _is_own(type(value)):
        return _container_content(value, foreign)
    if isinstance(value, np.random.Generator):
        return ["generator", content_of(value.bit_generator.state)]
    if type(value).__module__.startswith("polars") and hasattr(value, "write_ipc"):
        return ["frame", _ipc(value)]
    if _is_own(type(value)):
        return _object_content(value, foreign)
    if foreign is not None:
        return ["foreign", foreign(value)]
    if callable(value):
        return ["given"]
    kind = type(value)
    raise InputTypeError(f"a state with a {kind.__module__}.{kind.__qualname__} in it cannot be stored.")


def _container_content(value: Any, foreign: Callable[[Any], Any] | None) -> list[Any]:
    if isinstance(value, np.ndarray):
        return ["objects", list(value.shape), [content_of(item, foreign) for item in value.ravel().tolist()]]
    if isinstance(value, dict):
        return [
            "dict",
            [[content_of(key, foreign), content_of(item, foreign)] for key, item in value.items()],
        ]
    name = next((name for name, kind in _SEQUENCES.items() if type(value) is kind), None)
    if name is not None:
        return [name, [content_of(item, foreign) for item in value]]
    raise InputTypeError(f"a state with a {type(value).__qualname__} in it cannot be stored.")


def with_content(given: Any, content: Any) -> Any:
    """The value that `content_of` stood for.

    Parameters
    ----------
    given : object
        What a pass began with at this place; functions are taken from it.
    content : object
        From `content_of`.

    Returns
    -------
    object
        A new one; ``given`` is not changed.

    Raises
    ------
    ValueError, TypeError, AttributeError, KeyError, IndexError, ImportError
        For content that no state has.
    """
    if not isinstance(content, list):
        return content
    kind, *parts = content
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](with_content(None, item) for item in parts[0])
    return _READERS[kind](given, *parts)


def _object_content(value: Any, foreign: Callable[[Any], Any] | None) -> list[Any]:
    kind = type(value)
    fields = {name: content_of(field, foreign) for name, field in _fields(value)}
    items = content_of(dict(value), foreign) if isinstance(value, dict) else None
    return ["object", f"{kind.__module__}:{kind.__qualname__}", fields, items]


def _read_object(given: Any, name: str, fields: dict[str, Any], items: Any) -> Any:
    kind: Any = _own_class(name)
    made: Any = copy(given) if type(given) is kind else kind.__new__(kind)
    for field, content in fields.items():
        object.__setattr__(made, field, with_content(getattr(given, field, None), content))
    if items is not None:
        made.clear()
        made.update(with_content(None, items))
    return made


def _read_dict(given: Any, items: list[Any]) -> dict[Any, Any]:
    begun = given if isinstance(given, dict) else {}
    keys = [with_content(None, key) for key, _ in items]
    return {key: with_content(begun.get(key), item) for key, (_, item) in zip(keys, items, strict=True)}


def _read_objects(_: Any, shape: list[int], items: list[Any]) -> np.ndarray:
    made = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        made[place] = with_content(None, item)
    return made.reshape(shape)


def _ipc(frame: Any) -> np.ndarray:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8)


def _read_frame(_: Any, content: np.ndarray) -> Any:
    import polars as pl

    return pl.read_ipc(io.BytesIO(content.tobytes()))


def _read_generator(_: Any, content: Any) -> np.random.Generator:
    state = with_content(None, content)
    made = np.random.Generator(_BIT_GENERATORS[state["bit_generator"]]())
    made.bit_generator.state = state
    return made


def _read_given(given: Any) -> Any:
    if not callable(given):
        raise TypeError("the pass began without a function at this place")
    return given


_READERS: dict[str, Callable[..., Any]] = {
    "scalar": lambda _, array: array[()],
    "objects": _read_objects,
    "dict": _read_dict,
    "frame": _read_frame,
    "generator": _read_generator,
    "given": _read_given,
    "object": _read_object,
}


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Attributes of an object, from its slots and its dictionary; those that were never set are left out."""
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
    for name in dict.fromkeys([*slots, *vars(value)] if hasattr(value, "__dict__") else slots):
        if name not in {"__dict__", "__weakref__"} and hasattr(value, name):
            yield name, getattr(value, name)


def _is_own(kind: type) -> bool:
    return kind.__module__.startswith(_OWN)


def _own_class(name: str) -> type:
    """A class of Calipers by its module and name; nothing else is imported."""
    module, _, path = name.partition(":")
    if not module.startswith(_OWN):
        raise ImportError(f"{module} is not a module of Calipers")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not isinstance(found, type) or not _is_own(found):
        raise TypeError(f"{name} is not a class of Calipers")
    return found
