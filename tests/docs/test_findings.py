"""The catalogue of findings: every code has an example that raises it, and says how to read and to repair it."""

from __future__ import annotations

import re

import pytest

from calipers.auditing.checks import CHECKS
from tests.docs.pages import DOCS

TEXT = (DOCS / "findings.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (CAL\d{3}) [^\n]+\n(.*?)(?=^## |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL))
DESCRIBES = {"CAL604"}  # never a fault
TWO_SIDED = {"CAL102", "CAL502"}  # the other side of CAL101 and CAL501


def test_every_code_has_a_section():
    assert set(SECTIONS) == {check.code for check in CHECKS} | TWO_SIDED


@pytest.mark.parametrize("code", SECTIONS)
def test_a_section_shows_the_finding_and_says_how_to_read_and_to_repair_it(code):
    section = SECTIONS[code]
    # The block of output is compared with a run in test_pages; here: it shows the fault itself.
    shown = "clean" if code in DESCRIBES else "(note|warning|issue)"
    assert re.search(rf"^```text\n{code} {shown}: ", section, flags=re.MULTILINE)
    assert re.search(rf'show\(\s*"{code}"', section)
    assert "**Read it.**" in section
    assert "**Repair.**" in section
