"""The members of the coverage ensemble: each learns the logit of P(covered | x) in a way of its own.

A member is fitted by a function that returns two things: the logits of the training rows by models that have
not seen them, by which the ensemble weighs its members, and the fitted member itself, which predicts any
rows. A fitted member holds no training rows, so it is small enough to travel to other processes.

Averages of several models are steadier than the single models that did not see a training row, so a slope
fitted to the latter is too small for the former. ``stretch`` gives the difference back: it is the variance
over rows of the single models' predictions over that of their average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import logit

from calipers.inputs import Features
from calipers.metrics.conditional.logistic import logistic_gain
from calipers.metrics.conditional.quadrants import boost_quadrants

# HistGradientBoosting keeps categories in at most 255 bins; richer columns are read as ordered codes.
_MOST_CATEGORIES = 255
_MOST_STRETCH = 2.0
# Rows of a tree's subsample: this share of all rows, and never more than the limit.
_TREE_SHARE = 0.632
_MOST_TREE_ROWS = 4000
_SMALLEST_LEAF = 2
# Penalty on coefficients of standardised columns, in units of the curvature of the logarithmic loss.
_RIDGE = 3.0
_MOST_LINEAR_ROWS = 10_000
_MOST_SPREADS = 5.0
_MOST_INDICATORS = 32
_FEWEST_ROWS = 10


class Member(Protocol):
    """A fitted model of the logit of P(covered | x)."""

    def margins(self, values: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Logits minus ``base``, the logit of each row's target."""
        ...


