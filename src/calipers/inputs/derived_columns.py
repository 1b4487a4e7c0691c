"""Columns that follow from those given: label codes, covered, size, ranks, the top label and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import as_numpy, frame_columns, is_frame
from calipers.arrays.compiled import columns_of
from calipers.exceptions import InputError
from calipers.inputs import check_vector, encode_labels
from calipers.inputs.categorical import Categorical
from calipers.inputs.covered import covered_by_intervals, is_covered
from calipers.inputs.given_columns import known_labels
from calipers.inputs.p_value_sets import sets_at

if TYPE_CHECKING:
    from calipers.inputs.rows import Rows

_GATHER = 1 << 14
# What stands between the labels of two attributes in one text.
CELL_JOINT = "\x1f"
# Stated masses that differ from 1 - alpha by rounding only reach it.
_MASS_ROUNDING = 1e-12
# What has one column per class.
MATRICES = ("probabilities", "p_values", "sets")
# Levels at which PIT values are read as quantiles: both tails and the middle.
PIT_LEVELS = (0.1, 0.5, 0.9)


def at_label(matrix: np.ndarray, codes: np.ndarray, compiled: Any = None) -> np.ndarray:
    """The entry of each row at its label's column; one flat gather where each column lies in one piece."""
    columns, n = matrix.T, len(codes)
    if compiled is not None:
        compiled.gather(columns_of(matrix), codes, 0, own := np.empty(n, dtype=matrix.dtype))
        return own
    if n == 0 or columns.strides[1] != matrix.itemsize or columns.strides[0] % matrix.itemsize:
        return np.asarray(np.take_along_axis(matrix, codes[:, None], axis=1)[:, 0])
    found, stride = np.empty(n, dtype=matrix.dtype), columns.strides[0] // matrix.itemsize
    for start in range(0, n, _GATHER):
        # Few rows at a time, so that all their columns stay near the processor.
        part = columns[:, start : start + _GATHER]
        flat = np.lib.stride_tricks.as_strided(
            part,
            shape=((len(columns) - 1) * stride + part.shape[1],),
            strides=(matrix.itemsize,),
            writeable=False,
        )
        place = codes[start : start + _GATHER] * stride + np.arange(part.shape[1])
        found[start : start + _GATHER] = flat[place]
    return found


def _codes(block: Rows) -> np.ndarray | None:
    given = [role for role in MATRICES if role in block.given]
    if "y_true" not in block.given or not given:
        return None
    labels, found = block.given["y_true"], None
    for role in given:
        wide, table = block[role], block.given[role]
        if wide.ndim > 1 and (found is None or is_frame(table)):
            # A dataframe that names its columns after the labels, in another order, is refused.
            distinct = labels.labels if isinstance(labels, Categorical) else labels
            try:
                found = encode_labels(distinct, wide.shape[1], classes=block.classes, table=table)
            except InputError:  # once more for the row, where labels were looked at once each
                found = encode_labels(np.asarray(labels), wide.shape[1], classes=block.classes, table=table)
                raise
    if found is None:
        return None
    return np.asarray(found)[labels.codes] if isinstance(labels, Categorical) else np.asarray(found)


def _outcomes(block: Rows) -> np.ndarray | None:
    if "y_true" not in block.given or block.task != "regression":
        return None
    return np.asarray(check_vector(block.given["y_true"], name="y_true"))


def _y(block: Rows) -> np.ndarray | None:
    """Column number of each label, or the outcome itself where intervals were predicted."""
    return block.get("outcomes") if block.task == "regression" else block.get("codes")


def _sets_at_level(block: Rows) -> np.ndarray | None:
    if (sets := block.get("sets")) is not None:
        return sets if sets.ndim == 2 else sets[:, :, block.level]
    p_values = block.get("p_values")
    return None if p_values is None or p_values.ndim == 1 else np.asarray(sets_at(p_values, block.alpha))


def _interval_at_level(block: Rows) -> np.ndarray | None:
    intervals = block.get("intervals")
    return intervals if intervals is None or intervals.ndim == 2 else intervals[:, :, block.level]


def _p_values(block: Rows) -> np.ndarray | None:
    return None if block.conformal is None else block.conformal.p_values(block)


def _covered(block: Rows) -> np.ndarray | None:
    sets = block.derived_sets()
    if sets is not None and (codes := block.get("codes")) is not None:
        return at_label(sets, codes, block.kernels)
    if "prediction" in block.given:
        return np.asarray(is_covered(block.given["y_true"], block.given["prediction"], classes=block.classes))
    intervals, y = block.get("interval_at_level"), block.get("outcomes")
    return None if intervals is None or y is None else np.asarray(covered_by_intervals(y, intervals))


