"""A repair as JSON: numbers, labels and the names of known parts; reading it runs no code of the file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calipers.exceptions import InputError
from calipers.results.serialization import decode, encode
from calipers.version import __version__

FORMAT = 2  # 2: trees ask one question per level
_PARTS: dict[str, type] = {}
_KINDS: dict[type, str] = {}
Part = TypeVar("Part", bound=type)


def part(kind: str) -> Callable[[Part], Part]:
    """Register a frozen dataclass as a part that a stored repair may be made of."""

    def register(cls: Part) -> Part:
        _PARTS[kind], _KINDS[cls] = cls, kind
        return cls

    return register


def to_plain(value: Any) -> Any:
    """Plain JSON values of a part and of the parts inside it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"part": _KINDS[type(value)]} | fields
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.size == 0:
        return {"$empty": [list(value.shape), str(value.dtype)]}
    return encode(value)


def from_plain(value: Any) -> Any:
    """The parts that `to_plain` wrote; lists come back as tuples."""
    if isinstance(value, list):
        return tuple(from_plain(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "part" in value:
        cls = _PARTS[value["part"]]
        return cls(**{name: from_plain(item) for name, item in value.items() if name != "part"})
    if set(value) == {"$empty"}:
        return np.empty(value["$empty"][0], dtype=value["$empty"][1])
    if set(value) in ({"$float"}, {"$array"}):
        return decode(value)
    return {key: from_plain(item) for key, item in value.items()}


def stored_text(content: dict[str, Any]) -> str:
    """A document with its format, the version that wrote it and a checksum of all of it."""
    document = {"kind": "calipers repair", "format": FORMAT, "calipers": __version__} | content
    document["sha256"] = _checksum(document)
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)


def read_stored(path: Path | str) -> dict[str, Any]:
    """The document of a file, refused when it is not a repair, of a later format, or changed."""
    place = Path(path)
    place = place / "repair.json" if place.is_dir() else place
    try:
        document = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no repair at {place}.") from None
    except ValueError:  # not JSON, or not even text
        raise InputError(f"{place} is not a saved repair: it is not JSON.") from None
    if not isinstance(document, dict) or document.get("kind") != "calipers repair":
        raise InputError(f"{place} is not a saved repair.")
    if document.get("format") != FORMAT:
        raise InputError(
            f"{place} has format {document.get('format')}, written by calipers {document.get('calipers')}; "
            f"this is calipers {__version__}, which reads format {FORMAT}. Update Calipers, or repair again."
        )
    if document.get("sha256") != _checksum(document):
        raise InputError(
            f"{place} was changed after it was written: its checksum does not match. "
            "Take the file as it was saved, or repair again."
        )
    return document


def parts_of_document(document: dict[str, Any], place: Path | str) -> Any:
    """The rule inside a document that `read_stored` accepted."""
    try:
        return from_plain(document["rule"])
    except (KeyError, TypeError, ValueError, IndexError):
        raise InputError(
            f"{place} names a part that calipers {__version__} does not know; it was written by "
            f"calipers {document.get('calipers')}."
        ) from None


def _checksum(document: dict[str, Any]) -> str:
    content = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
