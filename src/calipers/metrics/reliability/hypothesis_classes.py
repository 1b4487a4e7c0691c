"""Statements about every model of a class at once: Theorem 2, Claims 2 and 4 of the paper.

They make promises about a model on the very rows it was trained on. For a model fixed before the rows
were seen, `upper_bound` is 14 to 32 times tighter.
"""

from __future__ import annotations

import math

import numpy as np

from calipers.exceptions import DegradedResultWarning, InputError, warn
from calipers.inputs import check_confidence, check_count


def uniform_convergence_width(
    n: int, rademacher: float, *, confidence: float = 0.95, as_printed: bool = False
) -> float:
    """Theorem 2: with probability ``confidence``, |c(f) - c_emp(f)| is at most this for every f of a class.

    Parameters
    ----------
    n : int
        Rows.
    rademacher : float
        Expected Rademacher complexity of the sets {p1 < f(x) <= p2}, f in the class: `interval_rademacher`
        for one model, `vc_rademacher` or `finite_scores_rademacher` for a class.
    confidence : float
        1 - delta.
    as_printed : bool
        The constant as printed. The proof uses sup <= 2 R + sqrt(2 ln(4 / delta) / n) twice at delta / 2, so
        the condition must read 2 R + sqrt(2 ln(8 / delta) / n) < epsilon / 2; the statement lost the 2 in
        front of R. False (the default) gives the constant the proof supports.

    Returns
    -------
    float
        epsilon. Above 1 the statement is empty, because c never exceeds 1.

    Examples
    --------
    >>> from calipers.metrics.reliability import interval_rademacher_massart, uniform_convergence_width
    >>> r = interval_rademacher_massart(1000)
    >>> printed, proved = (uniform_convergence_width(1000, r, as_printed=p) for p in (True, False))
    >>> round(printed, 4), round(proved, 4)
    (0.5255, 0.8495)
    """
    n, delta = check_count(n, name="n"), 1.0 - check_confidence(confidence)
    if not rademacher >= 0:
        raise InputError(f"rademacher must not be negative, got {rademacher!r}.")
    factor = 1 if as_printed else 2
    return 2 * (factor * rademacher + math.sqrt(2 * math.log(8 / delta) / n))


def interval_rademacher_massart(n: int) -> float:
    """Rademacher complexity of the score intervals of one model, by Massart's lemma.

    n distinct scores are cut by intervals in n (n + 1) / 2 + 1 ways.

    Examples
    --------
    >>> from calipers.metrics.reliability import interval_rademacher_massart
    >>> round(interval_rademacher_massart(1000), 4)
    0.162
    """
    n = check_count(n, name="n")
    return math.sqrt(2 * math.log(n * (n + 1) / 2 + 1) / n)


def interval_rademacher(n: int) -> float:
    """Rademacher complexity of the score intervals of one model with distinct scores, exactly.

    It tends to sqrt(pi / (2 n)) = 1.2533 / sqrt(n).

    Notes
    -----
    With signs s, the best interval collects the largest rise of the random walk S = s_1 + ... + s_k. The
    walk above its running minimum moves like |S' + 1/2| - 1/2 with S' another simple walk, so the rise
    reaches m exactly when S' leaves (-(m + 1), m). Reflection at the two barriers gives that probability as
    an alternating sum of binomial tails; the expectation is its sum over m = 1, 2, ...

    Examples
    --------
    >>> from calipers.metrics.reliability import interval_rademacher
    >>> interval_rademacher(1), round(interval_rademacher(1000) * 1000**0.5, 3)
    (0.5, 1.222)
    """
    n = check_count(n, name="n")
    total = 0.0
    for m in range(1, n + 1):
        reached = _leaves(n, m)
        total += reached
        if reached < 1e-17 * total:
            break
    return total / n


def _leaves(n: int, m: int) -> float:
    """P(a simple walk of n steps hits m or -(m + 1)), by repeated reflection (period 2 m + 1)."""
    # P(stays) = sum_k (-1)^k P(S_n strictly inside the k-th image of the corridor).
    # Images more than ten standard deviations away hold less than 1e-22.
    images = min(n, math.ceil(10 * math.sqrt(n))) // (2 * m + 1) + 2
    k = np.arange(-images, images + 1)
    low, high = -(m + 1) + k * (2 * m + 1), m + k * (2 * m + 1)
    inside = _below(high - 1, n) - _below(low, n)
    return min(1.0, max(0.0, 1.0 - float(np.sum(np.where(k % 2 == 0, inside, -inside)))))


def _below(x: np.ndarray, n: int) -> np.ndarray:
    """P(S_n <= x)."""
    from scipy import stats

    return np.asarray(stats.binom.cdf(np.floor((x + n) / 2), n, 0.5))


def vc_rademacher(n: int, vc_dimension: int) -> float:
    """Bound for a class whose sets {p1 < f(x) <= p2} have finite VC dimension (Sauer and Massart).

    Examples
    --------
    >>> from calipers.metrics.reliability import vc_rademacher
    >>> round(vc_rademacher(10_000, 15), 3)
    0.15
    """
    n, d = check_count(n, name="n"), check_count(vc_dimension, name="vc_dimension")
    if n <= d:
        return 0.5
    return math.sqrt(2 * d * (math.log(n / d) + 1) / n)


def finite_scores_rademacher(n: int, vc_dimension: int, n_scores: int) -> float:
    """Claim 4: bound for a class of models that only ever state one of finitely many probabilities.

    Parameters
    ----------
    n : int
        Rows, more than ``vc_dimension`` + 1.
    vc_dimension : int
        Largest VC dimension of {p1 < f(x) <= p2} with p1 and p2 held fixed; it can be far below that of
        the class with free thresholds (Example 2 of the paper: 2 against n).
    n_scores : int
        How many different probabilities are possible.

    Examples
    --------
    >>> from calipers.metrics.reliability import finite_scores_rademacher
    >>> round(finite_scores_rademacher(10_000, 2, 100), 4)
    0.0752
    """
    n, d = check_count(n, name="n"), check_count(vc_dimension, name="vc_dimension")
    scores = check_count(n_scores, name="n_scores")
    if n <= d + 1:
        raise InputError(f"n must exceed vc_dimension + 1 = {d + 1}, got {n}.")
    return math.sqrt((2 * d * (math.log(n / d) + 1) + 4 * math.log(scores + 1)) / n)


def warn_if_unverifiable_in_sample(n_rows: int, n_features: int) -> bool:
    """Claim 2: warn when a linear score with a fitted sigmoid has fewer training rows than features.

    With n < d linearly independent rows, w x can take any signs on them, so the class fits every labelling:
    its Rademacher complexity is 1/2 and nothing about calibration can be verified on the training rows.
    Measure such a model on rows it was not trained on.

    Returns
    -------
    bool
        Whether the warning applied.

    Examples
    --------
    >>> from calipers.metrics.reliability import warn_if_unverifiable_in_sample
    >>> warn_if_unverifiable_in_sample(1000, 20)
    False
    """
    n, d = check_count(n_rows, name="n_rows"), check_count(n_features, name="n_features")
    if n >= d:
        return False
    warn(
        f"{n} training rows are fewer than {d} features: a linear score with a fitted sigmoid can match any "
        "labels there (Rademacher complexity 1/2), so its calibration cannot be verified on them. "
        "Use separate validation rows.",
        DegradedResultWarning,
    )
    return True
