"""Public signatures as short texts, and the rule of what counts as a loss.

A signature is written as in a stub, ``"y_true, prediction, *, alpha=None"``; a default that is not a plain value is ``...``
and only known to be there.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calipers.exceptions import CalipersWarning

ROOMS = (
    "calipers",
    "calipers.auditing",
    "calipers.calibration",
    "calipers.cli",
    "calipers.conformal",
    "calipers.conformal.idealised",
    "calipers.datasets",
    "calipers.difficulty",
    "calipers.engines",
    "calipers.exceptions",
    "calipers.integrations",
    "calipers.metrics",
    "calipers.metrics.conditional",
    "calipers.metrics.reliability",
    "calipers.performance",
    "calipers.plots",
    "calipers.results",
    "calipers.scorers",
)
# Rooms inside a room that the guides name; what is there may also move up.
INNER = {
    "calipers.metrics.conditional": "calipers.metrics",
    "calipers.metrics.reliability": "calipers.metrics",
}
LEFT_OUT = {
    "calipers": {"studies", "arrays", "inputs", "inference", "report", "__version__"},
    "calipers.engines": {"merge_rules"},
    "calipers.exceptions": {"warn"},
    "calipers.metrics.conditional": {"Distance"},
    "calipers.metrics.reliability": {
        "BinaryRows", "SupInterval", "check_binary_rows", "warn_if_unverifiable_in_sample",
    },
}  # fmt: skip
# Classes of what calls return; their attributes are pinned, how they are made is not.
RETURNED = {"Audit", "Comparison", "MetricEntry", "Picture", "QuestionPlan", "Repair", "RunPlan"}
# Members and parameters of the machinery, not for users.
INTERNAL = {
    "Audit": {"material"},
    "Block": {"place", "trusted", "fused"},
    "audit": {"source"},
    "MetricEntry": {"merge"},
}
# Classes whose constructor is all that users need.
CONSTRUCTED_ONLY = {"Block", "State"}
# Classes that will take other options: only their names are pinned.
NAME_ONLY = {"CoverageClassifier"}
# Where a parameter was renamed: "room.name" -> {old: (new, test of the old name as an alias that warns)}.
_DRAWS = (
    "n_draws",
    "tests/unit/metrics/adaptivity/test_size_and_difficulty.py::test_the_old_name_of_the_draws_works_and_warns",
)
RENAMED: dict[str, dict[str, tuple[str, str]]] = {
    "calipers.metrics.t_ss": {"n_permutations": _DRAWS},
    "calipers.metrics.rank_ss": {"n_permutations": _DRAWS},
    "calipers.metrics.width_against_error": {"n_permutations": _DRAWS},
    "calipers.metrics.efficiency_curve": {
        "alphas": (
            "alpha",
            "tests/unit/metrics/test_criteria.py::test_the_old_name_of_the_levels_of_a_curve_warns",
        )
    },
    "calipers.metrics.ert": {
        "groups": (
            "cluster",
            "tests/unit/metrics/conditional/test_excess_risk.py::test_clusters_stay_on_one_side_and_widen_the_error_bar",
        )
    },
    "calipers.metrics.ert_table": {
        "groups": (
            "cluster",
            "tests/unit/metrics/conditional/test_excess_risk.py::test_clusters_stay_on_one_side_and_widen_the_error_bar",
        )
    },
    "calipers.metrics.regression_efficiency": {
        "alphas": ("alpha", "tests/unit/metrics/test_criteria.py::test_the_old_name_of_alpha_warns_and_works")
    },
}

ALIAS_WARNINGS = (DeprecationWarning, FutureWarning, CalipersWarning)
_ROUTING = re.compile(r"set_\w+_request")  # made by scikit-learn


@contextmanager
def aliases_may_warn() -> Iterator[None]:
    """What is kept as an alias may warn."""
    with warnings.catch_warnings():
        for category in ALIAS_WARNINGS:
            warnings.simplefilter("ignore", category)
        yield


def public_name(room: str, name: str) -> Any:
    """The object behind a public name."""
    with aliases_may_warn():
        try:
            return getattr(importlib.import_module(room), name)
        except (AttributeError, ModuleNotFoundError):
            if room not in INNER:
                raise
            return getattr(importlib.import_module(INNER[room]), name)


def public_names(room: str) -> list[str]:
    """The names of a room that are pinned; those of an inner room without what its outer room has."""
    outer = set(importlib.import_module(INNER[room]).__all__) if room in INNER else set()
    return sorted(set(importlib.import_module(room).__all__) - outer - LEFT_OUT.get(room, set()))


def collect() -> dict[str, dict[str, Any]]:
    """Everything that is public today, by room and name."""
    return {room: {name: describe(public_name(room, name)) for name in public_names(room)} for room in ROOMS}


def describe(thing: Any) -> dict[str, Any]:
    """What a user can do with it, as plain values."""
    if inspect.ismodule(thing):
        return {"kind": "module"}
    if inspect.isclass(thing):
        return _describe_class(thing)
    if callable(thing):
        return {"kind": "function", "call": _written(inspect.signature(thing), INTERNAL.get(thing.__name__))}
    return {"kind": "value", "holds": sorted(thing) if isinstance(thing, (tuple, dict)) else []}


def _describe_class(thing: type) -> dict[str, Any]:
    if thing.__name__ in NAME_ONLY:
        return {"kind": "class"}
    hidden = INTERNAL.get(thing.__name__, set())
    found: dict[str, Any] = {"kind": "class"}
    if issubclass(thing, (Exception, Warning)):
        return found | {"bases": [base.__name__ for base in thing.__mro__[1:-2]]}
    if thing.__name__ not in RETURNED:
        found["call"] = _written(inspect.signature(thing), hidden)
    if thing.__name__ in CONSTRUCTED_ONLY:
        return found
    return found | {"members": {name: _member(thing, name) for name in _members(thing) if name not in hidden}}


def _members(thing: type) -> list[str]:
    own = (vars(kind) for kind in thing.__mro__ if kind.__module__.startswith("calipers"))
    names = {name for table in own for name in table}
    if dataclasses.is_dataclass(thing):
        names |= {field.name for field in dataclasses.fields(thing)}
    return sorted(name for name in names if not name.startswith("_") and not _ROUTING.fullmatch(name))


def _member(thing: type, name: str) -> str:
    """The signature of a method without self; "attribute" for anything else."""
    raw = inspect.getattr_static(thing, name, None)
    if isinstance(raw, (classmethod, staticmethod)):
        return f"({_written(inspect.signature(getattr(thing, name)))})"
    if not inspect.isfunction(raw):
        return "attribute"
    signature = inspect.signature(raw)
    return f"({_written(signature.replace(parameters=list(signature.parameters.values())[1:]))})"


def _written(signature: inspect.Signature, hidden: set[str] | None = None) -> str:
    kept = [
        p.replace(annotation=inspect.Parameter.empty, default=_Written.of(p.default))
        for p in signature.parameters.values()
        if p.name not in (hidden or set())
    ]
    return str(inspect.Signature(kept))[1:-1]


class _Written:
    """A default as it is written in a stub."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    @classmethod
    def of(cls, default: Any) -> Any:
        if default is inspect.Parameter.empty:
            return default
        text = repr(default)
        try:
            ast.parse(text, mode="eval")
        except SyntaxError:
            text = "..."
        return cls(text)


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """The parameters of a signature: positional ones in order, all defaults, and what takes the rest."""

    positional: list[str]
    defaults: dict[str, str | None]
    takes_any_keyword: bool

    @classmethod
    def of(cls, text: str) -> Call:
        """Read what `_written` wrote."""
        found = ast.parse(f"def f({text}): pass").body[0].args  # type: ignore[attr-defined]
        positional = [argument.arg for argument in (*found.posonlyargs, *found.args)]
        given: list[ast.expr | None] = [
            *[None] * (len(positional) - len(found.defaults)),
            *found.defaults,
            *found.kw_defaults,
        ]
        names = [*positional, *(argument.arg for argument in found.kwonlyargs)]
        defaults = {n: None if d is None else ast.unparse(d) for n, d in zip(names, given, strict=True)}
        return cls(positional, defaults, found.kwarg is not None)


