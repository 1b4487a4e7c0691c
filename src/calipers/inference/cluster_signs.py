"""Tests for rows that depend on each other inside clusters: residuals keep or change their sign together.

Under the null every cluster's residuals sum to zero in expectation, in every slice; flipping the signs of
whole clusters then leaves the law of the sums almost as it was, whatever the dependence inside a cluster.
(The wild cluster bootstrap with Rademacher weights.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# With fewer clusters a sign test has too few patterns of signs, and sums are far from normal.
FEWEST_CLUSTERS = 20
_DRAWS = 999
_AT_ONCE = 2_000_000


def cluster_sign_test(
    residuals: np.ndarray,
    cluster: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    generator: np.random.Generator,
    n_draws: int = _DRAWS,
    *,
    seen: float | None = None,
) -> float | None:
    """P-value of a statistic of residuals, large values against; None with fewer than 20 clusters.

    Parameters
    ----------
    residuals : array (n,)
        Outcome minus promise.
    cluster : array (n,)
        Rows that depend on each other share a value.
    statistic : callable
        From residuals (draws, n) to one number per draw.
    generator : Generator
        Source of the signs.
    n_draws : int
        Patterns of signs; ten times as many while fewer than ten of them reach the value.
    seen : float, optional
        The value that is compared with the draws; that of the residuals by default.

    Returns
    -------
    float or None
        (1 + draws at least as large) / (1 + draws).

    References
    ----------
    Cameron, Gelbach and Miller (2008), Bootstrap-based improvements for inference with clustered errors.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import cluster_sign_test
    >>> rng = np.random.default_rng(0)
    >>> shared = np.repeat(rng.normal(size=40), 25)   # 40 clusters of 25 equal rows
    >>> p = cluster_sign_test(shared, np.arange(1000) // 25, lambda r: np.abs(r.sum(axis=1)), rng)
    >>> 0.05 < p < 0.95
    True
    """
    _, codes = np.unique(cluster, return_inverse=True)
    n_clusters = int(codes.max()) + 1
    if n_clusters < FEWEST_CLUSTERS:
        return None
    if seen is None:
        seen = float(statistic(residuals[None, :])[0])
    # Sums that are equal in exact arithmetic may differ by rounding.
    limit, reached, done = seen - 1e-9 * max(1.0, abs(seen)), 0, 0
    for total in (n_draws, 10 * n_draws + 9):
        while done < total:
            size = min(total - done, max(1, _AT_ONCE // len(residuals)))
            signs = generator.integers(0, 2, size=(size, n_clusters)) * 2.0 - 1.0
            reached += int(np.count_nonzero(statistic(signs[:, codes] * residuals) >= limit))
            done += size
        if reached >= 10:
            break
    return (1 + reached) / (1 + done)


def design_effect(residuals: np.ndarray, cluster: np.ndarray) -> float:
    """How many times larger the variance of the sum is than for independent rows; at least 1.

    Parameters
    ----------
    residuals : array (n,)
        Outcome minus promise.
    cluster : array (n,)
        Rows that depend on each other share a value.

    Returns
    -------
    float
        Squared sums of clusters over squared rows.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import design_effect
    >>> design_effect(np.array([1.0, 1.0, -1.0, -1.0]), np.array([0, 0, 1, 1]))
    2.0
    """
    _, codes = np.unique(cluster, return_inverse=True)
    own = float(np.sum(residuals**2))
    return max(1.0, float(np.sum(np.bincount(codes, weights=residuals) ** 2)) / own) if own > 0 else 1.0
