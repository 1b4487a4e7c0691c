"""One dictionary, three forms: whole files, nothing from outside, nothing left unescaped."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import calipers
from calipers.report import render_html
from calipers.report.drawing import make_axis


@pytest.fixture(scope="module")
def found() -> calipers.auditing.Audit:
    rng = np.random.default_rng(0)
    y = rng.normal(size=1500)
    width = np.where(np.arange(1500) % 3 == 0, 1.0, 1.7)
    intervals = np.column_stack([-width, width])
    groups = np.array(["<b>a</b>", "b|c", "d"])[np.arange(1500) % 3]
    both = np.stack([intervals, intervals * 0.8], axis=-1)
    return calipers.audit(
        y, intervals=both, groups=groups, alpha=[0.1, 0.2], name='<script>alert("x")</script>', random_state=0
    )


def test_the_page_has_no_address_outside_itself(found: calipers.auditing.Audit) -> None:
    page = found.to_html()
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert not re.search(r"https?://|@import|url\(", page)


def test_names_from_the_data_cannot_become_markup(found: calipers.auditing.Audit) -> None:
    page = found.to_html()
    assert '<script>alert("x")' not in page
    assert "<b>a</b>" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page


def test_the_data_of_the_page_cannot_end_its_script(found: calipers.auditing.Audit) -> None:
    block = re.search(r'id="audit-data">(.*?)</script>', found.to_html(), flags=re.DOTALL)
    assert "<" not in block[1]
    data = json.loads(block[1])
    assert set(data) == {"pictures", "slider"}


def test_the_page_opens_with_the_verdict_and_the_six_questions(found: calipers.auditing.Audit) -> None:
    page = found.to_html()
    places = [page.index(text) for text in ('class="verdict', 'class="cards"', 'role="tablist"', "<svg")]
    assert places == sorted(places)
    assert page.count('<li class="card') == 6


def test_the_page_is_small(found: calipers.auditing.Audit) -> None:
    assert len(found.to_html().encode()) < 2_000_000


def test_markdown_escapes_the_bars_of_its_tables(found: calipers.auditing.Audit) -> None:
    text = found.to_markdown()
    assert "b\\|c" in text or "b|c" not in text
    assert text.startswith("## Calipers audit of")
    assert "| question | answer | |" in text


def test_a_notebook_gets_the_page_in_a_frame_of_its_own(found: calipers.auditing.Audit) -> None:
    fragment = found._repr_html_()
    assert fragment.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in fragment


def test_every_picture_has_its_table_and_its_method(found: calipers.auditing.Audit) -> None:
    page = found.to_html()
    for picture in found.pictures:
        assert f'data-table="{picture.name}"' in page
        assert all(curve.method for curve in picture.curves)


def test_the_page_can_be_made_from_stored_json(found: calipers.auditing.Audit) -> None:
    from calipers.results.serialization import decode

    assert render_html(decode(json.loads(found.to_json()))) == found.to_html()


def test_axes_hold_the_data_and_have_round_ticks() -> None:
    axis = make_axis([0.0, 1.0, float("nan"), float("inf")])
    assert axis.low < 0 < 1 < axis.high
    assert axis.ticks == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert make_axis([3.0, 3.0]).low < 3 < make_axis([3.0, 3.0]).high
