"""One dictionary, three forms: whole files, nothing from outside, nothing left unescaped."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
import pytest

import calipers
from calipers.report import comparison_document, render_html
from calipers.report.cards import fault_cards, prose, what_to_add
from calipers.report.drawing import draw
from calipers.report.page import measure_name
from calipers.report.svg_axes import date_axis, kept_labels, make_axis, shortened, text_width
from calipers.report.text_formats import estimate_row, next_command, taken_for
from calipers.results import Estimate


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


def test_the_page_opens_with_the_verdict_the_answers_and_the_faults_with_their_pictures(
    found: calipers.auditing.Audit,
) -> None:
    page = found.to_html()
    places = [
        page.index(text) for text in ('class="verdict', 'class="answers"', 'id="faults"', "<svg", "<h2>Fine")
    ]
    assert places == sorted(places)
    assert page.count('<li class="answer') == 6
    told = [fault for fault in found.faults if "explained_by" not in fault.details]
    assert page.count('<article class="fault') == len(told) > 0
    for card in re.findall(r"<article.*?</article>", page, flags=re.DOTALL):
        assert "<svg" in card
        assert "How sure" in card


PROMISES = [
    {"promise": "<i>intervals</i>", "slice": "all rows", "answer": "broken", "value": 0.8, "low": 0.78, "high": 0.82,
     "p_value": 1e-9, "n": 12000, "code": "CAL101", "where": "everywhere"},
    {"promise": "<i>intervals</i>", "slice": "groups", "answer": "kept", "value": 0.9, "low": None, "high": None,
     "p_value": None, "n": None, "code": "CAL201", "where": ""},
    {"promise": "probabilities", "slice": "all rows", "answer": "cannot tell", "value": None},
]  # fmt: skip


def test_the_table_of_promises_is_drawn_and_said(found: calipers.auditing.Audit) -> None:
    page = render_html(found.to_dict() | {"promises": PROMISES})
    table = re.search(r'<table class="promises">.*?</table>', page, flags=re.DOTALL)[0]
    assert "<i>intervals</i>" not in table
    cells = re.findall(r'<td class="cell ([\w-]+)"', table)
    assert cells == ["broken", "kept", "cannot-tell", "not-asked"]
    assert (
        "all rows: broken; 0.800, interval 0.780 to 0.820, p\u00a0&lt;\u00a00.001, 12\u202f000 rows" in table
    )
    assert 'class="promises"' not in found.to_html() or "promises" in found.to_dict()


def test_what_cannot_be_asked_is_one_line_per_remedy(found: calipers.auditing.Audit) -> None:
    remedies = what_to_add(found.to_dict())
    assert len({remedy for remedy, _ in remedies}) == len(remedies)
    page = found.to_html()
    assert page.count("This can be asked of sets of labels only.") == 1
    assert "p-values of true labels, coverage of true classes" in page


def test_prose_keeps_percentages_and_p_values_on_one_line() -> None:
    assert prose("95 % of 12 rows, p = 0.03") == "95\u00a0% of 12 rows, p\u00a0=\u00a00.03"
    assert prose("p = 2.4e-07") == "p\u00a0<\u00a00.001"


def test_numbers_have_names_for_people_and_say_another_level(found: calipers.auditing.Audit) -> None:
    assert measure_name("ert l2_over at alpha=0.2") == "ERT, squared, where it happens too often at alpha=0.2"
    page = found.to_html()
    assert "(at 90\u00a0%)" in page
    assert not re.search(r">[^<]*\de\+\d\d[^<]*<", page)
    assert "± 0.000" not in page


def test_the_page_is_small(found: calipers.auditing.Audit) -> None:
    assert len(found.to_html().encode()) < 400_000


def test_the_page_of_a_million_rows_is_small() -> None:
    rng = np.random.default_rng(0)
    y, group = rng.normal(size=1_000_000), rng.integers(0, 300, 1_000_000)
    y[group == 7] *= 1.5
    named = np.array([f"site number {i}" for i in range(300)])[group]
    found = calipers.audit(
        y, intervals=np.tile([-1.645, 1.645], (1_000_000, 1)), groups=named, random_state=0
    )
    assert [fault.code for fault in found.faults] == ["CAL201"]
    assert len(found.to_html().encode()) < 400_000


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


@pytest.mark.parametrize(
    ("first", "last", "labels"),
    [
        ("2024-01-03", "2024-12-20", ("2024-01", "2024-04", "2024-07", "2024-10", "2025-01")),
        ("2019-06-01", "2024-06-01", ("2020", "2022", "2024")),
        ("2024-03-01", "2024-03-20", ("2024-02-29", "2024-03-07", "2024-03-14", "2024-03-21")),
        ("2024-03-01T06:00", "2024-03-01T18:00", ("06:00", "09:00", "12:00", "15:00", "18:00")),
        ("2024-03-01T20:00", "2024-03-02T07:00", ("21:00", "02 Mar", "03:00", "06:00")),
    ],
)
def test_ticks_of_a_date_axis_are_round_dates(first: str, last: str, labels: tuple[str, ...]) -> None:
    ends = np.array([first, last], dtype="datetime64[s]").astype(float)
    assert date_axis(ends).labels == labels


@pytest.mark.parametrize("top", [1.0, 1e5, 3.3e6, 1e-4])
def test_labels_of_an_axis_never_touch_and_never_leave_the_drawing(top: float) -> None:
    axis = make_axis([0.0, top], count=12)
    kept = kept_labels(axis, axis.scale(60, 364))
    for (left, first), (right, second) in pairwise(kept):
        assert left + text_width(first) / 2 < right - text_width(second) / 2
    assert all(at - text_width(w) / 2 >= 0 and at + text_width(w) / 2 <= 380 for at, w in kept)


def test_a_p_value_is_never_zero() -> None:
    fields = Estimate(name="coverage", value=0.8, low=0.79, high=0.81, p_value=0.0).to_dict()
    assert estimate_row("coverage", fields)[4] == "< 0.001"


def test_the_dashed_line_of_a_loss_is_not_called_a_promise(found: calipers.auditing.Audit) -> None:
    figure = re.search(r'id="picture-loss_along_the_file".*?</figure>', found.to_html(), flags=re.DOTALL)[0]
    assert "mean of all rows" in figure
    assert "the promise" not in figure


def test_a_comparison_without_a_winner_says_who_breaks_the_promise() -> None:
    kept = {"a": {"sentence": ""}, "b": {"sentence": ""}}
    broken = kept | {"a": {"sentence": "a covers 80 % of the rows and promised 90 %."}}
    made = {"names": ["a", "b"], "rows": 9, "lines": [], "rankings": {}, "trade_off": {}}
    assert comparison_document(**made, promises=kept)["verdict"] == "No difference beyond noise."
    assert comparison_document(**made, promises=broken)["verdict"] == "No winner: a breaks the promise."
    both = dict.fromkeys("ab", broken["a"])
    assert comparison_document(**made, promises=both)["verdict"] == "No winner: a and b break the promise."


def test_one_far_wider_interval_does_not_squeeze_the_others() -> None:
    n = 6
    high = np.where(np.arange(n) == 3, 1.0, 0.05)
    curve = {
        "x": np.arange(n), "y": np.zeros(n), "low": -high, "high": high, "null_low": None, "null_high": None,
        "y_label": "observed minus stated", "details": {},
    }  # fmt: skip
    picture = {
        "name": "p", "title": "t", "kind": "intervals", "labels": [f"group {i}" for i in range(n)],
        "reference": 0.0, "curves": [curve],
    }  # fmt: skip
    svg = draw(picture)
    bars = [
        (float(a), float(b)) for a, b in re.findall(r'<line class="line c0" x1="([\d.]+)" x2="([\d.]+)"', svg)
    ]
    assert len(bars) == n
    assert all(8 <= a < b <= 380 - 16 for a, b in bars)
    assert bars[0][1] - bars[0][0] > 300  # most of the drawing
    assert svg.count("<polyline") == 2  # an arrow at either end of the one that goes on


@pytest.mark.parametrize(
    "words", ["WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", "北京" * 30, "i" * 200, "0123456789" * 9]
)
def test_a_name_is_cut_where_its_letters_would_not_fit(words: str) -> None:
    short = shortened(words, 200)
    assert short.endswith("…")
    assert text_width(short) <= 200 < text_width(words)
    assert shortened(words[:3], 200) == words[:3]


@pytest.fixture(scope="module")
def quantiles() -> calipers.auditing.Audit:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 1500)
    stated = np.tile([-1.2816, 0.0, 1.2816], (1500, 1))
    y = rng.normal(size=1500) + np.where(x > 0, np.maximum(0, rng.normal(size=1500)), 0.0)
    return calipers.audit(
        y, quantiles=stated, quantile_levels=(0.1, 0.5, 0.9), groups=np.where(x > 0, "a", "b"), random_state=0
    )


def test_a_fault_of_one_quantile_shows_the_picture_of_that_quantile(
    quantiles: calipers.auditing.Audit,
) -> None:
    document = quantiles.to_dict()
    (card,) = (card for card in fault_cards(document, document["pictures"]) if card["code"] == "CAL504")
    assert card["picture"]["title"].endswith(card["details"]["promise"])
    assert card["picture"]["curves"][0]["y_label"] == "share of outcomes at or below"


def test_the_diagonal_that_a_caption_speaks_of_is_drawn(quantiles: calipers.auditing.Audit) -> None:
    (picture,) = (p for p in quantiles.to_dict()["pictures"] if p["name"] == "CAL507_quantiles")
    (x1, x2, y1, y2) = map(
        float,
        re.search(r'class="promise" x1="(\S+)" x2="(\S+)" y1="(\S+)" y2="(\S+)"', draw(picture)).groups(),
    )
    assert x1 < x2
    assert y1 > y2


def test_a_group_above_its_bound_is_marked_and_the_bound_is_drawn() -> None:
    rng = np.random.default_rng(0)
    group = np.arange(1200) % 3
    loss = np.clip(rng.beta(1, 9, 1200) + 0.2 * (group == 1) - 0.05 * (group == 2), 0, 1)
    found = calipers.audit(loss=loss, bound=0.1, groups=group, random_state=0).to_dict()
    cards = {card["code"]: card["picture"] for card in fault_cards(found, found["pictures"])}
    by_group = draw(cards["CAL603"])
    assert by_group.count('class="dot bad"') == 1  # group 1 alone lies above the bound
    assert 'class="line bad"' in cards["CAL602"]["svg"]
    assert 'class="promise"' in cards["CAL602"]["svg"]
    assert ("promise", "the promise") in cards["CAL602"]["legend"]


def test_names_that_begin_alike_are_told_apart() -> None:
    names = [f"customers of the northern branch, number {i}" for i in (1, 2)]
    assert len({shortened(name, 200, tail=9) for name in names}) == 2
    assert all(text_width(shortened(name, 200, tail=9)) <= 200 for name in names)


def test_a_repair_stands_before_what_is_still_wrong() -> None:
    y, group = np.random.default_rng(0).normal(size=900), np.arange(900) % 3
    intervals = np.where(group == 1, 1.0, 1.7)[:, None] * [-1.0, 1.0]
    page = calipers.audit(y, intervals=intervals, groups=group, random_state=0).repair().to_html()
    assert page.index("What the repair changed") < page.index('id="faults"')


def test_a_kept_promise_with_a_note_leads_to_its_card() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 20_000)
    y = (rng.random(20_000) < np.clip(p - 0.02, 0, 1)).astype(int)
    page = calipers.audit(y, probabilities=p, random_state=0).to_html()
    assert 'class="fault note" id="fault-CAL503"' in page
    assert re.search(
        r'class="cell mostly-kept".*?<a href="#fault-CAL503">.*?mostly kept</a>', page, re.DOTALL
    )


def test_the_next_command_keeps_the_level_and_the_calibration_rows() -> None:
    about = {"source": "a.csv", "columns": {"y_true": "outcome"}, "alphas": [0.05], "n_calibration": 500}
    assert next_command("repair", about) == "calipers repair a.csv --alpha 0.05 --n-calibration 500"
    assert next_command("repair", about | {"columns": {}}) == ""
    assert next_command("audit", about | {"source": "a*.csv"}) == ""
    assert next_command("audit", about | {"source": "a.csv, b.csv"}) == ""


def test_columns_of_many_classes_are_one_entry() -> None:
    columns = {f"set_{name}": f"sets of class {name}" for name in "abc"} | {"p_1": "probabilities of class 1"}
    assert taken_for({"columns": columns}) == [
        "sets of 3 classes: set_a, set_b, set_c; probabilities of class 1: p_1"
    ]
