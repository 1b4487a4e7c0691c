"""New inputs beside reference inputs: is there a shift, and which weights undo it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from calipers.inputs import Features, align_features
from calipers.performance.indicator_table import indicator_table
from calipers.performance.label_losses import class_log_odds
from calipers.performance.reference_support import TABLE_NAMES
from calipers.performance.shift import default_classifier, estimate_shift_weights

# Level of the shift test, and fewest new rows from which weights are learned.
SHIFT_LEVEL = 0.05
_FEWEST_ROWS = 10
# Standardised values beyond this are cut before they are squared, so that no single row decides.
CUT = 5.0
# Ratios are cut and scaled to mean 1 until both hold, at most so often.
_MOST_CUTS = 100


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """Whether a classifier tells new rows from reference rows.

    Parameters
    ----------
    p_value : float
        One-sided: large areas under the curve count.
    area : float
        Probability that a new row gets a higher score than a reference row; 0.5 without a shift.
    """

    p_value: float
    area: float


class CovariateShift:
    """Reference and new rows in one space, and what can be said about their difference.

    Parameters
    ----------
    reference, new : Features
        Tables with the same columns.
    classifier : scikit-learn classifier with predict_proba, or None
        Tells new rows from reference rows. None: logistic regression on the features and their squares.
    generator : numpy Generator
        Splits and resampling.
    """

    def __init__(
        self, reference: Features, new: Features, *, classifier: Any, generator: np.random.Generator
    ) -> None:
        self.features = align_features(reference, new, names=TABLE_NAMES)
        self.classifier = default_classifier() if classifier is None else classifier
        self.generator = generator
        n = len(reference)
        both = Features(
            np.concatenate([table.values for table in self.features]),
            self.features[0].names,
            self.features[0].categories,
        )
        table = indicator_table(both)
        # Where the two laws are normal with different spreads, the logarithm of their ratio is quadratic.
        table = (table - table[:n].mean(axis=0)) / np.where((s := table[:n].std(axis=0)) > 0, s, 1.0)
        numbers = [j for j in range(table.shape[1]) if np.unique(table[:, j]).size > 2]
        table = np.clip(table, -CUT, CUT)
        self.n_reference = n
        self.table = np.concatenate([table, table[:, numbers] ** 2], axis=1)
        self._redrawn: np.ndarray | None = None
        self.is_new = np.repeat([0, 1], [n, len(table) - n])

    def test(self) -> ShiftTest:
        """The classifier two-sample test: each half of the rows is ranked by a model of the other half.

        The p-value is twice the smaller one and the area the larger one: where both halves lean the same way
        by chance, both rank the other well, so that the two tests are far from independent.
        """
        halves = _halves(self.is_new, self.generator)
        p, area = [], []
        for train in (halves, ~halves):
            if min(np.bincount(self.is_new[train], minlength=2)) < 2:
                return ShiftTest(1.0, 0.5)
            scores = self._fitted(np.flatnonzero(train)).predict_proba(self.table[~train])[:, 1]
            new, old = scores[self.is_new[~train] == 1], scores[self.is_new[~train] == 0]
            result = stats.mannwhitneyu(new, old, alternative="greater", method="asymptotic")
            p.append(max(float(result.pvalue), 1e-300))
            area.append(result.statistic / (new.size * old.size))
        return ShiftTest(min(1.0, 2.0 * min(p)), float(max(area)))

    def weights(self, kept: np.ndarray) -> np.ndarray:
        """Ratio of the kept new rows to the reference at each reference row, with mean 1."""
        old = self.table[: self.n_reference]
        weights, _ = estimate_shift_weights(
            old, self.table[self.n_reference :][kept], classifier=self.classifier, random_state=self.generator
        )
        return truncated(weights)

    def redrawn_weights(self, kept: np.ndarray, draws: int) -> np.ndarray:
        """The weights from resampled rows (draws, n): how well the ratio is known; drawn once."""
        if self._redrawn is None:
            rows = np.concatenate([np.arange(self.n_reference), self.n_reference + np.flatnonzero(kept)])
            parts = rows[: self.n_reference], rows[self.n_reference :]
            self._redrawn = np.stack([self._redrawn_once(parts) for _ in range(draws)])
        return self._redrawn

    def _redrawn_once(self, parts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        drawn = np.concatenate([self.generator.choice(part, part.size) for part in parts])
        table = self._fitted(drawn).predict_proba(self.table[: self.n_reference])
        return truncated(table[:, 1] / np.maximum(table[:, 0], np.finfo(float).eps))

    def _fitted(self, rows: np.ndarray) -> Any:
        from sklearn.base import clone

        return clone(self.classifier).fit(self.table[rows], self.is_new[rows])


def truncated(ratios: np.ndarray) -> np.ndarray:
    """Ratios with mean 1, none above the root of their number: a single row must not decide.

    The cut grows with the rows, so that its bias vanishes with them, and bounds the variance of a mean.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.covariate_shift import truncated
    >>> truncated(np.array([1.0, 1.0, 1.0, 997.0])).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """
    highest = np.sqrt(ratios.size)
    ratios = ratios / ratios.mean()
    for _ in range(_MOST_CUTS):  # where fewer rows than the root have any weight there is no such cut
        if ratios.max() <= highest * (1.0 + 1e-9):
            break
        ratios = np.minimum(ratios, highest)
        ratios = ratios / ratios.mean()
    return np.asarray(ratios)


def _halves(labels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A random half of the rows of each label."""
    half = np.zeros(labels.size, dtype=bool)
    for label in (0, 1):
        rows = generator.permutation(np.flatnonzero(labels == label))
        half[rows[: rows.size // 2]] = True
    return half


@dataclass(frozen=True, slots=True)
class Comparison:
    """New rows beside the reference: the test, the weights, and which rows have their like.

    Parameters
    ----------
    test : ShiftTest
        Of the features, or of what the model states when there are none.
    found : bool
        Whether it says that there is a shift.
    weights : array (n,)
        Of the reference rows; 1 without a shift and without features.
    supported : bool array (N,)
        New rows with their like in the reference.
    shift : CovariateShift or None
        The features side by side, when there are some.
    """

    test: ShiftTest
    found: bool
    weights: np.ndarray
    supported: np.ndarray
    shift: CovariateShift | None

    def tables(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Features of the reference and of the supported new rows."""
        if self.shift is None:
            return None
        old, new = self.shift.features
        return old.values, new.values[self.supported]

    def designs(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The same as standardised numbers and squares, where a shift was found."""
        if self.shift is None or not self.found:
            return None
        n = self.shift.n_reference
        return self.shift.table[:n], self.shift.table[n:][self.supported]


def compare_rows(
    statements: tuple[np.ndarray, np.ndarray],
    features: tuple[Features, Features] | None,
    supported: np.ndarray,
    *,
    classifier: Any,
    generator: np.random.Generator,
) -> Comparison:
    """New rows beside the reference, by their features, or by what the model states without them.

    Without features nothing is weighted: a shift of the statements is told, and the expected loss follows it.
    """
    ones = np.ones(len(statements[0]))
    tables = (_as_features(statements[0]), _as_features(statements[1])) if features is None else features
    shift = CovariateShift(*tables, classifier=classifier, generator=generator)
    test = shift.test()
    found = test.p_value < SHIFT_LEVEL
    if features is None:
        return Comparison(test, found, ones, supported, None)
    weights = shift.weights(supported) if found and supported.sum() >= _FEWEST_ROWS else ones
    return Comparison(test, found, weights, supported, shift)


def _as_features(statements: np.ndarray) -> Features:
    """Stated probabilities as log-odds, or point predictions, as a table."""
    values = statements[:, None] if statements.ndim == 1 else class_log_odds(statements)
    return Features(values, tuple(f"s{j}" for j in range(values.shape[1])), (None,) * values.shape[1])
