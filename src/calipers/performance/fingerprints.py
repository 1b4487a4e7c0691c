"""Short names for data, objects and code that change when these do: what a cache is keyed by."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import pickle
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from calipers.exceptions import InputTypeError

_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic)
_CODE = (type, types.FunctionType)
# What a function or class can refer to by name that changes its result and can be looked at.
_SEEN = (*_PLAIN, *_CODE, tuple, list, dict, set, frozenset, functools.partial)
_PLACES = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
_PLACE_NAMES = {"site-packages", "dist-packages"}
# What Python itself puts into a class; none of it computes.
_BOOKKEEPING = {
    "__module__",
    "__dict__",
    "__weakref__",
    "__doc__",
    "__firstlineno__",
    "__static_attributes__",
}


@functools.cache
def source_fingerprint(package: str) -> str:
    """A name for all source files of a package, by path and content.

    Examples
    --------
    >>> from calipers.performance.fingerprints import source_fingerprint
    >>> source_fingerprint("calipers") == source_fingerprint("calipers")
    True
    """
    spec = importlib.util.find_spec(package)
    folders = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    return files_fingerprint({
        path.relative_to(folder).as_posix(): path for folder in folders for path in folder.rglob("*.py")
    })  # fmt: skip


def files_fingerprint(files: dict[str, Path]) -> str:
    """A name for files by their names and contents; the order of the dictionary does not matter."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]


@functools.cache
def library_versions() -> tuple[str, ...]:
    """The libraries whose numbers go into every result, with their versions."""
    return tuple(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)


def fingerprint(value: Any) -> str:
    """A name for an object that changes when its content, or the code of a function or class in it, changes.

    Notes
    -----
    The code of a function is its instructions, constants, defaults and what it closes over; that of a class
    is its methods, attributes and bases. Functions, classes and plain values that such code names are
    followed in turn, also in other modules of the user's own. Code of installed packages counts by the
    version of the package. What is reached in other ways, through global objects or files, is not seen.

    Examples
    --------
    >>> from functools import partial
    >>> from calipers.performance.fingerprints import fingerprint
    >>> fingerprint(partial(pow, 2)) == fingerprint(partial(pow, 2))
    True
    >>> fingerprint(partial(pow, 2)) == fingerprint(partial(pow, 3))
    False
    """
    code = _Code()
    described = code.describe(value)
    return str(joblib.hash([described, code.bodies()]))