def _below_quantile(block: Rows) -> np.ndarray | None:
    """Whether the outcome lies at or below the quantile whose number is the level of the block.

    A PIT value says it of any quantile; without stated ones those of `PIT_LEVELS` are read.
    """
    if "quantiles" not in block.given:
        pit = block.get("pit")
        return None if pit is None else np.asarray(pit <= PIT_LEVELS[block.level])
    if (y := block.get("outcomes")) is None:
        return None
    stated = as_numpy(block.given["quantiles"]).astype(np.float64)
    return np.asarray(y <= check_vector(stated[:, block.level], name="quantiles", finite=False))


def _is_positive(block: Rows) -> np.ndarray | None:
    codes, P = block.get("codes"), block.get("probabilities")
    return None if codes is None or P is None else np.asarray(codes == P.shape[1] - 1)


def _positive_probability(block: Rows) -> np.ndarray | None:
    P = block.get("probabilities")
    return None if P is None else np.minimum(P[:, -1].astype(np.float64), 1.0)


def _is_class(block: Rows) -> np.ndarray | None:
    """Whether the class whose number is the level of the block happened."""
    codes = block.get("codes")
    return None if codes is None else np.asarray(codes == block.level)


def _class_probability(block: Rows) -> np.ndarray | None:
    P = block.get("probabilities")
    return None if P is None else np.minimum(P[:, block.level].astype(np.float64), 1.0)


def _group_cell(block: Rows) -> np.ndarray | None:
    """The labels of all attributes of a row in one text; the label itself where there is one attribute."""
    groups = block.given.get("groups")
    if groups is None or not is_frame(groups):
        return block.get("groups")
    columns = frame_columns(groups)
    texts = [
        known_labels(column.to_numpy(), f"groups[{name!r}]").astype(str) for name, column in columns.items()
    ]
    return np.array([CELL_JOINT.join(labels) for labels in zip(*texts, strict=True)])


def attribute_names(groups: Any) -> tuple[str, ...]:
    """Names of the attributes of groups; none for labels given as a vector."""
    return tuple(frame_columns(groups)) if is_frame(groups) else ()


def _size(block: Rows) -> np.ndarray | None:
    if (labels := block.get("n_labels")) is not None:
        return labels.astype(np.int64)
    intervals = block.get("interval_at_level")
    return None if intervals is None else np.asarray(intervals[:, 1] - intervals[:, 0])


def _n_labels(block: Rows) -> np.ndarray | None:
    """Labels in every set, in the smallest integers that hold their number: many add up at a time."""
    if (sets := block.derived_sets()) is None:
        return None
    small = np.uint8 if sets.shape[1] < 256 else np.int64
    return np.asarray(np.add.reduce(sets.view(np.uint8), axis=1, dtype=small))


