"""A block of rows in canonical form, with the columns that metrics derive from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from calipers.arrays import is_frame
from calipers.arrays.compiled import kernels
from calipers.exceptions import InputError
from calipers.inputs import check_same_length
from calipers.inputs.categorical import Categorical
from calipers.inputs.derived_columns import DERIVED, LEVEL_DEPENDENT, MATRICES
from calipers.inputs.features import Features
from calipers.inputs.given_columns import given_column
from calipers.inputs.row_keys import Place, draws, keys_of_ids, keys_of_place
from calipers.inputs.weights import repetitions

# A column by its name, or a function at the top of a file that makes it of the rows.
Column: TypeAlias = "str | Callable[[Rows], np.ndarray | None]"


class PValueRule(Protocol):
    """How probabilities become p-values, such as `calipers.conformal.stored_scores.ConformalScores`."""

    def p_values(self, block: Rows) -> np.ndarray | None:
        """The p-values (n, K) of a block of probabilities; None when it has none."""


class Rows:
    """Columns of some rows: those given, checked once, and those derived from them on first use.

    Parameters
    ----------
    given : mapping
        Arguments of an audit for these rows: y_true, probabilities, p_values, sets, intervals, X, ease,
        groups, sample_weight, row_id, or any argument of a metric; None and absent mean the same.
    classes : sequence or None
        Label of every column; the same for every block.
    alpha : float or sequence of floats
        Level at which p-values become sets, or the levels of sets (n, K, L) and intervals (n, 2, L).
    place : Place or None
        The file and position of the first row; draws that belong to rows follow from it, or from row_id.
    conformal : ConformalScores or None
        How probabilities become p-values when none are given.
    trusted : bool
        Whether an earlier pass has checked these rows.
    fused : bool
        Whether compiled kernels are used where there are some.

    Examples
    --------
    >>> from calipers.engines import Rows
    >>> block = Rows({"y_true": [1, 0], "sets": [[True, False], [True, True]]}, classes=[0, 1])
    >>> block["covered"].tolist(), block["size"].tolist()
    ([False, True], [1, 2])
    """

    __slots__ = (
        "_cache",
        "alphas",
        "classes",
        "conformal",
        "fused",
        "given",
        "level",
        "n",
        "place",
        "reads",
        "trusted",
    )

    def __init__(
        self,
        given: Mapping[str, Any],
        *,
        classes: Any = None,
        alpha: Any = 0.1,
        place: Place | None = None,
        conformal: PValueRule | None = None,
        trusted: bool = False,
        fused: bool = False,
    ) -> None:
        self.trusted, self.fused = trusted, fused
        self.given = {name: value for name, value in given.items() if value is not None}
        self.classes, self.place, self.conformal = classes, place, conformal
        self.alphas: tuple[Any, ...] = tuple(alpha) if _is_sequence(alpha) else (alpha,)
        self.level = 0
        self.reads: Mapping[str, Column] = {}
        self.n: int = check_same_length(**self.given)
        self._cache: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"Rows({self.n} rows of {', '.join(self.given)})"

    @property
    def alpha(self) -> Any:
        """The level this block is read at."""
        return self.alphas[self.level]

    def at(self, level: int, reads: Mapping[str, Column] | None = None) -> Rows:
        """The same rows read at another of the levels; what does not depend on it is shared.

        ``reads`` names columns that take the place of others: with ``{"covered": "top_is_right"}`` whatever
        looks at "covered" sees whether the top label was right. A function of the rows may stand for a name.
        """
        other = object.__new__(Rows)
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other.level = level
        other.reads = self.reads if reads is None else reads
        return other

    def __getitem__(self, name: Column) -> np.ndarray:
        value = self.get(name)
        if value is None:
            raise InputError(f"these rows have no {name}; {self.without(name)}")
        return value

    def without(self, name: Column) -> str:
        """What there is where a column is missing, and what it could have come from."""
        told = name in ("covered", "prediction")
        hint = " It is read off sets, intervals or p-values beside y_true." if told else ""
        return f"they have {', '.join(self.given)}.{hint}"

    def get(self, name: Column) -> np.ndarray | None:
        """The column, checked or derived; None when it cannot be had."""
        if isinstance(name, str):
            name = self.reads.get(name, name)
        if not isinstance(name, str):
            make_own = name
            return cast("np.ndarray | None", self.once((name,), lambda: make_own(self)))
        key: Any = (name, self.level, *self.reads.values()) if name in LEVEL_DEPENDENT else name
        if key not in self._cache:
            make = DERIVED.get(name)
            self._cache[key] = given_column(self, name) if make is None or name in self.given else make(self)
        found: np.ndarray | None = self._cache[key]
        return found

    def coded(self, name: Column) -> np.ndarray | Categorical:
        """The column, as codes where it is known to take few values."""
        if (
            name == "size"
            and "size" not in {*self.reads, *self.given}
            and (labels := self.get("n_labels")) is not None
        ):
            return Categorical(np.arange(self["sets_at_level"].shape[1] + 1), labels)
        return self[name]

    def remember(self, name: str, column: np.ndarray) -> None:
        """Keep a column that was found on the way to another."""
        self._cache[name] = column

    def once(self, what: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What ``make`` gives; made once for all states that ask for it at this level."""
        key = (*what, self.level, *self.reads.values())
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @property
    def kernels(self) -> Any:
        """The compiled kernels, when this run is large and has them; else None."""
        return kernels() if self.fused else None

    @property
    def weights(self) -> np.ndarray | None:
        """Weight of every row, or None when each counts once."""
        return self.get("sample_weight")

    def derived_sets(self) -> np.ndarray | None:
        """Sets as given, at this level, or those of the p-values at alpha."""
        return self.get("sets_at_level")

    def keys(self) -> np.ndarray:
        """A number per row that names it: from its id, or from its file and position."""
        if "keys" not in self._cache:
            self._cache["keys"] = self._make_keys()
        return np.asarray(self._cache["keys"])

    def _make_keys(self) -> np.ndarray:
        if (ids := self.get("row_id")) is not None:
            return keys_of_ids(ids)
        if self.place is None:
            raise InputError("draws by row need to know the rows: give row_id, or the place of the block.")
        return keys_of_place(self.place, self.n)

    def draws(self, purpose: str, seed: int = 0) -> np.ndarray:
        """A uniform number per row, the same however rows are split into blocks."""
        return draws(self.keys(), purpose, seed)

    def rows(self, which: np.ndarray) -> dict[str, Any]:
        """What was given, for some rows."""
        return {name: take(value, which) for name, value in self.given.items()}

    def take(self, which: np.ndarray) -> Rows:
        """Some of the rows, with the keys they have here."""
        which = np.flatnonzero(which) if which.dtype == bool else which
        other = Rows(self.rows(which), classes=self.classes, alpha=self.alphas, conformal=self.conformal)
        if self.place is not None or "row_id" in self.given or "keys" in self._cache:
            other.remember("keys", self.keys()[which])
        return other.at(self.level, self.reads)

    def replace(self, **columns: Any) -> Rows:
        """The same rows with some columns given anew; None takes a column away."""
        other = Rows(self.given | columns, classes=self.classes, alpha=self.alphas, place=self.place)
        if "keys" in self._cache:
            other.remember("keys", self._cache["keys"])
        return other.at(self.level, self.reads)

    @property
    def task(self) -> str:
        """What was predicted: "regression", "classification", or "outcomes" of promises made elsewhere."""
        if self.given.keys() & {"intervals", "quantiles", "pit"}:
            return "regression"
        if self.given.keys() & {*MATRICES, "prediction"} or self.conformal is not None:
            return "classification"
        point = {"y_true", "y_pred"} <= self.given.keys() and "covered" not in self.given
        return "regression" if point else "outcomes"

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return self.weights is not None

    def repetitions(self) -> np.ndarray | None:
        """Whole-number weights as counts of equal rows; None when some weight is not whole."""
        if self.weights is None:
            return np.ones(self.n, dtype=np.int64)
        return repetitions(self.weights)

    def written_out(self, most: int) -> Rows:
        """Whole-number weights as so many equal rows, evenly thinned to at most ``most`` of them."""
        counts = self.repetitions()
        if counts is None:
            raise InputError("only whole-number weights can be written out as repeated rows.")
        if not self.is_weighted:
            return self
        ends = np.cumsum(counts)
        total = int(ends[-1])
        wanted = np.arange(total) if total <= most else (np.arange(most) + 0.5) * (total / most)
        copies = self.take(np.searchsorted(ends, wanted, side="right"))
        return copies.replace(sample_weight=None)


def _is_sequence(alpha: Any) -> bool:
    return isinstance(alpha, (Sequence, np.ndarray)) and not isinstance(alpha, str)


def take(value: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, a dataframe or a list."""
    if isinstance(value, Categorical):
        return value[rows]
    if isinstance(value, Features):
        return value.take(rows)
    if is_frame(value):
        return value[rows] if type(value).__module__.startswith("polars") else value.iloc[rows]
    return np.asarray(value)[rows]
