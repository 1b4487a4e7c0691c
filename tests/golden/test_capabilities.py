"""Capabilities that have no test of their own elsewhere, and that those elsewhere are still there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import calipers
from calipers.auditing import audit_stream
from calipers.cli import main
from calipers.engines import ArraySource, plan_run
from calipers.metrics import ert
from tests.golden.capabilities import PINNED_BY, is_a_test
from tests.golden.signatures import aliases_may_warn
from tests.golden.storage import load
from tests.randomness import restored_python_generator


@pytest.mark.parametrize("capability", PINNED_BY)
def test_the_tests_of_a_capability_are_there(capability):
    assert [test for test in PINNED_BY[capability] if not is_a_test(test)] == []


def test_a_test_that_is_not_there_is_noticed():
    assert not is_a_test("tests/golden/test_capabilities.py::test_of_nothing")
    assert not is_a_test("tests/golden/test_nothing.py::test_of_nothing")


# --- forms of other libraries --------------------------------------------------------------------

Y = np.array([0, 1, 2, 1, 0] * 8)
SETS = np.eye(3, dtype=bool)[Y] | (np.arange(40)[:, None] % 4 == 3)
SETS[::5] = False
LISTS = [np.flatnonzero(row).tolist() for row in SETS]
SET_FORMS = {
    "matrix": SETS,
    "zeros and ones": SETS.astype(int),
    "MAPIE: labels and one level": (Y, SETS[:, :, None]),
    "crepes: lists of labels": LISTS,
    "puncc: labels and lists of labels": (Y, LISTS),
    "puncc: labels and sets of labels": (Y, [set(labels) for labels in LISTS]),
}


def coverage_of(audit):
    return float(audit.estimates["coverage"])


@pytest.mark.parametrize("form", SET_FORMS)
def test_sets_are_audited_as_other_libraries_return_them(form):
    found = calipers.audit(Y, sets=SET_FORMS[form], alpha=0.1, random_state=0)
    assert coverage_of(found) == SETS[np.arange(40), Y].mean() == 0.8
    assert float(found.estimates["mean size"]) == SETS.sum(axis=1).mean()


V = np.linspace(-2.0, 2.0, 50)
LOWER, UPPER = np.full(50, -1.5), np.full(50, 1.5)
ENDS = np.column_stack([LOWER, UPPER])
INTERVAL_FORMS = {
    "matrix": ENDS,
    "two vectors": (LOWER, UPPER),
    "MAPIE: point and one level": (V, ENDS[:, :, None]),
    "crepes: rows": ENDS.tolist(),
    "puncc: point, lower, upper": (V, LOWER, UPPER),
    "TorchCP: one output": ENDS[:, None, :],
}


@pytest.mark.parametrize("form", INTERVAL_FORMS)
def test_intervals_are_audited_as_other_libraries_return_them(form):
    found = calipers.audit(V, intervals=INTERVAL_FORMS[form], alpha=0.1, random_state=0)
    assert coverage_of(found) == np.mean(np.abs(V) <= 1.5)
    assert float(found.estimates["mean width"]) == 3.0


# --- audits ----------------------------------------------------------------------------------------


def test_an_audit_tells_its_progress():
    told = []
    calipers.audit(V, intervals=ENDS, random_state=0, progress=lambda *where: told.append(where))
    assert [done for _, done, _ in told] == list(range(len(told)))
    assert {total for *_, total in told} == {len(told) - 1}
    assert told[0][0] == "CAL101"


def test_a_streamed_audit_tells_its_progress():
    told = []
    source = ArraySource({"y_true": V, "intervals": ENDS}, piece_rows=20)
    with aliases_may_warn():
        audit_stream(source, random_state=0, progress=lambda *where: told.append(where))
    assert all(isinstance(what, str) and 0 <= done <= total for what, done, total in told)
    assert max(done for _, done, total in told if total == 3) == 3  # three pieces were read
    assert "CAL101" in {what for what, *_ in told}


def test_muted_checks_do_not_run_in_a_stream_nor_by_the_command(tmp_path, capsys):
    source = ArraySource({"y_true": V, "intervals": ENDS}, piece_rows=20)
    with aliases_may_warn():
        streamed = audit_stream(source, random_state=0, mute=["CAL601"])
    assert "CAL601" not in {finding.code for finding in streamed.findings}
    pl.DataFrame({"y_true": V, "lower": LOWER, "upper": UPPER}).write_csv(tmp_path / "rows.csv")
    assert main(["audit", str(tmp_path / "rows.csv"), "--mute", "CAL601,CAL301", "--json"]) in {0, 1}
    codes = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert "CAL101" in codes
    assert not codes & {"CAL601", "CAL301"}


def test_a_column_of_row_ids_is_no_feature(tmp_path, capsys):
    rows = pl.DataFrame({"y_true": V, "lower": LOWER, "upper": UPPER})
    given = []
    for name, column in (("row_id", "row_id"), ("feature", "number")):
        rows.with_columns(pl.Series(column, np.arange(50))).write_csv(tmp_path / f"{name}.csv")
        assert main(["audit", str(tmp_path / f"{name}.csv"), "--mute", "CAL203", "--json"]) in {0, 1}
        given.append("X" in json.loads(capsys.readouterr().out)["about"]["given"])
    assert given == [False, True]


# --- metrics, engines, data ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "distance"), [("l1", lambda t, q: np.abs(q - t)), ("l2", lambda t, q: (q - t) ** 2)]
)
def test_a_convex_distance_given_as_a_function_is_the_loss_it_describes(loss, distance):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    covered = rng.random(400) < np.where(X[:, 0] > 0, 0.95, 0.7)
    options = {"alpha": 0.1, "classifier": LogisticRegression(), "null": None, "random_state": 0}
    named, given = (float(ert(X, covered, loss=one, **options)) for one in (loss, distance))
    assert given == pytest.approx(named, rel=1e-5)
    assert named > 0


def test_a_run_over_a_billion_rows_is_planned():
    plan = plan_run(
        1e9, row_bytes=44, state_bytes=1000, passes=2, piece_rows=10**7, seconds_per_row=1e-8, workers=4
    )
    assert (plan.n_rows, plan.passes, plan.pieces, plan.bytes_read) == (10**9, 2, 100, 88e9)
    assert plan.bytes_to_driver == 2000
    assert plan.seconds == pytest.approx(5.0)


def test_the_loaders_of_public_data_sets_are_pinned():
    named = {name for name in load("signatures")["calipers.datasets"] if name.startswith("load_")}
    assert named >= {
        "load_adult", "load_cifar100", "load_cifar10_human", "load_cifar10_resnet50", "load_cifar_n", "load_covtype",
        "load_demo_classification", "load_demo_regression", "load_fashion_mnist", "load_regression", "load_usps",
    }  # fmt: skip


# --- running clusters --------------------------------------------------------------------------------


MEASURE = """
import sys, calipers.engines as engines
found = engines.measure(engines.FileSource(sys.argv[1]), engine=sys.argv[2])
print(float(found["coverage"]))
"""
TOLD_MASTER = (
    "from pyspark.sql import SparkSession; print(SparkSession.getActiveSession().sparkContext.master)"
)
# Java is here for seconds: one collector, and no second compiler.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def printed_by(code, tmp_path, engine, **environment):
    """What a process of its own prints that measures a file with an engine."""
    place = tmp_path / "rows.parquet"
    pl.DataFrame({"y_true": V, "lower": LOWER, "upper": UPPER}).write_parquet(place)
    found = subprocess.run(
        [sys.executable, "-c", code, str(place), engine],
        capture_output=True, text=True, check=True, timeout=180, env=os.environ | environment,
    )  # fmt: skip
    return found.stdout.split()


@pytest.mark.filterwarnings("ignore")  # clusters warn about ports, cores and shutdown
def test_a_running_dask_cluster_is_joined_by_its_address(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the Dask engine was not tested: no distributed")
    with (
        restored_python_generator(),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1",
            dashboard_address=None, silence_logs=50,
        ) as cluster,
    ):  # fmt: skip
        before = cluster.scheduler.transition_counter
        found = printed_by(MEASURE, tmp_path, "dask", DASK_SCHEDULER_ADDRESS=cluster.scheduler_address)
        assert cluster.scheduler.transition_counter > before  # tasks ran here
    assert float(found[0]) == np.mean(np.abs(V) <= 1.5)


def test_spark_runs_on_the_master_it_was_told(tmp_path):
    if shutil.which("java") is None:
        pytest.skip(
            "the Spark engine was not tested: there is no Java (apt-get install default-jre-headless)"
        )
    pytest.importorskip("pyspark", reason="the Spark engine was not tested: no pyspark")
    words = (
        f"--master local[3] --conf spark.ui.enabled=false --driver-java-options '{QUICK_JAVA}' pyspark-shell"
    )
    found = printed_by(MEASURE + TOLD_MASTER, tmp_path, "spark", PYSPARK_SUBMIT_ARGS=words)
    assert float(found[0]) == np.mean(np.abs(V) <= 1.5)
    assert found[1] == "local[3]"  # without a word it would be local[2]
