"""Every public function and class says what it is and shows an example that is run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import calipers

ROOMS = [
    name for name in (*calipers.__all__, *calipers._INTERNAL) if inspect.ismodule(getattr(calipers, name))
]
# The plumbing: small functions whose signature says what a section would only repeat.
PLUMBING = {"arrays", "exceptions", "inputs", "results"}
SECTION_ORDER = [
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
]


def public_objects() -> Iterator[tuple[str, Any]]:
    for name in (*calipers.__all__, *calipers._INTERNAL):
        if inspect.isfunction(getattr(calipers, name)):
            yield name, getattr(calipers, name)
    for room in ROOMS:
        module = importlib.import_module(f"calipers.{room}")
        for name in module.__all__:
            found = getattr(module, name)
            if not getattr(found, "__module__", "").startswith("calipers"):
                continue  # a constant, or an alias of somebody else's type
            if inspect.isfunction(found) or (inspect.isclass(found) and not issubclass(found, BaseException)):
                yield f"{room}.{name}", found


OBJECTS = dict(public_objects())


def sections(docstring: str) -> list[str]:
    return re.findall(r"^([A-Z][A-Za-z ]+)\n-{3,}$", docstring, flags=re.MULTILINE)


def documented_parameters(docstring: str) -> set[str]:
    block = re.search(
        r"^Parameters\n-+\n(.*?)(?=^[A-Z][A-Za-z ]+\n-{3,}$|\Z)", docstring, re.MULTILINE | re.DOTALL
    )
    heads = re.findall(r"^(\*{0,2}\w[\w, *]*?) ?(?::|$)", block[1], flags=re.MULTILINE) if block else []
    return {name.strip(" *") for head in heads for name in head.split(",")}


def is_record(thing: Any) -> bool:
    """Dataclasses, named tuples and protocols hold fields or describe a shape; a function makes them."""
    kinds = ("__dataclass_fields__", "_fields", "_is_protocol")
    return inspect.isclass(thing) and any(getattr(thing, kind, False) for kind in kinds)


@pytest.mark.parametrize("name", OBJECTS)
def test_docstring_opens_with_one_sentence(name: str) -> None:
    docstring = inspect.getdoc(OBJECTS[name]) or ""
    assert re.match(r"\S.*[.:]($|\n\n)", docstring.split("\n\n")[0].replace("\n", " "))


@pytest.mark.parametrize("name", [n for n, thing in OBJECTS.items() if not is_record(thing)])
def test_docstring_has_an_example_that_is_run(name: str) -> None:
    docstring = inspect.getdoc(OBJECTS[name]) or ""
    assert "Examples" in sections(docstring)
    examples = doctest.DocTestParser().get_examples(docstring)
    assert examples
    assert all(not example.options.get(doctest.SKIP) for example in examples)


@pytest.mark.parametrize("name", OBJECTS)
def test_sections_come_in_numpydoc_order(name: str) -> None:
    found = sections(inspect.getdoc(OBJECTS[name]) or "")
    assert found == sorted(found, key=SECTION_ORDER.index)


@pytest.mark.parametrize("name", OBJECTS)
def test_documented_parameters_are_those_of_the_signature(name: str) -> None:
    docstring = inspect.getdoc(OBJECTS[name]) or ""
    documented = documented_parameters(docstring)
    if not documented and (name.split(".", maxsplit=1)[0] in PLUMBING or is_record(OBJECTS[name])):
        return
    signature = inspect.signature(OBJECTS[name])
    assert documented == {parameter for parameter in signature.parameters if parameter != "self"}
    assert inspect.isclass(OBJECTS[name]) or "Returns" in sections(docstring)
