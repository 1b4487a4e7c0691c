"""A folder of audits: first broken when, what changed, files that are none, promises where audits have them."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pytest

from calipers import audit
from calipers.auditing import keep_audit, read_history
from calipers.auditing.history import Run
from calipers.auditing.history_changes import changes_between
from calipers.exceptions import InputError

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def day(number):
    return START + dt.timedelta(days=number)


def coverage_audit(coverage, seed):
    covered = np.random.default_rng(seed).random(2000) < coverage
    ends = np.column_stack([np.full(2000, -1.0), np.full(2000, 1.0)])
    return audit(np.where(covered, 0.0, 2.0), intervals=ends, random_state=0)


@pytest.fixture(scope="module")
def audits():
    return [coverage_audit(share, seed) for seed, share in enumerate((0.9, 0.84, 0.9, 0.85, 0.8))]


@pytest.fixture
def folder(audits, tmp_path):
    for number, one in enumerate(audits):
        keep_audit(one, tmp_path, at=day(number), failed=number in (1, 3, 4))
    return tmp_path


def promise(document, name):
    return next(line for line in document["promises"] if line["promise"] == name)


def test_the_story_says_first_broken_when_and_since_when(folder):
    document = read_history(folder).to_dict()
    line = promise(document, "coverage of the intervals")
    assert [point["answer"] for point in line["points"]] == ["kept", "broken", "kept", "broken", "broken"]
    assert (line["now"], line["first_broken"], line["broken_since"], line["times_broken"]) == (
        "broken",
        1,
        3,
        3,
    )
    assert [run["missed"] for run in document["runs"]] == [False, True, False, True, True]
    assert [run["at"][:10] for run in document["runs"]] == [f"2026-01-0{n}" for n in range(1, 6)]


def test_values_and_bands_are_those_of_the_audits(folder, audits):
    document = read_history(folder).to_dict()
    points = next(line["points"] for line in document["numbers"] if line["name"] == "coverage")
    for point, one in zip(points, audits, strict=True):
        estimate = one.estimates["coverage"]
        assert (point["value"], point["low"], point["high"]) == (estimate.value, estimate.low, estimate.high)


def test_what_changed_between_two_runs(folder):
    history = read_history(folder)
    assert history.newly_broken() == []
    change = history.changes(0, -1)
    assert ("coverage of the intervals", "all rows") in change.broken
    coverage = next(line for line in change.numbers if line.name == "coverage")
    assert coverage.changed
    assert coverage.after < coverage.before
    assert ("coverage of the intervals", "all rows") in history.changes(1, 2).mended


def test_a_p_value_of_a_change_is_that_of_two_independent_means():
    old = ({}, {"a": {"value": 0.9, "std_error": 0.03}, "b": {"value": 1.0, "std_error": None}})
    new = ({}, {"a": {"value": 0.8, "std_error": 0.04}, "b": {"value": 2.0, "std_error": 0.1}})
    first, second = changes_between(old, new).numbers
    assert first.p_value == pytest.approx(0.0455, abs=1e-4)  # z = 0.1 / 0.05
    assert second.p_value is None
    assert not second.changed


def test_a_constant_interval_gives_no_false_certainty():
    same = {"a": {"value": 0.5, "std_error": 0.0}}
    assert changes_between(({}, same), ({}, same)).numbers[0].p_value is None


def test_corrupt_and_foreign_files_are_named_and_passed_over(folder):
    (folder / "torn.json").write_text('{"kind": "Audit", "find')
    (folder / "other.json").write_text('{"name": "package"}')
    (folder / "list.json").write_text("[1, 2]")
    (folder / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (folder / "lacking.json").write_text('{"kind": "Audit", "about": {}}')
    (folder / "readme.txt").write_text("not looked at")
    history = read_history(folder)
    assert len(history.runs) == 5
    assert set(history.passed_over) == {
        f"{name}.json" for name in ("torn", "other", "list", "bytes", "lacking")
    }
    assert "not JSON" in history.passed_over["torn.json"]
    assert history.passed_over["other.json"] == "it is not the JSON of an audit"
    assert "torn.json" in history.to_html()


def test_an_audit_with_a_value_of_another_kind_is_passed_over(folder):
    # Such a file was read, and the page of all audits then failed.
    whole = json.loads(min(folder.glob("*.json")).read_text())
    damages = [("missed", "x"), ("missed", [])]
    damaged = [whole | {"kept": whole["kept"] | {key: value}} for key, value in damages]
    for key, value in (("answer", 1.5), ("low", {"x": 1}), ("value", 10**400)):
        damaged.append(whole | {"promises": [whole["promises"][0] | {key: value}]})
    for number, document in enumerate(damaged):
        (folder / f"damaged{number}.json").write_text(json.dumps(document))
    history = read_history(folder)
    assert len(history.passed_over) == len(damaged)
    assert (
        history.passed_over["damaged1.json"] == "it is damaged: a value is of another kind than an audit has"
    )
    assert len(history.runs) == 5
    assert "damaged0.json" in history.to_html()


def test_an_audit_json_of_another_place_counts_from_when_it_was_written(folder, audits):
    audits[0].to_json(folder / "audit.json")
    history = read_history(folder)
    assert history.runs[-1].file == "audit.json"
    assert history.to_dict()["runs"][-1]["missed"] is None


def test_the_table_of_promises_is_read_where_there_is_one(folder):
    row = {
        "promise": "intervals",
        "slice": "group a",
        "answer": "broken",
        "value": 0.8,
        "low": 0.7,
        "high": 0.9,
    }
    for number, file in enumerate(sorted(folder.glob("*.json"))):
        document = json.loads(file.read_text())
        answer = "broken" if number >= 2 else "kept"
        document["promises"] = [
            row | {"answer": answer, "p_value": 0.01, "n": 10, "code": "CAL201", "where": "a"}
        ]
        file.write_text(json.dumps(document))
    line = promise(read_history(folder).to_dict(), "intervals")
    assert (line["slice"], line["first_broken"], line["broken_since"]) == ("group a", 2, 2)


def test_columns_of_promises_are_the_same_as_rows(folder):
    for file in folder.glob("*.json"):
        document = json.loads(file.read_text())
        document["promises"] = {"promise": ["a", "b"], "slice": ["all", "x"], "answer": ["kept", "broken"]}
        file.write_text(json.dumps(document))
    document = read_history(folder).to_dict()
    assert [(line["promise"], line["now"]) for line in document["promises"]] == [
        ("b", "broken"),
        ("a", "kept"),
    ]


def test_the_page_stands_alone_and_the_json_is_strict(folder, tmp_path):
    history = read_history(folder)
    page = history.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") >= len(history.to_dict()["promises"])
    assert json.loads(history.to_json())["kind"] == "AuditHistory"


def test_names_in_a_page_are_escaped(folder):
    file = max(folder.glob("*.json"))
    document = json.loads(file.read_text())
    document["about"]["source"] = "<script>alert(1)</script>"
    document["promises"] = [{"promise": "<b>", "slice": '"><i>', "answer": "kept", "value": 1.0}]
    file.write_text(json.dumps(document))
    page = read_history(folder).to_html()
    assert "<script>alert" not in page
    assert "<i>" not in page


def test_a_second_audit_of_the_same_moment_does_not_replace_the_first(audits, tmp_path):
    files = {keep_audit(audits[0], tmp_path, at=day(0)) for _ in range(3)}
    assert len(files) == 3


def test_a_single_audit_has_no_change(audits, tmp_path):
    keep_audit(audits[1], tmp_path)
    history = read_history(tmp_path)
    assert history.changes() is None
    assert ("coverage of the intervals", "all rows") in history.newly_broken()
    assert "<svg" in history.to_html()


def test_a_folder_without_audits_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no audits"):
        read_history(tmp_path)
    with pytest.raises(InputError, match="must be a folder"):
        read_history(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="got the file"):
        keep_audit(None, tmp_path / "file")


def two_models(spread, seed=0, ids=None, order=None):
    """Audits of the same outcomes by intervals of two widths."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=2000)
    order = np.arange(2000) if order is None else order
    half = spread + 0.001 * rng.random(2000)[order] * spread  # nearly one width
    return audit(
        y[order],
        intervals=np.column_stack([-half, half]),
        row_id=None if ids is None else ids[order],
        random_state=0,
    )


