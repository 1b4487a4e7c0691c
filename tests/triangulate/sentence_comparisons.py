"""Words of the sentences of an audit that compare, against plain computations: less, larger, most, where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.triangulate.plain_facts import Plain

RULE = re.compile(r"(?:Worst where|Most where|unconfirmed by other rows:) (.+?) \((\d+) % of the rows\)")
GREEN = ("yes", "mostly")
# Rules are printed with few digits: shares of rows agree to this many points.
RULE_POINTS = 1.0


def false_rules(finding: Any, plain: Plain) -> Iterator[str]:
    """Rules that hold for another share of the rows than is said."""
    for words, share in RULE.findall(finding.sentence):
        held = 100 * float(plain.rule(words).mean())
        if abs(held - float(share)) > 0.5 + RULE_POINTS:
            yield f"{words} holds for {held:.1f} % of the rows"


def false_comparisons(finding: Any, audit: Any, plain: Plain) -> Iterator[str]:
    """Words such as "less often" and "narrower" that the numbers do not bear out."""
    if finding.outcome == "cannot_tell":
        yield from _false_open(finding, plain)
        return
    for claim, holds in _claims(finding, audit, plain):
        if not holds:
            yield f"it is not so that {claim}"


def _false_open(finding: Any, plain: Plain) -> Iterator[str]:
    high, tolerance = finding.details.get("effect_high"), finding.details.get("tolerance")
    if "leaves room" in finding.sentence and not high > 3 * tolerance:
        yield f"the interval reaches {high}, no serious fault at a tolerance of {tolerance}"
    if finding.n_needed is not None and "more are needed" in finding.sentence and finding.n_needed <= plain.n:
        yield "enough rows are there"


def _claims(finding: Any, audit: Any, plain: Plain) -> Iterator[tuple[str, bool]]:
    """Every comparison that a sentence or a title makes, and whether it is so."""
    own = _OF_FAULT.get(finding.code) if finding.outcome == "fault" else _OF_CLEAN.get(finding.code)
    if own is not None:
        yield from own(finding, audit, plain)
    if finding.outcome == "fault" and "explained_by" in finding.details:
        other = next(f for f in audit.findings if f.code == finding.details["explained_by"])
        yield f"it is part of {other.code}", other.outcome == "fault" and other.code in finding.sentence


Claims = Iterator[tuple[str, bool]]


def _marginal(finding: Any, audit: Any, plain: Plain) -> Claims:
    kept, promised = (float(v.mean()) for v in plain.promise(finding.details["promise"]))
    yield "coverage is below the promise", (finding.title == "under-coverage") == (kept < promised)
    yield (
        "they are larger than they need to be",
        ("larger than they need" in finding.sentence) == (kept > promised),
    )


def _marginal_noise(finding: Any, audit: Any, plain: Plain) -> Claims:
    """By the normal law: at a p-value near 0.05 either sentence will do."""
    if finding.details.get("descriptive") or audit.design.n_calibration is not None:
        return
    kept, promised = plain.promise(finding.details["promise"])
    z = abs(float((kept - promised).sum())) / np.sqrt(float((promised * (1 - promised)).sum()))
    yield "it is sampling noise", z < 2.3 if "up to sampling noise" in finding.sentence else z > 1.7


def _small(finding: Any, audit: Any, plain: Plain) -> Claims:
    yield "small p-values come too often", plain.small_p_values > 0 and "too often" in finding.sentence


def _under_or_over(finding: Any, audit: Any, plain: Plain) -> Claims:
    happened, stated = plain.promise(finding.details["promise"])
    there = audit.rows_of(finding.code)
    seen, wanted = float(happened[there].mean()), float(stated[there].mean())
    if "under-covered" in finding.title or "covered less often" in finding.title:
        yield "it is under-covered", seen < wanted
    if "over-covered" in finding.title or "more often" in finding.title:
        yield "it is over-covered", seen > wanted
    if "all rows together reach" in finding.sentence and finding.code != "CAL401":
        yield "it differs from all rows", seen != float(happened.mean())


def _difficulty(finding: Any, audit: Any, plain: Plain) -> Claims:
    yield from _under_or_over(finding, audit, plain)
    if finding.title == "hard cases are covered less often":
        happened, _ = plain.promise(finding.details["promise"])
        there = audit.rows_of(finding.code)
        yield "it is covered less often than the rest", float(happened[there].mean()) < float(happened.mean())
        yield "the rows are hard", np.median(plain.difficulty[there]) <= np.median(plain.difficulty)


def _risky(finding: Any, audit: Any, plain: Plain) -> Claims:
    if found := re.search(r"cover ([\d.]+) %; .* reach ([\d.]+) %", finding.sentence):
        yield "risky rows are covered less often", float(found[1]) < float(found[2])


def _region(finding: Any, audit: Any, plain: Plain) -> Claims:
    found = re.match(
        r"Where (.+?) the (?:sets|intervals) cover ([\d.]+) % of (\d+) held-out", finding.sentence
    )
    assert found, finding.sentence
    inside = plain.rule(found[1])
    yield "the region is covered less often", float(plain.covered[inside].mean()) < plain.coverage
    yield "so many of its rows were held out", int(found[3]) <= 1.02 * inside.sum() + 2
    yield (
        "the held-out rows are like the region",
        abs(float(found[2]) / 100 - plain.covered[inside].mean()) < 0.15,
    )


def _classes(finding: Any, audit: Any, plain: Plain) -> Claims:
    if "between" not in finding.sentence:
        return
    kept, _ = plain.promise(finding.details["promise"])
    named = re.findall(r"([\d.]+) % of (\d+) rows in class (\S+?)[ .]", finding.sentence + " ")
    fewest, labels = plain.fewest_rows(finding.sentence), np.unique(plain.y)
    shares = {str(k): float(kept[plain.y == k].mean()) for k in labels if (plain.y == k).sum() >= fewest}
    for (_, _, label), end in zip(named, (min, max), strict=True):
        yield f"class {label} has the {end.__name__} share", shares[label] == end(shares.values())


def _narrower(finding: Any, audit: Any, plain: Plain) -> Claims:
    word = "narrower" if plain.intervals is not None else "smaller"
    yield "something is saved", float(finding.evidence) > 0
    yield f"they are {word}", f" {word} on average" in finding.sentence and word in finding.title


def _no_rival(finding: Any, audit: Any, plain: Plain) -> Claims:
    rivals = {n: e for n, e in audit.estimates.items() if n.startswith("size saved by ")}
    listed = finding.sentence.partition("tried ")[2]
    yield "these were tried", all(name.removeprefix("size saved by ") in listed for name in rivals)
    counting = [e for e in rivals.values() if not e.details["worse_in_worst_slice"]]
    yield "none is clearly smaller", all(float(e) <= 0.1 or e.p_value > 0.0005 for e in counting)
    if "equal widths" in listed:
        yield "the widths differ", float(np.ptp(plain.size)) > 1e-9 * float(plain.size.mean())


def _follows(finding: Any, audit: Any, plain: Plain) -> Claims:
    r = next(float(e) for n, e in audit.estimates.items() if n.startswith("correlation of size"))
    if "one width" in finding.sentence or "one size" in finding.sentence:
        yield "all sizes are one", float(np.ptp(plain.size)) <= 0.01 * float(plain.size.mean())
    yield "sizes are larger there", "larger where rows are harder" not in finding.sentence or r > 0
    yield "sizes are not larger there", "not larger there" not in finding.sentence or r < 0.1
    yield "sizes are smaller there", "are smaller there" not in finding.sentence or r < 0


def _confidence(finding: Any, audit: Any, plain: Plain) -> Claims:
    stated, happened = plain.top()
    low, high = finding.evidence.details["interval"]
    inside = (stated > low) & (stated <= high)
    less = float(happened[inside].mean()) < float(stated[inside].mean())
    yield "less often than stated", ("less often" in finding.sentence) == less
    yield "more often than stated", ("more often" in finding.sentence) == (not less)
    yield "the title says the same", ("over-confident" in finding.title) == less


def _agrees(finding: Any, audit: Any, plain: Plain) -> Claims:
    high = finding.evidence.null_high
    if high is not None:
        beyond = float(finding.evidence) > high
        yield "noise alone would", ("as noise alone would" in finding.sentence) == (not beyond)
        yield "noise alone would not", ("more than noise alone" in finding.sentence) == beyond


def _shape(finding: Any, audit: Any, plain: Plain) -> Claims:
    if finding.details["promise"] != "PIT":
        return
    pit = np.asarray(plain.given["pit"])
    # In standard errors of even PIT values: sqrt(1/12) of the mean and sqrt(0.8) of the ratio of variances.
    shift, ratio = abs(pit.mean() - 0.5) * np.sqrt(12), 12 * pit.var()
    shape = "shifted" if shift >= abs(ratio - 1) / np.sqrt(0.8) else "too narrow" if ratio > 1 else "too wide"
    yield f"they are {shape}", f"distributions are {shape}:" in finding.sentence


def _beyond_bound(finding: Any, audit: Any, plain: Plain) -> Claims:
    there = np.ones(plain.n, dtype=bool) if finding.code == "CAL602" else audit.rows_of(finding.code)
    mean, bound = float(plain.loss[there].mean()), float(plain.given["bound"])
    yield (
        "the bound is exceeded",
        mean > bound and "exceeds" in finding.title and "at most" in finding.sentence,
    )


def _surest(finding: Any, audit: Any, plain: Plain) -> Claims:
    certainty, right = plain.surest()
    if found := re.search(r"surest ([\d.]+) % .* at ([\d.]+) % or less", finding.sentence):
        kept = certainty >= float(finding.evidence.details["lowest_kept"])
        yield "the error is smaller", float(1 - right[kept].mean()) <= float(found[2]) / 100
        yield "it is smaller than that of all rows", float(found[2]) / 100 < float(1 - right.mean())
    yield "no probability is above 1", "probability of 1 or more" not in finding.sentence


_OF_FAULT = {
    "CAL101": _marginal, "CAL102": _marginal, "CAL103": _small, "CAL201": _under_or_over, "CAL202": _risky,
    "CAL203": _region, "CAL302": _narrower, "CAL401": _difficulty, "CAL402": _follows, "CAL501": _confidence,
    "CAL502": _confidence, "CAL507": _shape, "CAL602": _beyond_bound, "CAL603": _beyond_bound,
    "CAL605": _beyond_bound, "CAL606": _beyond_bound, "CAL607": _beyond_bound,
}  # fmt: skip
_OF_CLEAN = {
    "CAL101": _marginal_noise, "CAL102": _marginal_noise, "CAL205": _classes, "CAL302": _no_rival,
    "CAL402": _follows, "CAL501": _agrees, "CAL502": _agrees, "CAL503": _agrees, "CAL604": _surest,
}  # fmt: skip


def contradictions(audit: Any) -> Iterator[str]:
    """Answers, cells and counts that the findings contradict."""
    document = audit.to_dict()
    answers = {answer["question"]: answer for answer in document["questions"]}
    for finding in audit.faults:
        own = finding.details.get("own_severity", finding.severity)
        answer = answers[finding.question]["answer"]
        if answer == "yes" or (own != "note" and answer in GREEN):
            yield f"{finding.code} ({own}) stands under {answer!r}"
        if finding.code == "CAL102" and own != "note" and answers["narrow"]["answer"] in GREEN:
            yield "what is larger than it needs to be is called narrow"
        if finding.code == "CAL101" and own != "note" and answers["everywhere"]["answer"] in GREEN:
            yield "what covers too rarely over all rows is said to cover everywhere"
    told = [finding for finding in audit.faults if "explained_by" not in finding.details]
    for level, count in document["verdict"]["counts"].items():
        said = re.search(rf"(\d+) {level}s?\b", document["verdict"]["sentence"])
        if count != sum(f.severity == level for f in told) or (int(said[1]) if said else 0) != count:
            yield f"the verdict counts {count} {level}s: {document['verdict']['sentence']}"
    broken = {cell.code for cell in audit.promises.cells if cell.answer == "broken"}
    for finding in audit.findings:
        if finding.outcome == "clean" and finding.code in broken:
            yield f"{finding.code} is clean, and its cell is broken"