class _Code:
    """Descriptions by plain values; functions and classes are numbered, and described one after the other."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.things: list[Any] = []

    def describe(self, value: Any) -> Any:
        """What stands for a value."""
        if isinstance(value, _PLAIN):
            return joblib.hash(value)
        if isinstance(value, (list, tuple)):
            return [type(value).__name__, *map(self.describe, value)]
        if isinstance(value, functools.partial):
            return self.describe(("partial", value.func, value.args, sorted(value.keywords.items())))
        if isinstance(value, types.MethodType):
            return self.describe(("method", value.__func__, value.__self__))
        if isinstance(value, _CODE):
            return self._number(value)
        if hasattr(value, "fingerprint_parts"):
            return self.describe((type(value), value.fingerprint_parts()))
        content, code = _content_and_code(value)
        return [content, [self._number(thing) for thing in code]]

    def _number(self, thing: Any) -> int:
        if id(thing) not in self.numbers:
            self.numbers[id(thing)] = len(self.things)
            self.things.append(thing)
        return self.numbers[id(thing)]

    def bodies(self) -> list[Any]:
        """What is inside the functions and classes met so far, and those they lead to."""
        found = []
        for thing in self.things:  # grows on the way
            name, version = f"{thing.__module__}.{thing.__qualname__}", _installed_version(thing.__module__)
            body = self._class if isinstance(thing, type) else self._function
            found.append([name, version or body(thing)])
        return found

    def _function(self, function: types.FunctionType) -> list[Any]:
        codes = _codes(function.__code__)
        names = sorted({name for code in codes for name in code.co_names})
        return [
            [_instructions(code) for code in codes],
            self.describe((function.__defaults__, sorted((function.__kwdefaults__ or {}).items()))),
            [self.describe(cell.cell_contents) for cell in function.__closure__ or ()],
            self._followed(_named(names, function.__globals__)),
        ]

    def _class(self, kind: type) -> list[Any]:
        members = ((name, thing) for name, thing in sorted(vars(kind).items()) if name not in _BOOKKEEPING)
        computing = ((name, found) for name, thing in members for found in _computing(thing))
        return [[self._number(base) for base in kind.__mro__[1:]], self._followed(computing)]

    def _followed(self, named: Iterable[tuple[str, Any]]) -> list[Any]:
        found = []
        for name, thing in named:
            with contextlib.suppress(InputTypeError):  # a table with a lock or an open file in it
                found.append([name, self.describe(thing)])
        return found


class _Collector(pickle.Pickler):
    """Meets every class and function that a pickle only names."""

    def __init__(self) -> None:
        # Arrays go past the stream: they are hashed elsewhere.
        super().__init__(io.BytesIO(), protocol=5, buffer_callback=lambda buffer: None)
        self.found: dict[str, Any] = {}

    def persistent_id(self, obj: Any) -> None:
        """Called with every object; none is replaced."""
        if isinstance(obj, _CODE):
            self.found[f"{obj.__module__}.{obj.__qualname__}"] = obj


def _content_and_code(value: Any) -> tuple[str, list[Any]]:
    """The content of an object that can be pickled, and the classes and functions its pickle names."""
    collector = _Collector()
    try:
        content = str(joblib.hash(value))
        collector.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputTypeError(
            f"cache needs an estimator and a loss that can be pickled, {type(value).__name__} cannot: "
            f"{error}. Define its functions at the top of a module, or run without a cache."
        ) from None
    return content, [thing for _, thing in sorted(collector.found.items())]


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """The code and that of every function, lambda and comprehension inside it."""
    inside = (_codes(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return [code, *(found for codes in inside for found in codes)]


def _instructions(code: types.CodeType) -> list[Any]:
    constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    # The order of a set of text differs between processes.
    shown = [sorted(map(repr, c)) if isinstance(c, frozenset) else repr(c) for c in constants]
    return [code.co_code.hex(), shown, list(code.co_names)]


def _named(names: list[str], space: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the names mean there, also one step into modules of the user's own."""
    for name in names:
        thing = space.get(name)
        if isinstance(thing, types.ModuleType):
            if not _installed_version(thing.__name__):
                inside = [n for n in names if isinstance(vars(thing).get(n), _SEEN) and n in vars(thing)]
                yield from ((f"{name}.{other}", vars(thing)[other]) for other in inside)
        elif name in space and isinstance(thing, _SEEN):
            yield name, thing


def _computing(member: Any) -> list[Any]:
    """The functions and plain values in a member of a class."""
    if isinstance(member, (staticmethod, classmethod)):
        return _computing(member.__func__)
    if isinstance(member, property):
        return [f for f in (member.fget, member.fset) if f is not None]
    return [member] if isinstance(member, _SEEN) else []


@functools.cache
def _installed_version(module: str) -> str:
    """Version of the installed package that a module belongs to; empty for code of the user's own.

    The source of Calipers itself is part of every key, so it counts as installed.
    """
    name = module.partition(".")[0]
    if name in sys.stdlib_module_names:
        return f"python {sys.version_info.major}.{sys.version_info.minor}"
    top = sys.modules.get(name)
    place = Path(getattr(top, "__file__", None) or name).resolve()
    installed = _PLACES & set(place.parents) or _PLACE_NAMES & set(place.parts) or name == "calipers"
    return f"{name} {getattr(top, '__version__', 'installed')}" if installed else ""
