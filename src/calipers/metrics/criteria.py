"""Is it as narrow as it could be? The ten efficiency criteria of Vovk et al. (2017), row by row.

Five criteria read p-values, five read prediction sets at a level; two basic ones, four that treat the
largest p-value apart, four that use the observed label. Smaller is better in all ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import Array, as_numpy, on_device_of
from calipers.arrays.device_rows import is_read_once
from calipers.deprecation import renamed_arguments, warn_deprecated
from calipers.exceptions import InputError, InputTypeError
from calipers.inference import Moments
from calipers.inputs import (
    Weights,
    check_alphas,
    check_confidence,
    check_p_values,
    check_same_length,
    encode_labels,
    exact_level,
    sets_at,
)
from calipers.inputs.labels import column_names, may_be_columns, needs_zero
from calipers.inputs.levels import check_label_alpha
from calipers.inputs.option_checks import check_choice
from calipers.metrics.contributions import criterion_rows
from calipers.metrics.criteria_estimates import (
    CRITERIA,
    LEVEL_DEPENDENT,
    NO_NULL,
    SHARES,
    TIE_BREAKS,
    by_label_from_moments,
    criteria_from_moments,
    criterion_estimate,
    criterion_range,
    difference_from_moments,
)
from calipers.metrics.entry import MetricEntry, known_options
from calipers.results import Curve, EstimateTable

if TYPE_CHECKING:
    from calipers.metrics.criteria_states import CriteriaState, DifferenceState, LabelState

__all__ = [
    "ENTRIES",
    "SHARES",
    "by_label_from_moments",
    "criteria_from_moments",
    "difference_from_moments",
    "efficiency",
    "efficiency_by_label",
    "efficiency_curve",
    "efficiency_difference",
]


def efficiency(
    y_true: Any,
    p_values: Any,
    *,
    alpha: Any = 0.1,
    label_alpha: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    phi: Callable[[Any], Any] | None = None,
) -> EstimateTable:
    """The ten criteria of efficiency, with the two keys that break their ties; smaller is better.

    Parameters
    ----------
    y_true : array of shape (n,)
        Observed labels.
    p_values : array of shape (n, K)
        p-values of all labels; label-conditional ones give the label-conditional criteria.
    alpha : float
        Allowed miscoverage of the sets.
    label_alpha : sequence of K levels, or mapping of label to level, optional
        A level for every label, instead of ``alpha``.
    classes : sequence of K labels, optional
        The label of every column.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    confidence : float
        Level of the intervals.
    phi : callable, optional
        A strictly increasing function on [0, 1]; adds "S_phi", the sum of transformed p-values, for
        which true probabilities are optimal as they are for S.

    Returns
    -------
    EstimateTable
        Keys S, N, U, F, M, E, OU, OF, OM, OE, credibility, empty (and S_phi). ``details`` of each say
        whether it is probabilistic and which key breaks its ties.

    Raises
    ------
    InputError
        For p-values outside [0, 1], missing values, or labels without a column.

    Notes
    -----
    Each is a mean over rows. A label is in the set when p > alpha; p-values in float32 are compared with
    alpha in float32, so that 0.1 means 0.1. Intervals: Clopper-Pearson for the shares M, OM and empty, its
    extension to rows of a known range for the others (`calipers.inference.bounded_mean_interval`): rows lie
    in [0, 1] for U, OU and credibility, in [0, K] for S and N, in [0, K - 1] for F, E, OF and OE. They hold
    for good predictors too, whose rare bad rows make Student's t miss the mean in a third of all samples;
    they measure the luck of the test rows for this predictor, not the luck of its calibration rows. Cost:
    one pass.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej, Gammerman (2017), Criteria of efficiency for conformal prediction.

    Examples
    --------
    >>> from calipers.metrics import efficiency
    >>> table = efficiency([0, 1], [[0.5, 0.25, 0.05], [0.3, 0.9, 0.2]], alpha=0.1)
    >>> [round(float(table[name]), 3) for name in ("S", "N", "OF", "OE", "U", "M")]
    [1.1, 2.5, 0.4, 1.5, 0.275, 1.0]
    """
    if phi is not None and not callable(phi):
        raise InputTypeError(f"phi must be a function on [0, 1], got {repr(phi)[:60]}.")
    given = {"alpha": alpha, "label_alpha": label_alpha, "classes": classes}
    if phi is None and sample_weight is None and is_read_once(p_values):
        table = _read_once(y_true, p_values, check_confidence(confidence), **given)
        if table is not None:
            return table
    p, codes, weights = _check(y_true, p_values, classes, sample_weight)
    levels = _levels_of(y_true, p, **given)
    options = {"alpha": levels, "confidence": check_confidence(confidence), "phi": phi}
    state = efficiency_state(_EFFICIENCY, options)
    state.add(p, codes, weights)
    return state.finish()


def _read_once(
    y_true: Any, p: Array, confidence: float, *, classes: Any, **levels: Any
) -> EstimateTable | None:
    """The table where p-values are read once on their device and checked by that read; None if they fail."""
    n_labels = int(p.shape[1])
    check_same_length(y_true=y_true, p_values=p)
    if not may_be_columns(y_true, n_labels, classes) or y_true.device != p.device:
        return None
    alpha = _levels_of(y_true, p, classes=classes, **levels)
    state = efficiency_state(_EFFICIENCY, {"alpha": alpha, "confidence": confidence})
    is_added = state.add_read(p, y_true, unchecked=True, needs_zero=needs_zero(n_labels, classes))
    return state.finish() if is_added else None


def _levels_of(y_true: Any, p: Array, *, alpha: Any, label_alpha: Any, classes: Any) -> Any:
    return _levels(alpha, label_alpha, partial(column_names, y_true, int(p.shape[1]), classes), "efficiency")


def efficiency_by_label(
    y_true: Any,
    p_values: Any,
    *,
    alpha: Any = 0.1,
    label_alpha: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    criteria: Iterable[str] = ("OF", "OE"),
) -> EstimateTable:
    """Criteria averaged over the rows of each observed label: which classes pay for the efficiency.

    Parameters
    ----------
    y_true, p_values, alpha, label_alpha, classes, sample_weight, confidence
        As in `efficiency`.
    criteria : iterable of str
        Which criteria, by default the two that are probabilistic and observed.

    Returns
    -------
    EstimateTable
        Keys ``"OF | label"`` in the order of the columns; labels that do not occur have no rows.

    Notes
    -----
    Intervals as in `efficiency`, one per cell: with many labels some will miss by chance.

    Examples
    --------
    >>> from calipers.metrics import efficiency_by_label
    >>> list(efficiency_by_label(["a", "b", "a"], [[0.5, 0.25], [0.3, 0.9], [1.0, 0.05]], criteria=["OF"]))
    ['OF | a', 'OF | b']
    """
    p, codes, weights = _check(y_true, p_values, classes, sample_weight)
    names = column_names(y_true, int(p.shape[1]), classes)
    levels = _levels(alpha, label_alpha, lambda: names, "efficiency_by_label")
    options = {"alpha": levels, "confidence": check_confidence(confidence), "criteria": criteria}
    state = by_label_state(_BY_LABEL, options)
    state.add(p, codes, weights, names=names)
    return state.finish()


def efficiency_difference(
    y_true: Any,
    p_values: Any,
    other_p_values: Any,
    *,
    alpha: Any = 0.1,
    label_alpha: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> EstimateTable:
    """First minus second predictor in every criterion, on the same rows; negative favours the first.

    Parameters
    ----------
    y_true : array of shape (n,)
        Observed labels.
    p_values, other_p_values : arrays of shape (n, K)
        p-values of the two predictors.
    alpha, label_alpha, classes, sample_weight, confidence
        As in `efficiency`.

    Returns
    -------
    EstimateTable
        ``p_value`` tests that the two are equally efficient; ``details["preferred"]`` is "first", "second"
        or None after the tie-break keys, on these rows, whatever the noise.

    Notes
    -----
    Null: two equal predictors, whose p-values could be exchanged in any row, so that a difference is as
    likely negative as positive. Shares (M, OM, empty): exact test of the discordant rows (McNemar). Others:
    a bound on sums of random signs, for few and for heavy-tailed differences too
    (`calipers.inference.symmetry_test`). The interval holds the difference of the means of any two
    predictors, exchangeable or not (`calipers.inference.bounded_mean_interval` on the range of a
    difference), so it may hold 0 where the test rejects. Differences within rounding are exactly 0. Twelve
    tests at once: correct with `calipers.inference.holm` when all are read.

    Examples
    --------
    >>> from calipers.metrics import efficiency_difference
    >>> first, second = [[0.5, 0.1], [0.2, 0.9], [0.4, 0.3]], [[0.5, 0.4], [0.3, 0.9], [0.4, 0.35]]
    >>> table = efficiency_difference([0, 1, 0], first, second)
    >>> round(float(table["S"]), 3), table["S"].details["preferred"]
    (-0.15, 'first')
    """
    p, codes, weights = _check(y_true, p_values, classes, sample_weight)
    other = check_p_values(other_p_values, name="other_p_values")
    check_same_length(p_values=p_values, other_p_values=other_p_values)
    if tuple(p.shape) != tuple(other.shape):
        raise InputError(
            "p_values and other_p_values must have the same columns, "
            f"got {p.shape[1]} and {other.shape[1]} labels."
        )
    names = column_names(y_true, int(p.shape[1]), classes)
    levels = _levels(alpha, label_alpha, lambda: names, "efficiency_difference")
    state = difference_state(_DIFFERENCE, {"alpha": levels, "confidence": check_confidence(confidence)})
    state.add(p, other, codes, weights)
    return state.finish()


@renamed_arguments("0.4", alphas="alpha")
def efficiency_curve(
    y_true: Any,
    p_values: Any,
    *,
    criterion: str = "N",
    alpha: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Curve:
    """A level-dependent criterion (N, M, E, OM, OE, empty) over alpha, with its pointwise band.

    Its integral over (0, 1) is the level-free partner: S of N, U of M, F of E, OU of OM, OF of OE, and
    one minus credibility of empty.

    Parameters
    ----------
    y_true, p_values, classes, sample_weight, confidence
        As in `efficiency`.
    criterion : str
        One of N, M, E, OM, OE, empty.
    alpha : sequence of levels, optional
        Default 0.01, 0.02, ..., 0.99.

    Returns
    -------
    Curve
        A step function of alpha, read at the levels.

    Examples
    --------
    >>> from calipers.metrics import efficiency_curve
    >>> efficiency_curve([0], [[0.5, 0.25]], alpha=[0.1, 0.3, 0.6]).y.tolist()
    [2.0, 1.0, 0.0]
    """
    check_choice(criterion, LEVEL_DEPENDENT, name="criterion")
    p, codes, weights = _check(y_true, p_values, classes, sample_weight)
    levels, _ = check_alphas(np.arange(1, 100) / 100 if alpha is None else alpha)
    level = check_confidence(confidence)
    rows = (as_numpy(criterion_rows(p, codes, sets_at(p, a))[criterion]) for a in levels)
    limits = criterion_range(criterion, int(p.shape[1]))
    points = [criterion_estimate(criterion, Moments.of(x, weights), limits, level) for x in rows]
    return Curve(
        name=criterion,
        x=np.array([float(exact_level(a)) for a in levels]),
        y=np.array([float(e) for e in points]),
        low=np.array([np.nan if e.low is None else e.low for e in points]),
        high=np.array([np.nan if e.high is None else e.high for e in points]),
        confidence=level,
        x_label="alpha",
        y_label=(CRITERIA | TIE_BREAKS)[criterion],
        step=True,
        method="mean over rows at each level, pointwise band",
    )


def _check(
    y_true: Any, p_values: Any, classes: Any, sample_weight: Any
) -> tuple[Array, Array, Weights | None]:
    p = check_p_values(p_values)
    n = check_same_length(y_true=y_true, p_values=p_values, sample_weight=sample_weight)
    codes = encode_labels(y_true, int(p.shape[1]), classes=classes, table=p_values)
    codes = on_device_of(codes, p) if isinstance(codes, np.ndarray) else codes
    return p, codes, Weights.check(sample_weight, n)


def _levels(alpha: Any, label_alpha: Any, labels: Callable[[], list[Any]], function: str) -> Any:
    """One level, or a tuple with one per label; the names of the labels are asked for only by the latter."""
    if label_alpha is not None:
        return check_label_alpha(label_alpha, labels())
    levels, single = check_alphas(alpha)
    if single:
        return alpha
    if len(levels) == len(labels()):
        warn_deprecated(f"{function}: a sequence of levels per label is now called label_alpha", "0.4")
    return levels


def _criterion(name: str) -> str:
    if not isinstance(name, str) or name not in CRITERIA | TIE_BREAKS:
        raise InputError(f"there is no criterion {name!r}; known are {', '.join(CRITERIA | TIE_BREAKS)}.")
    return name


def efficiency_state(entry: MetricEntry, options: dict[str, Any]) -> CriteriaState:
    """Moments and counts of the ten criteria."""
    from calipers.metrics.criteria_states import CriteriaState

    return CriteriaState(**known_options(entry, options, ("alpha", "confidence", "phi")))


def by_label_state(entry: MetricEntry, options: dict[str, Any]) -> LabelState:
    """Moments of the criteria per label."""
    from calipers.metrics.criteria_states import LabelState

    chosen = dict(known_options(entry, options, ("alpha", "confidence", "criteria")))
    if "criteria" in chosen:
        if not isinstance(chosen["criteria"], Iterable) or isinstance(chosen["criteria"], np.ndarray):
            raise InputTypeError(f"criteria must hold names such as OF, got {repr(chosen['criteria'])[:60]}.")
        chosen["criteria"] = tuple(_criterion(name) for name in chosen["criteria"])
    return LabelState(**chosen)


def difference_state(entry: MetricEntry, options: dict[str, Any]) -> DifferenceState:
    """Moments of the differences between two predictors."""
    from calipers.metrics.criteria_states import DifferenceState

    return DifferenceState(**known_options(entry, options, ("alpha", "confidence")))


_COMMON: dict[str, Any] = {
    "question": "narrow",
    "returns": "table",
    "merge": "moments",
    "weighted": True,
    "array_api": True,
}
_EFFICIENCY, _BY_LABEL, _DIFFERENCE = ENTRIES = (
    MetricEntry(
        function=efficiency,
        state=efficiency_state,
        inputs=("y_true", "p_values"),
        direction="lower",
        good="as small as the problem allows; compare predictors on the same rows",
        bounds=(0.0, float("inf")),
        no_null=NO_NULL,
        interval="for rows of a known range; Clopper-Pearson for shares",
        **_COMMON,
    ),
    MetricEntry(
        function=efficiency_by_label,
        state=by_label_state,
        inputs=("y_true", "p_values"),
        direction="lower",
        good="as small as the problem allows, and even over labels",
        bounds=(0.0, float("inf")),
        no_null=NO_NULL,
        interval="for rows of a known range; Clopper-Pearson for shares",
        **_COMMON,
    ),
    MetricEntry(
        function=efficiency_difference,
        state=difference_state,
        inputs=("y_true", "p_values", "other_p_values"),
        direction="lower",
        good="negative: the first predictor is more efficient",
        bounds=(float("-inf"), float("inf")),
        null="equal predictors: a difference is as likely negative as positive in every row",
        interval="for paired differences of a known range",
        **_COMMON,
    ),
)
