"""Windows of time, the standardised departure inside each, and how much a departure of its length counts.

Short windows are many, so that the largest of them departs far by chance. A window that covers a share s of
the noise is therefore charged sqrt(2 log(1 / s)), as in the multiscale statistic of Duembgen and Spokoiny
(2001), less a constant; a window that begins or ends with the data, of which there is only one for every
length, is charged 0.7 sqrt(2 log(1 + log(1 / s))), and one inside always 0.4 more than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

# Charge of a window at an end of the data, and what windows inside are charged less: chosen by simulation
# so that breaks, recent breaks, bad weeks and slow drifts are all found.
_END_CHARGE = 0.7
_INNER_DISCOUNT = 0.5
# A window inside is charged so much more than one of its length at an end: two ends are free to choose.
_INNER_SURCHARGE = 0.4
# Lengths and places of windows inside are told apart to this part of the length.
_FINENESS = 6
# A window with less noise than this is too short: its departure has no bell-shaped law.
_LEAST_NOISE = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class ScanWindows:
    """Windows over cells of time.

    Parameters
    ----------
    start, stop : integer array (W,)
        Cells of each window, half-open.
    spread : array (W,)
        Standard deviation of its departure under the null.
    charge : array (W,)
        What is subtracted from the standardised departure.
    """

    start: np.ndarray
    stop: np.ndarray
    spread: np.ndarray
    charge: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def departures(self, cell_sums: np.ndarray) -> np.ndarray:
        """Standardised departures (b, W) from what happened minus what was expected per cell (b, K)."""
        walk = np.zeros((len(cell_sums), cell_sums.shape[1] + 1))
        np.cumsum(cell_sums, axis=1, out=walk[:, 1:])
        return np.asarray((walk[:, self.stop] - walk[:, self.start]) / self.spread)

    def largest(self, cell_sums: np.ndarray) -> np.ndarray:
        """The largest absolute departure after its charge, (b,)."""
        return np.asarray((np.abs(self.departures(cell_sums)) - self.charge).max(axis=1))


def flat_windows(noise: np.ndarray) -> ScanWindows:
    """Windows for departures from the mean over all cells, whose noise is given per cell."""
    start, stop = _pairs(len(noise))
    # The window up to a cell and the one from it on say the same.
    kept = ~((stop == len(noise)) & (start > 0)) & (stop - start < len(noise))
    start, stop = start[kept], stop[kept]
    cumulative = np.append(0.0, np.cumsum(noise))
    inside, total = cumulative[stop] - cumulative[start], cumulative[-1]
    share = inside / total if total > 0 else np.zeros(len(inside))
    variance = inside * (1.0 - share)
    charge = _charge(np.minimum(share, 1.0 - share), start == 0, longest=0.5)
    return _with_noise(start, stop, variance, charge, total)


def target_windows(noise: np.ndarray, shared: np.ndarray) -> ScanWindows:
    """Windows for departures from the promise; ``shared`` is the spread per cell that all cells share."""
    start, stop = _pairs(len(noise))
    cumulative, common = (np.append(0.0, np.cumsum(column)) for column in (noise, shared))
    inside, total = cumulative[stop] - cumulative[start], cumulative[-1]
    share = inside / total if total > 0 else np.zeros(len(inside))
    variance = inside + (common[stop] - common[start]) ** 2
    charge = _charge(share, (start == 0) | (stop == len(noise)), longest=1.0)
    return _with_noise(start, stop, variance, charge, total)


def _with_noise(
    start: np.ndarray, stop: np.ndarray, variance: np.ndarray, charge: np.ndarray, total: float
) -> ScanWindows:
    """The windows that are long enough for their standardised departure to mean something."""
    kept = variance >= max(min(_LEAST_NOISE, total / 5.0), 1e-12)
    return ScanWindows(start[kept], stop[kept], np.sqrt(variance[kept]), charge[kept])


def _charge(share: np.ndarray, at_end: np.ndarray, *, longest: float) -> np.ndarray:
    """What a window of this share of the noise is charged, by whether it touches an end of the data."""
    depth = np.log(longest / np.clip(share, 1e-300, longest))
    end = _END_CHARGE * np.sqrt(2.0 * np.log1p(depth))
    inner = np.sqrt(2.0 * (depth + np.log(1.0 / longest))) - _INNER_DISCOUNT
    return np.asarray(np.where(at_end, end, np.maximum(inner, end + _INNER_SURCHARGE)))


def _pairs(n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """All windows at an end, and inside those on a grid that is finer the shorter they are."""
    ends = np.arange(1, n_cells)
    starts, stops = [np.zeros(n_cells, dtype=np.int64), ends], [np.append(ends, n_cells), ends * 0 + n_cells]
    length = 1
    while length < n_cells:
        step = max(1, length // _FINENESS)
        for size in range(length, min(2 * length, n_cells - 1), step):
            first = np.arange(step, n_cells - size, step)
            starts.append(first)
            stops.append(first + size)
        length *= 2
    return np.concatenate(starts), np.concatenate(stops)


@dataclass(frozen=True, slots=True, eq=False)
class WindowTails:
    """The sum over windows of the tails of a Poisson law of the same noise: it bounds P(largest >= x).

    Parameters
    ----------
    windows : ScanWindows
        The windows.
    """

    windows: ScanWindows

    def __call__(self, observed: float) -> float:
        """The bound, at most 1 and never 0."""
        events = self.windows.spread**2
        reached = np.maximum(observed + self.windows.charge, 0.0) * self.windows.spread
        # No sum of coins of this variance is more skewed, and so none has a heavier tail.
        tails = 2.0 * special.gammainc(events + reached, events)
        return float(np.clip(np.sum(tails), 1e-300, 1.0))
