"""Every repair that a finding proposes is code that runs as it is printed, on the audited columns.

The examples of docs/findings.md raise every code; the snippets of their findings are run here.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from calipers import audit
from calipers.auditing import Audit
from calipers.report.text_formats import split_repair
from tests.docs.pages import DOCS, blocks

PAGE = (DOCS / "findings.md").read_text(encoding="utf-8")
CODES = re.findall(r"^## (CAL\d{3}) ", PAGE, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def audits() -> dict[str, Audit]:
    """The audit of every section, which has a finding of its code."""
    names: dict[str, object] = {"__name__": "page"}
    found: dict[str, Audit] = {}
    head, *sections = re.split(r"^(?=## CAL\d{3} )", PAGE, flags=re.MULTILINE)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for text in (head, *sections):
            for block in blocks(text, commands=False):
                if ".repair()" not in block.code:
                    exec(block.code, names)  # noqa: S102 - our own page
            if text is not head:
                found[text[3:9]] = names["found"]  # type: ignore[assignment]
    return found


@pytest.mark.filterwarnings("ignore::calipers.exceptions.CalipersWarning")
@pytest.mark.parametrize("code", CODES)
def test_the_snippet_of_a_code_runs_as_printed(
    code: str, audits: dict[str, Audit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finding = next(f for f in audits[code].findings if f.code == code)
    assert (finding.outcome == "fault") == (code != "CAL604")  # which only describes
    if code == "CAL507" or code.startswith("CAL6"):  # not mended by a threshold or a map
        assert split_repair(finding.repair)[1] == ""
        assert ("no automatic repair" in finding.repair) == (code == "CAL601")
        return
    names: dict[str, object] = {"found": audits[code]}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(finding.repair, names)  # noqa: S102 - our own text, run on purpose
    assert (tmp_path / "repair.json").exists()
    new = names["new"]
    assert isinstance(new, dict)
    assert all(len(column) == audits[code].rows for column in new.values())
    # What cannot be mended from these columns is said; everything else changes a column.
    assert new or "Nothing was changed" in printed.getvalue()


def test_no_threshold_is_proposed_for_outcomes_found_elsewhere() -> None:
    rng = np.random.default_rng(0)
    group = np.tile(["a", "b"], 1000)
    covered = rng.random(2000) < np.where(group == "a", 0.9, 0.7)
    found = audit(covered=covered, groups=group, size=rng.random(2000), random_state=0)
    assert {"CAL101", "CAL201"} <= {finding.code for finding in found.faults}
    assert all(finding.repair == "" for finding in found.faults)
    assert "Nothing was changed" in str(found.repair())
