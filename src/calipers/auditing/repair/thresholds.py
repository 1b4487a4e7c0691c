"""Thresholds on scores: one per cell, or conditional on overlapping cells by a linear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.auditing.repair.partitions import AllRows, Partition
from calipers.auditing.repair.stored import part
from calipers.conformal import conformal_p_values, conformal_quantile
from calipers.exceptions import UnseenGroupWarning, warn
from calipers.inputs.rows import Rows

# Rows of a cell below which it has no threshold of its own.
FEWEST_ROWS = 40
# Rows of the linear program, and combinations of cells, at most.
MOST_ROWS = 3000
MOST_PATTERNS = 120
# Scores that the program reaches up to rounding are reached.
_ROUNDING = 1e-9
# Rows near their threshold that enter the linear program at first, in all and per indicator.
_NEAR_ROWS = 100
_NEAR_PER_CELL = 10
# By this share the new row's weight is less, more than what the solver takes for 0.
_LESS = 1e-5


@part("cell thresholds")
@dataclass(frozen=True, slots=True, eq=False)
class CellThresholds:
    """A threshold per cell and level.

    Parameters
    ----------
    partition : Partition
        The cells.
    shared : array of int (cells,)
        The threshold each cell uses: its own, or one that small cells share.
    values : array (thresholds, L)
        Per level.
    scores : tuple of arrays
        Calibration scores behind each threshold, where p-values are asked for; else empty.
    rows : int
        Calibration rows.
    """

    partition: Any
    shared: np.ndarray
    values: np.ndarray
    scores: tuple[np.ndarray, ...]
    rows: int

    @property
    def words(self) -> str:
        """What was done."""
        return str(self.partition.words)

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns beside what is stated."""
        return tuple(self.partition.needs)

    @property
    def guarantee(self) -> str:
        """What holds for exchangeable rows."""
        if isinstance(self.partition, AllRows):
            return "covers 1 - alpha on average over calibration sets and exchangeable new rows"
        small = (
            f", cells of fewer than {FEWEST_ROWS} calibration rows taken together" if self._pools() else ""
        )
        return f"covers 1 - alpha in every cell ({self.words}{small}), for exchangeable new rows"

    def at(self, rows: Rows, level: int) -> np.ndarray:
        """The threshold of every row; infinite for a cell without calibration rows."""
        return np.asarray(self.values[:, level][self._used(rows)])

    def p_values(self, rows: Rows, scores: np.ndarray) -> np.ndarray:
        """The p-value of every label."""
        groups = np.repeat(np.arange(len(self.scores)), [len(own) for own in self.scores])
        return np.asarray(
            conformal_p_values(
                np.concatenate(self.scores), scores, calibration_groups=groups, test_groups=self._used(rows)
            )
        )

    def _pools(self) -> bool:
        return len(np.unique(self.shared)) < len(self.shared)

    def _used(self, rows: Rows) -> np.ndarray:
        return used_cells(self.partition, self.shared, len(self.values), rows)


def used_cells(partition: Partition, shared: np.ndarray, n: int, rows: Rows) -> np.ndarray:
    """Which of n thresholds every row uses; the last for a row of no known cell."""
    cells = partition.cells(rows)
    _warn_of_unseen(cells < 0, "they get all labels, or (-inf, inf)")
    return np.asarray(np.append(shared, n - 1)[cells])  # -1 reads the appended one


def _warn_of_unseen(unseen: np.ndarray, consequence: str) -> None:
    if unseen.any():
        warn(
            f"{int(np.count_nonzero(unseen))} rows belong to a group the repair was not fitted on: "
            f"{consequence}.", UnseenGroupWarning,
        )  # fmt: skip


def cell_sharing(
    partition: Partition, rows: Rows, weights: np.ndarray | None = None, fewest: float = FEWEST_ROWS
) -> tuple[np.ndarray, np.ndarray, int]:
    """The threshold of every cell, that of every calibration row, and the number of thresholds.

    After the large cells: the small ones together, then the unseen ones, which have no rows. With weights,
    rows count as so many of equal weight.
    """
    cells, n_cells = partition.cells(rows), len(partition.names())
    mass = np.ones(rows.n) if weights is None else weights
    sums, squares = (
        np.bincount(cells[cells >= 0], own[cells >= 0], minlength=n_cells) for own in (mass, mass**2)
    )
    large = np.flatnonzero(sums**2 >= fewest * np.where(squares > 0, squares, np.inf))
    shared = np.full(n_cells, len(large))
    shared[large] = np.arange(len(large))
    return shared, np.append(shared, len(large) + 1)[cells], len(large) + 2


