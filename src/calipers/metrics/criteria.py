"""Is it as narrow as it could be? The ten efficiency criteria of Vovk et al. (2017), row by row.

Five criteria read p-values, five read prediction sets at a level; two basic ones, four that treat the
largest p-value apart, four that use the observed label. Smaller is better in all ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import Array, as_array, as_numpy, namespace, on_device_of
from calipers.exceptions import InputError
from calipers.inference import (
    Moments,
    State,
    binomial_p_value,
    clopper_pearson,
    mean_estimate,
    repetitions,
)
from calipers.inputs import (
    check_alphas,
    check_confidence,
    check_p_values,
    check_same_length,
    check_weights,
    encode_labels,
    exact_level,
    sets_at,
)
from calipers.metrics.contributions import criterion_rows
from calipers.metrics.entry import MetricEntry, known_options
from calipers.results import Curve, Estimate, EstimateTable

# name -> what it averages over rows
CRITERIA = {
    "S": "sum of p-values",
    "N": "number of labels in the set",
    "U": "unconfidence: second largest p-value",
    "F": "fuzziness: sum of p-values but a largest one",
    "M": "multiple: sets with more than one label",
    "E": "excess: labels beyond the first in the set",
    "OU": "observed unconfidence: largest p-value of a false label",
    "OF": "observed fuzziness: sum of p-values of false labels",
    "OM": "observed multiple: sets with a false label",
    "OE": "observed excess: false labels in the set",
}
# Keys that decide between predictors of equal U or F, and of equal M or E.
TIE_BREAKS = {"credibility": "largest p-value", "empty": "sets without a label"}
# Theorem 1: true conditional probabilities are optimal for these four, and for no other with three labels.
PROBABILISTIC = frozenset({"S", "N", "OF", "OE"})
# Criteria that depend on the level, and those whose rows are 0 or 1.
LEVEL_DEPENDENT = ("N", "M", "E", "OM", "OE", "empty")
SHARES = frozenset({"M", "OM", "empty"})
_TIE_BREAK_OF = {"U": "credibility", "F": "credibility", "M": "empty", "E": "empty"}

_NO_NULL = "no null: how small a criterion could be depends on the problem, not on the predictor's soundness"
_NOTES = (
    "S, N, OF, OE are probabilistic: true probabilities are optimal for them. Choose and tune by these.",
    "U, F, M, E, OU, OM are not, with three labels or more: report them, do not optimise them.",
    "Equal U or F: the smaller credibility is better. Equal M or E: more empty sets are better.",
)
_BINARY_NOTES = (
    "With two labels U = F, M = E, OU = OF, OM = OE, and true probabilities, ties broken well, are optimal.",
    _NOTES[2],
)


def efficiency(
    y_true: Any,
    p_values: Any,
    *,
    alpha: Any = 0.1,
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
    alpha : float, or one per label
        Allowed miscoverage of the sets; a sequence of K levels gives every label its own.
    classes : sequence of K labels, optional
        The label of every column.
    sample_weight : array of shape (n,), optional
        Weights; a weight of 2 counts as two equal rows.
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
    alpha in float32, so that 0.1 means 0.1. Intervals: Student t for means, Clopper-Pearson for the
    shares M, OM and empty; they measure the luck of the test rows for this predictor, not the luck of its
    calibration rows. Cost: one pass.

    References
    ----------
    Vovk, Fedorova, Nouretdinov, Petej, Gammerman (2017), Criteria of efficiency for conformal prediction.

    Examples
    --------
    >>> from calipers.metrics import efficiency
    >>> table = efficiency([0, 1], [[0.5, 0.25, 0.05], [0.3, 0.9, 0.2]], alpha=0.1)
    >>> [round(float(table[name]), 3) for name in ("S", "N", "OF", "OE", "U", "M")]
    [1.1, 2.5, 0.4, 1.5, 0.275, 1.0]
    """
    p, codes, weights = _check(y_true, p_values, classes, sample_weight)
    level = check_confidence(confidence)
    rows = criterion_rows(p, codes, sets_at(p, alpha))
    if phi is not None:
        rows["S_phi"] = _transformed_sums(p, phi)
    table = {name: _estimate(name, x, weights, level) for name, x in _on_host(rows, weights).items()}
    return EstimateTable(table, title=_title(alpha), notes=_BINARY_NOTES if p.shape[1] == 2 else _NOTES)


