"""From the moments of each criterion's rows to its estimate: intervals, tests, tie-breaks, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calipers.inference import Moments, ShareCounts, binomial_p_value, mean_estimate, symmetry_test
from calipers.inference.means import bounded_mean_fields
from calipers.inputs import NO_EXACT_LAW, check_alphas
from calipers.metrics.marginal import share_fields
from calipers.results import Estimate, EstimateTable

# name -> what it averages over rows
CRITERIA = {
    "S": "sum of p-values",
    "N": "number of labels in the set",
    "U": "unconfidence: second largest p-value",
    "F": "fuzziness: sum of all p-values but the largest",
    "M": "multiple: sets with more than one label",
    "E": "excess: labels beyond the first in the set",
    "OU": "observed unconfidence: largest p-value of a false label",
    "OF": "observed fuzziness: sum of p-values of false labels",
    "OM": "observed multiple: sets with a false label",
    "OE": "observed excess: false labels in the set",
}
# They decide between predictors of equal U or F, and of equal M or E.
TIE_BREAKS = {"credibility": "largest p-value", "empty": "sets without a label"}
_MEANINGS = CRITERIA | TIE_BREAKS
# Theorem 1: true conditional probabilities are optimal for these; with three labels or more for no other.
PROBABILISTIC = frozenset({"S", "N", "OF", "OE"})
# Criteria that depend on the level, and those whose rows are 0 or 1.
LEVEL_DEPENDENT = ("N", "M", "E", "OM", "OE", "empty")
SHARES = frozenset({"M", "OM", "empty"})
# Criteria of one row that reach the number of labels, and one less; all others reach 1.
_ALL_LABELS, _OTHER_LABELS = frozenset({"S", "N"}), frozenset({"F", "E", "OF", "OE"})
# Mean differences of p-values below this are sums of rounding errors.
_MEAN_NOISE = 1e-14
_TIE_BREAK_OF = {"U": "credibility", "F": "credibility", "M": "empty", "E": "empty"}

NO_NULL = "no null: how small a criterion could be depends on the problem, not on the predictor's soundness"
NOTES = (
    "S, N, OF, OE are probabilistic: true probabilities are optimal for them. Choose and tune by these.",
    "U, F, M, E, OU, OM are not, with three labels or more: report them, do not optimise them.",
    "Equal U or F: the smaller credibility is better. Equal M or E: more empty sets are better.",
)
BINARY_NOTES = (
    "With two labels U = F, M = E, OU = OF, OM = OE, and true probabilities, ties broken well, are optimal.",
    NOTES[2],
)


def criteria_from_moments(
    moments: Mapping[str, Moments],
    *,
    alpha: Any,
    confidence: float = 0.95,
    n_labels: int | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> EstimateTable:
    """The table of `efficiency` from the moments of each criterion's rows, as blocks of rows give them."""
    known = ranges or {}
    table = {
        name: criterion_estimate(name, m, known.get(name, criterion_range(name, n_labels)), confidence)
        for name, m in moments.items()
    }
    return EstimateTable(table, title=title_at(alpha), notes=BINARY_NOTES if n_labels == 2 else NOTES)


def by_label_from_moments(
    moments: Mapping[tuple[str, int], Moments], *, names: Sequence[Any], alpha: Any, confidence: float
) -> EstimateTable:
    """The table of `efficiency_by_label` from the moments of every criterion and label."""
    table = {
        f"{name} | {names[k]}": criterion_estimate(name, m, criterion_range(name, len(names)), confidence)
        for (name, k), m in moments.items()
    }
    return EstimateTable(table, title=f"{title_at(alpha)}, by observed label", notes=NOTES[:2])


def difference_from_moments(
    moments: Mapping[str, Moments],
    discordant: Mapping[str, tuple[int, int]],
    *,
    alpha: Any,
    confidence: float,
    n_labels: int | None = None,
) -> EstimateTable:
    """The table of `efficiency_difference` from the moments of the gaps, and rows where only one is 1."""
    table = {
        name: _difference(name, m, discordant.get(name), criterion_range(name, n_labels), confidence)
        for name, m in moments.items()
    }
    preferred = {name: _preferred(name, table) for name in CRITERIA}
    table = {
        name: replace(e, details={**e.details, "preferred": preferred.get(name)}) for name, e in table.items()
    }
    return EstimateTable(table, title=f"{title_at(alpha)}: first minus second", notes=NOTES)


