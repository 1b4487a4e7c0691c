"""Results to JSON and back, with a schema number.

NaN and the infinities are not JSON; they travel as ``{"$float": "nan"}``, so that any reader can load
the file and ours gets back what was stored. Arrays travel as lists, or as ``{"$array": [...]}`` so
that they come back as arrays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from calipers.exceptions import InputError, InputTypeError
from calipers.results.curve import Curve
from calipers.results.estimate import Estimate
from calipers.results.finding import Finding
from calipers.results.table import EstimateTable

SCHEMA = 1

Result = Estimate | EstimateTable | Curve | Finding
T = TypeVar("T")


def to_json(result: Result, *, indent: int | None = None) -> str:
    """The result as strict JSON text.

    Examples
    --------
    >>> from calipers.results import Estimate, from_json, to_json
    >>> e = Estimate(name="coverage", value=0.9, high=float("inf"))
    >>> from_json(to_json(e)) == e
    True
    """
    kind = type(result).__name__
    if kind not in _READERS:
        raise InputError(f"to_json takes a result of {', '.join(_READERS)}, got {kind}.")
    document = {"schema": SCHEMA, "kind": kind, "result": encode(result.to_dict())}
    return json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)


def from_json(text: str) -> Result:
    """The result that `to_json` wrote.

    Examples
    --------
    >>> from calipers.results import Curve, from_json, to_json
    >>> from_json(to_json(Curve(name="c", x=[0, 1], y=[0.5, 0.25]))).y
    array([0.5 , 0.25])
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise InputTypeError(f"from_json takes the text that to_json wrote, got {type(text).__name__}.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the text is not JSON ({str(error)[:120]}). It is cut or damaged.") from None
    if not isinstance(document, dict) or str(document.get("kind")) not in _READERS:
        raise InputError(f"the text is not a stored result: kind must be one of {', '.join(_READERS)}.")
    if document.get("schema") != SCHEMA:
        raise InputError(
            f"the stored result has schema {document.get('schema')}, this version reads {SCHEMA}. "
            "Store it again with this version of Calipers."
        )
    try:
        return _READERS[document["kind"]](decode(document["result"]))
    except InputError:
        raise
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"the stored {document['kind']} is damaged ({type(error).__name__}: {str(error)[:120]}). "
            "Store it again."
        ) from None


def encode(value: Any) -> Any:
    """Plain JSON values: nothing is rounded, nothing is dropped."""
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return {"$array": [encode(item) for item in value.tolist()]}
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "to_dict"):
        return encode(value.to_dict())
    return str(value)


def decode(value: Any) -> Any:
    """The inverse of `encode` for what JSON can tell apart (tuples come back as lists)."""
    if isinstance(value, dict):
        if set(value) == {"$float"}:
            return float(value["$float"])
        if set(value) == {"$array"}:
            return np.asarray([decode(item) for item in value["$array"]])
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, int):
        float(value)  # a whole number that no double reaches is a damage
    return value


def same(left: Any, right: Any) -> bool:
    """Equality of stored values: NaN equals NaN, a tuple equals the list it is stored as."""
    return bool(encode(left) == encode(right))


def _read_as(kind: type[T]) -> Callable[[dict[str, Any]], T]:
    """A reader that looks at what every field holds: a result that is read can be printed."""

    def read(stored: dict[str, Any]) -> T:
        known = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
        for name, value in stored.items():
            _require_kind(name, value, known.get(name, ""))
        return kind(**stored)

    return read


def _require_kind(name: str, value: Any, declared: str) -> None:
    if value is None and declared.endswith("| None"):
        return
    expected = _STORED_AS.get(declared.removesuffix(" | None"))
    if expected is None or (
        isinstance(value, expected) and (bool in expected or not isinstance(value, bool))
    ):
        return
    raise TypeError(f"{name} holds {repr(value)[:40]}")


# What a field that is declared so holds once it is stored.
_STORED_AS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "Alternative": (str,),
    "float": (int, float),
    "int": (int,),
    "bool": (bool,),
    "Mapping[str, Any]": (dict,),
    "np.ndarray": (list, np.ndarray),
}
_read_estimate = _read_as(Estimate)


def _read_finding(stored: dict[str, Any]) -> Finding:
    evidence = stored.pop("evidence")
    return _read_as(Finding)(stored | {"evidence": None if evidence is None else _read_estimate(evidence)})


def _read_table(stored: dict[str, Any]) -> EstimateTable:
    title, notes = stored["title"], stored["notes"]
    if not isinstance(title, str) or not all(isinstance(note, str) for note in notes):
        raise TypeError("title and notes must be text")
    estimates = {name: _read_estimate(entry) for name, entry in stored["estimates"].items()}
    return EstimateTable(estimates, title=title, notes=notes)


_READERS: dict[str, Callable[[dict[str, Any]], Result]] = {
    "Estimate": _read_estimate,
    "EstimateTable": _read_table,
    "Curve": _read_as(Curve),
    "Finding": _read_finding,
}