def efficiency_by_label(
    y_true: Any,
    p_values: Any,
    *,
    alpha: Any = 0.1,
    classes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    criteria: Iterable[str] = ("OF", "OE"),
) -> EstimateTable:
    """Criteria averaged over the rows of each observed label: which classes pay for the efficiency.

    Parameters
    ----------
    y_true, p_values, alpha, classes, sample_weight, confidence
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
    level, chosen = check_confidence(confidence), [_criterion(name) for name in criteria]
    rows = {k: as_numpy(v) for k, v in criterion_rows(p, codes, sets_at(p, alpha)).items()}
    host = as_numpy(codes)
    names = _column_names(y_true, int(p.shape[1]), classes)
    moments = {
        (name, k): Moments.of(rows[name][host == k], None if weights is None else weights[host == k])
        for name in chosen
        for k in np.unique(host).tolist()
    }
    return by_label_from_moments(moments, names=names, alpha=alpha, confidence=level)


def by_label_from_moments(
    moments: Mapping[tuple[str, int], Moments], *, names: Sequence[Any], alpha: Any, confidence: float
) -> EstimateTable:
    """The table of `efficiency_by_label` from the moments of every criterion and label."""
    table = {f"{name} | {names[k]}": _estimate(name, m, None, confidence) for (name, k), m in moments.items()}
    return EstimateTable(table, title=f"{_title(alpha)}, by observed label", notes=_NOTES[:2])


def efficiency_difference(
    y_true: Any,
    p_values: Any,
    other_p_values: Any,
    *,
    alpha: Any = 0.1,
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
    alpha, classes, sample_weight, confidence
        As in `efficiency`.

    Returns
    -------
    EstimateTable
        ``p_value`` tests that the two are equally efficient; ``details["preferred"]`` is "first", "second"
        or None after the tie-break keys, on these rows, whatever the noise.

    Notes
    -----
    Means: paired Student t. Shares (M, OM, empty): exact test of the discordant rows (McNemar), interval
    by Student t. Twelve tests at once: correct with `calipers.inference.holm` when all are read.

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
    check_same_length(p_values=p, other_p_values=other)
    if tuple(p.shape) != tuple(other.shape):
        raise InputError(
            "p_values and other_p_values must have the same columns, "
            f"got {p.shape[1]} and {other.shape[1]} labels."
        )
    level = check_confidence(confidence)
    first = criterion_rows(p, codes, sets_at(p, alpha))
    second = criterion_rows(other, codes, sets_at(other, alpha))
    counts = np.ones(p.shape[0], dtype=np.int64) if weights is None else repetitions(weights)
    moments, discordant = {}, {}
    for name in first:
        gap = as_numpy(first[name]) - as_numpy(second[name])
        moments[name] = Moments.of(gap, weights)
        if name in SHARES and counts is not None:
            discordant[name] = int(counts[gap > 0].sum()), int(counts[gap < 0].sum())
    return difference_from_moments(moments, discordant, alpha=alpha, confidence=level)


def difference_from_moments(
    moments: Mapping[str, Moments],
    discordant: Mapping[str, tuple[int, int]],
    *,
    alpha: Any,
    confidence: float,
) -> EstimateTable:
    """The table of `efficiency_difference` from the moments of the gaps, and rows where only one is 1."""
    table = {name: _difference(name, m, discordant.get(name), confidence) for name, m in moments.items()}
    preferred = {name: _preferred(name, table) for name in CRITERIA}
    table = {
        name: replace(e, details={**e.details, "preferred": preferred.get(name)}) for name, e in table.items()
    }
    return EstimateTable(table, title=f"{_title(alpha)}: first minus second", notes=_NOTES)


def efficiency_curve(
    y_true: Any,
    p_values: Any,
    *,
    criterion: str = "N",
    alphas: Any = None,
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
    alphas : sequence of levels, optional
        Default 0.01, 0.02, ..., 0.99.

    Returns
    -------
    Curve
        A step function of alpha, read at the levels.

    Examples
    --------
    >>> from calipers.metrics import efficiency_curve
    >>> efficiency_curve([0], [[0.5, 0.25]], alphas=[0.1, 0.3, 0.6]).y.tolist()
    [2.0, 1.0, 0.0]
    """
    if criterion not in LEVEL_DEPENDENT:
        raise InputError(f"criterion must be one of {', '.join(LEVEL_DEPENDENT)}, got {criterion!r}.")
    p, codes, weights = _check(y_true, p_values, classes, sample_weight)
    levels, _ = check_alphas(np.arange(1, 100) / 100 if alphas is None else alphas, name="alphas")
    level = check_confidence(confidence)
    rows = (as_numpy(criterion_rows(p, codes, sets_at(p, a))[criterion]) for a in levels)
    points = [_estimate(criterion, x, weights, level) for x in rows]
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


