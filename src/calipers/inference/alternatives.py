"""What every procedure here shares: the three alternatives, and numbers that may be arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

from calipers.exceptions import InputError

# A float for scalar input, an array for array input.
Number: TypeAlias = Any

ALTERNATIVES = ("two-sided", "greater", "less")


def check_alternative(alternative: str) -> str:
    """One of the three alternatives."""
    if alternative not in ALTERNATIVES:
        raise InputError(f'alternative must be "two-sided", "greater" or "less", got {alternative!r}.')
    return alternative
