"""Earlier audits in a report: what changed, links that are relative and cannot mean anything else."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from calipers import audit
from calipers.auditing import keep_audit
from calipers.report import render_html, render_markdown, render_text
from calipers.report.earlier_reports import link_to

HOSTILE = ('"><script>alert(1)</script>', "javascript:alert(1)", "a b#c?d%2e", "<img src=x onerror=alert(1)>")


def made(coverage, seed, **options):
    covered = np.random.default_rng(seed).random(2000) < coverage
    intervals = np.tile([-1.0, 1.0], (2000, 1))
    return audit(np.where(covered, 0.0, 2.0), intervals=intervals, random_state=0, **options)


def day(number):
    return dt.datetime(2026, 1, 1 + number, 8, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def kept_and_broken():
    return made(0.9, 0, origin="monday.csv"), made(0.8, 1, origin="tuesday.csv")


@pytest.fixture
def folder(kept_and_broken, tmp_path):
    keep_audit(kept_and_broken[0], tmp_path / "audits", at=day(0), report=True)
    return tmp_path / "audits"


def links(page):
    return re.findall(r'<a href="([^"#]*)"', page)


def test_a_report_says_what_broke_since_the_last_audit_and_links_to_its_report(
    kept_and_broken, folder, tmp_path
):
    place = tmp_path / "out" / "report.html"
    place.parent.mkdir()
    page = kept_and_broken[1].after(folder).to_html(place)
    assert "Since the audit of 2026-01-01 08:00: 1 newly broken, 0 no longer broken" in page
    assert "coverage of the intervals · all rows" in page
    (link,) = links(page)
    assert not Path(link).is_absolute()
    assert (place.parent / unquote(link)).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "monday.csv" in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_mended_promise_is_told_in_every_form(kept_and_broken, tmp_path):
    keep_audit(kept_and_broken[1], tmp_path, at=day(0))
    document = kept_and_broken[0].after(tmp_path).to_dict()
    for text in (render_html(document), render_markdown(document), render_text(document)):
        assert "0 newly broken, 1 no longer broken" in text
        assert "coverage of the intervals · all rows" in text
    assert json.loads(kept_and_broken[0].after(tmp_path).to_json())["history"]["change"]["mended"] == [
        ["coverage of the intervals", "all rows"]
    ]


def test_the_same_rows_again_change_nothing(kept_and_broken, folder):
    page = kept_and_broken[0].after(folder).to_html()
    assert "every answer is as it was" in page
    assert "newly broken" not in page


def test_without_a_place_or_a_kept_report_there_is_no_link(kept_and_broken, folder, tmp_path):
    later = kept_and_broken[1].after(folder)
    assert links(later.to_html()) == []
    for page in folder.glob("*.html"):
        page.unlink()
    page = kept_and_broken[1].after(folder).to_html(tmp_path / "report.html")
    assert links(page) == []
    assert "not kept" in page


def test_the_first_audit_of_a_history_has_no_such_part(kept_and_broken, tmp_path):
    for place in (tmp_path, tmp_path / "not made yet"):
        found = kept_and_broken[0].after(place)
        assert found.history is None
        assert 'id="earlier"' not in found.to_html()
        assert "history" not in found.to_dict()


def test_only_the_newest_are_listed_and_the_rest_counted(kept_and_broken, tmp_path):
    for number in range(9):
        keep_audit(kept_and_broken[number % 2], tmp_path, at=day(number))
    history = kept_and_broken[0].after(tmp_path).to_dict()["history"]
    assert [run["at"][:10] for run in history["earlier"]] == [f"2026-01-0{n}" for n in (9, 8, 7, 6, 5, 4)]
    assert "3 more since 2026-01-01 08:00" in kept_and_broken[0].after(tmp_path).to_html()


def test_what_is_kept_does_not_hold_the_history_again(kept_and_broken, folder):
    again = keep_audit(kept_and_broken[1].after(folder), folder, at=day(1))
    assert "history" not in json.loads(again.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_neither_markup_nor_another_address(name, kept_and_broken, folder, tmp_path):
    (file,) = folder.glob("*.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    document["about"]["source"] = document["verdict"]["sentence"] = name
    document["promises"] = [{"promise": name, "slice": name, "answer": "broken"}]
    hostile = folder / f"{name.replace('/', '_')}.json"
    hostile.write_text(json.dumps(document), encoding="utf-8")
    hostile.with_suffix(".html").write_text("a page", encoding="utf-8")
    file.unlink()
    page = kept_and_broken[0].after(folder).to_html(tmp_path / "report.html")
    assert "<script>alert" not in page
    assert "<img" not in page
    (link,) = links(page)
    assert not link.lower().startswith(("javascript:", "http", "/"))
    assert (tmp_path / unquote(link)).read_text(encoding="utf-8") == "a page"


@pytest.mark.parametrize("part", ["verdict", "about", "estimates"])
def test_a_file_with_values_of_another_kind_does_not_stop_the_report(part, kept_and_broken, folder):
    (file,) = folder.glob("*.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    strange = {"sentence": 5, "counts": {}}, {"source": ["x"], "rows": "many"}, {"coverage": {}}
    document[part] = dict(zip(("verdict", "about", "estimates"), strange, strict=True))[part]
    file.write_text(json.dumps(document), encoding="utf-8")
    assert 'id="earlier"' in kept_and_broken[1].after(folder).to_html()


def test_a_link_starts_where_the_page_lies():
    assert link_to("a.html", "/x/audits", "/x/out/report.html") == "../audits/a.html"
    assert link_to("a.html", "/x", Path("/x/report.html")) == "a.html"
    assert link_to("a:b.html", "/x", "/x/report.html") == "a%3Ab.html"
    assert link_to("a.html", "", "/x/report.html") == ""