def _on_host(rows: dict[str, Array], weights: np.ndarray | None) -> dict[str, np.ndarray | Moments]:
    """The rows as numpy arrays, or their moments when they lie on a device and have no weights."""
    table = list(rows.values())
    if weights is not None or isinstance(table[0], np.ndarray):
        return {name: as_numpy(x) for name, x in rows.items()}
    return dict(zip(rows, Moments.of_each(namespace(table[0]).stack(table)), strict=True))


def _check(
    y_true: Any, p_values: Any, classes: Any, sample_weight: Any
) -> tuple[Array, Array, np.ndarray | None]:
    p = check_p_values(p_values)
    n = check_same_length(y_true=as_array(y_true, name="y_true"), p_values=p)
    codes = encode_labels(y_true, int(p.shape[1]), classes=classes, table=p_values)
    codes = on_device_of(codes, p) if isinstance(codes, np.ndarray) else codes
    return p, codes, check_weights(sample_weight, n)


def criteria_from_moments(
    moments: Mapping[str, Moments], *, alpha: Any, confidence: float = 0.95
) -> EstimateTable:
    """The table of `efficiency` from the moments of each criterion's rows, as blocks of rows give them."""
    table = {name: _estimate(name, found, None, confidence) for name, found in moments.items()}
    return EstimateTable(table, title=_title(alpha), notes=_NOTES)


def _estimate(
    name: str, rows: np.ndarray | Moments, weights: np.ndarray | None, confidence: float
) -> Estimate:
    details = {
        "meaning": (CRITERIA | TIE_BREAKS).get(name, "sum of transformed p-values"),
        "probabilistic": name in PROBABILISTIC or name == "S_phi",
    }
    if name in _TIE_BREAK_OF:
        details["tie_break"] = _TIE_BREAK_OF[name]
    if name not in SHARES:
        mean = mean_estimate(rows, name=name, weights=weights, confidence=confidence)
        return replace(mean, reason="; ".join(filter(None, [mean.reason, _NO_NULL])), details=details)
    hits, total = _hits(rows, weights)
    low, high = clopper_pearson(hits, total, confidence=confidence)
    return Estimate(
        name=name,
        value=hits / total,
        std_error=float(np.sqrt(hits / total * (1 - hits / total) / total)),
        low=float(low),
        high=float(high),
        confidence=confidence,
        n=total,
        method="share of rows, Clopper-Pearson interval",
        reason=_NO_NULL,
        details=details,
    )


def _hits(rows: np.ndarray | Moments, weights: np.ndarray | None) -> tuple[float, float]:
    """Rows (weight) that are 1, and all of them; a count that passed through a mean is whole again."""
    if isinstance(rows, Moments):
        hits = rows.n * rows.mean
        return (float(np.rint(hits)) if rows.n == int(rows.n) else hits), rows.n
    if weights is None:
        return float(rows.sum()), float(len(rows))
    return float(weights[rows > 0].sum()), float(weights.sum())


