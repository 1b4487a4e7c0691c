"""Old names that still work, and warn: a name that moved, an argument that was renamed.

Every warning says in which version the old name is gone; a test fails from that version on until it is.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from calipers.exceptions import DeprecatedNameWarning, InputError, warn

Function = TypeVar("Function", bound=Callable[..., Any])


def warn_deprecated(sentence: str, gone_in: str) -> None:
    """Warn at the caller's line about something that goes away.

    Parameters
    ----------
    sentence : str
        What is old and what replaces it, without a full stop.
    gone_in : str
        The version without it, two minor versions after the one that first warned.

    Examples
    --------
    >>> import warnings
    >>> from calipers.deprecation import warn_deprecated
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("width is now called size", "0.4")
    >>> str(caught[0].message)
    'width is now called size; the old way will be gone in 0.4.'
    """
    warn(f"{sentence}; the old way will be gone in {gone_in}.", DeprecatedNameWarning)


def moved_name(old: str, name: str, moved: Mapping[str, tuple[str, str]], gone_in: str) -> Any:
    """What a module used to call ``name``, with a warning that says where it is now.

    Parameters
    ----------
    old : str
        The module that is asked.
    name : str
        The old name.
    moved : mapping
        Old name to (module, new name).
    gone_in : str
        The version without the old name.

    Returns
    -------
    object
        What the new name stands for.

    Raises
    ------
    AttributeError
        When that module never had such a name.
    """
    if name not in moved:
        raise AttributeError(f"module {old!r} has no attribute {name!r}")
    module, new = moved[name]
    warn_deprecated(f"{old}.{name} is now {module}.{new}", gone_in)
    return getattr(importlib.import_module(module), new)


def under_new_names(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a function under their names of today; old names warn.

    Parameters
    ----------
    function : callable
        One that `renamed_arguments` has decorated, or any other.
    options : dict
        Its keyword arguments.

    Returns
    -------
    dict
        The same values.

    Raises
    ------
    InputError
        When an argument is given under both names.
    """
    given = dict(options)
    for old, new in getattr(function, "renamed_arguments", {}).items():
        if old not in given:
            continue
        if new in given:
            raise InputError(f"{function.__name__} got both {new} and {old}, its old name. Give {new} alone.")
        warn_deprecated(f"{function.__name__}: the argument {old} is now called {new}", function.gone_in)  # type: ignore[attr-defined]
        given[new] = given.pop(old)
    return given


def renamed_arguments(gone_in: str, /, **renamed: str) -> Callable[[Function], Function]:
    """Accept old keyword arguments under their new names, with a warning.

    Parameters
    ----------
    gone_in : str
        The version without the old names.
    **renamed
        Old name to new name.

    Returns
    -------
    callable
        A decorator; the signature shows the new names only.

    Examples
    --------
    >>> import warnings
    >>> from calipers.deprecation import renamed_arguments
    >>> @renamed_arguments("0.4", alphas="alpha")
    ... def width(*, alpha):
    ...     return alpha
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     width(alphas=0.1)
    0.1
    >>> str(caught[0].message)
    'width: the argument alphas is now called alpha; the old way will be gone in 0.4.'
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def with_old_names(*arguments: Any, **options: Any) -> Any:
            return function(*arguments, **under_new_names(with_old_names, options))

        with_old_names.renamed_arguments = renamed  # type: ignore[attr-defined]
        with_old_names.gone_in = gone_in  # type: ignore[attr-defined]
        with_old_names.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return with_old_names  # type: ignore[return-value]

    return decorate