def test_audits_of_the_same_rows_are_paired(tmp_path):
    keep_audit(two_models(1.645), tmp_path, at=day(0))
    keep_audit(two_models(1.58), tmp_path, at=day(1))
    change = read_history(tmp_path).changes()
    assert change.shared_rows == 2000
    numbers = {line.name: line for line in change.numbers}
    covered = numbers["coverage"]
    # By McNemar's test only rows that one of the two covers count, and here they all lean one way.
    y = np.random.default_rng(0).normal(size=2000)
    lost = int(np.sum((np.abs(y) > 1.58) & (np.abs(y) <= 1.645)))
    assert covered.paired
    assert covered.changed
    assert covered.p_value <= len(change.numbers) * 2 * 0.5 ** (lost - 5)  # five for the widths that vary
    assert numbers["mean size"].before == pytest.approx(3.29, abs=0.01)
    assert "mean width" not in numbers  # the same number under the name of the audit
    # As numbers of different rows the same difference is noise.
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    apart = read_history(tmp_path).changes()
    assert apart.shared_rows == 0
    assert not next(line for line in apart.numbers if line.name == "coverage").changed


def test_rows_with_ids_are_paired_in_any_order(tmp_path):
    ids = np.arange(5000, 7000)
    shuffled = np.random.default_rng(1).permutation(2000)
    keep_audit(two_models(1.645, ids=ids), tmp_path, at=day(0))
    keep_audit(two_models(1.58, ids=ids, order=shuffled), tmp_path, at=day(1))
    keep_audit(two_models(1.58, ids=ids[::-1]), tmp_path, at=day(2))
    history = read_history(tmp_path)
    assert history.changes(0, 1).shared_rows == 2000
    assert history.changes(1, 2).shared_rows == 0  # other ids of the same outcomes: other rows
    paired, straight = tmp_path / "paired", history.changes(0, 1)
    keep_audit(two_models(1.645), paired, at=day(0))
    keep_audit(two_models(1.58), paired, at=day(1))
    in_order = read_history(paired).changes()
    assert [n.p_value for n in straight.numbers if n.paired] == pytest.approx(
        [n.p_value for n in in_order.numbers if n.paired]
    )


