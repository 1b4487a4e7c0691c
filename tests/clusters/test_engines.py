"""The same numbers from here, from Dask and from Spark, also when a worker dies in the middle."""

import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers.engines import FileSource, measure
from calipers.engines.running import LocalEngine
from calipers.engines.sources import FilePiece
from tests.randomness import restored_python_generator

METRICS = ("coverage", "efficiency", "t_cv", "proper_scores")
pytestmark = pytest.mark.filterwarnings("ignore")  # clusters warn about ports, cores and shutdown


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    rng = np.random.default_rng(0)
    for part in range(3):
        P = rng.dirichlet(np.ones(4), 400)
        columns = {"y_true": rng.integers(0, 4, 400), "ease": rng.random(400)}
        columns |= {f"p_{k}": P[:, k] for k in range(4)} | {f"pvalue_{k}": rng.random(400) for k in range(4)}
        pl.DataFrame(columns).write_parquet(folder / f"part-{part}.parquet")
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def expected(lake):
    return measure(FileSource(lake, piece_rows=150), METRICS, engine=LocalEngine(1))


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, estimate in found.items():
        for field in ("value", "low", "high", "p_value", "n"):
            a, b = getattr(estimate, field), getattr(expected[name], field)
            assert (a is None) == (b is None)
            assert a is None or a == pytest.approx(b, rel=1e-12, abs=1e-14), (name, field)


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
    """A progress display that kills a worker after the second piece."""

    def __init__(self, victims):
        self.victims, self.killed = victims, None

    def __call__(self, done, total):
        if done >= 2 and self.killed is None:
            self.killed = self.victims()[0]
            os.kill(self.killed, signal.SIGKILL)


def test_dask_gives_the_same_numbers_after_losing_a_worker(lake, expected):
    distributed = pytest.importorskip("distributed")
    from calipers.engines.dask_engine import DaskEngine

    with (
        restored_python_generator(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        kill = KillOnce(lambda: list(client.run(os.getpid).values()))
        found = measure(SlowSource(lake, piece_rows=150), METRICS, engine=DaskEngine(client), progress=kill)
    assert kill.killed is not None
    assert_same(found, expected)


def executors() -> list[int]:
    """Process numbers of Spark's executors on this machine, by their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in line and b"java" in line.split(b"\0")[0]:
                found.append(int(entry.name))
    return found


@pytest.fixture
def spark():
    if shutil.which("java") is None:
        pytest.skip(
            "the Spark engine was not tested: there is no Java (apt-get install openjdk-17-jre-headless)"
        )
    sql = pytest.importorskip("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = Path(__file__).resolve().parents[2]
    session = (
        sql.SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "1g")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join([str(root), str(root / "src")]))
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_spark_gives_the_same_numbers_after_losing_an_executor(lake, expected, spark):
    from calipers.engines.spark_engine import SparkEngine

    kill = KillOnce(executors)
    found = measure(SlowSource(lake, piece_rows=150), METRICS, engine=SparkEngine(spark), progress=kill)
    assert kill.killed is not None
    assert_same(found, expected)
