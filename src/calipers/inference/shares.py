"""Shares of rows and their error bars, whatever the weights mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calipers.arrays import short_repr
from calipers.inference.means import Moments
from calipers.inference.proportions import Interval, clopper_pearson
from calipers.inputs.weights import Weights

_MANY_STRATA = 1000
# A product of a share and its rest below this is rounding of 0 or 1.
_NO_SPREAD = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class ShareCounts:
    """Rows of strata and those of them that count, with what they add to the variance of the share.

    Parameters
    ----------
    hits, totals : array of shape (k,)
        Weight of the rows that count, and of all rows, of every stratum.
    hit_noise, noise : array of shape (k,)
        The same sums of `Weights.noise`.
    whole : bool
        Whether weights are repetitions: then both pairs are counts of rows.
    independent : array of shape (k,) or None
        Independent rows with as much information, where rows depend on each other.

    Notes
    -----
    With importance weights the share p has the linearised variance v = sum w^2 (z - p)^2 / (sum w)^2. Its
    interval is that of Clopper and Pearson at the effective number of rows [1]_, here the smaller of
    p (1 - p) / v and Kish's (sum w)^2 / sum w^2: the former is far too large when the few rows that decide it
    have small weights.

    References
    ----------
    .. [1] Korn and Graubard (1998), Confidence intervals for proportions with small expected number of
       positive counts estimated from survey data, Survey Methodology 24.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import ShareCounts
    >>> from calipers.inputs import Weights
    >>> z = np.array([True, True, False])
    >>> ShareCounts.of(z, Weights.check([2, 1, 1], 3)).interval(0.95).low.round(4).tolist()
    [0.1941]
    """

    hits: np.ndarray
    totals: np.ndarray
    hit_noise: np.ndarray
    noise: np.ndarray
    whole: bool = True
    independent: np.ndarray | None = None

    __repr__ = short_repr

    @classmethod
    def of(
        cls, happened: np.ndarray, weights: Weights | None, codes: np.ndarray | None = None, n: int = 1
    ) -> Self:
        """The counts of rows in n strata, by code; in one stratum without codes."""
        z = np.asarray(happened)
        codes = np.zeros(z.size, dtype=np.int64) if codes is None else codes
        if weights is None:
            totals, hits = (np.bincount(c, minlength=n).astype(float) for c in (codes, codes[z]))
            return cls(hits, totals, hits, totals)

        def pair(mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            total = np.bincount(codes, weights=mass, minlength=n)
            # Sums of weights reach their total only up to rounding.
            return np.minimum(np.bincount(codes, weights=mass * z, minlength=n), total), total

        hits, totals = pair(weights.mass)
        hit_noise, noise = (hits, totals) if weights.whole else pair(weights.squares)
        return cls(hits, totals, hit_noise, noise, weights.whole)

    @classmethod
    def of_moments(cls, moments: Moments) -> Self:
        """The counts of one stratum from the moments of rows that are 0 or 1."""
        hits = moments.n * moments.mean
        if moments.whole:
            # A count that passed through a mean is whole again.
            hits = float(np.rint(hits))
        noise, mean = (moments.n, moments.mean) if moments.squared is None else moments.squared[:2]
        pair = (hits, moments.n) if moments.whole else (noise * mean, noise)
        return cls.one(hits, moments.n, *pair, whole=moments.whole)

    @classmethod
    def one(cls, hits: float, total: float, hit_noise: float, noise: float, *, whole: bool = True) -> Self:
        """The counts of one stratum."""
        counts = [np.array([count]) for count in (hits, total, hit_noise, noise)]
        return cls(counts[0], counts[1], counts[2], counts[3], whole)

    def take(self, strata: np.ndarray) -> Self:
        """Some of the strata."""
        rows = None if self.independent is None else self.independent[strata]
        hits, totals, hit_noise, noise = (
            c[strata] for c in (self.hits, self.totals, self.hit_noise, self.noise)
        )
        return type(self)(hits, totals, hit_noise, noise, self.whole, rows)

    @property
    def shares(self) -> np.ndarray:
        """Share of the rows that count, of every stratum."""
        return np.asarray(self.hits / self.totals)

    @property
    def effective(self) -> np.ndarray:
        """Rows of equal weight with the same information about the share, of every stratum."""
        if self.independent is not None:
            return self.independent
        if self.whole:
            return self.totals
        p, kish = self.shares, self.totals**2 / self.noise
        variance = (self.hit_noise * (1 - p) ** 2 + (self.noise - self.hit_noise) * p**2) / self.totals**2
        # Sums of all weights and of those that hit differ in their last digit where every row hits.
        varies = (variance > 0) & (p * (1 - p) > _NO_SPREAD)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(varies, np.minimum(p * (1 - p) / variance, kish), kish))

    @property
    def std_errors(self) -> np.ndarray:
        """Standard error of every share."""
        return np.asarray(np.sqrt(np.maximum(self.shares * (1 - self.shares), 0.0) / self.effective))

    @property
    def n(self) -> float:
        """Rows of all strata: their number, or the effective number of rows."""
        if self.whole:
            return float(self.totals.sum())
        return float(self.totals.sum() ** 2 / self.noise.sum())

    def interval(self, confidence: float) -> Interval:
        """Ends of every share's interval; exact for whole weights of independent rows."""
        if self.whole and self.independent is None:
            return _interval_of_counts(self.hits, self.totals, confidence)
        rows = self.effective
        return clopper_pearson(self.shares * rows, rows, confidence=confidence)


def _interval_of_counts(hits: np.ndarray, totals: np.ndarray, confidence: float) -> Interval:
    """Exact intervals; of many strata, which have few different counts, each pair of counts once."""
    if totals.size == 1:
        low, high = clopper_pearson(float(hits[0]), float(totals[0]), confidence=confidence)
        return Interval(np.array([low]), np.array([high]))
    width = totals.max() + 1 if totals.size else 1.0
    if totals.size < _MANY_STRATA or width**2 > 4 * totals.size:
        return clopper_pearson(hits, totals, confidence=confidence)
    pairs = (totals * width + hits).astype(np.int64)
    present = np.flatnonzero(np.bincount(pairs))
    ends = np.empty((2, int(present[-1]) + 1))
    ends[:, present] = clopper_pearson(present % int(width), present // int(width), confidence=confidence)
    return Interval(ends[0, pairs], ends[1, pairs])
