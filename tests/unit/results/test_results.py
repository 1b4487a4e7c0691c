import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.inference import paired_difference
from calipers.metrics import efficiency_difference
from calipers.report.text_formats import estimate_row
from calipers.results import Curve, Estimate, EstimateTable, Finding, from_json, severity_rank, to_json
from calipers.results.formatting import THIN_SPACE, format_end, format_number

TCV = Estimate(
    name="T-CV", value=0.062, std_error=0.01, low=0.048, high=0.081, confidence=0.95, n=20000, p_value=0.004,
    alternative="greater", null_high=0.05, null_level=0.95, method="exact", details={"bins": np.arange(3), "worst": 7},
)  # fmt: skip


def test_an_estimate_reads_as_promised():
    assert (
        str(TCV) == "T-CV 0.062 [0.048, 0.081] at 95 %; a valid predictor would read up to 0.050 (p = 0.004)"
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"alternative": "two-sided", "null_low": 0.88, "null_high": 0.92}, "would read 0.880 to 0.920"),
        ({"alternative": "less", "null_low": 0.88, "null_high": None}, "would read at least 0.880"),
        ({"null_high": None, "p_value": 1e-9}, "; p < 0.001"),
        ({"value": None, "reason": "size is constant"}, "T-CV undefined"),
        ({"high": math.inf}, "[0.04800, inf] at 95 %"),
        ({"null_high": 0.00032}, "would read up to 0.00032 (p = 0.004)"),
    ],
)
def test_estimates_say_what_they_know(changes, text):
    assert text in str(dataclasses.replace(TCV, **changes))


@pytest.mark.parametrize("p", [0.0, -0.0, 1e-300, 0.0009])
def test_a_small_p_value_prints_its_resolution_and_is_never_0(p):
    estimate = dataclasses.replace(TCV, p_value=p)
    assert "(p < 0.001)" in str(estimate)
    assert estimate.p_value > 0
    table = EstimateTable([estimate])
    assert "< 0.001" in str(table)


def test_interval_ends_are_rounded_outward_in_every_form():
    estimate = Estimate(name="loss", value=8.0, low=0.26, high=15.4, confidence=0.9)
    assert str(estimate) == "loss 8 [0, 16] at 90 %"
    assert "[0, 16]" in str(EstimateTable([estimate]))
    assert estimate_row("loss", estimate.to_dict())[2] == "0 to 16"


def test_an_end_that_is_a_short_number_but_for_rounding_stays_it():
    assert format_end(0.1 + 0.2, 0.2, side="high") == "0.30"


def test_a_lower_end_that_only_shows_more_than_0_says_so_in_every_form():
    estimate = Estimate(name="error", value=0.19, low=2.2250738585072014e-308, high=0.2, confidence=0.95)
    assert "[> 0, 0.20]" in str(estimate)
    assert "[> 0, 0.20]" in str(EstimateTable([estimate]))
    assert estimate_row("error", estimate.to_dict())[2] == "> 0 to 0.20"


def test_differences_name_their_null():
    found = paired_difference(np.array([3.0, 5.0, 9.0]), np.array([1.0, 4.0, 6.0]), name="gain")
    assert "two equal predictors would read" in str(found)


def test_float_of_an_undefined_value_is_nan():
    assert float(TCV) == 0.062
    assert math.isnan(float(Estimate(name="x")))


def test_estimates_are_frozen_and_survive_copies_and_pickles():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TCV.value = 1.0
    with pytest.raises(TypeError):
        TCV.details["new"] = 1
    assert pickle.loads(pickle.dumps(TCV)) == TCV
    assert copy.deepcopy(TCV) == TCV


def test_unknown_alternatives_are_refused():
    with pytest.raises(
        InputError, match=r'alternative must be None, "two-sided", "greater" or "less", got \'up\''
    ):
        Estimate(name="x", alternative="up")


CURVE = Curve(
    name="coverage", x=[0.1, 0.2], y=[0.9, np.nan], low=[0.8, 0.7], high=[1.0, np.inf], confidence=0.95
)
FINDING = Finding(
    code="CAL101",
    title="t",
    question="coverage",
    outcome="fault",
    severity="issue",
    sentence="s",
    evidence=TCV,
)


@pytest.mark.parametrize(
    "result",
    [TCV, CURVE, FINDING, EstimateTable([TCV], title="T", notes=["n"])],
    ids=lambda r: type(r).__name__,
)
def test_json_gives_back_what_was_stored(result):
    text = to_json(result)
    assert json.loads(text)["schema"] == 1
    back = from_json(text)
    assert type(back) is type(result)
    assert to_json(back) == text
    if not isinstance(result, EstimateTable):
        assert back == result


