"""What a sample proves about the population calibration error of a model fixed before it was seen.

Write G(I) = E[(Y - f) 1{f in I}], c = sup over intervals I of |G(I)|, and c_emp for the same with sample
means. The derivations are in docs/guide/calibration-certificates.md. In short:

- The interval that attains c does not depend on the sample, and c_emp is at least what the sample says
  about that one interval. An upper bound for c therefore needs the deviation of one mean, not uniform
  convergence; it has no log n and no complexity term.
- A lower bound (or a two-sided band) does need uniformity, because the sample chose its own interval.

Everything holds for soft outcomes in [0, 1] too. The l1 distance to P(Y = 1 | X) can not be bounded by
any sample (Theorem 1 of Gao, Parameswaran and Peng): only statements about c are on offer.
"""

from __future__ import annotations

import math

from scipy import special

from calipers.exceptions import InputError
from calipers.inputs import check_confidence, check_count
from calipers.metrics.reliability.range_law import range_quantile

# Share of the allowed error spent on bounding the second moment; the rest bounds the mean.
_SECOND_MOMENT_SHARE = 0.1


def upper_bound(
    error: float, second_moment: float, n: int, *, confidence: float = 0.95, n_models: int = 1
) -> float:
    """Guaranteed upper bound for the population calibration error (empirical Bernstein form).

    With probability at least ``confidence`` over n independent rows, the population error of a model
    fixed beforehand is at most this number; of all ``n_models`` models at once if several are measured.

    Parameters
    ----------
    error : float
        c_emp on the rows.
    second_moment : float
        Mean of (y - f)^2 on the rows (the Brier score).
    n : int
        Number of rows, each counted once.
    confidence : float
        One-sided level.
    n_models : int
        Models measured (or classes compared) on the same rows: the allowed error is divided by it.

    Returns
    -------
    float
        At most 1.

    Notes
    -----
    Let B = E(Y - f)^2 and I* the population's interval. X = sign (Y - f) 1{f in I*} has mean c and
    variance at most B - c^2, and c - X <= 1 + c. Bernstein's inequality at level 0.9 delta gives
    c <= c_emp + e(c) with e = a + sqrt(a^2 + 2 (B - c^2) L / n), a = (1 + c) L / (3 n) and
    L = ln(1 / (0.9 delta)). B is replaced by its Chernoff (Kullback-Leibler) upper bound at level
    delta / 10. The bound is the largest c that satisfies the inequality; e is concave, so bisection finds it.
    Finite-sample, no assumption on the model or the law. Cost: constant.

    Examples
    --------
    >>> from calipers.metrics.reliability import upper_bound
    >>> round(upper_bound(0.0, 1 / 6, 10_000), 4)
    0.0106
    """
    n, delta = check_count(n, name="n"), _delta(confidence, n_models)
    _check_unit(error=error, second_moment=second_moment)
    second = kl_upper_bound(second_moment, n, delta=_SECOND_MOMENT_SHARE * delta)
    log_term = math.log(1 / ((1 - _SECOND_MOMENT_SHARE) * delta))

    def excess(c: float) -> float:
        a = (1 + c) * log_term / (3 * n)
        spread = max(0.0, second - c * c)
        return error + a + math.sqrt(a * a + 2 * spread * log_term / n) - c

    # c <= E|Y - f| <= sqrt(B), so nothing above sqrt(B) needs to be considered.
    cap = max(error, min(1.0, math.sqrt(second)))
    if excess(cap) >= 0:
        return cap
    from scipy import optimize

    return float(optimize.brentq(excess, error, cap, xtol=1e-14))


def binned_lower_bound(
    error: float, second_moment: float, n: int, *, n_bins: int, confidence: float = 0.95
) -> float:
    """Guaranteed lower bound for the binned calibration error of the population, for bins fixed beforehand.

    Parameters
    ----------
    error : float
        Binned error on the rows: sum over bins of |mean of (y - f) 1{f in the bin}|.
    second_moment : float
        Mean of (y - f)^2 on the rows.
    n : int
        Number of rows.
    n_bins : int
        Bins, empty ones included.
    confidence : float
        One-sided level.

    Returns
    -------
    float
        At least 0.

    Notes
    -----
    The sample's error exceeds the population's by at most Z, the sum over bins of |sample mean - expectation|
    of (y - f) 1{bin}: the largest deviation over all choices of a sign per bin. E Z <= sqrt(n_bins B / n)
    with B = E(Y - f)^2, by Jensen's and Schwarz's inequalities; Bousquet's one at level 0.9 delta gives
    Z <= E Z + sqrt(2 L (B + 4 E Z) / n) + 2 L / (3 n), L = ln(1 / (0.9 delta)), because each function has
    variance at most B and exceeds its mean by at most 2. B is replaced by its upper bound at level
    delta / 10.

    References
    ----------
    Bousquet (2002), A Bennett concentration inequality and its application to suprema of empirical processes.

    Examples
    --------
    >>> from calipers.metrics.reliability.certificates import binned_lower_bound
    >>> round(binned_lower_bound(0.17, 0.2, 10_000, n_bins=15), 4)
    0.1386
    """
    n, delta = check_count(n, name="n"), _delta(confidence, 1)
    second = kl_upper_bound(second_moment, n, delta=_SECOND_MOMENT_SHARE * delta)
    log_term = math.log(1 / ((1 - _SECOND_MOMENT_SHARE) * delta))
    mean = math.sqrt(n_bins * second / n)
    reach = mean + math.sqrt(2 * log_term * (second + 4 * mean) / n) + 2 * log_term / (3 * n)
    return max(0.0, error - reach)


