"""The same numbers from here, from Dask and from Spark, also when a worker dies in the middle."""

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calipers
from calipers.auditing import audit
from calipers.engines import ArraySource, FileSource, State, measure
from calipers.engines.dask_engine import DaskEngine
from calipers.engines.running import LocalEngine, run_states
from calipers.engines.sources import FilePiece
from calipers.engines.spark_engine import SparkEngine
from calipers.exceptions import InputError
from calipers.metrics import metric_entries
from calipers.performance import AlgorithmPerformance
from calipers.results import EstimateTable
from studies.conditional.synthetic import sample_efficiency
from studies.progress import study_progress
from tests.contract import test_audit_paths as audits
from tests.contract import test_weights_and_blocks as contract
from tests.randomness import restored_python_generator

METRICS = (
    "coverage",
    "efficiency",
    "t_cv",
    "t_ss",
    "proper_scores",
    "calibration_error",
    "sscv",
    "coverage_gap",
)
# Java is here for seconds: one collector, and no second compiler.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Metrics whose values are made of counts and ranks only.
COUNTED = {"coverage", "sscv", "t_cv", "coverage_gap"}
pytestmark = pytest.mark.filterwarnings("ignore")  # clusters warn about ports, cores and shutdown
N, K = 1200, 4
OPTIONS = {name: {"random_state": 0} for name in ("t_cv", "t_ss", "calibration_error", "coverage_gap")}
# Checks that simulate for seconds whatever the number of rows say nothing about engines.
MUTED = ("CAL103", "CAL203", "CAL601")
# Read from the sample of rows that a streamed audit keeps, so their numbers are not those of all rows.
SAMPLED = ("CAL202", "CAL302", "CAL402", "CAL504", "CAL505", "CAL506", "CAL508", "CAL509")


