"""No sentence of an audit states a number or a comparison that the rows do not bear out."""

from __future__ import annotations

from dataclasses import replace

import pytest

import calipers
from tests.triangulate.audit_sentences import false_statements
from tests.triangulate.sentence_samples import KINDS

FAST = [(kind, seed) for seed, kind in enumerate([*KINDS, "intervals"])][:8]
SLOW = [(kind, seed) for kind in KINDS for seed in range(1, 11)]


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


def test_a_false_number_is_seen() -> None:
    """The check of the check: another coverage, and a p-value of the other side."""
    given = KINDS["intervals"](1)
    found = calipers.audit(**given, random_state=0)
    finding = next(f for f in found.findings if f.code == "CAL101")
    share = f"{100 * float(found.estimates['coverage']):.1f} %"
    assert share in finding.sentence
    wrong = replace(finding, sentence=finding.sentence.replace(share, "12.3 %"))
    other = replace(found, findings=tuple(wrong if f is finding else f for f in found.findings))
    assert len(false_statements(other, given)) == 1