def asymptotic_upper_bound(
    error: float, second_moment: float, n: float, *, confidence: float = 0.95, n_models: int = 1
) -> float:
    """Large-sample upper bound: c_emp + z sqrt(second_moment / n).

    Tighter than `upper_bound`, and slightly short of its level in the hardest cases at finite n (0.942
    instead of 0.95 was seen for a constant score). ``n`` may be an effective number of rows.

    Examples
    --------
    >>> from calipers.metrics.reliability import asymptotic_upper_bound
    >>> round(asymptotic_upper_bound(0.0, 1 / 6, 10_000), 4)
    0.0067
    """
    _check_unit(error=error, second_moment=second_moment)
    z = float(special.ndtri(1 - _delta(confidence, n_models)))
    return min(1.0, error + z * math.sqrt(second_moment / n))


def asymptotic_band(second_moment: float, n: float, *, confidence: float = 0.95, n_models: int = 1) -> float:
    """Half-width of a large-sample two-sided band around c_emp: q sqrt(second_moment / n).

    q is the quantile of the range of Brownian motion. c_emp minus the width is also the lower bound at the
    same level: a sample that chose its own interval needs the uniform law for that.

    Notes
    -----
    |c - c_emp| is at most the range of the centred walk G_n - G, which is asymptotically Gaussian with
    covariance V(min(s, t)) - G(s) G(t) over n, V(t) = E[(Y - f)^2 1{f <= t}]. Adding an independent G(.)
    times a normal variable gives a time-changed Brownian motion; by Anderson's inequality the range (a convex
    symmetric functional) of the smaller process is stochastically smaller. Its variance at the end is B.

    Examples
    --------
    >>> from calipers.metrics.reliability import asymptotic_band
    >>> round(asymptotic_band(1 / 6, 10_000), 4)
    0.0102
    """
    _check_unit(second_moment=second_moment)
    return range_quantile(1 - _delta(confidence, n_models)) * math.sqrt(second_moment / n)


def uniform_band(n: int, *, confidence: float = 0.95, n_models: int = 1) -> float:
    """Half-width of a guaranteed two-sided band around c_emp, for every interval at once.

    With probability at least ``confidence``, |c - c_emp| is at most this.

    Notes
    -----
    Put Z = f where Y = 1 and Z = 3 - f where Y = 0, so that one real variable tells score and outcome. Then
    (Y - f) 1{f in I} is a function of Z with total variation at most 4, and
    |integral of g d(F_n - F)| <= TV(g) sup |F_n - F|. Massart's form of the Dvoretzky-Kiefer-Wolfowitz
    inequality bounds the last factor by sqrt(ln(2 / delta) / (2 n)).

    Examples
    --------
    >>> from calipers.metrics.reliability import uniform_band
    >>> round(uniform_band(10_000), 4)
    0.0543
    """
    return 4 * math.sqrt(math.log(2 / _delta(confidence, n_models)) / (2 * check_count(n, name="n")))


def in_sample_isotonic_bound(
    n: int, *, error: float = 0.0, confidence: float = 0.95, n_models: int = 1
) -> float:
    """Guaranteed bound for a monotone recalibration on the very rows it was fitted to.

    Any non-decreasing g with values in [0, 1], chosen after seeing the n rows, has population error at
    most c_emp(g(f)) plus this width, provided the score f was fixed beforehand. Isotonic regression with
    pooled ties has c_emp = 0, the default of ``error``.

    Notes
    -----
    Level sets of g(f) are intervals of f, and (Y - g) 1{f in J} is, as a function of Z of `uniform_band`,
    of total variation at most 4 for every monotone g: the band is uniform over g.

    Examples
    --------
    >>> from calipers.metrics.reliability import in_sample_isotonic_bound
    >>> round(in_sample_isotonic_bound(10_000), 4)
    0.0543
    """
    _check_unit(error=error)
    return min(1.0, error + uniform_band(n, confidence=confidence, n_models=n_models))


def kl_upper_bound(mean: float, n: int, *, delta: float) -> float:
    """Chernoff upper bound for the mean of independent variables in [0, 1], at level 1 - delta.

    The largest m with n kl(mean, m) <= ln(1 / delta), kl the relative entropy of two coins.

    Examples
    --------
    >>> from calipers.metrics.reliability import kl_upper_bound
    >>> round(kl_upper_bound(0.0, 100, delta=0.05), 4)  # 1 - 0.05 ** (1 / 100)
    0.0295
    """
    _check_unit(mean=mean)
    limit = math.log(1 / delta) / n
    if mean >= 1.0:
        return 1.0

    def divergence(m: float) -> float:
        return float(special.rel_entr(mean, m) + special.rel_entr(1 - mean, 1 - m)) - limit

    top = 1.0 - 1e-16
    from scipy import optimize

    return 1.0 if divergence(top) <= 0 else float(optimize.brentq(divergence, mean, top, xtol=1e-15))


def _delta(confidence: float, n_models: int) -> float:
    return (1.0 - check_confidence(confidence)) / check_count(n_models, name="n_models")


def _check_unit(**values: float) -> None:
    for name, value in values.items():
        # Written so that NaN fails.
        if not -1e-12 <= value <= 1 + 1e-12:
            raise InputError(f"{name} must lie in [0, 1], got {value!r}.")
