"""No sentence of an audit states a number or a comparison that the rows do not bear out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import calipers
from calipers.auditing import Audit
from tests.triangulate.audit_sentences import NUMBER, false_numbers, false_statements, numbered_text
from tests.triangulate.audit_sentences import _facts as facts_of
from tests.triangulate.plain_facts import Plain
from tests.triangulate.sentence_comparisons import false_comparisons
from tests.triangulate.sentence_samples import KINDS, REAL

FAST = [(kind, seed) for seed, kind in enumerate([*KINDS, "intervals"])][:8]
# Sixty audits of data that people collected, where the shared data are there, and fifty of drawn rows.
SLOW = [(kind, seed) for kind in KINDS for seed in (range(1, 7) if kind in REAL else range(1, 6))]


def check(kind: str, seed: int) -> list[str]:
    given = KINDS[kind](seed)
    return false_statements(calipers.audit(**given, random_state=seed), given)


@pytest.mark.parametrize(("kind", "seed"), FAST)
def test_no_sentence_is_false(kind: str, seed: int) -> None:
    assert check(kind, seed) == []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), SLOW)
def test_no_sentence_of_many_audits_is_false(kind: str, seed: int) -> None:
    assert check(kind, seed) == []


# The check of the check: what is corrupted must be seen.
CORRUPTED = [
    "intervals",
    "sets",
    "p_values",
    "over_time",
    "quantiles",
    "pit",
    "losses",
    "outcomes",
    "diabetes",
]


@cache
def audited(kind: str, seed: int = 1) -> tuple[Audit, dict[str, Any]]:
    given = KINDS[kind](seed)
    return calipers.audit(**given, random_state=seed), given


@pytest.mark.parametrize("kind", CORRUPTED)
def test_every_number_that_is_changed_is_seen(kind: str) -> None:
    """No number of a sentence goes unclaimed: each of them, replaced by another, is none of the facts."""
    found, given = audited(kind)
    plain, changed = Plain(given, found.design.alphas[0]), 0
    for finding in found.findings:
        if finding.outcome != "not_applicable":
            text, facts = numbered_text(finding, found), facts_of(finding, found, plain)
            for number in NUMBER.finditer(text):
                wrong = f"{text[: number.start(1)]}73.9173{text[number.end(1) :]}"
                assert len(list(false_numbers(wrong, facts))) == 1, wrong
                changed += 1
    assert changed >= 3


# Words, and others that say the opposite.
OPPOSITES = [
    ("they are larger than they need to be", "they are as they should be"),
    ("too often", "too rarely"),
    ("up to sampling noise", "which is far off. Corrected"),
    ("less often than stated", "more often than stated"),
    ("more often than stated", "less often than stated"),
    ("larger where rows are harder", "not larger there"),
    ("as noise alone would", "more than noise alone mostly would"),
    (" narrower on average", " wider on average"),
    ("are too narrow:", "are too wide:"),
    ("are shifted:", "are too narrow:"),
]


def _reversed(found: Audit) -> Iterator[tuple[Any, str]]:
    for finding in found.findings:
        for words, others in OPPOSITES:
            if finding.outcome in {"fault", "clean"} and words in finding.sentence:
                yield replace(finding, sentence=finding.sentence.replace(words, others)), words


def test_every_comparison_that_is_reversed_is_seen() -> None:
    seen = set()
    for kind, seed in [*((kind, 1) for kind in CORRUPTED), ("diabetes", 2), ("pit", 2), ("probabilities", 2)]:
        found, given = audited(kind, seed)
        plain = Plain(given, found.design.alphas[0])
        for wrong, words in _reversed(found):
            assert list(false_comparisons(wrong, found, plain)), wrong.sentence
            seen.add(words)
    assert len(seen) >= 7, seen


def test_classes_that_are_exchanged_are_seen() -> None:
    found, given = audited("sets")
    finding = next(f for f in found.findings if f.code == "CAL205")
    first, second = re.findall(r"class \d", finding.sentence)
    swapped = finding.sentence.replace(first, "class ?").replace(second, first).replace("class ?", second)
    wrong = replace(finding, sentence=swapped)
    assert list(false_comparisons(wrong, found, Plain(given, 0.1)))


def test_a_false_number_is_seen_in_the_whole_audit() -> None:
    """Another coverage, an unreadable p-value, and an answer that contradicts its fault."""
    found, given = audited("intervals")
    finding = next(f for f in found.findings if f.code == "CAL101")
    share = f"{100 * float(found.estimates['coverage']):.1f} %"
    assert share in finding.sentence
    wrong = replace(finding, sentence=finding.sentence.replace(share, "12.3 %"))
    other = replace(found, findings=tuple(wrong if f is finding else f for f in found.findings))
    assert len(false_statements(other, given)) == 1
    zero = replace(finding, sentence=f"{finding.sentence} (p = 0)")
    other = replace(found, findings=tuple(zero if f is finding else f for f in found.findings))
    assert any(problem.startswith("unreadable") for problem in false_statements(other, given))
