"""Small boosted trees that can be written down: fitted with scikit-learn's trees, evaluated by arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from calipers.auditing.repair.stored import part

DEPTH = 3
MOST_ROUNDS = 60
MOST_ROWS = 20_000
STEP = 0.1
_BLOCK = 1 << 15
# A Newton step in a leaf whose rows are all but certain is kept within this.
_LONGEST_STEP = 4.0


@part("trees")
@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A sum of complete binary trees of depth `DEPTH`: node i has the children 2i + 1 and 2i + 2.

    Parameters
    ----------
    start : float
        Where the sum starts.
    feature, threshold : array (T, 2^DEPTH - 1)
        A row goes right when its feature exceeds the threshold.
    value : array (T, 2^DEPTH)
        What each leaf adds.
    """

    start: float
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray

    def predict(self, values: np.ndarray) -> np.ndarray:
        """The sum for every row of ``values`` (n, d)."""
        out = np.full(len(values), self.start)
        for first in range(0, len(values), _BLOCK):
            block = values[first : first + _BLOCK].T.copy()
            for t in range(len(self.feature)):
                # Indices of the native width: others are converted one by one.
                out[first : first + _BLOCK] += self.value[t].take(self._leaves(t, block).astype(np.intp))
        return out

    def leaves(self, values: np.ndarray, tree: int = 0) -> np.ndarray:
        """The leaf of every row in one of the trees."""
        return self._leaves(tree, values.T)

    def used(self) -> np.ndarray:
        """The features that some split reads."""
        return np.unique(self.feature[np.isfinite(self.threshold)]).astype(int)

    def renumbered(self, columns: np.ndarray) -> Trees:
        """The same trees reading only these columns, which hold all that are used."""
        place = np.zeros(int(max(columns.max(initial=0), self.feature.max(initial=0))) + 1, dtype=int)
        place[columns] = np.arange(len(columns))
        return Trees(self.start, place[self.feature], self.threshold, self.value)

    def _leaves(self, tree: int, columns: np.ndarray) -> np.ndarray:
        feature, threshold = self.feature[tree].tolist(), self.threshold[tree].tolist()

        def below(node: int, depth: int) -> Any:
            """The leaf of every row among those below a node; one number where no split is left."""
            if depth == DEPTH:
                return np.uint8(0)
            left = below(2 * node + 1, depth + 1)
            if threshold[node] == np.inf:
                return left
            right = below(2 * node + 2, depth + 1) + np.uint8(2 ** (DEPTH - depth - 1))
            side = (columns[feature[node]] > threshold[node]).view(np.uint8)
            # What np.where gives, several times as fast; leaves on the right have larger numbers.
            return side if depth == DEPTH - 1 else left + side * (right - left)

        return np.broadcast_to(below(0, 0), columns.shape[1:])


def no_trees(start: float) -> Trees:
    """A constant."""
    empty = np.empty((0, 2**DEPTH - 1))
    return Trees(start, empty.astype(int), empty, np.empty((0, 2**DEPTH)))


# Loss -> (what a tree is fitted to, the best constant in a leaf, mean loss), each of outcome and sum so far.
_LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., float], Callable[..., float]]] = {
    "squared": (
        lambda y, f, _: y - f,
        lambda y, f, _: float(np.mean(y - f)),
        lambda y, f, _: float(np.mean((y - f) ** 2)),
    ),
    "logistic": (
        lambda y, f, _: y - expit(f),
        lambda y, f, _: _newton(y, f),
        lambda y, f, _: float(np.mean(np.logaddexp(0, f) - y * f)),
    ),
    "quantile": (
        lambda y, f, q: np.where(y > f, q, q - 1.0),
        lambda y, f, q: float(np.quantile(y - f, q)),
        lambda y, f, q: float(np.mean(np.maximum(q * (y - f), (q - 1) * (y - f)))),
    ),
}


