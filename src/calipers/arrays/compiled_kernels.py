"""Kernels for runs over many rows: one pass over a block where numpy takes ten, compiled by numba.

They are imported through `calipers.arrays.compiled` only, for large runs on machines that have numba. Each
has a twin in numpy, which is what runs everywhere else and what they are tested against: counts bit for
bit, sums to rounding. Tables come as their columns, (K, n), each column in one piece.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Rows that stay in the processor's nearest memory while their columns pass by.
_STRIP = 2048
# Sums may be taken in any order (numpy's are, too); infinities and NaN keep their meaning.
_compiled: Any = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp"})
# Where the last bit decides into which bucket a number falls.
_exact: Any = njit(nogil=True, cache=True, error_model="numpy")
# ln 2 in two parts, the first so short that products with exponents are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Bits of the fraction of a double, and those of 1.0.
_FRACTION, _ONE = (1 << 52) - 1, 1023 << 52


@_compiled
def merge_strip(moments: Any, j: int, m: int, total: float, squares: float) -> None:
    """Add m rows given by sums of their distances from the mean so far, and of the squared distances."""
    n = moments[j, 0]
    together = n + m
    gap = total / m
    moments[j, 0] = together
    moments[j, 1] += total / together
    moments[j, 2] += squares - total * gap + gap * gap * n * m / together


@_compiled
def spread(columns: Any, levels: Any, a: int, m: int, first: Any, second: Any, total: Any, size: Any) -> None:
    """Largest, second largest, sum and number above the level of every row of a strip, of entries from 0."""
    first[:m], second[:m], total[:m], size[:m] = 0, 0, 0, 0
    n_columns = columns.shape[0]
    # Two columns at a time: half as many trips to what is kept per row.
    for k in range(0, n_columns - 1, 2):
        one, two, floor, other_floor = columns[k, a:], columns[k + 1, a:], levels[k], levels[k + 1]
        for i in range(m):
            x, y, best = one[i], two[i], first[i]
            larger = max(x, y)
            second[i] = max(second[i], min(x, y), min(larger, best))
            first[i] = max(larger, best)
            total[i] += np.float64(x) + np.float64(y)
            size[i] += np.int32(x > floor) + np.int32(y > other_floor)
    if n_columns % 2:
        one, floor = columns[n_columns - 1, a:], levels[n_columns - 1]
        for i in range(m):
            x, best = one[i], first[i]
            second[i] = max(second[i], min(x, best))
            first[i] = max(x, best)
            total[i] += np.float64(x)
            size[i] += np.int32(x > floor)


@_compiled
def gather(columns: Any, codes: Any, start: int, found: Any) -> None:
    """The entry of every row at its label, from a row on."""
    n, flat = columns.shape[1], columns.reshape(-1)
    for i in range(codes.size):
        found[i] = flat[codes[i] * n + start + i]


@_compiled
def add_criteria(columns: Any, codes: Any, levels: Any, counts: Any, moments: Any) -> None:
    """Moments of S, U, F, OU, OF and credibility; counts of (size, whether the truth is inside)."""
    n = columns.shape[1]
    kind = columns.dtype
    first, second, own = np.empty(_STRIP, kind), np.empty(_STRIP, kind), np.empty(_STRIP, kind)
    total, size, floor = np.empty(_STRIP, np.float64), np.empty(_STRIP, np.int32), np.empty(_STRIP, kind)
    floor[:] = levels[0]
    one_level = np.all(levels == levels[0])
    for a in range(0, n, _STRIP):
        m = min(_STRIP, n - a)
        labels = codes[a : a + m]
        spread(columns, levels, a, m, first, second, total, size)
        gather(columns, labels, a, own)
        if not one_level:
            for i in range(m):
                floor[i] = levels[labels[i]]
        for i in range(m):
            counts[2 * size[i] + (own[i] > floor[i])] += 1
        add_strip(moments, m, first, second, total, own)


@_compiled
def add_strip(moments: Any, m: int, first: Any, second: Any, total: Any, own: Any) -> None:
    """The six moments of a strip, measured from the means so far (of its first row at the start)."""
    if moments[0, 0] == 0:
        t, f, s, o = total[0], np.float64(first[0]), np.float64(second[0]), np.float64(own[0])
        start = (t, s, t - f, s if o == f else f, t - o, f)
        for j in range(6):
            moments[j, 1] = start[j]
    p0, p1, p2, p3, p4, p5 = moments[:, 1]
    s0 = s1 = s2 = s3 = s4 = s5 = 0.0
    q0 = q1 = q2 = q3 = q4 = q5 = 0.0
    for i in range(m):
        t, f, s, o = total[i], np.float64(first[i]), np.float64(second[i]), np.float64(own[i])
        d0, d1, d2 = t - p0, s - p1, t - f - p2
        # Without the true label the largest is the second when the truth was on top.
        d3, d4, d5 = (s if o == f else f) - p3, t - o - p4, f - p5
        s0, s1, s2, s3, s4, s5 = s0 + d0, s1 + d1, s2 + d2, s3 + d3, s4 + d4, s5 + d5
        q0, q1, q2 = q0 + d0 * d0, q1 + d1 * d1, q2 + d2 * d2
        q3, q4, q5 = q3 + d3 * d3, q4 + d4 * d4, q5 + d5 * d5
    sums, squares = (s0, s1, s2, s3, s4, s5), (q0, q1, q2, q3, q4, q5)
    for j in range(6):
        merge_strip(moments, j, m, sums[j], squares[j])


@_compiled
def minus_logs(x: Any, m: int, found: Any) -> None:
    """``-log x`` of normal positive numbers to an ulp or two, several at a time; libm takes them one by one.

    With x = 2^e t and t in [0.71, 1.42), log t = 2 artanh s for s = (t - 1) / (t + 1), by its series: s^2 is
    below 0.0295, so that what follows the last term is below 1e-17 of the whole.
    """
    bits, scaled_bits = x.view(np.int64), np.empty(m, np.int64)
    scaled, exponents = scaled_bits.view(np.float64), np.empty(m, np.float64)
    for i in range(m):
        scaled_bits[i] = (bits[i] & _FRACTION) | _ONE  # t in [1, 2), by its exponent alone
        exponents[i] = np.float64(np.int32((bits[i] >> 52) - 1023))
    for i in range(m):
        is_large = scaled[i] > 1.4142135623730951
        t = 0.5 * scaled[i] if is_large else scaled[i]
        e = exponents[i] + 1.0 if is_large else exponents[i]
        s = (t - 1.0) / (t + 1.0)
        z = s * s
        tail = 1 / 15 + z * (1 / 17 + z * (1 / 19 + z / 21))
        series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * tail)))))
        found[i] = -(e * _LN2_HIGH + (2.0 * s + (2.0 * s * z * series + e * _LN2_LOW)))


@_compiled
def add_scores(columns: Any, codes: Any, floor: float, scale: float, moments: Any) -> int:
    """Moments of log loss and Brier score; the number of rows whose log loss is at its floor."""
    n, floored = columns.shape[1], 0
    square, loss, own = np.empty(_STRIP), np.empty(_STRIP), np.empty(_STRIP)
    for a in range(0, n, _STRIP):
        m = min(_STRIP, n - a)
        square[:] = 1.0
        for k in range(columns.shape[0]):
            column = columns[k, a : a + m]
            for i in range(m):
                x = np.float64(column[i])
                square[i] += x * x
        gather(columns, codes[a : a + m], a, own)
        for i in range(m):
            square[i] = scale * (square[i] - 2 * own[i])
            floored += own[i] <= floor
            own[i] = max(own[i], floor)
        minus_logs(own, m, loss)
        if moments[0, 0] == 0:
            moments[0, 1], moments[1, 1] = loss[0], square[0]
        p, r = moments[0, 1], moments[1, 1]
        s0 = s1 = q0 = q1 = 0.0
        for i in range(m):
            d0, d1 = loss[i] - p, square[i] - r
            s0, s1, q0, q1 = s0 + d0, s1 + d1, q0 + d0 * d0, q1 + d1 * d1
        merge_strip(moments, 0, m, s0, q0)
        merge_strip(moments, 1, m, s1, q1)
    return floored


@_compiled
def find_top(columns: Any, top: Any, label: Any) -> None:
    """The largest entry of every row and its column; the first of tied ones."""
    n_columns, n = columns.shape
    best, at = np.empty(_STRIP, columns.dtype), np.empty(_STRIP, np.int32)
    for a in range(0, n, _STRIP):
        m = min(_STRIP, n - a)
        best[:m], at[:m] = columns[0, a : a + m], 0
        # The first column is the start where their number is odd, and compared with itself otherwise.
        for k in range(n_columns % 2, n_columns, 2):
            one, two = columns[k, a:], columns[k + 1, a:]
            for i in range(m):
                x, y, previous = one[i], two[i], best[i]
                larger, place = max(x, y), np.int32(k) + np.int32(y > x)
                at[i] = place if larger > previous else at[i]
                best[i] = max(larger, previous)
        top[a : a + m], label[a : a + m] = best[:m], at[:m]


@_compiled
def look_over(columns: Any, tolerance: float) -> Any:
    """Rows whose sum is not within the tolerance of 1, largest such distance, smallest and largest entry.

    A row with NaN is among the former; the others pass over it.
    """
    n_columns, n = columns.shape
    kind = columns.dtype
    total, low, high = np.empty(_STRIP, kind), np.empty(_STRIP, kind), np.empty(_STRIP, kind)
    off, unfit = np.zeros(_STRIP, kind), 0
    low[:] = high[:] = columns[0, 0]
    for a in range(0, n, _STRIP):
        m = min(_STRIP, n - a)
        total[:m] = -1
        for k in range(0, n_columns - 1, 2):
            one, two = columns[k, a:], columns[k + 1, a:]
            for i in range(m):
                x, y = one[i], two[i]
                total[i] += x + y
                low[i] = min(low[i], x, y)
                high[i] = max(high[i], x, y)
        if n_columns % 2:
            one = columns[n_columns - 1, a:]
            for i in range(m):
                total[i] += one[i]
                low[i], high[i] = min(low[i], one[i]), max(high[i], one[i])
        for i in range(m):
            gap = abs(total[i])
            unfit += not gap <= tolerance
            off[i] = max(off[i], gap)
    return unfit, off.max(), low.min(), high.max()


@_compiled
def lies_in_unit(columns: Any) -> bool:
    """Whether every entry is a number in [0, 1]."""
    outside = 0
    for k in range(columns.shape[0]):
        column = columns[k]
        for i in range(column.size):
            outside += not (column[i] >= 0 and column[i] <= 1)
    return outside == 0


@_compiled
def count_pairs(first: Any, second: Any, width: int, counts: Any) -> None:
    """Count rows in the cells of a table of two codes."""
    for i in range(first.size):
        counts[np.int64(first[i]) * width + second[i]] += 1.0


@_exact
def count_in_buckets(values: Any, low: float, scale: float, counts: Any, lows: Any, highs: Any) -> None:
    """Count values in equal buckets from ``low`` on, those of `EqualBuckets`, and find the ends of each."""
    last = counts.size - 1
    for i in range(values.size):
        value = np.float64(values[i])
        bucket = min(int((value - low) * scale), last)
        counts[bucket] += 1.0
        lows[bucket], highs[bucket] = min(lows[bucket], value), max(highs[bucket], value)


@_exact
def look_up_buckets(values: Any, low: float, scale: float, table: Any, found: Any, unsure: Any) -> int:
    """The entry of the table at the bucket of every value, and the rows where it is negative; how many."""
    n, last = 0, table.size - 1
    for i in range(values.size):
        entry = table[min(int((np.float64(values[i]) - low) * scale), last)]
        found[i] = entry
        unsure[n] = i
        n += entry < 0
    return n


@_compiled
def rows_near(scores: Any, near: Any, found: Any) -> int:
    """Numbers of the rows whose score falls into one of the equal buckets marked; how many there are."""
    n, n_buckets = 0, near.size
    for i in range(scores.size):
        found[n] = i
        n += near[min(int(np.float64(scores[i]) * n_buckets), n_buckets - 1)]
    return n


@_compiled
def add_row(row: Any, x: float, hit: float) -> None:
    """One row of weight 1 into its line of the table of `BucketSums`.

    Products with 0 and 1 instead of a branch, which could not be predicted.
    """
    rise, fall = hit * (1.0 - x), (1.0 - hit) * x
    step = rise + fall
    row[0] += rise
    row[1] += fall
    row[2] += 1.0
    row[3] += x
    row[4] += hit
    row[5] += step * step
    row[6], row[7] = min(row[6], x), max(row[7], x)


@_compiled
def add_at_buckets(bucket: Any, scores: Any, happened: Any, table: Any) -> None:
    """Rows of weight 1 into the given buckets."""
    for i in range(scores.size):
        add_row(table[bucket[i]], scores[i], np.float64(happened[i]))


@_compiled
def add_to_buckets(scores: Any, happened: Any, table: Any) -> int:
    """Rows of weight 1 into equal buckets; how many of them were stated to have probability 0."""
    n_buckets, impossible = table.shape[0], 0
    for i in range(scores.size):
        x, hit = min(np.float64(scores[i]), 1.0) + 0.0, np.float64(happened[i])
        add_row(table[min(int(x * n_buckets), n_buckets - 1)], x, hit)
        impossible += x == 1.0 - hit
    return impossible
