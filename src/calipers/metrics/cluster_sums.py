"""Sums over clusters of dependent rows, per stratum: what error bars and tests rest on when rows depend."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse, special

from calipers.metrics.promised_rows import PromisedRows

# With fewer clusters in a stratum the variance of its sum is not known well enough for a test.
MIN_CLUSTERS = 10


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums of each cluster in each stratum.

    Parameters
    ----------
    rows : PromisedRows
        Rows with clusters.
    cell : int array of shape (n,)
        The cell of each row.
    parts : array of shape (k, B) or None
        The part of each cell that belongs to each stratum; None when cells are the strata.
    n_cells : int
        Number of cells.
    """

    rows: PromisedRows
    cell: np.ndarray
    parts: np.ndarray | None
    n_cells: int

    def of(self, values: np.ndarray) -> sparse.csr_array:
        """Weighted sums (clusters, strata) of a value per row."""
        codes = np.unique(np.asarray(self.rows.clusters), return_inverse=True)[1].reshape(-1)
        shape = (int(codes.max()) + 1, self.n_cells)
        table = sparse.coo_array((self.rows.mass * values, (codes, self.cell)), shape=shape).tocsr()
        return table if self.parts is None else sparse.csr_array(table @ sparse.csr_array(self.parts))

    @cached_property
    def mass(self) -> sparse.csr_array:
        """Rows of each cluster in each stratum."""
        return self.of(np.ones(len(self.rows)))

    @cached_property
    def n_clusters(self) -> np.ndarray:
        """Clusters with rows in each stratum."""
        return np.asarray((self.mass > 0).sum(axis=0)).reshape(-1)

    @property
    def correction(self) -> np.ndarray:
        """Of a variance from so many sums with one mean."""
        return np.asarray(self.n_clusters / np.maximum(self.n_clusters - 1, 1))

    def departures(self) -> sparse.csr_array:
        """Covered minus promised rows of each cluster in each stratum."""
        return self.of(self.rows.covered - self.rows.target)

    def independent_rows(self, shares: np.ndarray) -> np.ndarray:
        """Rows that would tell as much about each stratum's share if they were independent.

        p (1 - p) over the variance from cluster sums, at most the rows; the clusters where all rows of a
        stratum agree. Fewer clusters make the variance uncertain: Student's quantile in place of the normal
        one, as in Korn and Graubard (1998).
        """
        total = np.asarray(self.mass.sum(axis=0)).reshape(-1)
        deviations = self.of(self.rows.covered.astype(float)) - self.mass.multiply(shares[None])
        squares = np.asarray(deviations.multiply(deviations).sum(axis=0)).reshape(-1) * self.correction
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = np.where(squares > 0, shares * (1 - shares) * total**2 / squares, self.n_clusters)
        degrees = np.maximum(self.n_clusters - 1, 1)
        factor = (special.ndtri(0.975) / special.stdtrit(degrees, 0.975)) ** 2
        return np.asarray(np.minimum(rows, total) * factor)

    def draw_departures(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Covered minus promised rows of the strata (n_draws, B) when every promise is kept.

        Normal, with the covariance of the cluster sums; a stratum whose sums vary less than those of
        independent rows would, as when none of them was missed, gets the variance of these. The factor of
        Student's law allows for few clusters.
        """
        sums = self.departures()
        covariance = np.asarray((sums.T @ sums).todense())
        scale = np.sqrt(self.correction)
        covariance = covariance * scale[:, None] * scale[None]
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        missing = np.sqrt(np.maximum(self._independent_variance() - np.diag(covariance), 0.0))
        size = (n_draws, len(covariance))
        drawn = rng.normal(size=size) @ root.T + rng.normal(size=size) * missing
        degrees = np.maximum(self.n_clusters - 1, 1)
        return np.asarray(drawn * np.sqrt(degrees / rng.chisquare(degrees, size=size)))

    def _independent_variance(self) -> np.ndarray:
        target = self.rows.target
        cells = np.bincount(
            self.cell, weights=self.rows.noise * target * (1 - target), minlength=self.n_cells
        )
        return cells if self.parts is None else np.asarray(cells @ self.parts**2)