Fitted = tuple[np.ndarray, Member]


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Checked training rows; ``base`` is the logit of the target, the weights have mean 1."""

    features: Features
    covered: np.ndarray
    base: np.ndarray
    weights: np.ndarray
    weighted: bool

    @property
    def rate(self) -> float:
        """Share of covered rows."""
        return float(np.average(self.covered, weights=self.weights))


def stretch(single: float, averaged: float) -> float:
    """Variance of single models' predictions over that of their average, at most 2; 1 without any spread."""
    return min(_MOST_STRETCH, single / averaged) if averaged > 0 else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class BaggedBoosters:
    """The average logit of several boosters, stretched around its centre."""

    boosters: tuple[Any, ...]
    centre: float
    factor: float

    def margins(self, values: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Logits minus ``base``."""
        mean = _logits(self.boosters, values).mean(axis=0)
        return np.asarray(self.centre + self.factor * (mean - self.centre) - base)

    @classmethod
    def of(cls, boosters: tuple[Any, ...], values: np.ndarray) -> BaggedBoosters:
        """Centre and stretch from the training rows."""
        logits = _logits(boosters, values)
        mean = logits.mean(axis=0)
        return cls(boosters, float(mean.mean()), stretch(float(logits.var(axis=1).mean()), float(mean.var())))


def _logits(boosters: tuple[Any, ...], values: np.ndarray) -> np.ndarray:
    return np.stack([booster.decision_function(values) for booster in boosters])


def fit_quadrants(
    rows: Training,
    parts: np.ndarray,
    rng: np.random.Generator,
    *,
    learning_rate: float,
    patience: int,
    max_iter: int,
) -> Fitted:
    """Boosters that cut two features at a time (`quadrants`), one per part left out."""
    held_out, bags = boost_quadrants(
        rows.features, rows.covered, rows.weights, parts, rng,
        learning_rate=learning_rate, patience=patience, max_iter=max_iter,
    )  # fmt: skip
    return held_out - rows.base, BaggedBoosters.of(bags, rows.features.values)


def fit_boosted_trees(rows: Training, parts: np.ndarray, rng: np.random.Generator, **options: Any) -> Fitted:
    """Boosters that grow trees, each stopped on the part it has not seen; options as in scikit-learn."""
    held_out, boosters = np.empty(len(rows.covered)), []
    for part in range(int(parts.max()) + 1):
        held = parts == part
        boosters.append(_fit_booster(rows, held, rng, **options))
        held_out[held] = boosters[-1].decision_function(rows.features.values[held])
    return held_out - rows.base, BaggedBoosters.of(tuple(boosters), rows.features.values)


def _fit_booster(rows: Training, held: np.ndarray, rng: np.random.Generator, **options: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    categories = rows.features.categories
    categorical = [j for j, c in enumerate(categories) if c is not None and len(c) <= _MOST_CATEGORIES]
    booster = HistGradientBoostingClassifier(
        min_samples_leaf=max(2, min(20, int((~held).sum()) // 10)),
        categorical_features=categorical or None,
        early_stopping=True,
        scoring="loss",
        random_state=int(rng.integers(2**31)),
        **options,
    )
    values, z, w = rows.features.values, rows.covered, rows.weights
    weights = {"sample_weight": w[~held], "sample_weight_val": w[held]} if rows.weighted else {}
    return booster.fit(values[~held], z[~held], X_val=values[held], y_val=z[held], **weights)


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Extremely randomised trees, their average stretched around its centre on the logit scale."""

    trees: tuple[Any, ...]
    missing: np.ndarray
    rate: float
    factor: float

    def margins(self, values: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Logits minus ``base``; one tree more, which knows only the base rate, keeps them finite."""
        X = tree_matrix(values, self.missing)
        total = np.zeros(len(X))
        for tree in self.trees:
            total += tree.predict(X, check_input=False)
        share, centre = (total + self.rate) / (len(self.trees) + 1.0), float(logit(self.rate))
        return np.asarray(centre + self.factor * (logit(share) - centre) - base)


def tree_matrix(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Features as trees take them: single precision, missing values far below all others."""
    return np.where(np.isnan(values), missing, values).astype(np.float32)


def fit_forest(rows: Training, rng: np.random.Generator, *, n_trees: int) -> Fitted:
    """Trees with random cuts and leaves of two rows, each grown on a subsample; the rest is held out."""
    import sklearn

    n, values = len(rows.covered), rows.features.values
    missing = _below_all(values)
    X, z, drawn = tree_matrix(values, missing), rows.covered.astype(float), _tree_rows(n)
    sums, squares, votes, trees = np.zeros(n), np.zeros(n), np.zeros(n), []
    # scikit-learn's trees draw from the older generator.
    state = np.random.RandomState(int(rng.integers(2**31)))
    # Checks of parameters and values would cost more than small trees themselves.
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        for _ in range(n_trees):
            order = rng.permutation(n)
            seen, held = order[:drawn], order[drawn:]
            tree = _grow(X[seen], z[seen], rows.weights[seen] if rows.weighted else None, state)
            share = tree.predict(X[held], check_input=False)
            sums[held] += share
            squares[held] += share**2
            votes[held] += 1.0
            trees.append(tree)
    rate = rows.rate
    held_out = logit((sums + rate) / (votes + 1.0))
    factor = _forest_stretch(sums, squares, votes, rate, n_trees)
    return held_out - rows.base, Forest(tuple(trees), missing, rate, factor)


def _tree_rows(n: int) -> int:
    return max(1, min(_MOST_TREE_ROWS, int(_TREE_SHARE * n)))


def _below_all(values: np.ndarray) -> np.ndarray:
    """Per column a value so far below the smallest that a random cut is likely to fall between them."""
    known = np.where(np.isnan(values), np.inf, values).min(axis=0)
    top = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    none = ~np.isfinite(known)
    low, high = np.where(none, 0.0, known), np.where(none, 0.0, top)
    return np.asarray(low - np.maximum(high - low, 1.0))


def _grow(X: np.ndarray, z: np.ndarray, w: np.ndarray | None, state: Any) -> Any:
    from sklearn.tree import ExtraTreeRegressor

    # Squared error of 0 and 1 is the Gini impurity, and means of leaves are what is wanted.
    tree = ExtraTreeRegressor(min_samples_leaf=_SMALLEST_LEAF, max_features=1.0, random_state=state)
    return tree.fit(X, z[:, None], sample_weight=w, check_input=False)


def _forest_stretch(
    sums: np.ndarray, squares: np.ndarray, votes: np.ndarray, rate: float, n_trees: int
) -> float:
    """The stretch of the mean of all trees against that of the trees which did not see a row."""
    several = votes > 1
    if not several.any():
        return 1.0
    s, q, v = sums[several], squares[several], votes[several]
    noise = float(np.mean((q - s**2 / v) / (v - 1.0)))  # variance of one tree around the mean of all
    per_row = noise * float(np.mean(1.0 / v))
    signal = float(np.var((s + rate) / (v + 1.0))) - per_row
    return stretch(signal + per_row, signal + noise / n_trees) if signal > 0 else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class LinearMember:
    """Logistic regression on standardised columns, with the target's logit as offset."""

    columns: Standardised
    coefficients: np.ndarray

    def margins(self, values: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Logits minus ``base``, which is the offset of the regression."""
        return np.asarray(self.columns.design(values) @ self.coefficients)


@dataclass(frozen=True, slots=True, eq=False)
class Standardised:
    """Columns of a regression: numbers by their spread, indicators of categories and of missing values."""

    means: np.ndarray
    spreads: np.ndarray
    numeric: np.ndarray
    indicators: tuple[tuple[int, float], ...]

    def design(self, values: np.ndarray) -> np.ndarray:
        """Ones, standardised numbers clipped at five spreads (0 where missing), indicators."""
        scaled = (values[:, self.numeric] - self.means) / self.spreads
        scaled = np.nan_to_num(np.clip(scaled, -_MOST_SPREADS, _MOST_SPREADS), nan=0.0)
        marks = [
            np.isnan(values[:, j]) if np.isnan(code) else values[:, j] == code for j, code in self.indicators
        ]
        return np.column_stack([np.ones(len(values)), scaled, *(mark.astype(float) for mark in marks)])

    @classmethod
    def of(cls, features: Features) -> Standardised:
        """Means and spreads of the training rows; indicators of what ten rows or more have in common."""
        values = features.values
        numeric = np.array(
            [j for j, c in enumerate(features.categories) if c is None and not np.isnan(values[:, j]).all()],
            dtype=np.int64,
        )
        means = np.nanmean(values[:, numeric], axis=0) if len(numeric) else np.zeros(0)
        spreads = np.nanstd(values[:, numeric], axis=0) if len(numeric) else np.zeros(0)
        indicators = [mark for j in range(values.shape[1]) for mark in _indicators(features, j)]
        return cls(means, np.where(spreads > 0, spreads, 1.0), numeric, tuple(indicators))


def _indicators(features: Features, j: int) -> list[tuple[int, float]]:
    column, categories = features.values[:, j], features.categories[j]
    unknown = int(np.isnan(column).sum())
    marks = [(j, float("nan"))] if _FEWEST_ROWS <= unknown <= len(column) - _FEWEST_ROWS else []
    if categories is None:
        return marks
    codes, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    common = np.argsort(-counts, kind="stable")[:_MOST_INDICATORS]
    return marks + [(j, float(codes[k])) for k in common if counts[k] >= _FEWEST_ROWS]


def fit_linear(rows: Training, parts: np.ndarray, rng: np.random.Generator) -> Fitted:
    """A ridge regression per part left out, and one of all rows (of a sample where they are many)."""
    columns = Standardised.of(rows.features)
    design, z = columns.design(rows.features.values), rows.covered.astype(float)
    precision = np.r_[0.0, np.full(design.shape[1] - 1, _RIDGE)]
    drawn = rng.permutation(len(z))[:_MOST_LINEAR_ROWS]

    def coefficients(part: int) -> np.ndarray:
        use = drawn[parts[drawn] != part]
        beta, _ = logistic_gain(design[use], z[use], rows.base[use], rows.weights[use], precision=precision)
        return beta

    held_out = np.empty(len(z))
    for part in range(int(parts.max()) + 1):
        held_out[parts == part] = design[parts == part] @ coefficients(part)
    return held_out, LinearMember(columns, coefficients(-1))