def _difference(
    name: str, moments: Moments, discordant: tuple[int, int] | None, confidence: float
) -> Estimate:
    result = mean_estimate(moments, name=name, confidence=confidence, null=0.0)
    if discordant is None:
        return result
    more, fewer = discordant
    p_value = float(binomial_p_value(more, more + fewer, 0.5)) if more + fewer else 1.0
    return replace(
        result,
        p_value=p_value,
        alternative="two-sided",
        method=f"{result.method}, exact test of discordant rows",
        details={"first_only": more, "second_only": fewer},
    )


def _preferred(name: str, table: dict[str, Estimate]) -> str | None:
    gap = float(table[name])
    if gap == 0 and name in _TIE_BREAK_OF:
        key = _TIE_BREAK_OF[name]
        # Smaller credibility is better, more empty sets are better.
        gap = float(table[key]) * (1 if key == "credibility" else -1)
    return None if gap == 0 else "first" if gap < 0 else "second"


def _transformed_sums(p: Array, phi: Callable[[Any], Any]) -> Array:
    grid = np.asarray(phi(np.linspace(0.0, 1.0, 1001)), dtype=float)
    if grid.shape != (1001,) or not np.isfinite(grid).all() or not (np.diff(grid) > 0).all():
        raise InputError("phi must map arrays to arrays, finite and strictly increasing on [0, 1].")
    xp = namespace(p)
    return xp.sum(phi(xp.astype(p, xp.float64)), axis=1)


def _criterion(name: str) -> str:
    if name not in CRITERIA and name not in TIE_BREAKS:
        raise InputError(f"there is no criterion {name!r}; known are {', '.join(CRITERIA | TIE_BREAKS)}.")
    return name


def _column_names(y_true: Any, n_columns: int, classes: Any) -> list[Any]:
    if classes is not None:
        return list(as_numpy(classes).tolist())
    labels = np.unique(as_numpy(y_true)).tolist()
    return labels if len(labels) == n_columns else list(range(n_columns))


def _title(alpha: Any) -> str:
    levels, single = check_alphas(alpha)
    return f"Efficiency at alpha = {float(levels[0]):g}" if single else "Efficiency at one alpha per label"


def efficiency_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Moments and counts of the ten criteria."""
    from calipers.metrics.criteria_states import CriteriaState

    return CriteriaState(**known_options(entry, options, ("alpha", "confidence")))


def by_label_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Moments of the criteria per label."""
    from calipers.metrics.criteria_states import LabelState

    return LabelState(**known_options(entry, options, ("alpha", "confidence", "criteria")))


def difference_state(entry: MetricEntry, options: dict[str, Any]) -> State:
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
ENTRIES = (
    MetricEntry(
        function=efficiency,
        state=efficiency_state,
        inputs=("y_true", "p_values"),
        direction="lower",
        good="as small as the problem allows; compare predictors on the same rows",
        bounds=(0.0, float("inf")),
        no_null=_NO_NULL,
        interval="Student t; Clopper-Pearson for shares",
        **_COMMON,
    ),
    MetricEntry(
        function=efficiency_by_label,
        state=by_label_state,
        inputs=("y_true", "p_values"),
        direction="lower",
        good="as small as the problem allows, and even over labels",
        bounds=(0.0, float("inf")),
        no_null=_NO_NULL,
        interval="Student t; Clopper-Pearson for shares",
        **_COMMON,
    ),
    MetricEntry(
        function=efficiency_difference,
        state=difference_state,
        inputs=("y_true", "p_values", "other_p_values"),
        direction="lower",
        good="negative: the first predictor is more efficient",
        bounds=(float("-inf"), float("inf")),
        null="both predictors are equally efficient on average",
        interval="paired Student t",
        **_COMMON,
    ),
)