def test_stored_arrays_come_back_as_arrays():
    back = from_json(to_json(TCV))
    assert isinstance(back.details["bins"], np.ndarray)
    assert back.details["bins"].tolist() == [0, 1, 2]


def test_json_refuses_other_schemas_and_other_texts():
    with pytest.raises(InputError, match="schema 99, this version reads 1"):
        from_json(to_json(TCV).replace('"schema": 1', '"schema": 99'))
    with pytest.raises(InputError, match="not a stored result"):
        from_json("[]")


DAMAGED = (
    lambda text, rng, at: text[:at],
    lambda text, rng, at: text[:at] + text[at + int(rng.integers(1, 30)) :],
    lambda text, rng, at: text[:at] + chr(int(rng.integers(32, 126))) + text[at + 1 :],
    lambda text, rng, at: json.dumps(with_one_other_value(json.loads(text), rng)),
)
STORED = (
    TCV,
    EstimateTable(
        [TCV, Estimate(name="T-SS", value=float("nan"), reason="size is constant")], notes=("a", "b")
    ),
    Curve(name="c", x=[0, 1], y=[0.5, 0.25], low=[0.1, 0.2], high=[0.6, 0.7], confidence=0.9),
    Finding(
        code="CAL101",
        title="t",
        question="coverage",
        outcome="fault",
        severity="issue",
        sentence="s",
        evidence=TCV,
    ),
)


def with_one_other_value(document, rng):
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = keys[int(rng.integers(len(keys)))]
        if not isinstance(node[key], (dict, list)) or not node[key] or rng.random() < 0.3:
            node[key] = [None, "x", -1, [], {}, [1], {"$float": "x"}, {"$array": 3}, True][
                int(rng.integers(9))
            ]
            return document
        node = node[key]


@pytest.mark.parametrize("damage", DAMAGED, ids=["cut", "gap", "character", "value"])
@pytest.mark.parametrize("result", STORED, ids=lambda result: type(result).__name__)
def test_damaged_text_is_refused_or_read_as_a_result_that_prints(result, damage):
    text, refused = to_json(result), 0
    for seed in range(130):
        rng = np.random.default_rng(seed)
        try:
            back = from_json(damage(text, rng, int(rng.integers(len(text)))))
            assert str(back)
        except InputError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("field", ["value", "std_error", "null_high", "p_value"])
def test_a_stored_number_that_no_double_reaches_is_a_damage(field):
    stored = json.loads(to_json(TCV))
    stored["result"][field] = 10**400
    with pytest.raises(InputError, match=r"the stored Estimate is damaged \(OverflowError"):
        from_json(json.dumps(stored))


def test_equality_notices_every_field():
    assert dataclasses.replace(TCV, null_high=0.051) != TCV
    assert dataclasses.replace(TCV, details={"worst": 8}) != TCV


def test_tables_are_ordered_mappings_with_frames():
    table = EstimateTable([TCV, Estimate(name="T-SS", value=float("nan"), reason="size is constant")])
    assert list(table) == ["T-CV", "T-SS"]
    for backend in ("polars", "pandas"):
        frame = table.to_frame(backend=backend)
        assert list(frame["name"]) == ["T-CV", "T-SS"]
        assert frame["low"][0] == 0.048
    with pytest.raises(KeyError, match="it has T-CV, T-SS"):
        table["tcv"]
    with pytest.raises(InputError, match="'T-CV' appears twice"):
        EstimateTable([TCV, TCV])
    assert "0.062" in str(table)
    assert "<td>T-CV</td>" in table._repr_html_()


def test_tables_print_the_whole_band_of_a_two_sided_null():
    coverage = Estimate(
        name="coverage", value=0.54, low=0.47, high=0.62, alternative="two-sided", null_low=0.86, null_high=0.94,
    )  # fmt: skip
    text = str(EstimateTable([coverage, TCV]))
    assert "0.86 to 0.94" in text
    assert "up to 0.050" in text


def test_names_in_html_are_escaped():
    table = EstimateTable({"x < 3 & y": TCV}, title="<script>")
    assert "<script>" not in table._repr_html_()
    assert "x &lt; 3 &amp; y" in table._repr_html_()


def test_curves_check_their_lengths_and_freeze_their_vectors():
    with pytest.raises(InputError, match="one length, got {'x': 2, 'y': 1}"):
        Curve(name="c", x=[1, 2], y=[1])
    with pytest.raises(ValueError, match="read-only"):
        CURVE.x[0] = 5
    assert CURVE.to_frame().columns == ["x", "y", "low", "high"]
    assert pickle.loads(pickle.dumps(CURVE)) == CURVE


