"""Optional parts are imported here, with one sentence and the install command when they are missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from calipers.exceptions import MissingDependencyError


def is_installed(module: str) -> bool:
    """Whether the module can be imported, without importing it.

    Examples
    --------
    >>> from calipers.arrays import is_installed
    >>> is_installed("numpy"), is_installed("no_such_part")
    (True, False)
    """
    return importlib.util.find_spec(module) is not None


def import_optional(module: str, *, purpose: str, install: str) -> Any:
    """The module, or an error that says what needs it and how to install it.

    Only the absence of the module itself is translated: an error inside it is shown as it is.

    Examples
    --------
    >>> from calipers.arrays import import_optional
    >>> import_optional("no_such_part", purpose="plots", install="calipers[plots]")
    Traceback (most recent call last):
        ...
    calipers.exceptions.MissingDependencyError: plots need no_such_part: pip install 'calipers[plots]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise MissingDependencyError(f"{purpose} need {module}: pip install '{install}'") from None