def rows():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(K), N)
    y = (rng.random((N, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    x = rng.normal(size=N)
    return {
        "y_true": y, "probabilities": P, "p_values": rng.random((N, K)), "ease": P.max(axis=1) + 0.1 * x,
        "groups": rng.choice(["north", "south"], N), "X": x[:, None],
    }  # fmt: skip


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Three files of 400 rows."""
    folder, given = tmp_path_factory.mktemp("dataset"), rows()
    columns = {
        "y_true": given["y_true"],
        "ease": given["ease"],
        "group": given["groups"],
        "x": given["X"][:, 0],
    }
    columns |= {f"p_{k}": given["probabilities"][:, k] for k in range(K)}
    columns |= {f"pvalue_{k}": given["p_values"][:, k] for k in range(K)}
    for part in range(3):
        pl.DataFrame(columns)[400 * part : 400 * (part + 1)].write_parquet(folder / f"part-{part}.parquet")
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def expected(dataset):
    """The metrics and the audit, by one thread here."""
    return (
        measure(FileSource(dataset, piece_rows=150), METRICS, engine=LocalEngine(1), options=OPTIONS),
        audited(FileSource(dataset, piece_rows=150, features=True), LocalEngine(1)),
    )


def audited(source, engine, progress=None):
    return audit(
        source=source,
        alpha=0.1,
        random_state=0,
        engine=engine,
        sample_rows=500,
        mute=MUTED,
        progress=progress,
    )


def assert_same(found, expected, *, rel):
    """Every number of every estimate; counts and ranks, and with ``rel=0`` all others, bit for bit."""
    assert list(found) == list(expected)
    for name, estimate in found.items():
        for field in ("value", "low", "high", "p_value", "null_low", "null_high", "n", "std_error"):
            a, b = getattr(estimate, field), getattr(expected[name], field)
            assert (a is None) == (b is None)
            exact = rel == 0 or field == "n" or (name in COUNTED and field == "value")
            near = {"rel": 0, "abs": 0} if exact else {"rel": rel, "abs": 1e-14}
            assert a is None or a == pytest.approx(b, nan_ok=True, **near), (name, field)


def assert_same_audit(found, expected):
    assert_same(found.estimates, expected.estimates, rel=0)
    assert [(f.code, f.severity, f.sentence) for f in found.findings] == [
        (f.code, f.severity, f.sentence) for f in expected.findings
    ]


def test_streaming_gives_the_numbers_of_memory(expected):
    given = rows()
    alone = calipers.audit(**given, alpha=0.1, random_state=0, mute=(*MUTED, *SAMPLED))
    streamed = expected[1].estimates
    kept = [name for name in alone.estimates if name in streamed and not name.startswith("t_ss")]
    assert len(kept) >= 20
    there = {name: alone.estimates[name] for name in kept}
    assert_same({name: streamed[name] for name in kept}, there, rel=1e-12)


@dataclass(frozen=True, eq=False)
class SlowPiece(FilePiece):
    """A piece that takes a while, so that there is a middle of the run."""

    def blocks(self):
        time.sleep(0.15)
        yield from FilePiece.blocks(self)


class SlowSource(FileSource):
    def pieces(self):
        return [SlowPiece(**{f.name: getattr(p, f.name) for f in fields(p)}) for p in super().pieces()]


class KillOnce:
    """A progress display that kills a worker soon after the second piece, while others are being read."""

    def __init__(self, victims):
        self.victims, self.timer, self.killed = victims, None, None

    def __call__(self, *where):
        if where[-2] >= 2 and self.timer is None:
            victim = self.victims()[0]
            self.timer = threading.Timer(0.1, self.kill, [victim])
            self.timer.start()

    def kill(self, victim):
        os.kill(victim, signal.SIGKILL)
        self.killed = victim


ARRIVED = []


class Counted(State):
    """Counts rows, and how many states of its kind that have seen some arrive in a process."""

    def __init__(self):
        self.n = 0

    def __setstate__(self, found):
        self.n = found["n"]
        if self.n:  # empty ones are on their way out
            ARRIVED.append(self)

    def absorb(self, block):
        self.n += block.n

    def merge(self, other):
        self.n += other.n
        return self

    def finish(self):
        return self.n


def assert_one_state_arrives(engine, dataset):
    """Sixty pieces in four groups: three levels, and one state that reaches this process."""
    pieces, seen = FileSource(dataset, piece_rows=20).pieces(), []
    assert len(pieces) == 60
    ARRIVED.clear()
    found = run_states({"it": Counted()}, pieces, engine, lambda *where: seen.append(where))
    assert found["it"].n == N
    assert len(ARRIVED) == 1
    assert seen[-1] == (60, 60)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def assert_refuses(engine, tmp_path):
    """What a worker refuses is said here in one sentence that names the file."""
    pl.DataFrame({"y_true": [0, 1], "p_0": [0.5, 1.5], "p_1": [0.5, -0.5]}).write_parquet(
        tmp_path / "bad.parquet"
    )
    with pytest.raises(InputError, match="must lie in \\[0, 1\\]") as refused:
        measure(FileSource(str(tmp_path / "*.parquet")), ["proper_scores"], engine=engine)
    assert "\n" not in str(refused.value)


def assert_survives(engine, victims, dataset, expected):
    """The metrics as they are; the audit with a worker killed in its middle."""
    found = measure(FileSource(dataset, piece_rows=150), METRICS, engine=engine, options=OPTIONS)
    assert_same(found, expected[0], rel=0)
    kill = KillOnce(victims)
    slow = SlowSource(dataset, piece_rows=150, features=True)
    assert_same_audit(audited(slow, engine, kill), expected[1])
    kill.timer.join()
    assert kill.killed is not None


def assert_every_metric_is_that_of_memory(engine):
    """All registered metrics over three pieces in one session, with importance weights where they are taken."""
    for entry in metric_entries():
        data, options = contract.example(entry, 60)
        wide = next((data[r] for r in ("probabilities", "p_values") if r in data and data[r].ndim == 2), None)
        classes = None if wide is None else np.arange(wide.shape[1])
        weighted = entry.weighted and entry.importance != "refused"
        weights = contract.weights_of("importance", 60) if weighted else None
        alpha = {"alpha": options["alpha"]} if "alpha" in options else {}
        columns = data if weights is None else data | {"sample_weight": weights}
        source = ArraySource(columns, classes=classes, piece_rows=20, **alpha)
        chosen = {entry.name: {key: value for key, value in options.items() if key != "alpha"}}
        found = measure(source, [entry.name], engine=engine, options=chosen, **alpha)
        expected = contract.estimates(contract.in_memory(entry, data, options, weights))
        names = expected if entry.returns == "table" else {next(iter(expected)): None}
        plain = dict(zip(names, found.values(), strict=True))
        fields = ("value", "n") if entry.name in contract.LEARNED else contract.FIELDS
        contract.assert_same(EstimateTable(plain), EstimateTable(expected), fields=fields)


def assert_every_check_is_that_of_memory(engine):
    """The audits of all promises, by three pieces each."""
    for name in audits.WORLDS:
        given = dict(audits.world(name))
        alpha, bound = given.pop("alpha", 0.1), given.pop("bound", None)
        source = ArraySource(given, alpha=alpha, piece_rows=audits.N // 3)
        found = audit(
            source=source, alpha=alpha, bound=bound, n_calibration=400, random_state=0, engine=engine
        )
        audits.assert_same(found, audits.reference(name))


def forecast(n_jobs):
    """Thirty fits with seeds of their own."""
    X, y = load_diabetes(return_X_y=True)
    model = make_pipeline(StandardScaler(), SGDRegressor(max_iter=3, tol=None))
    return AlgorithmPerformance(model, loss="squared", n_points=30, n_jobs=n_jobs, random_state=11).fit(X, y)


def study_rows():
    """The first table of a study: samples of a world, with classifiers fitted on each."""
    with study_progress() as progress:
        return sample_efficiency((150,), 3, None, progress)


def assert_fits_the_same(backend):
    """Forecasts and a study give the same bits with the workers of a backend."""
    with joblib.parallel_config(backend=backend, n_jobs=-1):
        there, rows_there = forecast(None), study_rows()
    assert (there.losses_ == forecast(1).losses_).all()
    assert rows_there == study_rows()


@contextmanager
def dask_client():
    """A cluster of two workers; it draws from Python's own generator as long as it lives."""
    distributed = pytest.importorskip("distributed", reason="the Dask engine was not tested: no distributed")
    with (
        restored_python_generator(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask_gives_back_one_state_per_pass_or_the_refusal_of_a_worker(dataset, tmp_path):
    with dask_client() as client:
        assert_one_state_arrives(DaskEngine(client), dataset)
        assert_refuses(DaskEngine(client), tmp_path)


def test_every_metric_on_dask_is_that_of_memory():
    with dask_client() as client:
        assert_every_metric_is_that_of_memory(DaskEngine(client))


def test_every_check_on_dask_is_that_of_memory():
    with dask_client() as client:
        assert_every_check_is_that_of_memory(DaskEngine(client))


def test_fits_on_dask_give_the_same_bits():
    with dask_client():
        assert_fits_the_same("dask")


def test_dask_audits_the_same_after_losing_a_worker(dataset, expected):
    with dask_client() as client:
        victims = lambda: list(client.run(os.getpid).values())  # noqa: E731
        assert_survives(DaskEngine(client), victims, dataset, expected)


def is_ours(process: int) -> bool:
    """Whether a process descends from this one: another test on the machine must not lose its executors."""
    while process > 1:
        if process == os.getpid():
            return True
        try:
            fields_after_name = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1]
        except OSError:
            return False
        process = int(fields_after_name.split()[1])
    return False


def executors() -> list[int]:
    """Process numbers of the Spark executors that this test has started, by their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if (
                b"CoarseGrainedExecutorBackend" in line
                and b"java" in line.split(b"\0")[0]
                and is_ours(int(entry.name))
            ):
                found.append(int(entry.name))
    return found


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None:
        pytest.skip(
            "the Spark engine was not tested: there is no Java (apt-get install default-jre-headless)"
        )
    sql = pytest.importorskip("pyspark.sql", reason="the Spark engine was not tested: no pyspark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = Path(__file__).resolve().parents[2]
    with restored_python_generator():
        session = (
            sql.SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.executor.memory", "1g")
            .config("spark.driver.extraJavaOptions", QUICK_JAVA)
            .config("spark.executor.extraJavaOptions", QUICK_JAVA)
            .config("spark.executorEnv.PYTHONPATH", os.pathsep.join([str(root), str(root / "src")]))
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
        yield session
        session.stop()


def test_spark_gives_back_one_state_per_pass_or_the_refusal_of_an_executor(dataset, spark, tmp_path):
    assert_one_state_arrives(SparkEngine(spark), dataset)
    assert_refuses(SparkEngine(spark), tmp_path)


def test_spark_audits_the_same_after_losing_an_executor(dataset, expected, spark):
    assert_survives(SparkEngine(spark), executors, dataset, expected)


def test_every_metric_on_spark_is_that_of_memory(spark):
    assert_every_metric_is_that_of_memory(SparkEngine(spark))


def test_every_check_on_spark_is_that_of_memory(spark):
    assert_every_check_is_that_of_memory(SparkEngine(spark))


def test_fits_on_spark_give_the_same_bits(spark):
    joblibspark = pytest.importorskip("joblibspark", reason="fits on Spark were not tested: no joblibspark")
    joblibspark.register_spark()
    with restored_python_generator():
        assert_fits_the_same("spark")
