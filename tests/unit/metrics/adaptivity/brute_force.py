"""The formulas of the adaptivity paper written as they are printed, one row at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def printed_bins(ease, n_bins):
    """Eq. 2: the positions of each bin, ties in the order given."""
    order = sorted(range(len(ease)), key=lambda i: ease[i])
    n = len(ease)
    return [
        [
            order[i - 1]
            for i in range(1, n + 1)
            if math.floor(Fraction((b - 1) * n, n_bins)) < i <= math.floor(Fraction(b * n, n_bins))
        ]
        for b in range(1, n_bins + 1)
    ]


def shared_bins(ease, n_bins):
    """Eq. 2 averaged over all orders of tied rows: (row -> share) per bin."""
    n, values = len(ease), sorted(set(ease))
    bins = [{} for _ in range(n_bins)]
    start = 0
    for value in values:
        rows = [i for i in range(n) if ease[i] == value]
        for b in range(n_bins):
            low, high = math.floor(Fraction(b * n, n_bins)), math.floor(Fraction((b + 1) * n, n_bins))
            overlap = max(0, min(high, start + len(rows)) - max(low, start))
            if overlap:
                bins[b] |= {i: Fraction(overlap, len(rows)) for i in rows}
        start += len(rows)
    return bins


def mean_over(bin_shares, column):
    total = sum(bin_shares.values())
    return float(sum(share * Fraction(float(column[i])) for i, share in bin_shares.items()) / total)


def t_cv(covered, ease, alpha, n_bins):
    return max(abs(mean_over(b, covered) - (1 - alpha)) for b in shared_bins(ease, n_bins) if b)


def signed_r_squared(x, y):
    """sign(a) max(0, 1 - SSE / SST) of the least-squares line, as printed under eq. 4."""
    a, b = np.polyfit(x, y, 1)
    predicted = a * np.asarray(x) + b
    sse = np.sum((np.asarray(y) - predicted) ** 2)
    sst = np.sum((np.asarray(y) - np.mean(y)) ** 2)
    return np.sign(a) * max(0.0, 1 - sse / sst)


def t_ss(ranks, size, ease, n_bins):
    bins = [b for b in shared_bins(ease, n_bins) if b]
    return signed_r_squared([mean_over(b, ranks) for b in bins], [mean_over(b, size) for b in bins])


def stratified(columns, values, limits):
    """Means of the columns over closed ranges (low, high) of whole values, empty ranges left out."""
    rows = [[i for i, v in enumerate(values) if low <= v <= high] for low, high in limits]
    return [[sum(c[i] for i in r) / len(r) for r in rows if r] for c in columns]


RAPS_RANGES = [(0, 1), (2, 3), (4, 6), (7, 10), (11, 100), (101, math.inf)]


def concordance(ranks, size, pairs):
    """Both implications of Property 1 hold, pair by pair."""
    hits = 0
    for first, second in pairs:
        d1, d2 = sum(ranks[i] for i in first), sum(ranks[i] for i in second)
        s1, s2 = sum(size[i] for i in first), sum(size[i] for i in second)
        hits += (not d1 <= d2 or s1 <= s2) and (not d1 > d2 or s1 > s2)
    return hits / len(pairs)
