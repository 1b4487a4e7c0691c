"""Measure how far a model's uncertainty can be trusted, find where it breaks, and repair it.

Subpackages and functions are loaded on first use: ``import calipers`` alone imports neither numpy nor any
of them. To publish a name, add one line to a table here, the same name to the imports for type
checkers below it, and to the list in ``tests/unit/test_package.py``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from calipers.version import __version__

# Modules a user imports from, reached as ``calipers.<name>``.
_ROOMS = (
    "auditing",
    "calibration",
    "conformal",
    "datasets",
    "difficulty",
    "displays",
    "engines",
    "exceptions",
    "integrations",
    "metrics",
    "performance",
    "plots",
    "results",
    "scorers",
)
# Modules that do the work behind them; reached by name, not advertised.
_INTERNAL = ("arrays", "inference", "inputs", "report")
# Functions and classes a user may reach as ``calipers.<name>``, and the subpackage that defines each.
_NAMES: dict[str, str] = {
    "audit": "auditing",
    "audit_model": "auditing",
    "compare": "auditing",
}

if TYPE_CHECKING:
    from calipers import arrays as arrays
    from calipers import auditing as auditing
    from calipers import calibration as calibration
    from calipers import conformal as conformal
    from calipers import datasets as datasets
    from calipers import difficulty as difficulty
    from calipers import displays as displays
    from calipers import engines as engines
    from calipers import exceptions as exceptions
    from calipers import inference as inference
    from calipers import inputs as inputs
    from calipers import integrations as integrations
    from calipers import metrics as metrics
    from calipers import performance as performance
    from calipers import plots as plots
    from calipers import report as report
    from calipers import results as results
    from calipers import scorers as scorers
    from calipers.auditing import audit as audit
    from calipers.auditing import audit_model as audit_model
    from calipers.auditing import compare as compare

__all__ = ["__version__", *_ROOMS, *_NAMES]  # noqa: PLE0604 - the tables hold strings


def __getattr__(name: str) -> Any:
    # PEP 562: called only for names that are not there yet; what it finds is stored for the next time.
    if name in _ROOMS or name in _INTERNAL:
        value: Any = importlib.import_module(f"calipers.{name}")
    elif name in _NAMES:
        value = getattr(importlib.import_module(f"calipers.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module 'calipers' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
