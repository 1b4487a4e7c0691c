"""Full conformal classification with nearest neighbours, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import floor
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from calipers.arrays import RandomState, spawn
from calipers.conformal.distances import Distances, take_rows
from calipers.conformal.label_levels import levels_by_label, one_level_per_label
from calipers.conformal.transduction import (
    MEASURES,
    Bag,
    NewDraws,
    RankCounts,
    batches,
    check_distances,
    row_blocks,
)
from calipers.exceptions import InputError
from calipers.inputs import check_alphas, check_count, exact_level, require_finite


class TransductiveKNNClassifier(ClassifierMixin, BaseEstimator):
    """Full (transductive) conformal predictor that ranks objects by their nearest neighbours.

    No row is set aside for calibration: the new object is added to the training set under each label
    in turn and its conformity is ranked among all. The true label is kept with probability at least
    ``1 - alpha`` whatever the data, as long as they are exchangeable; small sets are what to hope for.

    Parameters
    ----------
    measure : {"ratio", "probability", "predictability"}
        How usual an object is in its bag: KNN-ratio, KNN-CP or KNN-SP of the paper, see Notes.
    n_neighbors : int
        K. "ratio" does best with few; the votes of the two others need more.
    metric : str or callable
        "euclidean", "tangent" (images, see `tangent_distances`), "precomputed", or any metric of
        scikit-learn's ``pairwise_distances``; it must be symmetric. Precomputed distances are (n, n) in `fit`
        and (m, n) afterwards.
    metric_params : dict, optional
        Keyword arguments of the metric; for "tangent" ``image_shape=(h, w)`` and ``sides="one"``.
    label_conditional : bool
        Rank among training objects of the postulated label only (eq. 42): valid for every label, not
        just on average over them.
    smoothed : bool
        Break ties between scores by one uniform number per object (eq. 2): exactly uniform p-values,
        but random ones. False (default) counts ties fully: conservative and repeatable.
    random_state : int, Generator or None
        Source of the smoothing numbers and of the random choices of "predictability". An integer makes
        every call repeatable.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Labels in sorted order; columns of the p-values.
    n_features_in_ : int
        Features (training rows when precomputed).

    Notes
    -----
    Conformity of object i in the bag; K nearest means K nearest others:

    - ratio: sum of distances to its K nearest of other labels over the sum to its K nearest of its own.
      When a side has fewer than K objects, means replace the sums; an empty side is infinitely far away;
      0/0 is 1. These rules look at the bag only, not at who is new, so p-values stay valid.
    - probability: N/K with N the number of its K nearest that carry its label. Of several objects at
      the K-th distance those with its label are taken first, as in the paper; which of them does not
      change N.
    - predictability: f = the largest share of votes among its K nearest, with a minus sign when the
      winner is not its label. Objects at equal distance are taken in random order, a winner among
      equal votes is drawn at random; each object has its own random numbers, so p-values stay valid.

    Sets keep a label when p > alpha, compared in whole numbers; smoothed sets follow the smoothed
    p-values. `predict` returns the label with the largest p-value, at ties the one with the largest
    conformity. Fitting costs O(n²) distances, a new object O(n); the answer is that of brute force.

    References
    ----------
    V. Vovk, I. Nouretdinov, V. Fedorova, I. Petej, A. Gammerman. Criteria of efficiency for conformal
    prediction. On-line Compression Modelling Project, working paper 11, 2017. Section 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calipers.conformal import TransductiveKNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TransductiveKNNClassifier(n_neighbors=3).fit(X[::2], y[::2])
    >>> model.predict_p(X[[1]]).round(3).tolist()
    [[0.974, 0.013, 0.013]]
    >>> sets = model.predict_set(X[1::2], alpha=0.1)
    >>> round(float(sets[range(75), y[1::2]].mean()), 3), float(sets.sum(axis=1).max())
    (0.96, 1.0)
    """

    def __init__(
        self,
        *,
        measure: str = "ratio",
        n_neighbors: int = 1,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        label_conditional: bool = False,
        smoothed: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.measure = measure
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.label_conditional = label_conditional
        self.smoothed = smoothed
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.positive_only = self.metric == "precomputed"
        tags.non_deterministic = self.smoothed or self.measure == "predictability"
        return tags

    def fit(self, X: Any, y: Any) -> TransductiveKNNClassifier:
        """Learn the neighbour lists of the training set.

        Parameters
        ----------
        X : array of shape (n, d), or (n, n) of precomputed distances
            Training objects.
        y : array of shape (n,)
            Their labels.

        Returns
        -------
        TransductiveKNNClassifier
            Itself.

        Raises
        ------
        InputError
            When an option is unknown, or precomputed distances are not square and symmetric.
        """
        if self.measure not in MEASURES:
            raise InputError(f"measure must be one of {', '.join(MEASURES)}, got {self.measure!r}.")
        wanted = check_count(self.n_neighbors, name="n_neighbors")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        X = require_finite(X, name="X")  # also numbers whose squares overflow
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        block = self._training_distances(X)
        self._bag = Bag(
            lambda: row_blocks(len(X), len(X), block),
            codes.reshape(-1),
            len(self.classes_),
            measure=self.measure,
            wanted=[wanted],
            label_conditional=self.label_conditional,
            generator=spawn(self.random_state, 2)[0],
        )
        return self

    def _training_distances(self, X: np.ndarray) -> Callable[[slice], np.ndarray]:
        """How to get a block of rows of the training distances; keeps what new objects will need."""
        if self.metric == "precomputed":
            check_symmetric(check_distances(X, (len(X), len(X)), name="X"))
            self._distances, self._training = None, None
            return X.__getitem__
        metric = Distances(self.metric, self.metric_params)
        training = metric.prepare(X)
        self._distances, self._training = metric, training
        return lambda rows: metric.between(take_rows(training, rows), training)

    def predict(self, X: Any) -> np.ndarray:
        """The label with the largest p-value; at ties the one with the largest conformity, then the first.

        Parameters
        ----------
        X : array of shape (m, d), or (m, n) of precomputed distances
            New objects.

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        chosen = []
        for ranks, _ in self._ranks(X):
            p_values = ranks.p_values()
            best = p_values == p_values.max(axis=1, keepdims=True)
            chosen.append(np.argmax(np.where(best, ranks.scores, -np.inf), axis=1))
        return np.asarray(self.classes_[np.concatenate(chosen)])

    def predict_p(self, X: Any) -> np.ndarray:
        """The p-value of every label for every new object.

        Parameters
        ----------
        X : array of shape (m, d), or (m, n) of precomputed distances
            New objects; each is ranked on its own, the others do not matter.

        Returns
        -------
        ndarray of shape (m, C)
            Columns in the order of ``classes_``.
        """
        return np.concatenate([ranks.p_values(tau) for ranks, tau in self._ranks(X)])

    def predict_set(self, X: Any, alpha: Any = 0.1, *, label_alpha: Any = None) -> np.ndarray:
        """The labels whose p-value exceeds alpha.

        Parameters
        ----------
        X : array of shape (m, d), or (m, n) of precomputed distances
            New objects.
        alpha : float, Fraction, Decimal, or a sequence of them
            Allowed miscoverage.
        label_alpha : sequence of C levels, or mapping of label to level, optional
            A level for every label in the order of ``classes_``, instead of ``alpha``; with
            ``label_conditional=True`` the promise then holds for every label at its own level.

        Returns
        -------
        bool ndarray of shape (m, C), or (m, C, L) for L levels
            True where the label is kept. Sets can be empty.
        """
        check_is_fitted(self)
        levels, columns = levels_by_label(alpha, label_alpha, self.classes_)
        kept = [
            np.stack([keep_labels(ranks, tau, level) for level in levels], axis=-1)
            for ranks, tau in self._ranks(X)
        ]
        return np.asarray(one_level_per_label(np.concatenate(kept), columns))

    def predict_labels(self, X: Any, alpha: Any = 0.1, *, label_alpha: Any = None) -> list[list[Any]]:
        """`predict_set` at one level as a list of labels per object.

        Parameters
        ----------
        X : array of shape (m, d), or (m, n) of precomputed distances
            New objects.
        alpha : float, Fraction or Decimal
            Allowed miscoverage, one level.
        label_alpha : sequence or mapping, optional
            A level for every label, as in `predict_set`.

        Returns
        -------
        list of lists of labels
            In the order of ``classes_``.
        """
        if not check_alphas(alpha)[1]:
            raise InputError("predict_labels takes one alpha; call it once per level, or use predict_set.")
        return [self.classes_[kept].tolist() for kept in self.predict_set(X, alpha, label_alpha=label_alpha)]

    def predict_confidence(self, X: Any) -> np.ndarray:
        """Confidence (1 minus the second largest p-value) and credibility (the largest) of every object.

        High confidence means that all labels but one can be excluded; low credibility means that the
        object is unlike the training objects whatever its label.

        Parameters
        ----------
        X : array of shape (m, d), or (m, n) of precomputed distances
            New objects.

        Returns
        -------
        ndarray of shape (m, 2)
            Confidence is 1 when there is only one label.
        """
        ordered = np.sort(self.predict_p(X), axis=1)
        second = ordered[:, -2] if ordered.shape[1] > 1 else np.zeros(len(ordered))
        return np.column_stack([1 - second, ordered[:, -1]])

    def _ranks(self, X: Any) -> Iterator[tuple[RankCounts, np.ndarray]]:
        """Counts and tau (m, 1) of every batch of new objects."""
        check_is_fitted(self)
        X = require_finite(validate_data(self, X, dtype=[np.float64, np.float32], reset=False), name="X")
        if self.metric == "precomputed":
            check_distances(X, (None, self.n_features_in_), name="X")
        draws = NewDraws.of(len(X), spawn(self.random_state, 2)[1], smoothed=self.smoothed)
        for rows in batches(len(X), self._bag.batch_size()):
            distances = X[rows]
            if self._distances is not None:
                distances = self._distances.between(self._distances.prepare(distances), self._training)
            for _, ranks in self._bag.ranks(distances, draws.objects.rows(rows)):
                yield ranks, draws.tau[rows, None]