def test_findings_keep_severity_and_outcome_in_step():
    with pytest.raises(InputError, match='severity must be "none" unless'):
        Finding(code="C", title="t", question="q", outcome="clean", severity="issue")
    with pytest.raises(InputError, match='severity must be "none" unless'):
        Finding(code="C", title="t", question="q", outcome="fault")
    with pytest.raises(InputError, match="outcome must be one of"):
        Finding(code="C", title="t", question="q", outcome="bad")
    assert severity_rank("note") < severity_rank("warning") < severity_rank("issue")
    with pytest.raises(InputError, match="severity must be one of"):
        severity_rank("fatal")


@pytest.mark.parametrize("backend", ["polars", "pandas"])
def test_a_table_of_counts_and_weighted_counts_becomes_a_frame(backend: str) -> None:
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    table = EstimateTable([Estimate(name="a", value=1.0, n=300), Estimate(name="b", value=2.0, n=12.5)])
    assert list(table.to_frame(backend=backend)["n"]) == [300.0, 12.5]


@pytest.mark.parametrize("digits", [None, 3, 6])
def test_ends_are_rounded_outward(digits):
    rng = np.random.default_rng(0)
    for value in [
        0.0,
        1.0,
        -2.5,
        1e-9,
        -123456.789,
        *(rng.normal(size=200) * 10.0 ** rng.integers(-8, 9, 200)),
    ]:
        for spread in (None, 0.03, 12.0):
            low, high = (format_end(value, spread, side=side, digits=digits) for side in ("low", "high"))
            # An end that is a short number but for rounding is that number.
            rounding = 1e-12 * abs(value)
            assert float(low.replace(THIN_SPACE, "")) <= value + rounding
            assert float(high.replace(THIN_SPACE, "")) >= value - rounding
    assert format_end(15.4, 15.2, side="high") == "16"
    assert format_end(-0.0049, 0.2, side="low") == "-0.01"
    assert format_end(float("-inf"), side="low") == "-inf"


@pytest.mark.parametrize(
    ("value", "spread", "expected"),
    [
        (295392.4, 1800.0, "295_400"),
        (295392.4, None, "295_400"),
        (1234567.0, 0.5, "1_234_567.00"),
        (-10613.0, 2.0, "-10_613.0"),
        (9999.0, 20.0, "9999"),
        (3.0, 5000.0, "3"),
        (1.5e16, None, "1.5e+16"),
        (0.00001, None, "1e-05"),
    ],
)
def test_numbers_have_the_digits_of_their_spread_and_thousands_apart(value, spread, expected):
    assert format_number(value, spread).replace(THIN_SPACE, "_") == expected


def test_notebooks_see_the_interval_the_null_band_and_no_markup_of_the_data():
    e = Estimate(name="<b>x</b> 90 %", value=0.5, low=0.4, high=0.6, null_high=0.45, method="a <i>")
    page = e._repr_html_()
    assert "<b>x</b>" not in page
    assert "90&nbsp;%" in page
    assert page.count("<rect") == 2
    assert "<svg" not in Estimate(name="x", value=0.5)._repr_html_()
    table = EstimateTable([e], title="t", notes=["up to 5 %"])._repr_html_()
    assert table.count("<tr>") == 2
    assert "up to 5&nbsp;%" in table
    assert "<polyline" in Curve(name="c", x=[0, 1], y=[1, 2])._repr_html_()


def test_no_minus_stands_before_zero():
    assert format_number(-0.0, 0.5) == format_number(-0.004, 0.5) == "0.00"
    assert format_end(-0.004, 0.5, side="low") == "-0.01"  # outward
    assert format_end(-0.0, 0.5, side="low") == format_end(-0.0, 0.5, side="high") == "0.00"
    assert format_end(-0.0, side="low", digits=4) == "0"


def test_the_band_of_equal_predictors_is_printed_without_a_minus():
    p_values = np.random.default_rng(0).random((20, 3))
    table = efficiency_difference(np.arange(20) % 3, p_values, p_values, classes=range(3))
    assert "would read 0.0 to 0.0" in str(table["S"])
    assert "-0.0 to" not in str(table)


def test_scalars_of_array_libraries_are_plain_numbers_in_an_estimate():
    e = Estimate(
        name="x", value=np.float64(0.25), std_error=np.float32(0.5), low=np.array(0.125), n=np.int64(7)
    )
    assert [type(v) for v in (e.value, e.std_error, e.low, e.n)] == [float, float, float, int]
    assert repr(e) == "Estimate(name='x', value=0.25, std_error=0.5, low=0.125, n=7)"
