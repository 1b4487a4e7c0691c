"""Full conformal p-values from nearest neighbours: exact, all K in one pass, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, spawn
from calipers.conformal.neighbour_lists import Blocks
from calipers.conformal.neighbour_measures import (
    Draws,
    Measure,
    PredictabilityMeasure,
    ProbabilityMeasure,
    RatioMeasure,
    Step,
)
from calipers.exceptions import InputError
from calipers.inputs import check_count, check_groups, check_same_length
from calipers.inputs.option_checks import check_choice, check_flag
from calipers.inputs.row_checks import numeric, require_finite

MEASURES = ("ratio", "probability", "predictability")

# Pairs of a new and a training object, times labels, that one batch may touch at worst.
_BATCH_CELLS = 2**23


@dataclass(frozen=True, slots=True, eq=False)
class RankCounts:
    """How many training scores lie below, and how many equal, the score of each new object.

    Parameters
    ----------
    below, equal : int ndarray of shape (m, C)
        The new object itself is not counted.
    total : int ndarray of shape (C,)
        Training objects that were compared: all, or those of the label.
    scores : ndarray of shape (m, C)
        Conformity scores of the new objects.
    """

    below: np.ndarray
    equal: np.ndarray
    total: np.ndarray
    scores: np.ndarray

    def p_values(self, tau: np.ndarray | float = 1.0) -> np.ndarray:
        """(below + tau (equal + 1)) / (total + 1), eq. 2 and 42; tau is one number or (m, 1)."""
        return np.asarray((self.below + tau * (self.equal + 1)) / (self.total + 1))


class Bag:
    """A training bag that p-values of new objects are read from.

    Parameters
    ----------
    blocks : callable
        Gives the row blocks of the training distances, as often as it is called.
    codes : int ndarray of shape (n,)
        Labels, 0 to n_classes - 1.
    n_classes : int
        Number of labels.
    measure : str
        One of ``MEASURES``.
    wanted : sequence of int
        The numbers of neighbours.
    label_conditional : bool
        Whether scores are compared within the postulated label only.
    generator : numpy Generator
        Source of the training objects' draws.
    """

    def __init__(
        self,
        blocks: Callable[[], Blocks],
        codes: np.ndarray,
        n_classes: int,
        *,
        measure: str,
        wanted: Sequence[int],
        label_conditional: bool,
        generator: np.random.Generator,
    ) -> None:
        label_conditional = check_flag(label_conditional, name="label_conditional")
        self.codes, self.n_classes, self.label_conditional = codes, n_classes, label_conditional
        self.wanted = sorted(set(wanted))
        self.measure = learn_measure(measure, blocks, codes, n_classes, self.wanted[-1], generator)
        scores = enumerate(self.measure.training_scores(), start=1)
        self.scores = {k: values.copy() for k, values in scores if k in self.wanted}
        self.sorted = {k: self._categories(values) for k, values in self.scores.items()}
        sizes = np.bincount(codes, minlength=n_classes)
        self.total = sizes if label_conditional else np.full(n_classes, len(codes))

    def _categories(self, values: np.ndarray) -> list[np.ndarray]:
        if not self.label_conditional:
            return [np.sort(values)]
        return [np.sort(values[self.codes == label]) for label in range(self.n_classes)]

    def batch_size(self) -> int:
        """How many new objects fit in one batch."""
        return max(1, _BATCH_CELLS // (len(self.codes) * self.n_classes))

    def ranks(self, distances: np.ndarray, draws: Draws) -> Iterator[tuple[int, RankCounts]]:
        """Counts of one batch of new objects for every K, in increasing order."""
        steps = self.measure.walk(distances, draws, self.wanted)
        for k, step in zip(self.wanted, steps, strict=True):
            below, equal = self._counts_before(k, step.new)
            more_below, more_equal = self._changes(k, step)
            yield k, RankCounts(below + more_below, equal + more_equal, self.total, step.new)

    def _counts_before(self, k: int, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts as if no training score had changed: two binary searches per score."""
        if not self.label_conditional:
            ordered = self.sorted[k][0]
            below = np.searchsorted(ordered, new, side="left")
            return below, np.searchsorted(ordered, new, side="right") - below
        columns = zip(self.sorted[k], new.T, strict=True)
        ends = [(np.searchsorted(o, s, "left"), np.searchsorted(o, s, "right")) for o, s in columns]
        below = np.column_stack([left for left, _ in ends])
        return below, np.column_stack([right for _, right in ends]) - below

    def _changes(self, k: int, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """What the changed training scores add to the counts."""
        target = step.new[step.objects]
        before = self.scores[k][step.rows, None]
        below = (step.updated < target).astype(np.int8) - (before < target)
        equal = (step.updated == target).astype(np.int8) - (before == target)
        if self.label_conditional:
            own = self.codes[step.rows, None] == np.arange(self.n_classes)
            below, equal = below * own, equal * own
        ends = np.searchsorted(step.objects, np.arange(len(step.new) + 1))
        return sum_runs(below, ends), sum_runs(equal, ends)


def sum_runs(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Sums of consecutive rows, from ``ends[i]`` up to ``ends[i + 1]``; an empty run sums to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.transduction import sum_runs
    >>> sum_runs(np.array([[1], [2], [4]]), np.array([0, 1, 1, 3])).ravel().tolist()
    [1, 0, 6]
    """
    total = np.zeros((len(values) + 1, values.shape[1]), dtype=np.int64)
    np.cumsum(values, axis=0, out=total[1:], dtype=np.int64)
    return np.asarray(total[ends[1:]] - total[ends[:-1]])


def learn_measure(
    name: str, blocks: Callable[[], Blocks], codes: np.ndarray, n_classes: int, k: int, generator: Any
) -> Measure:
    """The measure of that name, with the lists of the training bag."""
    if name == "ratio":
        return RatioMeasure(blocks(), codes, n_classes, k)
    if name == "probability":
        return ProbabilityMeasure(blocks(), codes, n_classes, k)
    if name == "predictability":
        return PredictabilityMeasure(blocks(), codes, n_classes, k, Draws.of(len(codes), generator))
    raise InputError(f"measure must be one of {', '.join(MEASURES)}, got {name!r}.")


def row_blocks(n_rows: int, n_columns: int, distances: Callable[[slice], np.ndarray]) -> Blocks:
    """Blocks of rows of a distance matrix, made one after another, each of some ten megabytes."""
    size = max(1, _BATCH_CELLS // max(1, 4 * n_columns))
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        yield rows, distances(rows)


def transductive_p_values(
    train_distances: Any,
    y: Any,
    test_distances: Any,
    *,
    measure: str = "ratio",
    n_neighbors: int | Sequence[int] = 1,
    label_conditional: bool = False,
    smoothed: bool = False,
    random_state: RandomState = None,
) -> np.ndarray:
    """Full conformal p-values of every label from distances, for one or many numbers of neighbours.

    The p-value of a label is the share of objects in the bag (training objects and the new one with that
    label) that conform no better than the new one. Under exchangeability the true label's p-value is at
    most u with probability at most u. A good predictor gives the wrong labels small ones.

    Parameters
    ----------
    train_distances : array of shape (n, n)
        Distances within the training set; the diagonal is not read.
    y : array of shape (n,)
        Training labels.
    test_distances : array of shape (m, n)
        Distances from new to training objects.
    measure : {"ratio", "probability", "predictability"}
        The paper's KNN-ratio, KNN-CP and KNN-SP; see `TransductiveKNNClassifier`.
    n_neighbors : int or sequence of int
        K; a sequence is answered in one pass, at little more than the cost of its largest.
    label_conditional : bool
        Compare with training objects of the postulated label only, eq. 42.
    smoothed : bool
        Break ties by one uniform tau per new object, eq. 2; False means tau = 1.
    random_state : int, Generator or None
        Source of tau and, for "predictability", of the random choices.

    Returns
    -------
    ndarray of shape (m, C), or (m, C, L) for a sequence of length L
        Columns in sorted order of the labels.

    Raises
    ------
    InputError
        When shapes do not fit, or a distance is negative or not finite.

    Notes
    -----
    Adding the new object changes only the neighbour lists it enters. Counts over unchanged scores are
    two binary searches; the changed ones, about K per side, are corrected one by one. Learning takes
    O(n²), a new object O(n + C K log K), where refitting for every label would take O(C n²).

    References
    ----------
    V. Vovk, I. Nouretdinov, V. Fedorova, I. Petej, A. Gammerman. Criteria of efficiency for conformal
    prediction. On-line Compression Modelling Project, working paper 11, 2017. Section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal import transductive_p_values
    >>> x, y = np.array([0.0, 1.0, 3.0, 10.0, 12.0]), np.array(["a", "a", "a", "b", "b"])
    >>> inside, new = abs(x[:, None] - x), abs(np.array([[2.5]]) - x)
    >>> transductive_p_values(inside, y, new, n_neighbors=[1, 2]).shape
    (1, 2, 2)
    >>> transductive_p_values(inside, y, new).round(3).tolist()
    [[1.0, 0.167]]
    """
    check_choice(measure, MEASURES, name="measure")
    labels, codes = check_groups(y, check_same_length(y=y), name="y")
    inside = check_distances(train_distances, (len(codes), len(codes)), name="train_distances")
    new = check_distances(test_distances, (None, len(codes)), name="test_distances")
    several = isinstance(n_neighbors, Iterable) and np.ndim(n_neighbors) > 0
    counts = list(n_neighbors) if several else [n_neighbors]  # type: ignore[arg-type]
    wanted = [check_count(k, name="n_neighbors") for k in counts]
    if not wanted:
        raise InputError("n_neighbors must hold at least one number, got an empty list.")
    training, testing = spawn(random_state, 2)
    n = len(codes)
    bag = Bag(
        lambda: row_blocks(n, n, lambda rows: inside[rows]),
        codes,
        len(labels),
        measure=measure,
        wanted=wanted,
        label_conditional=label_conditional,
        generator=training,
    )
    draws = NewDraws.of(len(new), testing, smoothed=smoothed)
    result = np.empty((len(new), len(labels), len(wanted)))
    for rows in batches(len(new), bag.batch_size()):
        for k, ranks in bag.ranks(new[rows], draws.objects.rows(rows)):
            p_values = ranks.p_values(draws.tau[rows, None])
            for place in (i for i, asked in enumerate(wanted) if asked == k):
                result[rows, :, place] = p_values
    return result if several else result[:, :, 0]


@dataclass(frozen=True, slots=True, eq=False)
class NewDraws:
    """The random numbers of new objects: tau for the p-value, and those of `Draws`."""

    tau: np.ndarray
    objects: Draws

    @classmethod
    def of(cls, m: int, generator: np.random.Generator, *, smoothed: bool) -> NewDraws:
        """Three draws per object, row by row; without smoothing tau is 1."""
        numbers = generator.random((m, 3))
        tau = numbers[:, 0].copy() if check_flag(smoothed, name="smoothed") else np.ones(m)
        return cls(tau, Draws(numbers[:, 1].copy(), numbers[:, 2].copy()))


def batches(n: int, size: int) -> Iterator[slice]:
    """Consecutive ranges of at most ``size`` rows."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def check_distances(values: Any, shape: tuple[int | None, int], *, name: str) -> np.ndarray:
    """A matrix of that shape (None: any number of rows) of finite, non-negative numbers."""
    array = np.asarray(numeric(as_numpy(values, name=name), name))
    if array.ndim != 2 or array.shape[1] != shape[1] or shape[0] not in {None, array.shape[0]}:
        wanted = f"({'m' if shape[0] is None else shape[0]}, {shape[1]})"
        raise InputError(f"{name} must have shape {wanted}, one column per training row, got {array.shape}.")
    require_finite(array, name=name)
    if array.size and array.min() < 0:
        row, column = (int(i) for i in np.argwhere(array < 0)[0])
        # scikit-learn's own checks look for the first four words.
        raise InputError(
            f"Negative values in data passed as {name}: got {array[row, column]} at row {row}, "
            f"column {column}. Distances must not be negative."
        )
    return array
