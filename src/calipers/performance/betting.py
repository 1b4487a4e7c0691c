"""Capital of a bettor against a promise about the mean of a stream of numbers in [0, 1].

Every bet multiplies its stake, row by row, by 1 + b (x - t): x in [0, 1] is the outcome, t its promised mean
and b the bet. While the promise is kept no bet is expected to win, so the total capital is an e-process: by
Ville's inequality it ever reaches 1 / a with probability at most a, however often it is looked at.

Rows are computed in blocks of fixed length counted from the first row of the stream. An incomplete block is
kept and computed again from its start with the next rows: the result does not depend on how the rows were
split into updates, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

# Rows per block. Stakes change by at most exp(LARGEST_SHIFT) per row, so products over a block stay finite.
BLOCK = 128
# A bet is the likelihood ratio of a mean whose log-odds are shifted by so much. Neighbours differ by half:
# a truth between two of them costs at most 5 % of the growth rate.
SHIFTS = 0.02 * 1.5 ** np.arange(14)
LARGEST_SHIFT = float(SHIFTS[-1])
# Relative changes of the log-odds: probabilities that are too extreme, or not extreme enough.
SLOPES = np.array([-0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8])
_SLOPE_SHARE = 1.0 / 3.0
# Half of the capital is staked at the first row. The other half is staked along the stream: after m rows a
# share (1 + m / _PATIENCE)^(-1/4) of it waits still. A change at any time meets fresh stakes.
_FIRST_STAKE = 0.5
_PATIENCE = 100.0
# Blocks computed at once: what is made on the way stays in the cache.
_BLOCKS_AT_ONCE = 64
# A rise that may be a record, up to rounding, is looked at closely.
_ROUNDING = 1e-9
# Most points kept of the course of the stream; then every second one is dropped.
_MOST_POINTS = 1024


@dataclass(frozen=True, slots=True)
class Bets:
    """Which alternatives are bet on: shifts of the log-odds, slopes, and the share of each.

    Parameters
    ----------
    shifts : array (S,)
        Shift of the log-odds of each bet; negative bets on a lower mean.
    slopes : array (L,)
        Relative change of the log-odds of each further bet.
    shares : array (S + L,)
        Share of the capital behind each bet; they sum to 1.

    Examples
    --------
    >>> from calipers.performance.betting import Bets
    >>> Bets.of("both").shares.sum().round(12)
    np.float64(1.0)
    """

    shifts: np.ndarray
    slopes: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, side: str, *, slopes: bool = False) -> Bets:
        """Bets on a lower mean ("under"), a higher one ("over") or both, and on slopes when asked."""
        signs = {"under": (-1.0,), "over": (1.0,), "both": (-1.0, 1.0)}[side]
        shifts = np.concatenate([sign * SHIFTS for sign in signs])
        tilts, share = (SLOPES, _SLOPE_SHARE) if slopes else (SLOPES[:0], 0.0)
        shares = np.full(shifts.size + tilts.size, (1.0 - share) / shifts.size)
        shares[shifts.size :] = share / SLOPES.size
        return cls(shifts, tilts, shares)

    def fractions(self, t: np.ndarray) -> np.ndarray:
        """The bets b, one line each, at promised means t: (1, m), or (J, m) with one line per bet."""
        shifted = _fraction(np.expm1(self.shifts)[:, None], t)
        if not self.slopes.size:
            return shifted
        tiny = np.finfo(np.float64).tiny
        log_odds = np.log(np.maximum(t, tiny)) - np.log(np.maximum(1.0 - t, tiny))
        tilts = np.clip(self.slopes[:, None] * log_odds, -LARGEST_SHIFT, LARGEST_SHIFT)
        return np.concatenate([shifted, _fraction(np.expm1(tilts), t)])


def _fraction(growth: np.ndarray, t: np.ndarray) -> np.ndarray:
    # 1 + b (x - t) is the likelihood ratio of q to t at x = 0 and x = 1, with odds(q) = exp(s) odds(t).
    return np.asarray(growth / (1.0 + t * growth))


@dataclass(slots=True)
class Course:
    """Points along the stream, thinned as it grows: rows, log capital, sum of x, sum of squared surprises."""

    stride: int = BLOCK
    points: list[list[float]] = field(default_factory=list)

    def add(self, rows: np.ndarray, *columns: np.ndarray) -> None:
        """Keep the rows at multiples of the stride; double the stride when there are too many."""
        kept = rows % self.stride == 0
        self.points += np.column_stack([column[kept] for column in (rows, *columns)]).tolist()
        while len(self.points) > _MOST_POINTS:
            self.stride *= 2
            self.points = [point for point in self.points if point[0] % self.stride == 0]


@dataclass(frozen=True, slots=True)
class Position:
    """Where the stream stands after some rows: everything the next row needs.

    Parameters
    ----------
    rows : int
        Rows so far.
    log_capital : float
        Logarithm of the capital.
    stakes : array (J,)
        What stands on each bet, in units of exp(log_scale).
    log_scale : float
        The logarithm of the capital once more, as the next block needs it: rounded at block ends only.
    total, promised, surprise : float
        Sums of x, of t, and of (x - its predicted value)^2.
    highest : float
        Largest logarithm of the capital so far; rows that the promise rules out are not in it.
    alarm_at, impossible_at : int or None
        First row at which the capital reached the threshold, or that the promise rules out; the latter.
    walk, lowest, lowest_at : arrays (J,)
        Logarithm of every bet's product since the first row, its smallest value and the rows before that.
    rise, rise_from, rise_to : arrays (J,)
        Largest rise of that walk, and the rows before its start and before its end.
    """

    rows: int
    log_capital: float
    stakes: np.ndarray
    log_scale: float
    total: float
    promised: float
    surprise: float
    highest: float
    alarm_at: int | None
    impossible_at: int | None
    walk: np.ndarray
    lowest: np.ndarray
    lowest_at: np.ndarray
    rise: np.ndarray
    rise_from: np.ndarray
    rise_to: np.ndarray

    @classmethod
    def start(cls, bets: Bets) -> Position:
        """The position before the first row."""
        n_bets = bets.shares.size
        level, at = np.zeros(n_bets), np.zeros(n_bets, dtype=np.int64)
        stakes = _FIRST_STAKE * bets.shares
        return cls(0, 0.0, stakes, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, level, level, at, level, at, at)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Position:
        """The position that `to_dict` wrote."""
        arrays: dict[str, Any] = {k: np.array(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**arrays)


def waiting(rows: np.ndarray) -> np.ndarray:
    """Capital that has not been staked after so many rows."""
    # Roots and quotients are rounded correctly: the same bits at any place of an array.
    return np.asarray((1.0 - _FIRST_STAKE) / np.sqrt(np.sqrt(1.0 + rows / _PATIENCE)))


class Betting:
    """The capital of a bettor along a stream, updated in blocks.

    Parameters
    ----------
    side : {"under", "over", "both"}
        Which departures of the mean from its promise are bet on.
    log_threshold : float
        Logarithm of the capital that raises the alarm.
    promise : array (J, 1) or (1, 1), or None
        Promised mean, one for all rows; with one line per bet each bet is against its own. None: every
        update brings its own, and when the side is "both" slopes of the log-odds are bet on as well.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.betting import Betting
    >>> betting = Betting("under", np.log(20), np.array([[0.9]]))
    >>> betting.update(np.ones(30)); betting.update(np.zeros(10))
    >>> betting.now.rows, betting.now.alarm_at
    (40, 35)
    """

    def __init__(self, side: str, log_threshold: float, promise: np.ndarray | None) -> None:
        self.side, self.log_threshold, self.promise = side, log_threshold, promise
        self.bets = Bets.of(side, slopes=side == "both" and promise is None)
        self.course = Course()
        # The position at the start of the incomplete block, and the rows of that block.
        self.block_start = self.now = Position.start(self.bets)
        self.x, self.t = np.empty(0), np.empty(0)
        self._fixed = None if promise is None else self.bets.fractions(promise)

    def update(self, x: np.ndarray, t: np.ndarray | None = None) -> None:
        """Take in outcomes (m,), with the promised mean of each when there is no common one."""
        x = np.concatenate([self.x, x])
        t = np.empty(0) if t is None else np.concatenate([self.t, t])
        whole = x.size - x.size % BLOCK
        step = _BLOCKS_AT_ONCE * BLOCK
        for start in range(0, whole, step):
            rows = slice(start, min(start + step, whole))
            self.now = self.block_start = self._advance(x[rows], t[rows], keep=True)
        self.x, self.t = x[whole:], t[whole:]
        self.now = self._advance(self.x, self.t, keep=False) if self.x.size else self.block_start

    def _advance(self, x: np.ndarray, t: np.ndarray, *, keep: bool) -> Position:
        """The position after rows that begin at the start of a block; only whole blocks are kept."""
        here, m = self.block_start, x.size
        rows = here.rows + np.arange(1, m + 1)
        products = self._products(x, t)
        log_capital, stakes, log_scale = self._capital(products)
        impossible_at = here.impossible_at
        if impossible_at is None and (ruled_out := self._ruled_out(x, t)).any():
            impossible_at = here.rows + int(np.argmax(ruled_out))
        total, promised, surprise = self._sums(x, t)
        if keep:
            self.course.add(rows, log_capital[:m], total, surprise)
        return Position(
            rows=here.rows + m,
            log_capital=float(log_capital[m - 1]),
            stakes=stakes,
            log_scale=log_scale,
            total=float(total[-1]),
            promised=float(promised[-1]),
            surprise=float(surprise[-1]),
            highest=max(here.highest, float(log_capital[:m].max())),
            alarm_at=_first_alarm(here, log_capital[:m] >= self.log_threshold, impossible_at),
            impossible_at=impossible_at,
            **self._rises(products, m),
        )

    def _products(self, x: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Product of each bet's factors since the start of each block: (J, blocks, BLOCK)."""
        # The end of an incomplete block pays 1: its rows are computed as those of a whole one.
        if self._fixed is None or self.promise is None:
            rows, promise = _whole_blocks(x, 0.5), _whole_blocks(t, 0.5)
            factors = self.bets.fractions(promise[None])
            factors *= rows - promise
        else:
            factors = self._fixed * (_whole_blocks(x, 0.0) - self.promise)
            factors[:, x.size :] = 0.0
        factors += 1.0
        return np.cumprod(factors.reshape(len(factors), -1, BLOCK), axis=2)

    def _capital(self, products: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Logarithm of the capital after every row; stakes and scale at the end of the last block.

        A bet's stake at row n is P(n) (S + sum over m <= n of w(m) / P(m - 1)): what it had, and the fresh
        stakes w since, each times the factors it has met.
        """
        n_bets, n_blocks, _ = products.shape
        cash = waiting(self.block_start.rows + np.arange(n_blocks * BLOCK + 1.0))
        fresh = (cash[:-1] - cash[1:]).reshape(n_blocks, BLOCK)
        joined = np.empty_like(products)
        joined[:, :, 0] = fresh[:, 0]
        np.divide(fresh[:, 1:], products[:, :, :-1], out=joined[:, :, 1:])
        np.cumsum(joined, axis=2, out=joined)
        shares, stakes, log_scale = self.bets.shares, self.block_start.stakes, self.block_start.log_scale
        starts, inverses = np.empty((n_bets, n_blocks, 1)), np.empty((n_blocks, 1))
        scales = np.empty((n_blocks, 1))
        ends = cash[BLOCK::BLOCK]
        for b in range(n_blocks):
            # Everything is measured in units of the capital at the start of the block.
            inverse = np.exp(-log_scale)
            starts[:, b, 0], inverses[b], scales[b] = stakes, inverse, log_scale
            stakes = products[:, b, -1] * (stakes + shares * (inverse * joined[:, b, -1]))
            total = np.add.reduce(stakes) + ends[b] * inverse
            stakes, log_scale = stakes / total, log_scale + np.log(total)
        joined *= shares[:, None, None] * inverses
        joined += starts
        joined *= products
        value = joined.sum(axis=0) + cash[1:].reshape(n_blocks, BLOCK) * inverses
        return (scales + np.log(value)).ravel(), stakes, float(log_scale)

    def _sums(self, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Running sums of the outcomes, of the promises and of the squared surprises."""
        here = self.block_start
        total = _running_sum(here.total, x)
        promised = np.full(x.size, float(self.promise.mean())) if self.promise is not None else t
        rows = here.rows + np.arange(x.size)
        # The outcome is predicted from the rows before it only, as the confidence sequence needs it.
        surprise = (x - (total - x + 0.5) / (rows + 1.0)) ** 2
        return total, _running_sum(here.promised, promised), _running_sum(here.surprise, surprise)

    def _ruled_out(self, x: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Rows that a kept promise makes impossible: less than a promised 1, more than a promised 0."""
        low, high = (t, t) if self.promise is None else (self.promise.min(), self.promise.max())
        below, above = (low >= 1.0) & (x < 1.0), (high <= 0.0) & (x > 0.0)
        return np.asarray({"under": below, "over": above, "both": below | above}[self.side])

    def _rises(self, products: np.ndarray, m: int) -> dict[str, np.ndarray]:
        """The walk of every bet and its largest rise, from which the time of a change is read."""
        here = self.block_start
        ends = np.log(products[:, :, -1])
        offsets = np.cumsum(np.column_stack([here.walk, ends]), axis=1)
        low = offsets[:, :-1] + np.log(np.minimum(products.min(axis=2), 1.0))
        high = offsets[:, :-1] + np.log(products.max(axis=2))
        lowest = np.minimum.accumulate(np.column_stack([here.lowest, low]), axis=1)[:, 1:]
        rise = {"rise": here.rise.copy(), "rise_from": here.rise_from.copy(), "rise_to": here.rise_to.copy()}
        # Few bets rise further than ever before; only theirs are followed row by row.
        for j in np.flatnonzero(((high - lowest) > here.rise[:, None] - _ROUNDING).any(axis=1)):
            record, first, last = _largest_rise(here, int(j), offsets[j, :-1], products[j], m)
            if record > here.rise[j]:
                rise["rise"][j], rise["rise_from"][j], rise["rise_to"][j] = record, first, last
        return {
            "walk": offsets[:, -1],
            "lowest": lowest[:, -1],
            "lowest_at": _lowest_at(here, low, products),
            **rise,
        }

    def change(self) -> tuple[int, int] | None:
        """Rows [first, last) in which the outcomes speak loudest against the promise; None without any."""
        j = int(np.argmax(self.now.rise))
        if self.now.rise[j] <= 0.0:
            return None
        return int(self.now.rise_from[j]), int(self.now.rise_to[j])

    def to_dict(self) -> dict[str, Any]:
        """Everything the next row and the course so far need, as plain values."""
        return {
            "block_start": self.block_start.to_dict(),
            "x": self.x.tolist(),
            "t": self.t.tolist(),
            "stride": self.course.stride,
            "points": self.course.points,
        }

    def restore(self, values: dict[str, Any]) -> None:
        """Continue from what `to_dict` wrote."""
        self.course = Course(int(values["stride"]), [list(point) for point in values["points"]])
        self.block_start = self.now = Position.from_dict(values["block_start"])
        self.x, self.t = np.empty(0), np.empty(0)
        rows, promised = np.array(values["x"], dtype=np.float64), np.array(values["t"], dtype=np.float64)
        self.update(rows, promised if self.promise is None else None)


def _running_sum(carry: float, values: np.ndarray) -> np.ndarray:
    """Cumulative sums on top of ``carry``, block by block, so that they do not depend on the split."""
    within = np.cumsum(_whole_blocks(values, 0.0).reshape(-1, BLOCK), axis=1)
    offsets = np.cumsum(np.concatenate([[carry], within[:-1, -1]]))
    return np.asarray((offsets[:, None] + within).ravel()[: values.size])


def _first_alarm(here: Position, crossed: np.ndarray, impossible_at: int | None) -> int | None:
    """The row of the first alarm: the capital reached the threshold, or the row was ruled out."""
    if here.alarm_at is not None or not crossed.any():
        return impossible_at if here.alarm_at is None else here.alarm_at
    at = here.rows + int(np.argmax(crossed))
    return at if impossible_at is None else min(at, impossible_at)


def _largest_rise(
    here: Position, j: int, offsets: np.ndarray, products: np.ndarray, m: int
) -> tuple[float, int, int]:
    """The largest rise of one bet's walk that ends in these rows, and the rows before its start and end."""
    walk = (offsets[:, None] + np.log(products)).ravel()[:m]
    before = np.concatenate([[here.walk[j]], walk[:-1]])
    rises = walk - np.minimum(np.minimum.accumulate(before), here.lowest[j])
    last = int(np.argmax(rises))
    first = int(np.argmin(before[: last + 1]))
    start = here.rows + first if before[first] < here.lowest[j] else int(here.lowest_at[j])
    return float(rises[last]), start, here.rows + last + 1


def _lowest_at(here: Position, low: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Rows before the lowest point of every bet's walk."""
    every, block = np.arange(len(low)), np.argmin(low, axis=1)
    # The start of a block, where the product is 1, is a point of the walk as well.
    steps = np.column_stack([np.ones(len(low)), products[every, block]])
    at = here.rows + block * BLOCK + np.argmin(steps, axis=1)
    return np.where(low[every, block] < here.lowest, at, here.lowest_at)


def _whole_blocks(values: np.ndarray, fill: float) -> np.ndarray:
    """The values, filled up to a whole number of blocks."""
    missing = -values.size % BLOCK
    return np.concatenate([values, np.full(missing, fill)]) if missing else values
