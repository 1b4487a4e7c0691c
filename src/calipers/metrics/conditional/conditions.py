"""Conditions a person can read, and the rules made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calipers.inputs import Features

_CUTS = 15
_MOST_CATEGORIES = 30


@dataclass(frozen=True, slots=True)
class Condition:
    """One bound, category or gap of one column; a missing value satisfies no bound and no category."""

    column: int
    kind: str  # "<=", ">", "=", "!=", "missing"
    value: float

    def holds(self, features: Features) -> np.ndarray:
        """Whether each row satisfies it."""
        x = features.values[:, self.column]
        with np.errstate(invalid="ignore"):
            found = {
                "<=": x <= self.value,
                ">": x > self.value,
                "=": x == self.value,
                "!=": (x != self.value) & ~np.isnan(x),
                "missing": np.isnan(x),
            }[self.kind]
        return np.asarray(found)


Rule = tuple[Condition, ...]


def all_conditions(features: Features) -> list[Condition]:
    """Bounds at rounded quantiles, single categories, gaps: what the rules are built from."""
    found = []
    for column, labels in enumerate(features.categories):
        x = features.values[:, column]
        missing = np.isnan(x)
        known = x[~missing]
        if missing.any():
            found.append(Condition(column, "missing", 0.0))
        if not len(known) or (known == known[0]).all():
            continue
        if labels is not None:
            codes, counts = np.unique(known, return_counts=True)
            common = codes[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]]
            # Of two categories "is not A" is "is B", which is plainer.
            kinds = ("=",) if len(codes) == 2 else ("=", "!=")
            found += [Condition(column, kind, float(c)) for c in common for kind in kinds]
            continue
        found += [Condition(column, kind, cut) for cut in _cuts(known) for kind in ("<=", ">")]
    return found


def _cuts(known: np.ndarray) -> list[float]:
    """Quantiles rounded to as few digits as keep them apart, so that the printed bound is the bound."""
    distinct = np.unique(known)
    if len(distinct) <= _CUTS + 1:
        raw = 0.5 * (distinct[1:] + distinct[:-1])
    else:
        raw = np.unique(np.quantile(known, np.arange(1, _CUTS + 1) / (_CUTS + 1)))
    gap = float(np.diff(raw).min()) if len(raw) > 1 else float(np.ptp(known)) or 1.0
    digits = int(np.clip(np.ceil(-np.log10(gap)) + 1, -12, 12))
    rounded = np.unique(np.round(raw, digits) + 0.0)  # no minus zero
    inside = (rounded >= distinct[0]) & (rounded < distinct[-1])
    return [float(cut) for cut in rounded[inside]]


def rule_holds(rule: Rule, features: Features) -> np.ndarray:
    """Rows that satisfy every condition."""
    held = np.ones(len(features), dtype=bool)
    for condition in rule:
        held &= condition.holds(features)
    return held


def simplified(rule: Rule) -> Rule:
    """The same rule without bounds that another bound implies, in order of columns."""
    tightest: dict[tuple[int, str, float], Condition] = {}
    for c in rule:
        key = (c.column, c.kind, 0.0 if c.kind in ("<=", ">") else c.value)
        kept = tightest.get(key)
        tighter = kept is None or (c.value < kept.value if c.kind == "<=" else c.value > kept.value)
        if tighter:
            tightest[key] = c
    return tuple(sorted(tightest.values(), key=lambda c: (c.column, c.kind != ">", c.value)))


def rule_in_words(rule: Rule, features: Features) -> str:
    """The rule as a person would write it: "age <= 27 and hours > 50"."""
    parts: list[str] = []
    bounds: dict[int, dict[str, float]] = {}
    for c in rule:
        if c.kind in ("<=", ">"):
            bounds.setdefault(c.column, {})[c.kind] = c.value
    for c in rule:
        name = features.names[c.column]
        if c.kind == "missing":
            parts.append(f"{name} is missing")
        elif c.kind in ("=", "!="):
            labels = features.categories[c.column] or ()
            parts.append(f"{name} {'is' if c.kind == '=' else 'is not'} {labels[int(c.value)]}")
        elif c.column in bounds:
            ends = bounds.pop(c.column)
            low = f"{ends['>']:.12g} < " if "<=" in ends and ">" in ends else ""
            if low:
                parts.append(f"{low}{name} <= {ends['<=']:.12g}")
            else:
                kind, value = next(iter(ends.items()))
                parts.append(f"{name} {kind} {value:.12g}")
    return " and ".join(parts)


def conditions_of(rule: Rule, features: Features) -> list[tuple[str, str, object]]:
    """The conditions of a rule as plain values: name of the column, sign, bound or category.

    Examples
    --------
    >>> from calipers.inputs import check_features
    >>> from calipers.metrics.conditional.conditions import Condition, conditions_of
    >>> conditions_of((Condition(1, ">", 2.5),), check_features([[0.0, 1.0], [0.0, 4.0]]))
    [('x1', '>', 2.5)]
    """
    found: list[tuple[str, str, object]] = []
    for condition in rule:
        labels = features.categories[condition.column]
        value: object = condition.value if labels is None else str(labels[int(condition.value)])
        found.append((features.names[condition.column], condition.kind, value))
    return found


def rows_that_satisfy(conditions: Sequence[tuple[str, str, object]], features: Features) -> np.ndarray:
    """Rows of another table, with the same columns, that satisfy every condition.

    Examples
    --------
    >>> from calipers.inputs import check_features
    >>> from calipers.metrics.conditional.conditions import rows_that_satisfy
    >>> rows_that_satisfy([("x1", ">", 2.5)], check_features([[0.0, 1.0], [0.0, 4.0]])).tolist()
    [False, True]
    """
    held = np.ones(len(features), dtype=bool)
    for name, kind, value in conditions:
        column = features.names.index(name)
        labels, bound = features.categories[column], value
        if labels is not None and kind != "missing":
            known = [str(label) for label in labels]
            # A category that these rows do not have is held by none of them.
            bound = known.index(str(value)) if value in known else -1
        held &= Condition(column, kind, float(bound)).holds(features)  # type: ignore[arg-type]
    return held
