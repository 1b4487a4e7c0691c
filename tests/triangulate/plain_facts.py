"""What an audit states, computed again from the arrays with plain numpy and pandas: no formula of the package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

PARTS = {"tenth": 10, "fifth": 5, "quarter": 4, "half": 2}


_ROWS = ("y_true", "covered", "loss", "pit")


class Plain:
    """The arguments of an audit at one level, and what follows from them.

    Labels are column numbers; weights and several levels are not looked at.
    """

    def __init__(self, given: Mapping[str, Any], alpha: float) -> None:
        self.given = dict(given)
        self.y = np.asarray(given["y_true"]) if given.get("y_true") is not None else None
        self.alpha, self.promised = alpha, 1.0 - alpha
        matrices = ("intervals", "sets", "p_values", "probabilities")
        self.intervals, self.given_sets, self.p_values, self.P = (
            None if given.get(name) is None else np.asarray(given[name]) for name in matrices
        )
        groups = given.get("groups")
        self.attributes = {name: np.asarray(own).astype(str) for name, own in groups.items()} if isinstance(
            groups, dict
        ) else {}  # fmt: skip
        self.groups = None if groups is None or self.attributes else np.asarray(groups).astype(str)
        self.ease = None if given.get("ease") is None else np.asarray(given["ease"], dtype=float)
        self.n = len(next(np.asarray(v) for k, v in given.items() if k in _ROWS and v is not None))

    @cached_property
    def sets(self) -> np.ndarray | None:
        if self.given_sets is not None:
            return self.given_sets.astype(bool)
        # A label is kept when its p-value exceeds alpha; counts of calibration rows are far from rounding.
        return None if self.p_values is None else self.p_values > self.alpha + 1e-12

    @cached_property
    def covered(self) -> np.ndarray:
        if self.given.get("covered") is not None:
            return np.asarray(self.given["covered"], dtype=bool)
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
        if self.given.get("size") is not None:
            return np.asarray(self.given["size"], dtype=float)
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
        if self.P is not None:
            return self.P.max(axis=1)
        if self.given.get("quantiles") is not None:
            Q = np.asarray(self.given["quantiles"])
            return -np.log(Q[:, -1] - Q[:, 0]).round(9)
        return -np.log(self.size).round(9)

    def promise(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Whether a promise came true, by its name in the table of promises, and its probability."""
        if name.startswith("quantile "):
            level = float(name.removeprefix("quantile "))
            if self.given.get("pit") is not None:
                return np.asarray(self.given["pit"]) <= level, np.full(self.n, level)
            column = list(self.given["quantile_levels"]).index(level)
            return self.y <= np.asarray(self.given["quantiles"])[:, column], np.full(self.n, level)
        if name.startswith("coverage of sets implied"):
            return self.stated_sets
        if name.startswith("probability of the top"):
            return self.right, np.minimum(self.P.max(axis=1), 1.0)
        if name.startswith("probability of class ") and self.P.shape[1] > 2:
            k = int(name.removeprefix("probability of class "))
            return self.y == k, self.P[:, k]
        if name.startswith("probability"):
            return self.probability[::-1]
        if name == "promised probability":
            return self.covered, np.asarray(self.given["promised"], dtype=float)
        return self.covered, np.full(self.n, self.promised)

    @staticmethod
    def corrected(happened: np.ndarray, stated: np.ndarray) -> np.ndarray:
        """Stated probabilities by the logistic map of all rows, or by the spline that beats it; 0 and 1 stay."""
        from scipy import stats
        from sklearn.linear_model import LogisticRegression

        inner = (stated > 0) & (stated < 1)
        z, odds = happened[inner].astype(float), np.clip(np.log(stated[inner] / (1 - stated[inner])), -16, 16)
        values = np.unique(odds)
        maps = [(odds[:, None], 2)]
        if 2 < len(values) <= 8:
            maps.append(((odds[:, None] == values).astype(float), len(values)))
        for count in (1, 3, 7) if len(values) > 8 else ():
            knots = np.unique(np.quantile(odds, np.linspace(0, 1, count + 2)[1:-1]))
            knots = knots[(knots > values[0]) & (knots < values[-1])]
            if len(odds) >= 50 * count:
                columns = np.column_stack([odds, np.maximum(0, odds[:, None] - knots)])
                maps.append((columns, 2 + len(knots)))
        best, terms = np.sum(np.log(np.where(z == 1, 1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds))))), 0
        found = stated.copy()
        for columns, own in maps:
            model = LogisticRegression(C=1e9, tol=1e-10, max_iter=20_000).fit(columns, z)
            p = model.predict_proba(columns)[:, 1]
            likelihood = np.sum(np.log(np.where(z == 1, p, 1 - p)))
            if stats.chi2.sf(2 * max(0.0, likelihood - best), own - terms) <= 0.05:
                best, terms, found[inner] = likelihood, own, p
        return found

    def place(self, words: str) -> np.ndarray | None:
        """Rows of a group, class, part along difficulty or stretch of time by its name; None for others."""
        if since := re.match(r"(?:since|Since|From) (\S+)(?: to (\S+))?", words):
            time = np.asarray(self.given["time"])
            first, last = (
                None if word is None else np.array(word).astype(time.dtype) for word in since.groups()
            )
            return (time >= first) & (True if last is None else time <= last)
        if words.startswith("class "):
            return self.y.astype(str) == words.removeprefix("class ")
        if words.startswith("group ") and self.groups is not None:
            return self.groups == words.removeprefix("group ")
        if words.startswith("group "):
            parts = [part.split("=") for part in words.removeprefix("group ").split(" and ")]
            return np.all([self.attributes[name] == label for name, label in parts], axis=0)
        return self.part(words) if re.search(r"(tenth|fifth|quarter|half|parts)", words) else None

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

    def top(self) -> tuple[np.ndarray, np.ndarray]:
        """What is stated of the most probable label, or of what was promised, and whether it happened."""
        if self.P is None:
            happened, stated = self.promise("promised probability")
            return stated, happened.astype(float)
        return np.minimum(self.P.max(axis=1), 1.0), self.right.astype(float)

    def surest(self) -> tuple[np.ndarray, np.ndarray]:
        """How sure every row says it is, and whether what it says came true."""
        if self.P is not None or self.given.get("promised") is not None:
            return self.top()
        own_ease = self.intervals is None and self.ease is not None
        certainty = self.ease if own_ease else -np.asarray(self.size, dtype=float)
        return certainty, np.asarray(self.covered, dtype=float)

    @cached_property
    def loss(self) -> np.ndarray:
        """The loss of the forecast: errors of the top label, errors of the middle, or misses."""
        if self.given.get("loss") is not None:
            return np.asarray(self.given["loss"], dtype=float)
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
        """Rows of a part along difficulty: "hardest fifth" or "2nd of 5 parts"; equal ease stays together."""
        order = re.search(r"(?:(\d+)\w\w of (\d+) parts|(hardest|easiest) (tenth|fifth|quarter|half))", words)
        assert order, words
        count = int(order[2]) if order[2] else PARTS[order[4]]
        ranked = np.sort(self.difficulty)
        ends = [ranked[int(np.ceil(self.n * k / count)) - 1] for k in range(1, count)]
        codes = (self.difficulty[:, None] > np.array(ends)).sum(axis=1)
        tight = np.unique(codes, return_inverse=True)[1]
        wanted = tight.max() if order[3] == "easiest" else int(order[1] or 1) - 1
        return np.asarray(tight == wanted)

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
        if self.P is not None and self.given.get("loss") is None:
            chosen = np.eye(self.P.shape[1])[self.y]
            loss = ((self.P - chosen) ** 2).sum(axis=1) / (2 if self.P.shape[1] == 2 else 1)
            loss = np.round(loss, 12)
        ranks = pd.Series(loss).rank().to_numpy()
        later = np.arange(self.n) >= self.n // 2
        if (time := self.given.get("time")) is not None:
            later = np.asarray(time) > np.sort(np.asarray(time))[(self.n + 1) // 2 - 1]
        m = int(later.sum())
        return float((ranks[later].sum() - m * (m + 1) / 2) / (m * (self.n - m)))

    @staticmethod
    def fewest_rows(sentence: str) -> int:
        """Rows below which classes are left out, as the sentence says; 1 where none is."""
        said = re.search(r"Classes of fewer than (\d+) rows are left out", sentence)
        return int(said[1]) if said else 1

    def largest_pit_gap(self) -> tuple[float, float]:
        """The level at which the share of PIT values up to it, or below it, is farthest from it; that share."""
        ranked, steps = np.sort(np.asarray(self.given["pit"])), np.arange(self.n + 1) / self.n
        shares = np.column_stack([steps[1:], steps[:-1]])
        at = np.unravel_index(np.argmax(np.abs(shares - ranked[:, None])), shares.shape)
        return float(ranked[at[0]]), float(shares[at])

    def rule(self, words: str) -> np.ndarray:
        """Rows of a rule such as "x0 <= -1.2 and 0.5 < x3 <= 2", as it is rounded."""
        X, inside = np.asarray(self.given["X"], dtype=float), np.ones(self.n, dtype=bool)
        for part in words.split(" and "):
            found = re.fullmatch(r"(?:(\S+) < )?x(\d+)(?: (<=|>) (\S+))?", part.strip())
            assert found, part
            column, (low, _, sign, end) = X[:, int(found[2])], found.groups()
            inside &= column > float(low) if low else True
            if sign:
                inside &= column <= float(end) if sign == "<=" else column > float(end)
        return inside

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
