"""What an audit states, computed again from the arrays with plain numpy and pandas: no formula of the package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

PARTS = {"tenth": 10, "fifth": 5, "quarter": 4, "half": 2}


class Plain:
    """The arguments of an audit at one level, and what follows from them.

    Labels are column numbers; weights and several levels are not looked at.
    """

    def __init__(self, given: Mapping[str, Any], alpha: float) -> None:
        self.y = np.asarray(given["y_true"])
        self.alpha, self.promised = alpha, 1.0 - alpha
        matrices = ("intervals", "sets", "p_values", "probabilities")
        self.intervals, self.given_sets, self.p_values, self.P = (
            None if given.get(name) is None else np.asarray(given[name]) for name in matrices
        )
        self.groups = None if given.get("groups") is None else np.asarray(given["groups"]).astype(str)
        self.ease = None if given.get("ease") is None else np.asarray(given["ease"], dtype=float)
        self.n = len(self.y)

    @cached_property
    def sets(self) -> np.ndarray | None:
        if self.given_sets is not None:
            return self.given_sets.astype(bool)
        # A label is kept when its p-value exceeds alpha; counts of calibration rows are far from rounding.
        return None if self.p_values is None else self.p_values > self.alpha + 1e-12

    @cached_property
    def covered(self) -> np.ndarray:
        if self.intervals is not None:
            return (self.intervals[:, 0] <= self.y) & (self.y <= self.intervals[:, 1])
        if self.sets is None:
            return self.stated_sets[0]
        return self.sets[np.arange(self.n), self.y]

    @cached_property
    def stated_sets(self) -> tuple[np.ndarray, np.ndarray]:
        """Whether the smallest set of each row whose stated mass reaches the promise holds the label; the mass."""
        assert self.P is not None
        order = np.argsort(-self.P, axis=1, kind="stable")
        mass = np.cumsum(np.take_along_axis(self.P, order, axis=1), axis=1)
        last = np.argmax(mass >= self.promised - 1e-12, axis=1)
        rank = np.argmax(order == self.y[:, None], axis=1)
        return rank <= last, np.minimum(mass[np.arange(self.n), last], 1.0)

    @cached_property
    def promised_on_average(self) -> float:
        """The promise about all rows: of probabilities alone the mean mass of their sets."""
        implied = self.intervals is None and self.sets is None
        return float(self.stated_sets[1].mean()) if implied else self.promised

    @cached_property
    def probability(self) -> tuple[np.ndarray, np.ndarray]:
        """The probability of the second of two classes, or of the top label, and whether it happened."""
        assert self.P is not None
        if self.P.shape[1] == 2:
            return self.P[:, 1], self.y == 1
        return np.minimum(self.P.max(axis=1), 1.0), self.right

    @cached_property
    def size(self) -> np.ndarray:
        if self.intervals is not None:
            return np.asarray(self.intervals[:, 1] - self.intervals[:, 0])
        assert self.sets is not None
        return self.sets.sum(axis=1)

    @cached_property
    def coverage(self) -> float:
        return float(self.covered.mean())

    @cached_property
    def difficulty(self) -> np.ndarray:
        """Larger is easier."""
        if self.ease is not None:
            return self.ease
        assert self.P is not None
        return self.P.max(axis=1)

    @cached_property
    def hardness(self) -> np.ndarray:
        """Distance from the middle, or the worst rank of the true label."""
        if self.intervals is not None:
            return np.abs(self.y - self.intervals.mean(axis=1))
        assert self.P is not None
        own = self.P[np.arange(self.n), self.y]
        return np.asarray((own[:, None] <= self.P).sum(axis=1))

    @cached_property
    def right(self) -> np.ndarray:
        assert self.P is not None
        return np.asarray(self.P.argmax(axis=1) == self.y)

    @cached_property
    def loss(self) -> np.ndarray:
        """The loss of the forecast: errors of the top label, errors of the middle, or misses."""
        if self.P is not None:
            return (~self.right).astype(float)
        if self.intervals is not None and np.isfinite(self.intervals).all():
            return self.hardness
        return (~self.covered).astype(float)

    def rank_correlation(self, column: np.ndarray) -> float:
        """Of difficulty and a column; 0 where one of them is constant."""
        both = pd.DataFrame({"a": -self.difficulty, "b": np.asarray(column, dtype=float)})
        found = both["a"].rank().corr(both["b"].rank())
        return 0.0 if np.isnan(found) else float(found)

    def part(self, words: str) -> np.ndarray:
        """Rows of a part along difficulty, such as "2nd hardest fifth"; equal ease stays together."""
        order = re.search(r"(?:(\d+)\w\w )?(hardest|easiest) (tenth|fifth|quarter|half)", words)
        assert order, words
        count = PARTS[order[3]]
        ranked = np.sort(self.difficulty)
        ends = [ranked[int(np.ceil(self.n * k / count)) - 1] for k in range(1, count)]
        codes = (self.difficulty[:, None] > np.array(ends)).sum(axis=1)
        wanted = codes.max() if order[2] == "easiest" else int(order[1] or 1) - 1
        return np.asarray(codes == wanted)

    def calibration_error(self, stated: np.ndarray, happened: np.ndarray) -> float:
        """Range of the cumulative difference along the stated probability, ties together."""
        frame = pd.DataFrame({"p": stated, "d": happened - stated}).groupby("p")["d"].sum().sort_index()
        walk = np.concatenate([[0.0], frame.cumsum().to_numpy()]) / self.n
        return float(walk.max() - walk.min())

    def in_range(self, stated: np.ndarray, happened: np.ndarray, ends: tuple[float, float]) -> list[float]:
        """Share of rows, mean stated and share happened where the stated probability is in (low, high]."""
        inside = (stated > ends[0]) & (stated <= ends[1])
        return [float(inside.mean()), float(stated[inside].mean()), float(happened[inside].mean())]

    @cached_property
    def later_scores_worse(self) -> float:
        """Chance that a row of the later half of the file has the larger fine loss; ties count half."""
        loss = self.loss
        if self.P is not None:
            chosen = np.eye(self.P.shape[1])[self.y]
            loss = ((self.P - chosen) ** 2).sum(axis=1) / (2 if self.P.shape[1] == 2 else 1)
            loss = np.round(loss, 12)
        ranks = pd.Series(loss).rank().to_numpy()
        later = np.arange(self.n) >= self.n // 2
        m = int(later.sum())
        return float((ranks[later].sum() - m * (m + 1) / 2) / (m * (self.n - m)))

    @cached_property
    def small_p_values(self) -> float:
        """The largest excess of true labels' p-values at or below a level over that level."""
        assert self.p_values is not None
        own = np.sort(self.p_values[np.arange(self.n), self.y])
        return float(max(0.0, (np.arange(1, self.n + 1) / self.n - own).max()))

    def saved(self, rival: str) -> float | None:
        """Share of the mean size that a rival saves at equal coverage; None where a model was fitted."""
        wanted = min(self.coverage, self.promised)
        if rival == "scaling the intervals" and self.intervals is not None:
            factor = self._quantile(self.hardness / (self.size / 2), wanted)
            return 1.0 - factor
        if rival == "equal widths" and self.intervals is not None:
            return 1.0 - 2 * self._quantile(self.hardness, wanted) / float(self.size.mean())
        scores = {
            "a threshold on the probabilities": self.P,
            "the same p-values at another level": self.p_values,
        }
        if (table := scores.get(rival)) is None:
            return None
        level = -self._quantile(-table[np.arange(self.n), self.y], wanted)
        return 1.0 - float((table >= level - 1e-15).sum(axis=1).mean()) / float(self.size.mean())

    def _quantile(self, values: np.ndarray, share: float) -> float:
        return float(np.sort(values)[int(np.ceil(share * self.n - 1e-9)) - 1])
