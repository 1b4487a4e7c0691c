"""An audit of streamed rows says what an audit in memory says."""

import json
import re

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.auditing import audit
from calipers.cli import main
from calipers.conformal import conformal_p_values, lac
from calipers.engines import ArraySource, FileSource
from calipers.exceptions import InputError
from calipers.fields import ARGUMENTS
from calipers.metrics import coverage

# Codes whose numbers come from all rows, and those that look at the sample or are fitted on it.
FROM_ALL = {"CAL101", "CAL102", "CAL201", "CAL301", "CAL401", "CAL501", "CAL502", "CAL503"}


def world(n=3000, seed=0, K=4):
    """A model that is too sure of itself, conformalised on 500 rows of its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 500, 3))
    logits = X @ rng.normal(size=(3, K))
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    Q = P**1.4 / (P**1.4).sum(axis=1, keepdims=True)
    y = (rng.random((n + 500, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    own = lac(Q[:500])[np.arange(500), y[:500]]
    return {
        "y_true": y[500:],
        "probabilities": Q[500:],
        "p_values": conformal_p_values(own, lac(Q[500:])),
        "X": X[500:],
        "groups": rng.choice(["north", "south", "west"], n),
        "ease": Q[500:].max(axis=1) + rng.normal(0, 0.02, n),
    }


def regression(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    y = rng.normal(0, 0.5 + x)
    return {"y_true": y, "intervals": np.column_stack([-2 * np.ones(n), 2 * np.ones(n)]), "X": x[:, None]}


def write(rows, folder, cuts):
    columns = {"y_true": rows["y_true"]}
    for role, prefix in (("probabilities", "p"), ("p_values", "pvalue")):
        columns |= {f"{prefix}_{k}": rows[role][:, k] for k in range(rows[role].shape[1])}
    columns |= {"group": rows["groups"], "ease": rows["ease"]}
    columns |= {f"x{j}": rows["X"][:, j] for j in range(rows["X"].shape[1])}
    frame = pl.DataFrame(columns)
    for number, part in enumerate(np.split(np.arange(frame.height), cuts)):
        frame[part].write_parquet(folder / f"part-{number}.parquet")
    return str(folder / "*.parquet")


def assert_close(found, expected, name):
    for field in ("value", "low", "high", "p_value", "null_low", "null_high", "n"):
        a, b = getattr(found, field), getattr(expected, field)
        assert (a is None) == (b is None), (name, field)
        assert a is None or a == pytest.approx(b, rel=1e-12, abs=1e-12, nan_ok=True), (name, field)


@pytest.fixture(scope="module")
def rows():
    return world()


@pytest.fixture(scope="module")
def in_memory(rows):
    return calipers.audit(**rows, alpha=0.1, n_calibration=500, random_state=0)


@pytest.fixture(scope="module")
def streamed(rows, tmp_path_factory):
    pattern = write(rows, tmp_path_factory.mktemp("rows"), [900, 2100])
    source = FileSource(pattern, features=True, piece_rows=700)
    return audit(source=source, alpha=0.1, n_calibration=500, random_state=0, sample_rows=1500)


def test_numbers_from_all_rows_are_those_of_an_audit_in_memory(in_memory, streamed):
    names = [
        "coverage", "coverage of the group", "mean size", "empty sets", "efficiency", "sscv", "t_cv", "deficit",
        "excess", "accuracy", "calibration error", "share of sets",
    ]  # fmt: skip
    shared = [name for name in in_memory.estimates if any(name.startswith(start) for start in names)]
    # What rests on rows side by side is measured on the sample.
    shared = [name for name in shared if not re.search("expected|coverage where|error in (group|the)", name)]
    assert len(shared) >= 20
    for name in shared:
        assert_close(streamed.estimates[name], in_memory.estimates[name], name)
    # Rows are shuffled in another order: the same T-SS, another draw of its test.
    assert float(streamed.estimates["t_ss"]) == pytest.approx(float(in_memory.estimates["t_ss"]), rel=1e-12)


def test_the_same_codes_and_severities(in_memory, streamed):
    ours = {f.code: f for f in streamed.findings}
    theirs = {f.code: f for f in in_memory.findings}
    assert set(ours) == set(theirs)
    for code in FROM_ALL & set(theirs):
        if theirs[code].outcome == "not_applicable":
            continue
        assert (ours[code].outcome, ours[code].severity) == (theirs[code].outcome, theirs[code].severity), (
            code
        )
        assert ours[code].details["effect"] == pytest.approx(theirs[code].details["effect"], rel=1e-9), code
    assert streamed.severity == in_memory.severity


def test_a_streamed_audit_writes_every_report_and_says_what_it_is(streamed, tmp_path):
    assert streamed.rows == 3000
    assert streamed.data.n == 1500
    document = json.loads(streamed.to_json())
    assert document["about"]["rows"] == 3000
    assert document["about"]["sample_rows"] == 1500
    streamed.to_html(tmp_path / "report.html")
    assert "3000" in (tmp_path / "report.html").read_text(encoding="utf-8").replace(" ", "").replace(",", "")
    assert "3000 rows" in repr(streamed)
    sampled = {f.code for f in streamed.findings if "sample_rows" in f.details}
    assert "CAL601" in sampled
    assert not sampled & FROM_ALL


def test_no_split_of_the_rows_changes_the_audit(rows):
    given = {k: v for k, v in rows.items() if k != "p_values"} | {"sets": rows["p_values"] > 0.1}
    given = {k: v[:1500] for k, v in given.items()}
    audits = [
        audit(source=ArraySource(given, piece_rows=k), alpha=0.1, random_state=3, sample_rows=400)
        for k in (1500, 211)
    ]
    first, second = (audit.estimates for audit in audits)
    assert list(first) == list(second)
    for name in first:
        assert_close(first[name], second[name], name)
    assert [f.sentence for f in audits[0].findings] == [f.sentence for f in audits[1].findings]


def test_intervals_at_two_levels_stream_like_in_memory():
    rows = regression()
    half = np.array([2.2, 1.4])
    ends = np.stack([np.tile([-h, h], (3000, 1)) for h in half], axis=-1)
    ends[5, :, 0] = [-np.inf, np.inf]
    given = {"y_true": rows["y_true"], "intervals": ends}
    alone = calipers.audit(**given, alpha=[0.05, 0.2], random_state=0)
    source = ArraySource(given, alpha=[0.05, 0.2], piece_rows=800)
    streamed = audit(source=source, alpha=[0.05, 0.2], random_state=0)
    for name in ("coverage at alpha=0.05", "coverage at alpha=0.2", "mean width at alpha=0.2",
                 "share of infinite intervals at alpha=0.05"):  # fmt: skip
        assert_close(streamed.estimates[name], alone.estimates[name], name)


def test_features_tell_where_coverage_fails_over_a_stream():
    rows = regression(6000)
    found = audit(source=ArraySource(rows, piece_rows=1000), alpha=0.1, random_state=0, sample_rows=2000)
    finding = next(f for f in found.findings if f.code == "CAL202")
    assert finding.outcome == "fault"
    table = found.estimates
    assert table["ert l1"].low > 0
    assert table["ert l1"].n == 4000
    parts = float(table["ert l1_over"]) + float(table["ert l1_under"])
    assert parts == pytest.approx(float(table["ert l1"]), abs=1e-12)


@pytest.fixture
def intervals(tmp_path):
    """Intervals in two files, and their coverage."""
    rows = regression(900)
    frame = pl.DataFrame(
        {"y_true": rows["y_true"], "lower": rows["intervals"][:, 0], "upper": rows["intervals"][:, 1]}
    )
    frame[:500].write_parquet(tmp_path / "a.parquet")
    frame[500:].write_parquet(tmp_path / "b.parquet")
    return tmp_path, coverage(rows["y_true"], rows["intervals"], alpha=0.1)


def test_the_command_streams_patterns_folders_and_several_files(intervals, capsys):
    folder, expected = intervals
    for files in (
        [str(folder / "*.parquet")],
        [str(folder)],
        [str(folder / "b.parquet"), str(folder / "a.parquet")],
    ):
        assert main(["audit", *files, "--json"]) in (0, 1)
        document = json.loads(capsys.readouterr().out)
        assert document["about"]["rows"] == 900
        found = document["estimates"]["coverage"]
        assert (found["value"], found["p_value"]) == (
            expected.value,
            pytest.approx(expected.p_value, rel=1e-12),
        )


def test_the_command_plans_many_files_and_streams_what_memory_cannot_hold(intervals, capsys, monkeypatch):
    folder, _ = intervals
    file = str(folder / "a.parquet")
    assert main(["audit", str(folder), "--plan"]) == 0
    out = capsys.readouterr().out
    assert "900 rows in 2 file(s)\n" in out
    assert "Checked by CAL101" in out
    assert main(["audit", file, "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["about"]["sample_rows"] is None
    alone = main(["audit", file, "--json"]), json.loads(capsys.readouterr().out)["estimates"]["coverage"]
    monkeypatch.setattr("calipers.inputs.files.size_limits.available_memory", lambda: 10_000)
    assert main(["audit", file, "--plan"]) == 0
    assert "500 rows in 1 file(s), streamed" in capsys.readouterr().out
    assert (
        main(["audit", file, "--json"]),
        json.loads(capsys.readouterr().out)["estimates"]["coverage"],
    ) == alone
    assert main(["audit", str(folder / "nothing*.parquet")]) == 2
    assert "no file matches" in capsys.readouterr().err
    assert main(["audit", file, "--engine", "slurm"]) == 2
    assert 'engine must be "local", "dask" or "spark"' in capsys.readouterr().err


@pytest.mark.parametrize("argument", [*ARGUMENTS, "classes", "quantile_levels"])
def test_an_array_beside_a_source_is_refused(argument):
    source = ArraySource({"y_true": np.zeros(50), "intervals": np.tile([-1.0, 1.0], (50, 1))})
    with pytest.raises(InputError, match=f"either source or arrays, got source and {argument}"):
        audit(source=source, **{argument: np.ones(50)}, random_state=0)


def test_one_stray_row_is_named():
    rows = regression(400) | {"X": None}
    rows["y_true"] = np.where(np.arange(400) == 7, np.nan, rows["y_true"])
    with pytest.raises(InputError, match="y_true has 1 NaN"):
        audit(source=ArraySource(rows), alpha=0.1)


def test_rows_with_ids_give_one_audit_however_they_are_split_into_files(tmp_path) -> None:
    rng, n = np.random.default_rng(0), 1200
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + rng.normal(size=n) * (1 + 0.8 * (X[:, 1] > 1))
    columns = {"y_true": y, "lower": X[:, 0] - 1.645, "upper": X[:, 0] + 1.645, "x0": X[:, 0], "x1": X[:, 1]}
    rows, audits = np.column_stack([*columns.values(), np.arange(n)]), []
    for n_files in (1, 3):
        for number, part in enumerate(np.array_split(rows, n_files)):
            header, form = ",".join([*columns, "row_id"]), ["%.17g"] * len(columns) + ["%d"]
            path = tmp_path / f"{n_files}_{number}.csv"
            np.savetxt(path, part, delimiter=",", header=header, comments="", fmt=form)
        audits.append(calipers.audit(source=f"{tmp_path}/{n_files}_*.csv", sample_rows=500, random_state=0))
    one, three = ([(f.code, f.sentence, f.details.get("p_value")) for f in a.findings] for a in audits)
    assert one == three
