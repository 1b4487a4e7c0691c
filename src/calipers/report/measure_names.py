"""Names of the numbers for people; the JSON keeps the short ones."""

from __future__ import annotations

import re

MEASURES = {
    "ert l1": "ERT, mean distance",
    "ert l1_over": "ERT, mean distance, where it happens too often",
    "ert l1_under": "ERT, mean distance, where it happens too rarely",
    "ert l2": "ERT, squared",
    "ert l2_over": "ERT, squared, where it happens too often",
    "ert l2_under": "ERT, squared, where it happens too rarely",
    "t_cv": "T-CV",
    "t_ss": "T-SS",
    "sscv": "SSCV",
}
# The level, quantile or promise that a number is about stands behind its name.
_NAME = re.compile(r"(.+?)( at alpha=.*| at quantile .*| \(.*)?$")


def measure_name(name: str) -> str:
    """The name of a number for people.

    Examples
    --------
    >>> measure_name("ert l2_over at alpha=0.1"), measure_name("coverage")
    ('ERT, squared, where it happens too often at alpha=0.1', 'coverage')
    >>> measure_name("ert l1 (probability of class 1)")
    'ERT, mean distance (probability of class 1)'
    """
    if (parts := _NAME.match(name)) is None:
        return name
    return MEASURES.get(parts[1], parts[1]) + (parts[2] or "")