def criterion_estimate(
    name: str, moments: Moments, limits: tuple[float, float] | None, confidence: float
) -> Estimate:
    """One criterion from the moments of its rows, which lie within limits."""
    details = {
        "meaning": _MEANINGS.get(name, "sum of transformed p-values"),
        "probabilistic": name in PROBABILISTIC or name == "S_phi",
    }
    if name in _TIE_BREAK_OF:
        details["tie_break"] = _TIE_BREAK_OF[name]
    if name not in SHARES and limits is not None and moments.n > 0:
        # As `mean_estimate` of rows within limits, with the reason from the start.
        fields = bounded_mean_fields(moments, limits, confidence)
        return Estimate(name=name, **fields, reason=NO_NULL, details=details)
    if name not in SHARES:
        mean = _bounded_mean(name, moments, limits, confidence)
        return replace(mean, reason="; ".join(filter(None, [mean.reason, NO_NULL])), details=details)
    return Estimate(
        name=name,
        **share_fields(ShareCounts.of_moments(moments), confidence),
        method="share of rows, Clopper-Pearson interval",
        reason=NO_NULL,
        details=details,
    )


def _bounded_mean(
    name: str, moments: Moments, limits: tuple[float, float] | None, confidence: float
) -> Estimate:
    """The mean of rows within limits; without an interval where these are not known."""
    if limits is not None:
        return mean_estimate(moments, name=name, confidence=confidence, limits=limits)
    reason = "no interval: it depends on the number of labels, which is not known"
    error = moments.std_error if moments.rows > 1 else None
    return Estimate(
        name=name, value=moments.mean, std_error=error, n=moments.rows, method="mean", reason=reason
    )


def _difference(
    name: str,
    moments: Moments,
    discordant: tuple[int, int] | None,
    limits: tuple[float, float] | None,
    confidence: float,
) -> Estimate:
    moments = _without_rounding(moments, limits)
    both_ways = None if limits is None else (-limits[1], limits[1])
    result = _bounded_mean(name, moments, both_ways, confidence)
    if not moments.whole:
        return replace(result, reason="; ".join(filter(None, [result.reason, NO_EXACT_LAW])))
    if discordant is None:
        p_value, band = symmetry_test(moments)
        return replace(
            result,
            p_value=p_value,
            alternative="two-sided",
            null_low=-band,
            null_high=band,
            null_level=0.95,
            method=f"{result.method}, sign-symmetry test",
            details={"null_subject": "two equal predictors"},
        )
    more, fewer = discordant
    p_value = float(binomial_p_value(more, more + fewer, 0.5)) if more + fewer else 1.0
    return replace(
        result,
        p_value=p_value,
        alternative="two-sided",
        method=f"{result.method}, exact test of discordant rows",
        details={"first_only": more, "second_only": fewer},
    )


def _without_rounding(moments: Moments, limits: tuple[float, float] | None) -> Moments:
    """A mean or a spread of differences that is rounding alone is 0."""
    noise = _MEAN_NOISE * (1.0 if limits is None else max(limits[1], 1.0))
    return replace(
        moments,
        mean=moments.mean if abs(moments.mean) > noise else 0.0,
        squares=moments.squares if moments.squares > moments.n * noise * noise else 0.0,
    )


def _preferred(name: str, table: dict[str, Estimate]) -> str | None:
    gap = float(table[name])
    if gap == 0 and name in _TIE_BREAK_OF:
        key = _TIE_BREAK_OF[name]
        # Smaller credibility is better, more empty sets are better.
        gap = float(table[key]) * (1 if key == "credibility" else -1)
    return None if gap == 0 else "first" if gap < 0 else "second"


def criterion_range(name: str, n_labels: int | None) -> tuple[float, float] | None:
    """What a criterion of one row can be; None where that depends on an unknown number of labels."""
    if name not in _ALL_LABELS and name not in _OTHER_LABELS:
        return 0.0, 1.0
    if n_labels is None:
        return None
    return 0.0, float(n_labels if name in _ALL_LABELS else n_labels - 1)


def title_at(alpha: Any) -> str:
    """The title of a table at one level, or one per label."""
    levels, single = check_alphas(alpha)
    return f"Efficiency at alpha = {float(levels[0]):g}" if single else "Efficiency at one alpha per label"
