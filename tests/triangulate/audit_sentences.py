"""Every number and every comparison in the sentences of an audit, against plain computations.

``false_statements(audit, given)`` lists what is not so. Numbers that follow from a fitted model or from random
splits cannot be computed again without it: those of CAL202, CAL203 and the fitted rivals are compared with the
counts that the finding carries, and these with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from calipers.results.formatting import THIN_SPACE
from tests.triangulate.plain_facts import Plain
from tests.triangulate.sentence_comparisons import contradictions, false_comparisons, false_rules

NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)( %)?(?![\w])")
FORECAST = re.compile(r"between (\S+?)( %)? and (\S+?)( %)?,")
# Granular sizes and the slope at the threshold: savings agree up to this share of the size.
SAVING_TOLERANCE = 0.02


# What no sentence may hold: a negative zero, a p-value of 0, a number that is none.
UNREADABLE = re.compile(r"-0(\.0+)?(?![\d.])|p = (-|0(?!\.)|0\.0+(?!\d))|\b[nN]a[nN]\b|\bNone\b|\binf %")


def false_statements(audit: Any, given: Mapping[str, Any]) -> list[str]:
    """Statements of an audit that plain computations do not bear out."""
    plain = Plain(given, audit.design.alphas[0])
    found = [
        f"{finding.code}: {problem} in {finding.sentence!r}"
        for finding in audit.findings
        if finding.outcome != "not_applicable"
        for problem in problems_of(finding, audit, plain)
    ]
    found += [f"estimate {name}: {problem}" for name, problem in _estimates(audit, plain)]
    return found + list(contradictions(audit)) + [f"unreadable: {line}" for line in _unreadable(audit)]


def problems_of(finding: Any, audit: Any, plain: Plain) -> Iterator[str]:
    """What is not so in one sentence."""
    yield from false_numbers(numbered_text(finding, audit), _facts(finding, audit, plain))
    if finding.code == "CAL601" and (ends := FORECAST.search(_without_names(finding))):
        yield from _not_outward(ends, audit)
    yield from false_rules(finding, plain)
    yield from false_comparisons(finding, audit, plain)


def numbered_text(finding: Any, audit: Any) -> str:
    """The sentence as far as its numbers are compared with facts: names are left out, and outward ends."""
    text = _without_names(finding).replace(" points ", " % ").replace(THIN_SPACE, "")
    if finding.code == "CAL601" and (ends := FORECAST.search(text)):
        return text.replace(ends[0], "")
    return text


def false_numbers(text: str, facts: list[float]) -> Iterator[str]:
    """Numbers of a text that are none of the facts as they are rounded: what nothing claims is false."""
    for number, percent in NUMBER.findall(text):
        unit = 10.0 ** -len(number.partition(".")[2])
        value, unit = (float(number) / 100, unit / 100) if percent else (float(number), unit)
        if not any(abs(value - fact) <= 0.5 * unit * (1 + 1e-6) + 1e-12 for fact in facts):
            yield f"{number}{percent} is none of {[round(fact, 5) for fact in facts]}"


def _unreadable(audit: Any) -> Iterator[str]:
    """Lines of the terminal, and evidence, with a negative zero, a p-value of 0 or a number that is none."""
    lines = [str(audit), *(str(finding) for finding in audit.findings), *map(str, audit.estimates.values())]
    yield from (line for text in lines for line in text.splitlines() if UNREADABLE.search(line))


def _not_outward(ends: re.Match[str], audit: Any) -> Iterator[str]:
    """Ends of a forecast that do not hold the interval, or are more than one unit of their last digit wide."""
    stated = next(e for name, e in audit.estimates.items() if " of the next " in name)
    for number, percent, end, side in (
        (ends[1], ends[2], stated.low, -1),
        (ends[3], ends[4], stated.high, 1),
    ):
        unit = 10.0 ** -len(number.partition(".")[2]) / (100 if percent else 1)
        value = float(number) / (100 if percent else 1)
        if not -1e-9 <= side * (value - end) <= unit * (1 + 1e-6):
            yield f"{number} is not {end} rounded outward"


def _without_names(finding: Any) -> str:
    """The sentence without labels, rules and ranges, whose numbers are names."""
    text = finding.sentence
    text = (
        text.replace(str(finding.where).removesuffix(str(finding.details.get("tag", ""))), "")
        if finding.where
        else text
    )
    text = re.sub(r"In group .+? (?=the |\d)", "", text)
    text = re.sub(r"In class \S+ (?=the |\d)|in class \S+", "", text)
    text = re.sub(r"(?<=[Ss]ince )\S+|From \S+ to \S+|from row \d+", "", text)
    text = re.sub(r"(Most where|best, unconfirmed by other rows:) .+? \(", "(", text)
    text = re.sub(r"\((probability|coverage|quantile|promised)[^)]*\)", "", text)
    text = re.sub(r"stated [\d.]+ % quantile|quantile stated for [\d.]+ %", "quantile", text)
    text = re.sub(r"probability of class \S+ states", "states", text)
    text = re.sub(r"Where .+? the (sets|intervals)", "the", text)
    text = re.sub(r"Worst where .+? \(", "(", text)
    text = re.sub(r"of class \S+ differs", "differs", text)
    text = re.sub(r"probabilities (from|up to|above) .+? \(", "(", text)
    text = re.sub(r"along .+? \(", "(", text)
    return re.sub(r"\d+\w\w of \d+ parts", "", text)


def _facts(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """The numbers that a sentence of this code may hold."""
    if finding.outcome == "cannot_tell":
        return [plain.n, (finding.n_needed or 0) - plain.n, finding.n_needed or 0, *_rare(finding, plain)]
    return [plain.promised, *_OF_CODE[finding.code](finding, audit, plain)]


def _rare(finding: Any, plain: Plain) -> list[float]:
    """The rows of the rarer outcome, and how many a search for places needs, where too few are said to be."""
    if finding.code not in {"CAL202", "CAL203", "CAL505"}:
        return []
    kept, _ = plain.promise(finding.details["promise"])
    return [float(np.sum(~kept)), float(min(np.sum(kept), np.sum(~kept))), 20.0]


def _coverage(finding: Any, audit: Any, plain: Plain) -> list[float]:
    kept, promised = plain.promise(finding.details["promise"])
    return [float(kept.mean()), float(promised.mean()), 500.0]


def _stated_there(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """What was stated on average and what happened, in the rows that the finding is about."""
    if finding.outcome != "fault":
        return []
    # Of the probabilities of all classes the sentence is about the one that it names.
    of_class = re.search(r"probability of class (\d+)", finding.sentence)
    happened, stated = plain.promise(of_class[0] if of_class else finding.details["promise"])
    there = _rows(finding, audit, plain)
    facts = [
        float(finding.evidence),  # the points of CAL505 are those of fitted models
        float(happened.mean()),
        float(stated[there].mean()),
        float(happened[there].mean()),
        float(there.sum()),
        float(there.mean()),
    ]
    if "after that correction" in finding.sentence:
        facts.append(float(plain.corrected(happened, stated)[there].mean()))
    span = finding.evidence.details.get("interval")
    inside = [] if span is None else plain.in_range(stated[there], happened[there].astype(float), tuple(span))
    return [*facts, *inside]


def _uniformity(finding: Any, audit: Any, plain: Plain) -> list[float]:
    return [plain.small_p_values]


def _group(finding: Any, audit: Any, plain: Plain) -> list[float]:
    return _stated_there(finding, audit, plain)


def _rows(finding: Any, audit: Any, plain: Plain) -> np.ndarray:
    """The rows that a fault names, found by its words; they must be those of `rows_of`."""
    there = audit.rows_of(finding.code)
    named = plain.place(re.sub(r" at quantile .*", "", finding.where))
    assert named is None or np.array_equal(named, there), (finding.where, named.sum(), there.sum())
    return there


def _true_classes(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """Shares and rows of the true classes that are covered least and most often; ties in any order."""
    kept, _ = plain.promise(finding.details["promise"])
    fewest = plain.fewest_rows(finding.sentence)
    classes = [plain.y == k for k in np.unique(plain.y) if (plain.y == k).sum() >= fewest]
    shares = [float(kept[mask].mean()) for mask in classes]
    ends = [k for k, share in enumerate(shares) if share in (min(shares), max(shares))]
    return [float(f) for k in ends for f in (shares[k], classes[k].sum())] + [float(fewest)]


def _over_time(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """What was stated and what happened since the change, and otherwise."""
    if finding.outcome != "fault":
        return []
    happened, stated = plain.promise(finding.details["promise"])
    inside = plain.place(finding.sentence)
    assert inside is not None
    assert np.array_equal(inside, audit.rows_of(finding.code))
    return [float(v[mask].mean()) for mask in (inside, ~inside) for v in (happened, stated)]


def _quantiles(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """Share of outcomes below the quantile, or of PIT values up to a level, and that level."""
    if finding.outcome != "fault":
        return []
    if finding.details["promise"] == "PIT":
        return list(plain.largest_pit_gap())
    happened, stated = plain.promise(finding.where)
    return [float(happened.mean()), float(stated.mean())]


def _mean_loss(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """The mean loss of all rows, or of the group, and the bound."""
    there = np.ones(plain.n, dtype=bool)
    everywhere = float(plain.loss.mean())
    if finding.code == "CAL605" and finding.outcome == "fault":  # measured on the half that did not search
        return [float(finding.evidence), float(plain.given["bound"]), everywhere]
    if finding.code in ("CAL603", "CAL606", "CAL607") and finding.outcome == "fault":
        there = _rows(finding, audit, plain)
    mean = float(plain.loss[there].mean())
    return [mean, float(plain.given["bound"]), everywhere]


def _features(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if finding.evidence is None:
        return []
    if "hits" not in finding.evidence.details:  # excess risk of a promise per row
        return _stated_there(finding, audit, plain)
    hits, rows = (np.asarray(finding.evidence.details[key]) for key in ("hits", "rows"))
    assert rows.sum() == plain.n
    assert hits.sum() == plain.covered.sum()
    masses = [
        float(e.details["mass"])
        for name, e in audit.estimates.items()
        if name.startswith("coverage where ") and "mass" in e.details
    ]
    there = [float(audit.rows_of(finding.code).mean())] if finding.outcome == "fault" else []
    return [*(hits / rows).tolist(), *masses, *there, float(rows[0] / rows.sum())]


def _region(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if finding.evidence is None:
        return []
    value, n = float(finding.evidence), float(finding.evidence.n)
    # A share of so many rows.
    assert abs(value * n - round(value * n)) < 1e-6
    return [value, n]


def _sizes(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if plain.intervals is not None:
        finite = np.isfinite(plain.size)
        width = float(plain.size[finite].mean()) if finite.any() else np.nan
        return [width, float(plain.y.std()), _three_digits(plain.y.std()), float((~finite).mean())]
    assert plain.sets is not None
    k = plain.sets.shape[1]
    shares = [float((plain.size == labels).mean()) for labels in (0, 1)]
    silent = float(((plain.size == 0) | (plain.size == k)).mean())
    return [float(plain.size.mean()), float(k), *shares, silent]


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _narrow(finding: Any, audit: Any, plain: Plain) -> list[float]:
    facts = [*_sizes(finding, audit, plain), min(plain.coverage, plain.promised)]
    for name, estimate in audit.estimates.items():
        if name.startswith("size saved by "):
            details = estimate.details
            facts += [
                float(estimate),
                details["worst_coverage"],
                details["own_coverage_there"],
                details["worst_mass"],
            ]
    return facts


def _difficulty(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if not finding.sentence.startswith("In the "):
        return []
    there = plain.part(finding.sentence)
    sized = plain.intervals is not None or plain.sets is not None
    empty = float((plain.size[there] == 0).mean()) if sized else 0.0
    return [*_stated_there(finding, audit, plain), empty]


def _follows(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if plain.ease is None and plain.P is None:  # what a model of the features predicts
        own = [float(e) for name, e in audit.estimates.items() if name.startswith("correlation of ")]
        return [*own, _four_digits(float(plain.size[0]))]
    sizes = [plain.rank_correlation(plain.size.round(9)), _four_digits(float(plain.size[0]))]
    return [*sizes, plain.rank_correlation(plain.hardness)]


def _four_digits(value: float) -> float:
    return float(f"{value:.4g}")


def _top(finding: Any, audit: Any, plain: Plain) -> list[float]:
    stated, happened = plain.top()
    return _calibration(finding, plain, stated, happened)


def _class(finding: Any, audit: Any, plain: Plain) -> list[float]:
    assert plain.P is not None
    k = plain.P.shape[1]
    errors = [plain.calibration_error(plain.P[:, j], (plain.y == j).astype(float)) for j in range(k)]
    worst = 1 if k == 2 else int(np.argmax(errors))
    return _calibration(finding, plain, plain.P[:, worst], (plain.y == worst).astype(float))


def _calibration(finding: Any, plain: Plain, stated: np.ndarray, happened: np.ndarray) -> list[float]:
    error = plain.calibration_error(stated, happened)
    assert abs(error - float(finding.evidence)) < 1e-9, (error, float(finding.evidence))
    ends = finding.evidence.details.get("interval")
    return [error, *([] if ends is None else plain.in_range(stated, happened, tuple(ends)))]


def _in_the_large(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """What was stated and what happened, on average: of the second of two classes, or of the top label."""
    assert plain.P is not None
    two = plain.P.shape[1] == 2
    stated, happened = (plain.P[:, 1], (plain.y == 1).astype(float)) if two else plain.top()
    assert abs(float((happened - stated).mean()) - float(finding.evidence)) < 1e-9
    return [float(stated.mean()), float(happened.mean())]


def _forecast(finding: Any, audit: Any, plain: Plain) -> list[float]:
    name = next(name for name in audit.estimates if " of the next " in name)
    changed = re.search(r"[Ss]ince (\S+) the|from row (\d+)", finding.sentence)
    if finding.outcome == "fault" and changed:
        words = f"since {changed[1]}" if changed[1] else ""
        inside = plain.place(words) if words else np.arange(plain.n) >= int(changed[2])
        return [float(plain.loss[mask].mean()) for mask in (inside, ~inside)]
    stated = audit.estimates[name]
    rows = re.search(r"the next (\d+) rows", name)
    facts = [float(plain.loss.mean()), stated.low, stated.high, stated.confidence, plain.later_scores_worse]
    return [*facts, float(rows[1]) if rows else 1.0]


def _surest(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """The share of the surest rows, the error they are certified for, and the error of all rows."""
    certainty, right = plain.surest()
    overall = float(1 - right.mean())
    if finding.evidence is None:
        return [overall]
    risk = float(re.search(r"at ([\d.]+) % or less", finding.sentence)[1]) / 100
    lowest = float(finding.evidence.details["lowest_kept"])
    kept = certainty >= lowest
    # What is certified cannot be worse than what is seen.
    assert float(1 - right[kept].mean()) <= risk
    return [np.floor(1000 * float(kept.mean())) / 1000, risk, overall, abs(lowest), 0.95]


_OF_CODE = {
    "CAL101": _coverage, "CAL102": _coverage, "CAL103": _uniformity, "CAL201": _group, "CAL202": _features,
    "CAL203": _region, "CAL301": _sizes, "CAL302": _narrow, "CAL401": _difficulty, "CAL402": _follows,
    "CAL501": _top, "CAL502": _top, "CAL503": _class, "CAL504": _stated_there, "CAL505": _stated_there,
    "CAL508": _difficulty, "CAL601": _forecast, "CAL204": _over_time, "CAL205": _true_classes,
    "CAL506": _over_time, "CAL507": _quantiles, "CAL602": _mean_loss, "CAL603": _mean_loss,
    "CAL605": _mean_loss, "CAL606": _mean_loss, "CAL607": _mean_loss, "CAL604": _surest, "CAL509": _in_the_large,
}  # fmt: skip


def _estimates(audit: Any, plain: Plain) -> Iterator[tuple[str, str]]:
    """Estimates that follow from the rows alone, and printed lines whose parts contradict each other."""
    for name, estimate in audit.estimates.items():
        expected = _expected(name, plain)
        tolerance = SAVING_TOLERANCE if name.startswith("size saved") else 1e-9
        if expected is not None and abs(float(estimate) - expected) > tolerance * max(1.0, abs(expected)):
            yield name, f"{float(estimate)} is {expected}"
        shown = str(estimate)
        if re.search(r"p = (-|0(?!\.)|0\.0+(?!\d))", shown):
            yield name, f"prints a p-value of 0: {shown}"
        if estimate.low is not None and not estimate.low <= float(estimate) <= estimate.high:
            yield name, f"the value lies outside its interval: {shown}"
        if _contradicts(estimate):
            yield name, f"band and p-value contradict each other: {shown}"


def _contradicts(estimate: Any) -> bool:
    """Whether a one-sided band and the p-value of the same null disagree clearly."""
    if estimate.p_value is None or estimate.null_high is None or estimate.alternative != "greater":
        return False
    return bool(float(estimate) > estimate.null_high and estimate.p_value > 0.1) or bool(
        float(estimate) < estimate.null_high and estimate.p_value < 0.01
    )


def _expected(name: str, plain: Plain) -> float | None:
    if name.endswith("and difficulty") and plain.ease is None and plain.P is None:
        return None  # difficulty is what a model of the features predicts
    if name.startswith("size saved by "):
        return plain.saved(name.removeprefix("size saved by "))
    simple = {
        "coverage": lambda: plain.coverage,
        "mean width": lambda: float(plain.size[np.isfinite(plain.size)].mean()),
        "mean size": lambda: float(plain.size.mean()),
        "empty sets": lambda: float((plain.size == 0).mean()),
        "accuracy of the top label": lambda: float(plain.right.mean()),
        "deficit": lambda: float(np.maximum(0, plain.hardness - plain.size).mean()),
        "excess": lambda: float(np.maximum(0, plain.size - plain.hardness).mean()),
        "correlation of size and difficulty": lambda: plain.rank_correlation(plain.size),
        "correlation of hardness and difficulty": lambda: plain.rank_correlation(plain.hardness),
        "chance that a later row scores worse": lambda: plain.later_scores_worse,
        "p-value uniformity": lambda: plain.small_p_values,
    }
    return simple[name]() if name in simple else None
