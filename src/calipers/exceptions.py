"""Every error and warning Calipers raises on purpose.

::

    CalipersError
    ├── InputError(ValueError)              the value breaks a rule: range, shape, length, NaN
    ├── InputTypeError(TypeError)           the object is of a kind that cannot be used
    ├── MissingDependencyError(ImportError) an optional part is not installed
    └── FitError(RuntimeError)              the algorithm under test failed on one of its subsets

    CalipersWarning(UserWarning)
    ├── SmallSampleWarning                  too few rows for a finite or informative answer
    ├── UnseenGroupWarning                  a group or label without calibration rows
    ├── DegradedResultWarning               a result is weaker than asked; its fields say how
    ├── DoubtfulInputWarning                a value is allowed, and probably not what was meant
    └── DeprecatedNameWarning(FutureWarning) a name or an argument has a new name

A message names the argument, states the rule, shows the value found and its place, and ends with
the remedy. `NotFittedError` is scikit-learn's own, so that its tools recognise it.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

__all__ = [
    "CalipersError",
    "CalipersWarning",
    "DegradedResultWarning",
    "DeprecatedNameWarning",
    "DoubtfulInputWarning",
    "FitError",
    "InputError",
    "InputTypeError",
    "MissingDependencyError",
    "SmallSampleWarning",
    "UnseenGroupWarning",
    "warn",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class CalipersError(Exception):
    """Base of every error raised on purpose."""


class InputError(CalipersError, ValueError):
    """An argument breaks a rule: range, shape, length or missing values."""


class InputTypeError(CalipersError, TypeError):
    """An argument is of a kind that cannot be used."""


class MissingDependencyError(CalipersError, ImportError):
    """An optional part of the package is not installed."""


class FitError(CalipersError, RuntimeError):
    """The algorithm under test failed on one of its training subsets."""


class CalipersWarning(UserWarning):
    """Base of every warning."""


class SmallSampleWarning(CalipersWarning):
    """Too few rows for a finite or informative answer."""


class UnseenGroupWarning(CalipersWarning):
    """A group or label has no calibration rows."""


class DegradedResultWarning(CalipersWarning):
    """A result is weaker than what was asked; its fields say how."""


class DoubtfulInputWarning(CalipersWarning):
    """A value is allowed, and probably not what was meant."""


class DeprecatedNameWarning(CalipersWarning, FutureWarning):
    """A name or an argument has a new name; the old one still works."""


_PACKAGE = str(Path(__file__).resolve().parent) + os.sep


def warn(message: str, category: type[CalipersWarning]) -> None:
    """Warn with the line of the caller outside this package as its place.

    Examples
    --------
    >>> import warnings
    >>> from calipers.exceptions import SmallSampleWarning, warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("8 rows are too few; 19 are needed.", SmallSampleWarning)
    >>> str(caught[0].message)
    '8 rows are too few; 19 are needed.'
    """
    frame, level = sys._getframe(1), 2
    # Python 3.12 has skip_file_prefixes for this; 3.11 needs the walk.
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