def test_other_rows_are_not_paired(folder):
    assert read_history(folder).changes().shared_rows == 0


def test_a_damaged_file_of_rows_is_named_and_passed_over(tmp_path):
    for number, spread in enumerate((1.645, 1.58)):
        file = keep_audit(two_models(spread), tmp_path, at=day(number))
    file.with_suffix(".parquet").write_bytes(b"PAR1 torn")
    history = read_history(tmp_path)
    assert len(history.runs) == 2
    assert list(history.passed_over) == [file.with_suffix(".parquet").name]
    assert history.changes().shared_rows == 0


def test_the_report_of_the_next_audit_pairs_its_rows_too(tmp_path):
    keep_audit(two_models(1.645), tmp_path, at=day(0))
    change = two_models(1.58).after(tmp_path).history["change"]
    assert change["shared_rows"] == 2000
    assert "coverage" in [line["name"] for line in change["numbers"]]


@pytest.mark.parametrize(
    ("outcome", "severity", "details", "answer"),
    [
        ("fault", "issue", {}, "broken"),
        ("fault", "note", {"effect": 0.01}, "mostly kept"),
        ("fault", "note", {"effect": -0.01}, "kept"),
        ("fault", "note", {"own_severity": "issue"}, "broken"),
        ("clean", "none", {"descriptive": True}, "descriptive"),
        ("cannot_tell", "none", {"descriptive": True}, "cannot tell"),
    ],
)
def test_findings_answer_as_the_table_of_promises_does(outcome, severity, details, answer):
    finding = {"code": "CAL201", "title": "t", "outcome": outcome, "severity": severity, "details": details}
    run = Run(day(0), "a.json", {"findings": [finding | {"evidence": None}]})
    assert run.answers()["CAL201", ""]["answer"] == answer
