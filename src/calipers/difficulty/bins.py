"""The grouping estimator made of bins of equal mass along the ease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import RandomState, as_numpy, spawn
from calipers.difficulty.easiness import answer_spread, as_predict, ease_under, row_count
from calipers.difficulty.transformations import TransformOptions, draw_transforms
from calipers.difficulty.uniform_mass import uniform_mass_limits
from calipers.exceptions import InputError, SmallSampleWarning, warn
from calipers.inputs import check_count, check_fraction, check_vector, exact_level

_TIED = (
    "ease values are tied at an edge, so coverage per bin is close to 1 - alpha, not guaranteed; "
    "split= sets rows aside for the edges and guarantees it"
)


class DifficultyBins(BaseEstimator):
    """Group rows by how easily a model's answer moves: the grouping of O-LAC, O-SAPS, O-CPA and O-PAC.

    Give it to ``ConformalClassifier(model, groups=DifficultyBins(n_bins=20))``: each bin then has its own
    threshold, so easy rows no longer pay for hard ones.

    Parameters
    ----------
    n_bins : int
        Bins asked for; 50 rows or more in each are a good start.
    transform, scale, n_transforms, similarity, relative, categorical, image_shape, unit, batch_size, progress
        As in `ease`.
    split : float, optional
        Share of the calibration rows that only place the edges; coverage then holds in every bin, with ties
        too. None: every edge is the value of one calibration row, and only these rows are left out of the
        thresholds; coverage holds in every bin unless ease values are tied at an edge.
    alpha : float, Fraction or Decimal
        Smallest level the bins must serve. Bins with too few rows for a finite threshold at that
        level are merged with their neighbour, with a warning and a note.
    min_rows : int, optional
        Rows every bin must have instead, for other thresholds (PAC: see `smallest_pac_size`).
    random_state : int, Generator or None
        Source of the transformations and of the split.

    Attributes
    ----------
    n_bins_ : int
        Bins there are.
    edges_ : array (n_bins_ - 1,)
        Bin b holds edges_[b-1] < ease <= edges_[b]; 0 is the hardest, ends are open.
    counts_ : array (n_bins_,)
        Rows of each bin among those that placed the edges.
    left_out_ : int array
        Calibration rows that take no part in any threshold: they placed an edge.
    guarantee_ : {"group-conditional", "approximate"}
        What the predictor built on these bins promises: coverage 1 - alpha in every bin, or, with ease values
        tied at an edge and no ``split``, coverage close to it without a proof.
    notes_ : tuple of str
        What was merged and why, and what the guarantee lacks.

    Notes
    -----
    The upper edge of bin b is the ease at position floor(bN/B) of the sorted calibration rows (eq. 2). A
    threshold cannot part equal values: they all go to the lower of their bins, and a bin that
    is left empty disappears. Transformations are drawn once in `fit` and kept, so `assign` is a fixed
    function of a row, and calibration and test rows are exchangeable.

    The row that sets an edge always lies in the lower bin, a test row in either, so this row is not
    exchangeable with the test rows of its bin: counted in its threshold, it costs up to 1 / (rows of the
    bin) of coverage. (Section 4.2 of the paper counts it.) Without it coverage holds in every bin: let a
    test row have rank T among itself and the N calibration rows. It falls between the calibration values at
    positions r < s exactly when r < T <= s, and then, given all values, it is equally likely to be each
    of the s - r rows at these ranks; the others are the s - r - 1 calibration rows between the edges.

    References
    ----------
    Jang and Lee (2025), Quantifying and improving adaptivity in conformal prediction through input
    transformations, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.difficulty import DifficultyBins
    >>> def model(X):
    ...     p = 1 / (1 + np.exp(-5 * X[:, 0]))
    ...     return np.column_stack([1 - p, p])
    >>> X = np.random.default_rng(0).uniform(-2, 2, (300, 1))
    >>> bins = DifficultyBins(n_bins=3, random_state=0).fit(X, model)
    >>> bins.assign(np.array([[0.0], [0.9], [2.0]])), bins.guarantee_
    (array([0, 1, 2]), 'group-conditional')
    """

    def __init__(
        self,
        *,
        n_bins: int,
        transform: Any = "gaussian",
        scale: float = 0.1,
        n_transforms: int = 10,
        similarity: Any = "cosine",
        relative: bool = False,
        categorical: Sequence[Any] | None = None,
        image_shape: tuple[int, ...] | None = None,
        unit: float | str = 1.0,
        split: float | None = None,
        alpha: Any = 0.1,
        min_rows: int | None = None,
        batch_size: int | None = None,
        progress: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.n_bins = n_bins
        self.transform = transform
        self.scale = scale
        self.n_transforms = n_transforms
        self.similarity = similarity
        self.relative = relative
        self.categorical = categorical
        self.image_shape = image_shape
        self.unit = unit
        self.split = split
        self.alpha = alpha
        self.min_rows = min_rows
        self.batch_size = batch_size
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, predict: Any) -> Self:
        """Draw the transformations and place the edges.

        Parameters
        ----------
        X : array, dataframe or tensor
            Calibration rows.
        predict : callable or estimator
            The model's ``predict_proba``, or ``predict`` for regression.

        Returns
        -------
        self
        """
        check_count(self.n_bins, name="n_bins")
        row_count(X)
        draws, order = spawn(self.random_state, 2)
        self._draw(X, predict, draws)
        values = self.ease(X)
        self.binning_rows_ = self._binning_rows(values.size, order)
        self._place_edges(values[self.binning_rows_], values.size)
        self._leave_out(values)
        return self

    def ease(self, X: Any) -> np.ndarray:
        """Ease of each row under the transformations drawn in `fit`."""
        check_is_fitted(self, "transforms_")
        return ease_under(
            self.transforms_,
            self.predict_,
            X,
            similarity=self.similarity,
            unit=self.unit_,
            batch_size=self.batch_size,
            progress=self.progress,
        )

    def assign(self, X: Any) -> np.ndarray:
        """The bin of each row, 0 the hardest.

        Parameters
        ----------
        X : array, dataframe or tensor
            Rows of the same kind as in `fit`.

        Returns
        -------
        int array (n,)
        """
        check_is_fitted(self, "edges_")
        return self.bin_of(self.ease(X))

    def assign_calibration(self, X: Any) -> np.ndarray:
        """As `assign` for the rows of `fit`; those of ``left_out_`` get -1.

        No test row ever has bin -1, so these rows take no part in any threshold.
        """
        bins = self.assign(X)
        bins[self.left_out_] = -1
        return bins

    def bin_of(self, ease: Any) -> np.ndarray:
        """The bin of ease values already at hand."""
        values = as_numpy(check_vector(ease, name="ease"))
        return np.asarray(np.searchsorted(self.edges_, values, side="left"), dtype=np.int64)

    def _draw(self, X: Any, predict: Any, rng: np.random.Generator) -> None:
        options = TransformOptions(self.scale, self.relative, self.categorical, self.image_shape)
        n_transforms = check_count(self.n_transforms, name="n_transforms")
        self.transforms_ = draw_transforms(self.transform, X, n_transforms, options, rng)
        self.predict_ = as_predict(predict)
        self.unit_ = self._fixed_unit(X)

    def _fixed_unit(self, X: Any) -> float | str:
        """The unit of exp_abs as a number, so that test rows are measured like calibration rows."""
        unit: float | str = self.unit
        return answer_spread(self.predict_(X)) if unit == "spread" else unit

    def _binning_rows(self, n: int, rng: np.random.Generator) -> np.ndarray:
        if self.split is None:
            return np.arange(n)
        share = check_fraction(self.split, name="split", meaning="It is the share of rows that place edges")
        count = round(share * n)
        if not 0 < count < n:
            raise InputError(f"split={share} of {n} rows leaves no row for one of the two parts.")
        return np.sort(rng.permutation(n)[:count])

    def _needed(self, n: int, binning: int) -> float:
        """Rows a bin must have among those that place edges, so that its threshold is finite."""
        if self.min_rows is not None:
            needed = check_count(self.min_rows, name="min_rows")
        else:
            level = exact_level(self.alpha)
            needed = max(1, -(-level.denominator // level.numerator) - 1)
        if self.split is None:
            return needed
        # The other part is a random share of each bin: three standard deviations of room.
        return float((needed + 3 * np.sqrt(needed)) * binning / (n - binning))

    def _place_edges(self, values: np.ndarray, n: int) -> None:
        ordered = np.sort(values)
        ends = uniform_mass_limits(values.size, self.n_bins)[1:]
        edges = np.unique(ordered[ends[ends > 0] - 1])
        counts = np.diff(np.searchsorted(ordered, edges, side="right"), prepend=0)
        notes = []
        if edges.size < self.n_bins:
            notes.append(f"{self.n_bins} bins asked for, {edges.size} can be told apart: equal ease values")
        needed = self._needed(n, values.size)
        kept, merged = merge_small(counts, needed, spare=1 if self.split is None else 0)
        if kept.size < edges.size:
            notes.append(
                f"{edges.size} bins merged into {kept.size}, because every bin needs "
                f"{int(np.ceil(needed))} rows for a finite threshold"
            )
            warn(f"{notes[-1]}. Use fewer bins, more rows or a larger alpha.", SmallSampleWarning)
        self.counts_ = merged
        self.edges_ = edges[kept][:-1]
        self.n_bins_ = int(kept.size)
        self.notes_ = tuple(notes)

    def _leave_out(self, values: np.ndarray) -> None:
        """Which rows set no threshold, and what that leaves of the guarantee."""
        self.guarantee_ = "group-conditional"
        if self.split is not None:
            self.left_out_ = self.binning_rows_
            return
        on_edge = np.flatnonzero(np.isin(values, self.edges_))
        if on_edge.size > self.edges_.size:
            self.guarantee_ = "approximate"
            self.notes_ = (*self.notes_, _TIED)
        edge_of = np.searchsorted(self.edges_, values[on_edge])
        # Rows tied with an edge stay: they are as likely as a test row of that value to be in the lower bin.
        single = np.bincount(edge_of, minlength=self.edges_.size) == 1
        self.left_out_ = on_edge[single[edge_of]]


def merge_small(counts: np.ndarray, needed: float, *, spare: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Which bins end a merged bin, and the merged counts: from the hardest on, until each has enough.

    Every bin but the last needs ``spare`` rows more: those that set its upper edge.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.difficulty.bins import merge_small
    >>> [a.tolist() for a in merge_small(np.array([5, 5, 9, 3]), 9)]
    [[1, 3], [10, 12]]
    >>> [a.tolist() for a in merge_small(np.array([9, 9, 9]), 9, spare=1)]
    [[1, 2], [18, 9]]
    """
    ends: list[int] = []
    sums: list[int] = []
    running = 0
    for b, count in enumerate(counts.tolist()):
        running += count
        if running >= needed + (spare if b < counts.size - 1 else 0):
            ends.append(b)
            sums.append(running)
            running = 0
    if not ends:
        return np.array([counts.size - 1]), np.array([running])
    if running:  # what is left joins the last bin
        sums[-1] += running
    ends[-1] = counts.size - 1
    return np.array(ends), np.array(sums)
