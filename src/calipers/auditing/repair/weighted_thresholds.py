"""Thresholds for new rows whose features are distributed otherwise: calibration rows count by a ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.auditing.repair.density_ratio import DensityRatio
from calipers.auditing.repair.partitions import AllRows, Partition
from calipers.auditing.repair.saved_repair import part
from calipers.auditing.repair.thresholds import FEWEST_ROWS, cell_sharing, used_cells
from calipers.conformal.p_values import CalibrationScores
from calipers.conformal.weighted import WeightedScores, calibration_order, weighted_quantiles
from calipers.inputs import exact_level
from calipers.inputs.rows import Rows


@part("weighted thresholds")
@dataclass(frozen=True, slots=True, eq=False)
class WeightedThresholds:
    """A threshold per cell, level and weight of the new row.

    Parameters
    ----------
    partition : Partition
        The cells.
    shared : array of int (cells,)
        The threshold each cell uses: its own, or one that small cells share.
    ratio : DensityRatio
        What rows count.
    alphas : tuple of float
        The levels.
    tails : tuple of tuple of arrays (2, m)
        Per threshold and level: the largest calibration scores, increasing, and the weight up to each.
    scores : tuple of arrays (2, m)
        All scores behind each threshold and their weights, where p-values are asked for; else empty.
    rows : int
        Calibration rows.

    Notes
    -----
    Weighted conformal prediction [1]_ within every cell: the smallest score above which, the new row with
    its own weight included, lies at most alpha of the weight.

    References
    ----------
    .. [1] Tibshirani, Barber, Candès and Ramdas (2019), Conformal prediction under covariate shift.
    """

    partition: Any
    shared: np.ndarray
    ratio: DensityRatio
    alphas: tuple[float, ...]
    tails: tuple[tuple[np.ndarray, ...], ...]
    scores: tuple[np.ndarray, ...]
    rows: int

    @property
    def words(self) -> str:
        """What was done."""
        return f"{self.partition.words}, weighted for the new rows"

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns beside what is stated."""
        return tuple(dict.fromkeys((*self.partition.needs, "X")))

    @property
    def guarantee(self) -> str:
        """What holds for rows like the new ones."""
        pooled = f", those worth fewer than {FEWEST_ROWS} calibration rows taken together"
        small = pooled if len(np.unique(self.shared)) < len(self.shared) else ""
        cells = f" in every cell ({self.partition.words}{small})"
        where = "" if isinstance(self.partition, AllRows) else cells
        return (
            f"covers 1 - alpha{where} for rows like the {self.ratio.rows[1]} new ones, as far as the "
            "estimated likelihood ratio of their features is right, and only if outcomes given the features "
            "have not changed"
        )

    def at(self, rows: Rows, level: int) -> np.ndarray:
        """The threshold of every row; infinite where nothing like the row was seen."""
        used, own = used_cells(self.partition, self.shared, len(self.tails), rows), self.ratio.of(rows)
        out = np.full(rows.n, np.inf)
        for k, tails in enumerate(self.tails):
            ordered, mass = tails[level]
            if ordered.size and (here := used == k).any():
                # The weight below the tail is one step of the cumulative weight.
                steps = np.concatenate([[0.0], mass])
                out[here] = weighted_quantiles(ordered, steps, own[here], exact_level(self.alphas[level]))
        return out

    def p_values(self, rows: Rows, scores: np.ndarray) -> np.ndarray:
        """The p-value of every label."""
        cells = np.repeat(np.arange(len(self.scores)), [own.shape[1] for own in self.scores])
        values, weights = np.concatenate(self.scores, axis=1)
        table = CalibrationScores.build(values, groups=cells, n_groups=len(self.scores))
        weighted = WeightedScores(table, weights, calibration_order(values, cells))
        used = used_cells(self.partition, self.shared, len(self.scores), rows)
        return weighted.p_values(scores, self.ratio.of(rows), used, None)


def fit_weighted(
    partition: Partition,
    rows: Rows,
    scores: list[np.ndarray],
    alphas: tuple[float, ...],
    ratio: DensityRatio,
    *,
    keep_scores: bool = False,
    fewest: float = FEWEST_ROWS,
) -> WeightedThresholds:
    """Weighted thresholds from calibration rows; cells that are worth few rows share one."""
    weights = ratio.of(rows) * (1.0 if rows.weights is None else rows.weights)
    shared, used, n = cell_sharing(partition, rows, weights, fewest)
    cells = [np.flatnonzero(used == k) for k in range(n)]
    tails = tuple(
        tuple(_tail(own[which], weights[which], alpha) for own, alpha in zip(scores, alphas, strict=True))
        for which in cells
    )
    kept = tuple(np.stack([scores[0][which], weights[which]]) for which in cells) if keep_scores else ()
    return WeightedThresholds(
        partition, shared, ratio, tuple(float(alpha) for alpha in alphas), tails, kept, rows.n
    )


def _tail(scores: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """The scores that can be a threshold, and the weight up to each: those with at most alpha above them."""
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(weights[order])
    total = mass[-1] if len(mass) else 0.0
    # A new row's own weight only raises the threshold. Twice alpha leaves room for rounding.
    kept = total - mass <= 2 * alpha * total
    return np.stack([scores[order][kept], mass[kept]])