def keep_labels(ranks: RankCounts, tau: np.ndarray, alpha: Any) -> np.ndarray:
    """Whether p > alpha, in whole numbers where p is a ratio of them.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.neighbours import keep_labels
    >>> from calipers.conformal.transduction import RankCounts
    >>> one = RankCounts(np.array([[0, 1]]), np.array([[0, 0]]), np.array([9, 9]), np.zeros((1, 2)))
    >>> keep_labels(one, np.ones((1, 1)), 0.1).tolist()
    [[False, True]]
    """
    level = exact_level(alpha)
    if (tau == 1).all():
        # count / (total + 1) > alpha  <=>  count > floor(alpha (total + 1)), the floor of an exact fraction.
        limits = np.array([floor(level * (int(total) + 1)) for total in ranks.total])
        return np.asarray(ranks.below + ranks.equal + 1 > limits)
    return np.asarray(ranks.p_values(tau) > float(level))


def check_symmetric(distances: np.ndarray) -> None:
    """Refuse a matrix whose two halves differ by more than rounding."""
    n = len(distances)
    for rows in batches(n, max(1, 2**21 // n)):
        mine, theirs = distances[rows], distances[:, rows].T
        wrong = ~np.isclose(mine, theirs, rtol=1e-5, atol=1e-8)
        wrong[np.arange(len(mine)), np.arange(rows.start, rows.stop)] = False
        if wrong.any():
            i, j = (int(index) for index in np.argwhere(wrong)[0])
            raise InputError(
                f"precomputed distances must be symmetric, got {mine[i, j]} at row {rows.start + i}, "
                f"column {j} and {theirs[i, j]} the other way round."
            )
