"""Estimates as plain named numbers, the way trackers want them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from calipers.results import Estimate

_PARTS = ("low", "high", "p_value")
_LONGEST = 200  # trackers allow 250 characters; a prefix and the part must fit too


def flat_numbers(estimates: Mapping[str, Estimate], *, prefix: str = "") -> dict[str, float]:
    """Every finite number of the estimates by name: the value, ``.low``, ``.high`` and ``.p_value``.

    Parameters
    ----------
    estimates : mapping of str to Estimate
        An `EstimateTable`, such as ``audit(...).estimates``.
    prefix : str
        Put before every name.

    Returns
    -------
    dict of str to float
        Names hold letters, digits, spaces, ``_ . - :`` and ``/`` only; of two that become equal the second
        gets a number.

    Examples
    --------
    >>> from calipers.integrations import flat_numbers
    >>> from calipers.results import Estimate
    >>> e = Estimate(name="coverage", value=0.91, low=0.89, high=0.93)
    >>> flat_numbers({"coverage at alpha=0.1": e}, prefix="calipers/")
    {'calipers/coverage at alpha 0.1': 0.91, 'calipers/coverage at alpha 0.1.low': 0.89,
    'calipers/coverage at alpha 0.1.high': 0.93}
    """
    numbers: dict[str, float] = {}
    taken: set[str] = set()
    for name, estimate in estimates.items():
        plain = _unused(prefix + _plain(name), taken)
        taken.add(plain)
        stated = {plain: estimate.value} | {f"{plain}.{part}": getattr(estimate, part) for part in _PARTS}
        numbers |= {key: float(v) for key, v in stated.items() if v is not None and math.isfinite(v)}
    return numbers


def _plain(name: str) -> str:
    words = re.sub(r"[^\w.\-: /]+", " ", name.replace("=", " ").replace("%", " percent"))
    return " ".join(words.split())[:_LONGEST].strip()


def _unused(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free