def fit_cells(
    partition: Partition,
    rows: Rows,
    scores: list[np.ndarray],
    alphas: tuple[float, ...],
    *,
    keep_scores: bool = False,
    fewest: float = FEWEST_ROWS,
) -> CellThresholds:
    """Thresholds from calibration rows, given their scores per level; small cells share one."""
    shared, used, n = cell_sharing(partition, rows, fewest=fewest)
    values = np.array(
        [
            [conformal_quantile(own[used == k], alpha) if (used == k).any() else np.inf
             for own, alpha in zip(scores, alphas, strict=True)]
            for k in range(n)
        ]
    )  # fmt: skip
    kept = tuple(np.sort(scores[0][used == k]) for k in range(n)) if keep_scores else ()
    return CellThresholds(partition, shared, values, kept, rows.n)


@part("conditional thresholds")
@dataclass(frozen=True, slots=True, eq=False)
class ConditionalThresholds:
    """A threshold per combination of overlapping cells.

    Parameters
    ----------
    partitions : tuple of Partition
        Their cells, together, are the classes of rows that are covered each on its own.
    patterns : array of int (P, partitions)
        Combinations of cells that were met.
    values : array (P + 1, L)
        Threshold of each combination; the last, the largest, is for one that was not met.
    rows : int
        Calibration rows.

    Notes
    -----
    Conditional conformal prediction over the linear span of the cells' indicators [1]_: for a new row with
    indicators phi, the threshold is phi'b where b minimises the pinball loss of the calibration scores with
    the new row among them as one that exceeds its threshold, ``sum l(S_i - phi_i'b) - (1 - alpha) phi'b``.
    For exchangeable rows P(covered | cell) >= 1 - alpha for every cell of every partition, at most
    d / (n P(cell)) more, d the number of indicators. With one cell it is `conformal_quantile`.

    References
    ----------
    .. [1] Gibbs, Cherian, Candès (2025), Conformal prediction with conditional guarantees. JRSS B.
    """

    partitions: tuple[Any, ...]
    patterns: np.ndarray
    values: np.ndarray
    rows: int

    @property
    def words(self) -> str:
        """What was done."""
        cells = sum(len(p.names()) for p in self.partitions)
        return f"conditional thresholds over {cells} overlapping cells of {len(self.partitions)} partitions"

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns beside what is stated."""
        return tuple(dict.fromkeys(need for p in self.partitions for need in p.needs))

    @property
    def guarantee(self) -> str:
        """What holds for exchangeable rows."""
        return (
            f"covers 1 - alpha in every cell of {len(self.partitions)} overlapping partitions, for "
            "exchangeable new rows (conditional conformal prediction); combinations of cells without "
            "calibration rows are outside it"
        )

    def at(self, rows: Rows, level: int) -> np.ndarray:
        """The threshold of every row; the largest for a combination of cells that was not met."""
        cells = np.column_stack([p.cells(rows) for p in self.partitions])
        _warn_of_unseen(cells.min(axis=1) < 0, "they get the largest threshold, without a guarantee")
        codes = _joined(cells, self._widths())
        known = _joined(self.patterns, self._widths())
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known[order], codes), len(known) - 1)
        found = known[order][at] == codes
        return self.values[:, level][np.where(found, order[at], len(known))]

    def _widths(self) -> list[int]:
        return [len(p.names()) + 1 for p in self.partitions]


def fit_conditional(
    partitions: list[Partition],
    rows: Rows,
    scores: list[np.ndarray],
    alphas: tuple[float, ...],
    rng: np.random.Generator,
) -> ConditionalThresholds | None:
    """Conditional thresholds from calibration rows; None where there are too many combinations of cells."""
    cells = np.column_stack([p.cells(rows) for p in partitions])
    patterns = np.unique(cells[(cells >= 0).all(axis=1)], axis=0)
    if not 0 < len(patterns) <= MOST_PATTERNS:
        return None
    kept = rng.permutation(rows.n)[:MOST_ROWS]
    indicators, of_patterns = (_indicators(c, partitions) for c in (cells[kept], patterns))
    columns = [
        _conditional(indicators, of_patterns, own[kept], float(alpha))
        for own, alpha in zip(scores, alphas, strict=True)
    ]
    values = np.column_stack(columns)
    values = np.vstack([values, values.max(axis=0)])
    return ConditionalThresholds(tuple(partitions), patterns, values, len(kept))


def _indicators(cells: np.ndarray, partitions: list[Partition]) -> np.ndarray:
    """A constant, then an indicator for each cell but the first of every partition."""
    columns = [np.ones(len(cells))]
    for j, partition in enumerate(partitions):
        columns += [(cells[:, j] == k).astype(float) for k in range(1, len(partition.names()))]
    return np.column_stack(columns)


def _conditional(phi: np.ndarray, new: np.ndarray, scores: np.ndarray, alpha: float) -> np.ndarray:
    """The threshold of each new row of indicators; infinite where the program has no bound."""
    finite = np.isfinite(scores)
    # A score of -inf is always covered; its weight on b is that of a score below all others.
    bottom = scores[finite].min(initial=0.0) - 1.0
    S = np.where(finite, scores, np.where(scores > 0, scores[finite].max(initial=0.0) + 1.0, bottom))
    use = phi.any(axis=0)
    program = _PinballProgram(phi[:, use], S, alpha)
    out = np.full(len(new), np.inf)
    for i, row in enumerate(new):
        # Infinite where so few rows are there that the new one cannot be balanced.
        if not row[~use].any() and (b := program.coefficients(row[use])) is not None:
            reached = float(b @ row[use])
            out[i] = reached + _ROUNDING * (1 + abs(reached))
    return out


class _PinballProgram:
    """Coefficients b of least pinball loss with one more row of weight 1 - alpha, for many such rows.

    The dual has a weight in [-alpha, 1 - alpha] per row, which balance the indicators; the new row's is
    1 - alpha. One more row moves b little, so rows far from their threshold keep the weight of their side and
    only the near ones enter the program; if a far row turns out on the other side, all rows enter [1]_.

    Where several b are optimal, the one with the smallest threshold of the new row is taken: a score above
    it has the dual weight 1 - alpha, which is all that the guarantee needs. A weight a little below 1 - alpha
    picks it.

    References
    ----------
    .. [1] Portnoy, Koenker (1997), The Gaussian hare and the Laplacian tortoise. Statistical Science.
    """

    def __init__(self, phi: np.ndarray, scores: np.ndarray, alpha: float) -> None:
        self.phi, self.scores, self.alpha = phi, scores, alpha
        self.near = np.ones(len(scores), dtype=bool)
        self.far_weights = np.zeros(len(scores))
        without = self._solved(np.zeros(phi.shape[1]), self.near)
        n_near = max(_NEAR_ROWS, _NEAR_PER_CELL * phi.shape[1])
        if without is not None and n_near < len(scores) // 2:
            away = scores - phi @ without
            self.near = np.abs(away) <= np.partition(np.abs(away), n_near)[n_near]
            self.far_weights = np.where(away > 0, 1 - alpha, -alpha) * ~self.near

    def coefficients(self, row: np.ndarray) -> np.ndarray | None:
        """b with the new row of indicators among the others; None where there is no bound."""
        new_row = -(1 - self.alpha) * (1 - _LESS) * row
        b = self._solved(new_row - self.far_weights @ self.phi, self.near)
        if b is not None and not self.near.all():
            away = self.scores - self.phi @ b
            b = b if np.all((self.far_weights * away)[~self.near] >= 0) else None
        if b is None and not self.near.all():
            b = self._solved(new_row, np.ones(len(self.scores), dtype=bool))
        return b

    def _solved(self, balance: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        from scipy.optimize import linprog

        solved = linprog(
            -self.scores[rows], A_eq=self.phi[rows].T, b_eq=balance, bounds=(-self.alpha, 1 - self.alpha),
            method="highs",
        )  # fmt: skip
        return -np.asarray(solved.eqlin.marginals) if solved.status == 0 else None


def _joined(cells: np.ndarray, widths: list[int]) -> np.ndarray:
    """A combination of cells as one number."""
    number = np.zeros(len(cells), dtype=np.int64)
    for j, width in enumerate(widths):
        number = number * width + cells[:, j] + 1
    return number
