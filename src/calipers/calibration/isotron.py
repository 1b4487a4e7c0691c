"""Isotron and SLIsotron: learn a direction and a monotone link together."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from calipers.arrays import RandomState, generator
from calipers.calibration.isotonic import Blocks, fit_blocks, interpolated_values, pool_ties
from calipers.calibration.lipschitz import lipschitz_isotonic
from calipers.exceptions import InputError
from calipers.inputs import check_count, check_weights
from calipers.metrics.row_scores import event_brier_rows

VARIANTS = ("isotron", "slisotron")


class IsotronClassifier(ClassifierMixin, BaseEstimator):
    r"""P(y = 1 | x) = u(w . x) with a direction w and a non-decreasing link u, both learned.

    Each round fits u to the current scores by isotonic regression and then makes one perceptron-like step w
    += mean of (y - u(w . x)) x. The round with the smallest squared error on held-out rows is kept, and u
    is fitted once more, on all rows.

    Parameters
    ----------
    variant : {"isotron", "slisotron"}
        "isotron" [1]_: plain isotonic regression; the result has c_emp = 0 on the rows it was given.
        "slisotron" [2]_: u rises at most ``slope`` per unit of w . x. Its fit is exact here, and does not
        give c_emp = 0: only plain isotonic regression does.
    n_rounds : int
        Rounds.
    slope : float
        The largest slope of u ("slisotron" only), in units of the scaled features.
    validation_fraction : float
        Share of the rows held out to choose the round; 0 chooses it by the error on the training rows.
    random_state : int, Generator or None
        Source of that split.

    Attributes
    ----------
    coef_ : array (d,)
        Direction for the features as given.
    classes_ : array (2,)
        The labels; the second is the positive one.
    link_ : Blocks or Ramp
        The learned u over the scores X @ coef_.
    n_rounds_ : int
        The chosen round, from 0 (the first step away from w = 0).
    validation_errors_ : array
        Squared error of each round.

    Notes
    -----
    Features are centred and scaled to unit spread, then to a mean squared length of 1. The paper says that
    the algorithm of [2]_ searches for the best w in every round; it makes one update. The guarantees of
    [2]_ assume that E[y | x] is u(w . x) for some 1-Lipschitz u and rows of length at most 1. Started at w
    = 0 the iterates of "isotron" do not depend on the step size, because isotonic regression sees only an
    order. A round costs a matrix product and a sort; the limited-slope fit adds half a microsecond a row.

    References
    ----------
    .. [1] Kalai and Sastry (2009), The isotron algorithm. COLT.
    .. [2] Kakade, Kanade, Shamir and Kalai (2011), Efficient learning of generalized linear and single index
       models with isotonic regression. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.calibration import IsotronClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = rng.random(2000) < 0.1 + 0.8 * (X @ [3, 4] > 0)
    >>> model = IsotronClassifier(random_state=0).fit(X, y)
    >>> (model.coef_ / np.linalg.norm(model.coef_)).round(1)
    array([0.6, 0.8])
    """

    def __init__(
        self,
        *,
        variant: str = "isotron",
        n_rounds: int = 100,
        slope: float = 1.0,
        validation_fraction: float = 0.1,
        random_state: RandomState = None,
    ) -> None:
        self.variant = variant
        self.n_rounds = n_rounds
        self.slope = slope
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn direction and link.

        Parameters
        ----------
        X : array (n, d)
            Features.
        y : array (n,)
            Two labels.
        sample_weight : array (n,), optional
            Repetitions of the rows, or importance weights; their scale does not matter, and a row of weight 0
            is not there. Held-out rows are drawn without regard to weights.

        Returns
        -------
        IsotronClassifier
            Itself.
        """
        if self.variant not in VARIANTS:
            raise InputError(f'variant must be "isotron" or "slisotron", got {self.variant!r}.')
        if not 0 <= self.validation_fraction < 1:
            raise InputError(f"validation_fraction must lie in [0, 1), got {self.validation_fraction!r}.")
        n_rounds = check_count(self.n_rounds, name="n_rounds")
        X, y = validate_data(self, X, y, dtype=np.float64)
        X, y, weights = drop_weightless(X, y, sample_weight)
        self.classes_, positive = check_two_classes(y)
        scale = _scaling(X, weights)
        Z = (X - scale.centre) / scale.spread
        kept, held = self._split(len(positive))
        rows = _Rows(Z, positive, np.ones(len(positive)) if weights is None else weights)
        directions, errors = self._rounds(rows.take(kept), rows.take(held), n_rounds)
        self.n_rounds_ = int(np.argmin(errors))
        self.validation_errors_ = errors
        self.coef_ = directions[self.n_rounds_] / scale.spread
        self.link_ = self._link(X @ self.coef_, positive, weights)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, 2): probability of each class."""
        check_is_fitted(self)
        scores = validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_
        positive = link_values(self.link_, scores)
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the larger probability; the first one when both are one half."""
        columns = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[columns])

    def _split(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        order = generator(self.random_state).permutation(n)
        n_held = int(self.validation_fraction * n)
        # Without rows to spare the training rows choose the round.
        return (order[n_held:], order[:n_held]) if n_held else (order, order)

    def _rounds(self, train: _Rows, held: _Rows, n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
        X, y = train.features, train.positive
        share = train.weights / train.weights.sum()
        # The round from w = 0, where the best link is a constant.
        w = X.T @ (share * (y - share @ y))
        directions, errors = np.empty((n_rounds, X.shape[1])), np.empty(n_rounds)
        for t in range(n_rounds):
            scores = X @ w
            link = self._link(scores, y, train.weights)
            directions[t] = w
            rows = event_brier_rows(link_values(link, held.features @ w), held.positive)
            errors[t] = float(np.average(rows, weights=held.weights))
            w = w + X.T @ (share * (y - link_values(link, scores)))
        return directions, errors

    def _link(self, scores: np.ndarray, positive: np.ndarray, weights: np.ndarray | None) -> Blocks | Ramp:
        levels = pool_ties(scores, positive.astype(bool), weights)
        if self.variant == "isotron":
            return fit_blocks(levels)
        values = lipschitz_isotonic(*levels, self.slope)
        return Ramp(levels.scores, np.clip(values, 0.0, 1.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class _Rows(NamedTuple):
    features: np.ndarray
    positive: np.ndarray
    weights: np.ndarray

    def take(self, index: np.ndarray) -> _Rows:
        return _Rows(*(column[index] for column in self))


class Ramp(NamedTuple):
    """A link known at increasing scores, straight between them."""

    scores: np.ndarray
    values: np.ndarray


def link_values(link: Blocks | Ramp, scores: np.ndarray) -> np.ndarray:
    """The link at any scores, constant beyond both ends."""
    if isinstance(link, Ramp):
        return np.asarray(np.interp(scores, link.scores, link.values))
    return np.asarray(interpolated_values(link, scores))


class _Scaling(NamedTuple):
    centre: np.ndarray
    spread: np.ndarray


def _scaling(X: np.ndarray, weights: np.ndarray | None) -> _Scaling:
    centre = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights))
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(X).max(axis=0))
    # Unit spread each, and a mean squared length of 1 together.
    return _Scaling(centre, np.where(varies, spread, np.inf) * np.sqrt(max(1, varies.sum())))


def drop_weightless(X: Any, y: np.ndarray, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """The rows with a positive weight, and their weights (None: every row once)."""
    weights = check_weights(sample_weight, len(y))
    if weights is None or weights.all():
        return X, y, weights
    kept = np.flatnonzero(weights)
    return _safe_indexing(X, kept), y[kept], weights[kept]


def check_two_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two sorted labels, and 0.0 or 1.0 per row."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size > 2:
        # The first sentence is the one scikit-learn's own checks look for.
        raise InputError(
            "Only binary classification is supported. y must hold two classes, "
            f"got {classes.size}. Wrap the model in OneVsRestClassifier."
        )
    if classes.size < 2:
        raise InputError(f"y must hold two classes, got one class: {classes.tolist()[0]!r}.")
    return classes, codes.reshape(-1).astype(np.float64)
