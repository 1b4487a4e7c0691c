"""Conformal p-values by sort and search: eq. 2, its label-conditional form eq. 42, and Mondrian groups.

Calibration rows fall into cells: one per label (label-conditional), one per group (Mondrian), one per
pair, or a single one. `CalibrationScores` keeps the scores sorted within their cells; every test score
is then located among the scores of its own cell, so the cost is O((n + mK) log n) (for spread scores one
look-up each, `calipers.arrays.SortedColumn`) and no (n, m) matrix is ever made. Works on numpy, torch,
CuPy and strict arrays where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from calipers.arrays import (
    Array,
    RandomState,
    SortedColumn,
    as_array,
    as_numpy,
    generator,
    namespace,
    on_device_of,
    take_at,
)
from calipers.arrays.device_rows import p_values_among
from calipers.conformal.blocks import row_blocks
from calipers.conformal.ranks import conformal_rank
from calipers.exceptions import InputError
from calipers.inputs import check_groups, exact_level, require_finite
from calipers.inputs.option_checks import check_flag, check_number
from calipers.inputs.row_checks import (
    check_row_labels,
    count_true,
    first_true,
    numeric,
    place,
    real_vector,
)

_BLOCK = 6 << 10
# Labels are searched one by one from so many rows in a block on, else all at once.
_FEWEST_ROWS = 128


def conformal_p_values(
    calibration_scores: Any,
    test_scores: Any,
    *,
    calibration_labels: Any = None,
    calibration_groups: Any = None,
    test_groups: Any = None,
    smoothed: bool = False,
    tau: Any = None,
    random_state: RandomState = None,
) -> Array:
    """How strange each test score is among the calibration scores, as a p-value in (0, 1].

    The p-value of the true label is uniform when smoothed, and at least that large otherwise
    (``P(p <= u) <= u``); the p-values of false labels should be small.

    Parameters
    ----------
    calibration_scores : array of shape (n,)
        Nonconformity of the calibration rows at their true labels; higher is stranger.
    test_scores : array of shape (m,) or (m, K)
        Nonconformity of the test rows, for one outcome or for every possible label.
    calibration_labels : integer array of shape (n,), optional
        Column index of each calibration row's label. Given, a test score of label y is compared with
        the calibration rows of label y only (label-conditional, eq. 42); needs (m, K) test scores.
    calibration_groups, test_groups : arrays of shape (n,) and (m,), optional
        Groups of any kind (numbers, text). Given, a test row is compared with its own group only
        (Mondrian); together with labels, with its group and label.
    smoothed : bool
        Break ties at random: one tau per test row, uniform on [0, 1], shared by its labels (eq. 2).
    tau : float or array of shape (m,), optional
        The tau to use, in [0, 1]; implies smoothing. Without it and with ``smoothed=False``, tau is 1.
    random_state : None, int or Generator
        Source of tau.

    Returns
    -------
    float64 array of the shape of ``test_scores``
        In the array library and on the device of the scores.

    Raises
    ------
    InputError
        For no calibration rows, NaN scores, labels outside 0..K-1, or only one kind of groups.

    Notes
    -----
    ``p = (#{s_i > s} + tau (#{s_i = s} + 1)) / (n + 1)`` over the n calibration rows of the cell; with
    tau = 1 this is ``(#{s_i >= s} + 1) / (n + 1)``. A cell without calibration rows gives p = tau.
    Assumes calibration and test rows to be exchangeable (within the cell). Counts are exact integers:
    float32 scores are compared as they are. Cost O((n + mK) log n), working memory a small block.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej, Gammerman (2017), Criteria of efficiency for conformal prediction.

    Examples
    --------
    >>> from calipers.conformal import conformal_p_values
    >>> conformal_p_values([1.0, 2.0, 2.0, 5.0], [[2.0, 6.0]])
    array([[0.8, 0.2]])
    >>> conformal_p_values([1.0, 2.0, 2.0, 5.0], [[2.0, 6.0]], tau=0.5)
    array([[0.5, 0.1]])
    """
    cal = real_vector(calibration_scores, name="calibration_scores")
    cal, test = _same_kind(cal, _real_table(test_scores))
    further = (calibration_labels, calibration_groups, test_groups, tau)
    # A device that compares with all scores at once needs no table of cells, and finds NaN on its way.
    is_plain = smoothed is False and all(given is None for given in further)
    if is_plain and (found := p_values_among(cal, namespace(test).reshape(test, (-1,)))) is not None:
        return namespace(test).reshape(found, test.shape)
    cal = require_finite(cal, name="calibration_scores", infinite=True)
    test = require_finite(test, name="test_scores", infinite=True)
    codes, n_labels = _check_labels(calibration_labels, cal, test)
    cal_groups, groups, n_groups = _check_both_groups(calibration_groups, test_groups, cal, test)
    draws = resolve_tau(tau, test, smoothed, random_state)
    table = CalibrationScores.build(
        cal, labels=codes, n_labels=n_labels, groups=cal_groups, n_groups=n_groups
    )
    return table.p_values(test, groups=groups, tau=draws)


@dataclass(frozen=True, eq=False)
class CalibrationScores:
    """Calibration scores sorted within their cells, ready to be searched.

    Cells are numbered ``group * n_labels + label``; the last group (``n_groups``) stands for groups that
    were never seen and has no rows.

    Parameters
    ----------
    ordered : array (n + 1,)
        Scores sorted by cell, then value; one NaN at the end, equal to nothing.
    new_run : bool array (n - 1,)
        Whether the next score is another one, or of another cell.
    starts : integer array (cells + 1,)
        Where each cell begins.
    sizes : host integer array (cells,)
        Rows per cell.
    n_labels, n_groups : int
        Labels (1 when not label-conditional) and groups seen (1 when not Mondrian).
    """

    ordered: Array
    new_run: Array
    starts: Array
    sizes: np.ndarray
    n_labels: int
    n_groups: int

    @classmethod
    def build(
        cls,
        scores: Array,
        *,
        labels: Array | None = None,
        n_labels: int = 1,
        groups: Array | None = None,
        n_groups: int = 1,
    ) -> CalibrationScores:
        """Sort the scores (n,) of rows with label and group codes."""
        xp = namespace(scores)
        n = int(scores.shape[0])
        cells = None if groups is None else groups * n_labels
        if labels is not None:
            cells = labels if cells is None else cells + labels
        n_cells = (n_groups + 1) * n_labels
        if cells is None:
            ordered, sizes = xp.sort(scores, stable=False), np.array([n, 0])
            new_run = ordered[1:] != ordered[:-1]
        else:
            order = xp.argsort(scores, stable=True)
            order = xp.take(order, xp.argsort(xp.take(cells, order), stable=True))
            ordered, cells = xp.take(scores, order), xp.take(cells, order)
            new_run = (ordered[1:] != ordered[:-1]) | (cells[1:] != cells[:-1])
            ends = xp.searchsorted(cells, _range(xp, n_cells, cells), side="right")
            sizes = np.diff(as_numpy(ends), prepend=0)
        starts = on_device_of(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), scores)
        nan = xp.full((1,), float("nan"), dtype=scores.dtype, device=scores.device)
        return cls(xp.concat([ordered, nan]), new_run, starts, sizes, n_labels, n_groups)

    @cached_property
    def run_end(self) -> Array:
        """For the first of a run of equal scores in a cell: the position after the run."""
        return _run_ends(namespace(self.ordered), self.new_run, self.n)

    @property
    def n(self) -> int:
        """Calibration rows in all."""
        return int(self.sizes.sum())

    def p_values(self, scores: Array, *, groups: Array | None = None, tau: Array | None = None) -> Array:
        """p-values of (m,) or (m, K) scores; tau None means 1, otherwise (m,)."""
        xp = namespace(scores)
        columns = self._columns()
        if tau is None and groups is None and self.n_labels == 1:
            return self._blockwise(self._by_table(columns[0], scores), scores, None, None)

        def one(block: Array, group: Array | None, draw: Array | None) -> Array:
            if draw is None:
                left, end, size, _ = self._search(block, group, columns)
                return _float(xp, end - left + 1) / _divisor(xp, size + 1, block)
            left, right, end, size = self._locate(block, group, columns)
            equal = _float(xp, right - left + 1) * _spread(xp, draw, block)
            return (_float(xp, end - right) + equal) / _divisor(xp, size + 1, block)

        return self._blockwise(one, scores, groups, tau)

    def _columns(self) -> list[SortedColumn]:
        """The scores of each label, to be searched by many calls; groups share none of it."""
        ends = np.concatenate([[0], np.cumsum(self.sizes[: self.n_labels])]).tolist()
        return [SortedColumn(self.ordered[a:b]) for a, b in pairwise(ends)]

    def _by_table(self, column: SortedColumn, like: Array) -> Any:
        """With one cell and tau = 1 there are n + 1 possible p-values: divided once, then looked up."""
        xp, n, table = namespace(like), self.n, None

        def one(block: Array, group: Array | None, draw: Array | None) -> Array:
            nonlocal table
            flat = xp.reshape(block, (-1,))
            if (found := p_values_among(column.ordered, flat, is_sorted=True)) is not None:
                return found
            if table is None:
                table = on_device_of((n + 1.0 - np.arange(n + 1)) / (n + 1.0), like)
            return take_at(table, column.search(flat))

        return one

    def smoothed_sets(self, scores: Array, alpha: Any, *, groups: Array | None, tau: Array) -> Array:
        """Which labels have a smoothed p-value above alpha, decided by counts and one product.

        With ``alpha (size + 1) = c + f``, c whole, the rule p > alpha is
        ``tau (equal + 1) > (c - greater) + f``; f is 0 whenever equality is possible.
        """
        xp, columns = namespace(scores), self._columns()
        whole, rest = _split_levels(self.sizes, exact_level(alpha))
        whole, rest = on_device_of(whole, scores), on_device_of(rest, scores)

        def one(block: Array, group: Array | None, draw: Array | None) -> Array:
            left, right, end, _ = self._locate(block, group, columns)
            cell = self._cells(block, group)
            needed = _float(xp, xp.take(whole, cell) - (end - right)) + xp.take(rest, cell)
            return _float(xp, right - left + 1) * _spread(xp, draw, block) > needed

        return self._blockwise(one, scores, groups, tau)

    def thresholds(self, levels: tuple[Any, ...], rank: Any = conformal_rank) -> Array:
        """The largest score kept in each cell, (cells, L); infinity where no finite one is valid.

        ``score <= threshold`` is the rule p > alpha at tau = 1, on every input.
        """
        xp = namespace(self.ordered)
        ranks = np.stack([_ranks(self.sizes, level, rank) for level in levels], axis=1)
        beyond = ranks > self.sizes[:, None]
        first = np.concatenate([[0], np.cumsum(self.sizes)])[:-1, None]
        at = on_device_of(np.where(beyond, 0, first + ranks - 1).reshape(-1).astype(np.int64), self.ordered)
        values = xp.reshape(xp.take(self.ordered, at), ranks.shape)
        infinite = xp.full(ranks.shape, float("inf"), dtype=values.dtype, device=values.device)
        return xp.where(on_device_of(beyond, self.ordered), infinite, values)

    def threshold_sets(self, scores: Array, thresholds: Array, *, groups: Array | None) -> Array:
        """``score <= threshold`` of the cell for (m, K) scores and one level's thresholds (cells,)."""
        xp = namespace(scores)
        if groups is None:
            limits = thresholds[: self.n_labels][None, :]
        else:
            table = xp.reshape(thresholds, (-1, self.n_labels))
            limits = xp.take(table, groups, axis=0)
        return scores <= limits

    def positions(self, scores: Array, groups: Array | None = None) -> tuple[Array, Array, Array, Array]:
        """First and after-last position of equal scores, end of the cell and its start, flattened."""
        left, right, end, size = self._locate(scores, groups, self._columns())
        return left, right, end, end - size

    def _cells(self, block: Array, group: Array | None) -> Array:
        """Cell of every entry of a block, flattened."""
        xp = namespace(block)
        width = int(block.shape[1]) if block.ndim == 2 else 1
        rows = xp.zeros((block.shape[0],), dtype=xp.int64, device=block.device) if group is None else group
        cells = rows[:, None] * self.n_labels
        if self.n_labels > 1:
            cells = cells + _range(xp, self.n_labels, block)[None, :]
        return xp.reshape(xp.broadcast_to(cells, (block.shape[0], width)), (-1,))

    def _search(
        self, block: Array, group: Array | None, columns: list[SortedColumn]
    ) -> tuple[Array, Any, Any, Array]:
        """First position of a score not below, end of the cell, rows in it, and the scores; flattened."""
        xp = namespace(block)
        flat = xp.reshape(block, (-1,))
        if self.n_labels == 1 and group is None:
            n = self.ordered.shape[0] - 1
            return columns[0].search(flat), n, n, flat
        cells = self._cells(block, group)
        begin, end = take_at(self.starts, cells), take_at(self.starts, cells + 1)
        if group is None and isinstance(block, np.ndarray) and len(block) >= _FEWEST_ROWS:
            below = [column.search(block[:, k].copy()) for k, column in enumerate(columns)]
            left = begin + np.stack(below, axis=1).reshape(-1)
        else:
            left = _segmented_search(self.ordered, begin, end, flat, int(self.sizes.max()))
        return left, end, end - begin, flat

    def _locate(
        self, block: Array, group: Array | None, columns: list[SortedColumn]
    ) -> tuple[Array, Array, Any, Any]:
        """Positions of the equal scores [left, right), end of the cell, rows in it; flattened."""
        xp = namespace(block)
        left, end, size, flat = self._search(block, group, columns)
        # At the end of all cells stands a NaN; at the end of one, the next cell's first score.
        found = (take_at(self.ordered, left) == flat) & (left < end)
        if isinstance(found, np.ndarray) and self.new_run.all():  # no ties: a run has one score
            return left, left + found, end, size
        return left, xp.where(found, take_at(self.run_end, left), left), end, size

    def _blockwise(self, function: Any, scores: Array, groups: Array | None, tau: Array | None) -> Array:
        xp, answer = namespace(scores), None
        for rows in row_blocks(scores, host_entries=_BLOCK):
            block = scores[rows, ...]
            pieces = (None if a is None else a[rows] for a in (groups, tau))
            part = xp.reshape(function(block, *pieces), block.shape)
            if tuple(part.shape) == tuple(scores.shape):
                return part
            if answer is None:  # the first block tells the dtype
                answer = xp.empty(scores.shape, dtype=part.dtype, device=scores.device)
            answer[rows, ...] = part
        return xp.zeros(scores.shape, dtype=xp.float64, device=scores.device) if answer is None else answer


def resolve_tau(tau: Any, scores: Array, smoothed: bool, random_state: RandomState) -> Array | None:
    """One tau per test row on the device of the scores, or None for tau = 1."""
    m = int(scores.shape[0])
    if tau is None:
        smooth = check_flag(smoothed, name="smoothed")
        return on_device_of(generator(random_state).random(m), scores) if smooth else None
    given = as_array(tau, name="tau")
    if given.ndim == 0:
        given = np.full(m, check_number(as_numpy(given)[()], name="tau"))
    if tuple(given.shape) != (m,):
        raise InputError(f"tau must be one number or one per test row ({m}), got shape {tuple(given.shape)}.")
    given = require_finite(numeric(given, "tau"), name="tau")
    xp = namespace(given)
    outside = (given < 0) | (given > 1)
    if bool(xp.any(outside)):
        row = first_true(outside)
        raise InputError(f"tau must lie in [0, 1], got {float(given[row]):g} at {place(outside)}.")
    given = xp.astype(given, xp.float64)
    return on_device_of(as_numpy(given), scores) if isinstance(given, np.ndarray) else given


def match_groups(known: np.ndarray, groups: Any, n: int, *, name: str = "groups") -> np.ndarray:
    """Index of each row's label among the known ones, ``len(known)`` for the others."""
    array = check_row_labels(groups, n, name=name)
    numbers = array.dtype.kind in "biuf" and known.dtype.kind in "biuf"
    if known.dtype.kind in "iu" and array.dtype.kind in "iu" and np.array_equal(known, np.arange(len(known))):
        return np.where((array >= 0) & (array < len(known)), array, len(known)).astype(np.int64)
    if numbers or (array.dtype.kind == known.dtype.kind == "U"):
        order = np.argsort(known, kind="stable")
        at = order[np.minimum(np.searchsorted(known, array, sorter=order), len(known) - 1)]
        return np.where(known[at] == array, at, len(known)).astype(np.int64)
    position = {label: i for i, label in enumerate(known.tolist())}
    return np.array([position.get(label, len(known)) for label in array.tolist()], dtype=np.int64)


def _segmented_search(ordered: Array, begin: Array, end: Array, queries: Array, longest: int) -> Array:
    """Per query the first position in [begin, end) whose score is not below it; all at once.

    ``position`` grows by falling powers of two while the score before the next position is smaller.
    """
    xp = namespace(ordered)
    position, before = begin, ordered
    for bit in range(longest.bit_length() - 1, -1, -1):
        candidate = position + (1 << bit)
        inside = candidate <= end
        # An empty first cell ends at 0: its probe is read at 0 and not used.
        probe = take_at(before, xp.clip(xp.where(inside, candidate, end) - 1, min=0)) if longest else None
        position = xp.where(inside & (probe < queries), candidate, position)
    return position


def _run_ends(xp: Any, new_run: Array, n: int) -> Array:
    """Position after the run of equal scores each position belongs to; n for the position n."""
    if n == 0:
        return xp.zeros((1,), dtype=xp.int64, device=new_run.device)
    steps = xp.astype(new_run, xp.int64)
    zero = xp.zeros((1,), dtype=xp.int64, device=new_run.device)
    run = xp.cumulative_sum(xp.concat([zero, steps]))
    ends = xp.astype(xp.searchsorted(run, run, side="right"), xp.int64)
    return xp.concat([ends, zero + n])


def _range(xp: Any, n: int, like: Array) -> Array:
    return xp.arange(n, dtype=xp.int64, device=like.device)


def _float(xp: Any, counts: Any) -> Any:
    return float(counts) if isinstance(counts, int) else xp.astype(counts, xp.float64)


def _divisor(xp: Any, counts: Any, like: Array) -> Array:
    """Counts to divide by, as an array: by a bare number CUDA multiplies with the rounded reciprocal."""
    if isinstance(counts, int):
        return xp.full((1,), float(counts), dtype=xp.float64, device=like.device)
    return _float(xp, counts)


def _spread(xp: Any, draw: Array | None, block: Array) -> Array:
    """tau of the row for every entry of a block, flattened."""
    width = int(block.shape[1]) if block.ndim == 2 else 1
    return draw if width == 1 else xp.repeat(draw, width)


def _ranks(sizes: np.ndarray, level: Any, rank: Any) -> np.ndarray:
    """The rank for every cell size; each distinct size is worked out once."""
    distinct, inverse = np.unique(sizes, return_inverse=True)
    return np.array([rank(int(n), level) for n in distinct])[inverse]


def _split_levels(sizes: np.ndarray, level: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Whole part and rest of ``alpha (size + 1)`` for every cell."""
    distinct, inverse = np.unique(sizes, return_inverse=True)
    products = [(int(n) + 1) * level for n in distinct]
    whole = np.array([p.numerator // p.denominator for p in products], dtype=np.int64)
    rest = np.array([float(p - int(w)) for p, w in zip(products, whole, strict=True)])
    return whole[inverse], rest[inverse]


def _real_table(test_scores: Any) -> Array:
    test = as_array(test_scores, name="test_scores")
    if test.ndim not in (1, 2):
        raise InputError(
            f"test_scores must be (m,) or (m, K), one column per label, got shape {tuple(test.shape)}."
        )
    return numeric(test, "test_scores")


def _same_kind(cal: Array, test: Array) -> tuple[Array, Array]:
    """Both in one floating dtype and library; a wider float holds a narrower one exactly."""
    if int(cal.shape[0]) == 0:
        raise InputError("calibration_scores must have at least one row, got none.")
    if isinstance(cal, np.ndarray) and not isinstance(test, np.ndarray):
        cal = on_device_of(cal, test)
    elif isinstance(test, np.ndarray) and not isinstance(cal, np.ndarray):
        test = on_device_of(test, cal)
    if cal.dtype == test.dtype:
        return cal, test
    xp = namespace(cal, test)
    dtype = xp.result_type(cal, test)
    return xp.astype(cal, dtype, copy=False), xp.astype(test, dtype, copy=False)


def _check_labels(labels: Any, cal: Array, test: Array) -> tuple[Array | None, int]:
    if labels is None:
        return None, 1
    if test.ndim != 2:
        raise InputError("calibration_labels need test_scores of shape (m, K), one column per label.")
    n_labels, codes = int(test.shape[1]), as_array(labels, name="calibration_labels")
    if tuple(codes.shape) != tuple(cal.shape):
        raise InputError(
            "calibration_labels must have one entry per calibration row "
            f"({cal.shape[0]}), got shape {tuple(codes.shape)}."
        )
    if isinstance(codes, np.ndarray):
        if codes.dtype.kind not in "iu":
            raise InputError(f"calibration_labels must be column indices (integers), got {codes.dtype}.")
        codes = on_device_of(codes, cal)
    xp = namespace(cal)
    codes = xp.astype(codes, xp.int64)
    outside = (codes < 0) | (codes >= n_labels)
    if count := count_true(outside):
        row = first_true(outside)[0]
        raise InputError(
            f"calibration_labels must lie in 0..{n_labels - 1}, the columns of test_scores, "
            f"{count} of {codes.shape[0]} do not (first at row {row}: {int(codes[row])}). "
            "Give the column of every label, or test_scores a column for every label."
        )
    return codes, n_labels


def _check_both_groups(
    cal_groups: Any, test_groups: Any, cal: Array, test: Array
) -> tuple[Array | None, Array | None, int]:
    if (cal_groups is None) != (test_groups is None):
        missing = "test_groups" if test_groups is None else "calibration_groups"
        raise InputError(f"calibration_groups and test_groups belong together; {missing} is missing.")
    if cal_groups is None:
        return None, None, 1
    known, codes = check_groups(cal_groups, int(cal.shape[0]), name="calibration_groups")
    matched = match_groups(known, test_groups, int(test.shape[0]), name="test_groups")
    return on_device_of(codes.astype(np.int64), cal), on_device_of(matched, test), len(known)