def _newton(y: np.ndarray, f: np.ndarray) -> float:
    p = expit(f)
    step = float(np.sum(y - p) / (np.sum(p * (1 - p)) + 1.0))
    return float(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))


def boost(
    values: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    loss: str = "squared",
    level: float = 0.5,
    offset: np.ndarray | None = None,
    start: float = 0.0,
) -> Trees:
    """Boosted trees for the outcome, as many as lower the loss on rows kept aside; perhaps none.

    ``offset`` is a sum each row starts from, which the trees correct and do not hold.
    """
    import sklearn
    from sklearn.tree import DecisionTreeRegressor

    target, constant, mean_loss = _LOSSES[loss]
    kept = rng.permutation(len(y))[:MOST_ROWS]
    values, y = values[kept].astype(np.float32), y[kept].astype(float)
    total = np.full(len(y), start) if offset is None else offset[kept].astype(float) + start
    fit = np.arange(len(y)) >= len(y) // 4
    leaf_rows = max(10, int(fit.sum()) // 40)
    losses, trees = [mean_loss(y[~fit], total[~fit], level)], []
    fitted_values = values[fit]
    # Checks of parameters and values would cost as much as these small trees themselves.
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        for _ in range(MOST_ROUNDS):
            tree = DecisionTreeRegressor(
                max_depth=DEPTH, min_samples_leaf=leaf_rows, max_features=0.5,
                random_state=int(rng.integers(2**31)),
            )  # fmt: skip
            tree.fit(fitted_values, target(y[fit], total[fit], level)[:, None], check_input=False)
            at = tree.tree_.apply(values)
            steps = np.zeros(tree.tree_.node_count)
            for leaf, rows in _rows_by(at, fit):
                steps[leaf] = STEP * constant(y[rows], total[rows], level)
            total += steps[at]
            trees.append(_complete(tree.tree_, steps))
            losses.append(mean_loss(y[~fit], total[~fit], level))
    best = int(np.argmin(losses))
    if best == 0:
        return no_trees(start)
    feature, threshold, value = (np.array(column) for column in zip(*trees[:best], strict=True))
    return Trees(start, feature, threshold, value)


def one_tree(values: np.ndarray, y: np.ndarray, rng: np.random.Generator, *, leaf_rows: int) -> Trees:
    """A single tree whose leaves are regions of the features with different means of the outcome."""
    from sklearn.tree import DecisionTreeRegressor

    kept = rng.permutation(len(y))[:MOST_ROWS]
    tree = DecisionTreeRegressor(
        max_depth=DEPTH, min_samples_leaf=leaf_rows, random_state=int(rng.integers(2**31))
    )
    tree.fit(values[kept], y[kept].astype(float))
    means = tree.tree_.value[:, 0, 0]
    feature, threshold, value = (np.array([column]) for column in _complete(tree.tree_, means))
    return Trees(0.0, feature, threshold, value)


def _rows_by(at: np.ndarray, fit: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The fitted rows of every leaf."""
    return [(int(leaf), np.flatnonzero(fit & (at == leaf))) for leaf in np.unique(at[fit])]


def _complete(tree: Any, steps: np.ndarray) -> tuple[list[int], list[float], list[float]]:
    """A tree of scikit-learn as a complete one: below an early leaf every row goes left."""
    feature, threshold = [0] * (2**DEPTH - 1), [np.inf] * (2**DEPTH - 1)
    value = [0.0] * 2**DEPTH

    def fill(node: int, place: int, depth: int) -> None:
        if depth == DEPTH:
            value[place - (2**DEPTH - 1)] = float(steps[node])
        elif tree.children_left[node] < 0:
            fill(node, 2 * place + 1, depth + 1)
        else:
            feature[place], threshold[place] = int(tree.feature[node]), float(tree.threshold[node])
            fill(tree.children_left[node], 2 * place + 1, depth + 1)
            fill(tree.children_right[node], 2 * place + 2, depth + 1)

    fill(0, 0, 0)
    return feature, threshold, value