def lost(stored: dict[str, Any], now: dict[str, Any], renamed: dict[str, str] | None = None) -> Iterator[str]:
    """What the stored description has and today's has not, in words."""
    if stored["kind"] in {"module", "value"} and now["kind"] != stored["kind"]:
        yield f"was a {stored['kind']}, is a {now['kind']}"
        return
    yield from (f"no longer holds {item!r}" for item in stored.get("holds", []) if item not in now["holds"])
    yield from (f"is no longer a {base}" for base in stored.get("bases", []) if base not in now["bases"])
    if "call" in stored:
        yield from lost_parameters(stored["call"], now.get("call", "*args, **options"), renamed or {})
    for name, member in stored.get("members", {}).items():
        found = now.get("members", {}).get(name)
        if found is None:
            yield f".{name} is gone"
        elif member != "attribute" and found != "attribute":
            yield from (
                f".{name} {said}" for said in lost_parameters(member[1:-1], found[1:-1], renamed or {})
            )


def lost_parameters(stored: str, now: str, renamed: dict[str, str]) -> Iterator[str]:
    """Positional order, names, defaults, and that nothing new is required."""
    old, new = Call.of(stored), Call.of(now)
    positional = [renamed.get(name, name) for name in old.positional]
    if new.positional[: len(positional)] != positional:
        yield f"takes {', '.join(new.positional) or 'nothing'} by position, must take {', '.join(positional)}"
    for name, default in old.defaults.items():
        here = renamed.get(name, name)
        if here not in new.defaults:
            if not new.takes_any_keyword:
                yield f"no longer takes {name}"
        elif default is not None and new.defaults[here] is None:
            yield f"requires {here}, must keep its default {default}"
        elif default not in (None, "...", new.defaults[here]):
            yield f"has {here}={new.defaults[here]}, must keep {default}"
    known = {renamed.get(name, name) for name in old.defaults}
    yield from (f"now requires {n}" for n, d in new.defaults.items() if d is None and n not in known)
