"""The newcomer's walk succeeds; `python3 dev.py walk` is the same and is a step of CI."""

from __future__ import annotations

import pytest

from tests.walk.newcomer import NEEDS_MORE, PAGES, ROOT, main


def test_the_walk_visits_every_page_for_newcomers():
    visited = [path for pattern in PAGES for path in ROOT.glob(pattern)]
    assert {path.name for path in visited} > NEEDS_MORE
    assert len(visited) >= 18


@pytest.mark.slow
def test_a_newcomer_gets_what_the_pages_say(capfd):
    assert main() == 0, capfd.readouterr().out
