"""A block of rows in canonical form, with the columns that metrics derive from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.inputs import (
    check_intervals,
    check_p_values,
    check_probabilities,
    check_same_length,
    check_sets,
    check_vector,
    check_weights,
    encode_labels,
)
from calipers.metrics.adaptivity.ranks import true_rank
from calipers.metrics.contributions import sets_at
from calipers.metrics.marginal import covered_by_intervals, covered_by_sets


class Block:
    """Columns of some rows: those given, checked once, and those derived from them on first use.

    Parameters
    ----------
    given : mapping
        Arguments of an audit for these rows: y_true, probabilities, p_values, sets, intervals, ease,
        groups, sample_weight; None and absent mean the same.
    classes : sequence or None
        Label of every column; the same for every block.
    alpha : float
        Level at which p-values become sets.

    Examples
    --------
    >>> from calipers.engines import Block
    >>> block = Block({"y_true": [1, 0], "sets": [[True, False], [True, True]]}, classes=[0, 1])
    >>> block["covered"].tolist(), block["size"].tolist()
    ([False, True], [1, 2])
    """

    __slots__ = ("_cache", "alpha", "classes", "given", "n")

    def __init__(self, given: Mapping[str, Any], *, classes: Any = None, alpha: Any = 0.1) -> None:
        self.given = {name: value for name, value in given.items() if value is not None}
        self.classes, self.alpha = classes, alpha
        self.n = check_same_length(**self.given)
        self._cache: dict[str, np.ndarray | None] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        value = self.get(name)
        if value is None:
            raise InputError(f"these rows have no {name}; they have {', '.join(self.given)}.")
        return value

    def get(self, name: str) -> np.ndarray | None:
        """The column, checked or derived; None when it cannot be had."""
        if name not in self._cache:
            make = _DERIVED.get(name, _given(name))
            self._cache[name] = make(self)
        return self._cache[name]

    @property
    def weights(self) -> np.ndarray | None:
        """Weight of every row, or None when each counts once."""
        return self.get("sample_weight")

    def derived_sets(self) -> np.ndarray | None:
        """Sets as given, or those of the p-values at alpha."""
        if (sets := self.get("sets")) is not None:
            return sets
        p_values = self.get("p_values")
        return None if p_values is None else np.asarray(sets_at(p_values, self.alpha))


def _given(name: str) -> Callable[[Block], np.ndarray | None]:
    def make(block: Block) -> np.ndarray | None:
        if name not in block.given:
            return None
        value = block.given[name]
        return np.asarray(_CHECKS[name](value, block) if name in _CHECKS else value)

    return make


_CHECKS: dict[str, Callable[[Any, Block], Any]] = {
    "probabilities": lambda v, _: check_probabilities(v),
    "p_values": lambda v, _: check_p_values(v),
    "sets": lambda v, _: check_sets(v),
    "intervals": lambda v, _: check_intervals(v),
    "ease": lambda v, _: check_vector(v, name="ease"),
    "sample_weight": lambda v, block: check_weights(v, block.n),
}


def _codes(block: Block) -> np.ndarray | None:
    wide = next((m for r in ("probabilities", "p_values", "sets") if (m := block.get(r)) is not None), None)
    if wide is None or "y_true" not in block.given:
        return None
    return np.asarray(encode_labels(block.given["y_true"], wide.shape[1], classes=block.classes))


def _outcomes(block: Block) -> np.ndarray | None:
    if "y_true" not in block.given or block.get("intervals") is None:
        return None
    return np.asarray(check_vector(block.given["y_true"], name="y_true"))


def _covered(block: Block) -> np.ndarray | None:
    sets, codes = block.derived_sets(), block.get("codes")
    if sets is not None and codes is not None:
        return np.asarray(covered_by_sets(codes, sets))
    intervals, y = block.get("intervals"), block.get("outcomes")
    return None if intervals is None or y is None else np.asarray(covered_by_intervals(y, intervals))


def _size(block: Block) -> np.ndarray | None:
    if (sets := block.derived_sets()) is not None:
        return np.asarray(sets.sum(axis=1))
    intervals = block.get("intervals")
    return None if intervals is None else np.asarray(intervals[:, 1] - intervals[:, 0])


def _ranks(block: Block) -> np.ndarray | None:
    probabilities = block.get("probabilities")
    codes = block.get("codes")
    if probabilities is None or codes is None:
        return None
    return np.asarray(true_rank(codes, probabilities, classes=np.arange(probabilities.shape[1])))


_DERIVED: dict[str, Callable[[Block], np.ndarray | None]] = {
    "codes": _codes,
    "outcomes": _outcomes,
    "covered": _covered,
    "size": _size,
    "ranks": _ranks,
}
