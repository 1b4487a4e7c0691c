"""The idealised conformal transducer and predictor: p-values (eq. 11, 43) and prediction sets (eq. 12)."""

from __future__ import annotations

import numbers
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from calipers.conformal.idealised.law import Law, Lines, Table, measure_table
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import exact_level
from calipers.inputs.levels import check_label_alpha, snap_to_fraction


def p_values(Q: Any, A: Any, *, tau: Any = 1, label_conditional: bool = False) -> np.ndarray:
    """The p-value of every label of every object when the law Q of the examples is known.

    Parameters
    ----------
    Q : table (objects, labels)
        Joint probabilities, floats or Fractions.
    A : table of the same shape
        Conformity measure, higher is more conforming; only its order matters.
    tau : float or Fraction
        The number in [0, 1] that breaks ties, the same for all examples; 1 gives the unsmoothed p-values.
    label_conditional : bool
        Compare within labels (eq. 43) instead of over all examples (eq. 11).

    Returns
    -------
    array (objects, labels)
        Floats, or Fractions (dtype object) when Q holds Fractions. For (x, y) drawn from Q and tau uniform,
        p(x, y) is uniform on [0, 1]; given y too when label-conditional.

    Notes
    -----
    ``Q{A < A(x, y)} + tau Q{A = A(x, y)}``, in exact arithmetic.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej, Gammerman (2017), eq. 11 and 43.

    Examples
    --------
    >>> from calipers.conformal.idealised import conformity, p_values
    >>> Q = [[0.2, 0.3, 0.5]]
    >>> p_values(Q, conformity(Q, "CP"), tau=0.5)
    array([[0.1 , 0.35, 0.75]])
    """
    law = Law.of(Q)
    table = exact_p_values(law, A, tau, label_conditional=label_conditional)
    return np.array(table, dtype=object) if law.exact else np.array(table, dtype=float)


def prediction_sets(
    Q: Any,
    A: Any,
    *,
    alpha: Any = None,
    label_alpha: Any = None,
    tau: Any = 1,
    label_conditional: bool = False,
) -> np.ndarray:
    """The labels whose idealised p-value exceeds the level (eq. 12).

    Parameters
    ----------
    Q, A, tau, label_conditional
        As in `p_values`.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    label_alpha : sequence of K levels
        Instead of ``alpha``: a level for every label.

    Returns
    -------
    bool array (objects, labels)

    Notes
    -----
    Compared as fractions: a p-value of exactly alpha leaves its label out.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej, Gammerman (2017), eq. 12; levels by label: section 9.

    Examples
    --------
    >>> from calipers.conformal.idealised import conformity, prediction_sets
    >>> Q = [[0.2, 0.3, 0.5]]
    >>> prediction_sets(Q, conformity(Q, "CP"), alpha=0.2)
    array([[False,  True,  True]])
    """
    if (alpha is None) == (label_alpha is None):
        raise InputError("give either alpha or label_alpha.")
    law = Law.of(Q)
    levels = (
        [exact_level(alpha)] * law.n_labels
        if label_alpha is None
        else check_label_alpha(label_alpha, range(law.n_labels))
    )
    table = exact_p_values(law, A, tau, label_conditional=label_conditional)
    return np.array([[p > level for p, level in zip(row, levels, strict=True)] for row in table])


def exact_p_values(law: Law, A: Any, tau: Any, *, label_conditional: bool) -> Table:
    """The p-values as fractions."""
    lines = Lines.of(law, measure_table(A, law), label_conditional=label_conditional)
    height = _check_tau(tau)
    return [
        [below + height * equal for below, equal in zip(*pair, strict=True)]
        for pair in zip(lines.below, lines.equal, strict=True)
    ]


def _check_tau(tau: Any) -> Fraction:
    if isinstance(tau, bool) or not isinstance(tau, (numbers.Real, Decimal)):
        raise InputTypeError(f"tau must be a number, got {tau!r}.")
    if not 0 <= float(tau) <= 1:  # refuses NaN too
        raise InputError(f"tau must lie between 0 and 1, got {tau}.")
    return Fraction(tau) if isinstance(tau, (Fraction, int, Decimal)) else snap_to_fraction(float(tau))