def _stated(block: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """What plain probabilities promise about sets: the smallest set of stated mass 1 - alpha or more.

    Labels enter in descending order of probability, ties in the order of columns. Gives whether the outcome
    lies in the set, the number of its labels, and the mass stated for it, which is what was promised.
    """
    P, codes = block.get("probabilities"), block.get("codes")
    if P is None or codes is None:
        return None

    def make() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        own = at_label(P, codes)[:, None]
        before = np.arange(P.shape[1]) < codes[:, None]
        rank = np.count_nonzero((own < P) | ((own == P) & before), axis=1)
        mass = np.cumsum(-np.sort(-P.astype(np.float64), axis=1), axis=1)
        wanted = 1.0 - float(block.alpha) - _MASS_ROUNDING
        size = np.minimum(1 + np.count_nonzero(mass < wanted, axis=1), P.shape[1])
        # All labels together are certain, whatever their rounded sum is.
        stated = np.where(size == P.shape[1], 1.0, mass[np.arange(block.n), size - 1])
        return rank < size, size, np.minimum(stated, 1.0)

    found: tuple[np.ndarray, np.ndarray, np.ndarray] = block.once(("stated sets",), make)
    return found


def _stated_column(which: int) -> Callable[[Rows], np.ndarray | None]:
    def column(block: Rows) -> np.ndarray | None:
        found = _stated(block)
        return None if found is None else found[which]

    return column


def _empty(block: Rows) -> np.ndarray | None:
    size = block.get("size")
    if size is None:  # what was covered elsewhere need not have a size, and quantiles have none
        sizeless = block.given.keys() & {"covered", "quantiles", "pit"}
        return np.zeros(block.n, dtype=bool) if sizeless else None
    return np.asarray(size == 0)


def _ranks(block: Rows) -> np.ndarray | None:
    probabilities, codes = block.get("probabilities"), block.get("codes")
    if probabilities is None or codes is None:
        return None
    at_least = at_label(probabilities, codes, block.kernels) <= probabilities.T
    small = np.uint8 if probabilities.shape[1] < 256 else np.int64
    return np.asarray(np.add.reduce(at_least.view(np.uint8), axis=0, dtype=small).astype(np.int64))


def _prediction(block: Rows) -> np.ndarray | None:
    sets = block.derived_sets()
    return sets if sets is not None else block.get("interval_at_level")


def _hardness(block: Rows) -> np.ndarray | None:
    """Rank of the true label, or distance of the outcome from the point prediction or the middle."""
    intervals, outcomes = block.get("interval_at_level"), block.get("outcomes")
    if outcomes is not None and (point := block.get("y_pred")) is not None:
        return np.asarray(np.abs(outcomes - point))
    if intervals is None:
        return block.get("ranks")
    return np.asarray(np.abs(block["outcomes"] - intervals.mean(axis=1)))


def _difficulty(block: Rows) -> np.ndarray | None:
    """The ease that was given, or the largest probability in its place."""
    ease = block.get("ease")
    return ease if ease is not None else block.get("top_probability")


def _ease_or_size(block: Rows) -> np.ndarray | None:
    """Difficulty, or minus the logarithm of what was stated: the width, the size, the reach of quantiles.

    Sets of labels cover unevenly over their sizes even when they are right (one label more is a jump), and
    empty ones are not easy: their size does not stand in. To nine decimals, because (f + q) - (f - q) is not
    2q in the last digits. Infinite sizes are the hardest.
    """
    if (known := block.get("difficulty")) is not None or block.task == "classification":
        return known
    size = block.at(0, {}).get("size")
    if size is None and "quantiles" in block.given:
        stated = as_numpy(block.given["quantiles"]).astype(np.float64)
        size = stated[:, -1] - stated[:, 0] if stated.shape[1] > 1 else None
    if size is None:
        return None
    tiny, huge = 1e-300, 1e300
    return np.asarray(-np.round(np.log(np.clip(np.abs(size.astype(np.float64)), tiny, huge)), 9))


def _top_probability(block: Rows) -> np.ndarray | None:
    probabilities = block.get("probabilities")
    if probabilities is None:
        return None
    if (compiled := block.kernels) is None:
        return np.asarray(probabilities.max(axis=1))
    top, label = np.empty(block.n, dtype=probabilities.dtype), np.empty(block.n, dtype=np.int32)
    compiled.find_top(columns_of(probabilities), top, label)
    block.remember("top_label", label)
    return top


def _top_is_right(block: Rows) -> np.ndarray | None:
    """Whether the most probable label happened; ties go to the first column."""
    P, codes, top = block.get("probabilities"), block.get("codes"), block.get("top_probability")
    if P is None or codes is None or top is None:
        return None
    if (label := block.get("top_label")) is not None:
        return np.asarray(label == codes)
    right = at_label(P, codes) == top
    tied = np.add.reduce((top == P.T).view(np.uint8), axis=0) > 1
    if tied.any():
        right[tied] = P[tied].argmax(axis=1) == codes[tied]
    return np.asarray(right)


# What depends on the level; everything else is shared between levels.
LEVEL_DEPENDENT = frozenset(
    {
        "sets_at_level",
        "interval_at_level",
        "below_quantile",
        "is_class",
        "class_probability",
        "covered",
        "stated_covered",
        "stated_size",
        "stated_mass",
        "size",
        "n_labels",
        "empty",
        "hardness",
        "error",
        "width",
        "prediction",
    }
)
DERIVED: dict[str, Callable[[Rows], np.ndarray | None]] = {
    "codes": _codes,
    "outcomes": _outcomes,
    "y": _y,
    "p_values": _p_values,
    "sets_at_level": _sets_at_level,
    "interval_at_level": _interval_at_level,
    "covered": _covered,
    "below_quantile": _below_quantile,
    "is_positive": _is_positive,
    "positive_probability": _positive_probability,
    "is_class": _is_class,
    "class_probability": _class_probability,
    "group_cell": _group_cell,
    "stated_covered": _stated_column(0),
    "stated_size": _stated_column(1),
    "stated_mass": _stated_column(2),
    "size": _size,
    "n_labels": _n_labels,
    "empty": _empty,
    "ranks": _ranks,
    "hardness": _hardness,
    "error": _hardness,
    "width": _size,
    "prediction": _prediction,
    "difficulty": _difficulty,
    "ease_or_size": _ease_or_size,
    "top_probability": _top_probability,
    "top_is_right": _top_is_right,
}
