"""What the checks of an audit read: results of states over all rows, and a sample of the rows themselves.

A check declares the states it needs; they are filled block by block, in memory, out of core or on a cluster,
and a check cannot tell which. What needs rows side by side (models, rules, pictures) reads the sample, which
holds all rows where there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from calipers.auditing.promise import Promise
from calipers.auditing.promises import promises_of
from calipers.exceptions import InputError
from calipers.inputs import Features, check_features
from calipers.inputs.row_keys import draws
from calipers.inputs.rows import Rows

# Rows of the sample; more change little in what is read from it.
SAMPLE_ROWS = 40_000
NO_EXACT_TEST = (
    "weights that are not whole numbers are importance weights, not repeated rows, so there is no exact test"
)
NO_EXACT_TEST_SENTENCE = f"{NO_EXACT_TEST}.".capitalize()

Kept = TypeVar("Kept")


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is known before the rows are read: the settings of the audit and what the rows hold.

    Parameters
    ----------
    n : int
        Rows in all.
    alphas : tuple of float
        The levels, in the order given.
    head : Rows
        A few rows, to see what there is.
    n_calibration : int or None
        Rows the predictor was conformalised on.
    confidence : float
        Level of the intervals around estimates.
    seed : int
        Every random draw of the audit follows from it.
    random_state : int or None
        What the user gave, or what gives the same audit again; ``seed`` follows from it.
    sample_rows : int
        Rows of the sample, at most.
    bound : float or None
        Promised bound of the mean loss.
    loss_range : (float, float)
        Smallest and largest loss there can be.
    label_conditional : bool
        Whether coverage was promised for every true class.
    quick : bool
        Whether models along the features are small: for audits that are one of several, such as those before
        and after a repair. Their tests are exact for any model.
    """

    n: int
    alphas: tuple[float, ...]
    head: Rows
    n_calibration: int | None = None
    confidence: float = 0.95
    seed: int = 0
    sample_rows: int = SAMPLE_ROWS
    bound: float | None = None
    loss_range: tuple[float, float] = (0.0, 1.0)
    random_state: int | None = None
    label_conditional: bool = False
    quick: bool = False

    @property
    def task(self) -> str:
        """classification, regression, or outcomes of promises made elsewhere."""
        return self.head.task

    @cached_property
    def classes(self) -> tuple[Any, ...]:
        """Label of every column; empty for regression."""
        if self.task != "classification":
            return ()
        if self.head.classes is not None:
            return tuple(np.asarray(self.head.classes).tolist())
        wide = next(w for r in ("probabilities", "p_values", "sets") if (w := self.head.get(r)) is not None)
        return tuple(range(wide.shape[1]))

    @cached_property
    def promises(self) -> tuple[Promise, ...]:
        """Everything that was promised about the rows."""
        return promises_of(self.head, self.alphas, self.classes)

    def promises_of(self, kinds: tuple[str, ...]) -> tuple[Promise, ...]:
        """The promises of some kinds."""
        return tuple(promise for promise in self.promises if promise.kind in kinds)

    @property
    def levels(self) -> tuple[Promise, ...]:
        """Coverage of what was predicted, at every level; empty without sets, p-values and intervals."""
        return self.promises_of(("coverage",))

    @cached_property
    def have(self) -> frozenset[str]:
        """Words for what was given: "prediction", "p_values", "probabilities", "X", "groups", "ease", ...

        "difficulty" stands for an ease that was given, or what stands in: the largest probability, the width
        of intervals, the size beside ``covered``, the reach of the quantiles.
        """
        present = {
            "prediction": bool(self.promises_of(("coverage", "stated"))),
            "difficulty": self.head.get("ease_or_size") is not None,
            "bound": self.bound is not None,
            "distribution": any(name in self.head.given for name in ("quantiles", "pit")),
            "stated": any(name in self.head.given for name in ("probabilities", "promised")),
            "certainty": self._states_certainty(),
        }
        names = (
            "p_values", "probabilities", "X", "groups", "ease", "time", "cluster", "loss", "pit", "quantiles",
            "promised", "size", "y_pred",
        )  # fmt: skip
        present |= {name: self.head.get(name) is not None for name in names}
        return frozenset(word for word, there in present.items() if there)

    def _states_certainty(self) -> bool:
        """Whether rows say how sure they are: probabilities, promises, widths; beside ``covered`` more."""
        given = self.head.given.keys()
        beside = "covered" in given and given & {"ease", "size"}
        return bool(beside or given & {"probabilities", "promised", "intervals"})

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds all rows."""
        return self.n <= self.sample_rows

    def generator(self, purpose: str) -> np.random.Generator:
        """An independent source of random numbers for one purpose, the same in every run of a seed."""
        return np.random.default_rng([self.seed, *purpose.encode()])


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """Results over all rows, and the sample.

    Parameters
    ----------
    design : Design
        What the audit was asked for.
    sample : Rows
        All rows, or a stratified random sample of them, in an order that belongs to the rows: what is fitted
        or drawn on them does not depend on how they came.
    arrival : array (sample.n,)
        Rows of the sample in the order in which they came.
    n : float
        Rows in all, counted while they were read.
    results : mapping
        Finished states by key.
    threshold : float
        No row with a larger draw is in the sample.
    """

    design: Design
    sample: Rows
    arrival: np.ndarray
    n: int
    results: Mapping[str, Any]
    threshold: float = 1.0
    _kept: dict[str, Any] = field(default_factory=dict)

    @property
    def confidence(self) -> float:
        """Level of the intervals."""
        return self.design.confidence

    @property
    def noun(self) -> str:
        """What was predicted, in one word."""
        return {"regression": "intervals", "outcomes": "predictions"}.get(self.task, "sets")

    @property
    def task(self) -> str:
        """classification, regression or outcomes."""
        return self.design.task

    @property
    def classes(self) -> tuple[Any, ...]:
        """Label of every column."""
        return self.design.classes

    def result(self, name: str, promise: Promise | None = None) -> Any:
        """What a state found; None when it was not asked."""
        return self.results.get(state_key(name, promise))

    def rows_at(self, promise: Promise) -> Rows:
        """The sample as one promise reads it."""
        return promise.rows(self.sample)

    def counted_rows(self, promise: Promise | None = None) -> Rows | None:
        """The sample with whole-number weights written out; None with weights of another kind."""
        if self.sample.repetitions() is None:
            return None
        rows = self.kept("counted rows", lambda: self.sample.written_out(self.design.sample_rows))
        return rows if promise is None else promise.rows(rows)

    def counted_in_order(self) -> Rows:
        """The same in the order in which the rows came."""
        return self.sample.take(self.arrival).written_out(self.design.sample_rows)

    @cached_property
    def features(self) -> Features:
        """The features of the sample."""
        if self.sample.get("X") is None:
            raise InputError("X was not given to the audit.")
        return check_features(self.sample.given["X"])

    def kept(self, key: str, make: Callable[[], Kept]) -> Kept:
        """What ``make`` gives, made once: several checks may read the same search."""
        if key not in self._kept:
            self._kept[key] = make()
        found: Kept = self._kept[key]
        return found

    def shuffled(self, purpose: str) -> np.ndarray:
        """A random order of the sample that belongs to its rows, not to the order they were read in."""
        return np.argsort(draws(self.sample.keys(), purpose, self.design.seed), kind="stable")

    def half(self, purpose: str) -> np.ndarray:
        """A random half of the sample, as a mask."""
        chosen = np.zeros(self.sample.n, dtype=bool)
        chosen[self.shuffled(purpose)[: self.sample.n // 2]] = True
        return chosen

    def generator(self, purpose: str) -> np.random.Generator:
        """An independent source of random numbers for one purpose."""
        return self.design.generator(purpose)


def state_key(name: str, promise: Promise | None = None) -> str:
    """The key of a state, of one promise or of all rows as they are."""
    return name if promise is None else f"{name}@{promise.key}"
