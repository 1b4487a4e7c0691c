"""Conditions a person can read, and the rules made of them."""

from __future__ import annotations

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
