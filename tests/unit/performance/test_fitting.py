"""The machinery: the same numbers for any worker, resumed runs, progress, seeds."""

from __future__ import annotations

import gc
import os

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from calipers.exceptions import FitError
from calipers.performance import AlgorithmPerformance, SymbolicPerformance
from calipers.performance.fitting import SeededCopies
from tests.randomness import restored_python_generator
from tests.unit.performance.algorithms import FailsOnLargeMean, MeanModel, signed_loss

X, Y = load_diabetes(return_X_y=True)


def forecast(n_jobs, **options):
    return AlgorithmPerformance(
        make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=3)),
        **({"loss": "squared", "n_points": 30, "n_jobs": n_jobs, "random_state": 11} | options),
    ).fit(X, Y)


@pytest.fixture(scope="module")
def alone():
    return forecast(1)


def test_two_processes_give_the_same_bits(alone):
    assert (forecast(2).losses_ == alone.losses_).all()


def test_threads_give_the_same_bits(alone):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert (forecast(None).losses_ == alone.losses_).all()


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_the_same_bits(alone):
    distributed = pytest.importorskip("distributed")
    with (
        restored_python_generator(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert (forecast(-1).losses_ == alone.losses_).all()
        modulated = forecast(-1, modulation="quantile", n_points=12)
    here = forecast(1, modulation="quantile", n_points=12)
    assert (modulated.predict_interval(X, Y) == here.predict_interval(X, Y)).all()


def test_symbols_do_not_depend_on_the_workers():
    def run(n_jobs):
        return SymbolicPerformance(
            SGDRegressor(max_iter=3, tol=None), outcome=lambda m, A, y: np.where(m.predict(A) > y, "high", "low"),
            n_points=12, n_jobs=n_jobs, random_state=3,
        ).fit(X, Y)  # fmt: skip

    assert (run(1).predict_set(X, Y) == run(2).predict_set(X, Y)).all()


def test_every_fit_has_its_own_seed_and_fixed_seeds_stay():
    noisy = AlgorithmPerformance(MeanModel(jitter=1.0), loss=signed_loss, n_points=20, random_state=0).fit(
        np.zeros((200, 1)), np.zeros(200)
    )
    assert len(set(noisy.losses_)) == 20
    fixed = AlgorithmPerformance(
        MeanModel(jitter=1.0, random_state=4), loss=signed_loss, n_points=20, random_state=0
    ).fit(np.zeros((200, 1)), np.zeros(200))
    assert len(set(fixed.losses_)) == 1


def test_nested_random_states_differ_from_each_other():
    pipeline = make_pipeline(RandomForestRegressor(), RandomForestRegressor())
    model = SeededCopies(pipeline).make(5)
    first, second = (
        model.get_params()["randomforestregressor-1__random_state"],
        model.get_params()["randomforestregressor-2__random_state"],
    )
    assert first is not None
    assert first != second


def test_estimators_with_lambdas_can_be_copied():
    model = SeededCopies(FunctionTransformer(lambda A: A)).make(0)
    assert model.transform([[1.0]]) == [[1.0]]


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    forecast(1)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


class Counter(MeanModel):
    """Counts its fits in a file, and fails after as many as COUNTER_STOPS_AFTER says."""

    def __init__(self, path=None, jitter=0.0, random_state=None):
        super().__init__(jitter, random_state)
        self.path = path

    def fit(self, X, y):
        with open(self.path, "a+") as file:  # noqa: PTH123
            file.seek(0)
            if len(file.read()) >= int(os.environ.get("COUNTER_STOPS_AFTER", "1000")):
                raise RuntimeError("interrupted")
            file.write(".")
        return super().fit(X, y)


def counted(path, cache, **options):
    model = Counter(path=str(path))
    return AlgorithmPerformance(model, loss="absolute", n_points=30, cache=cache, random_state=0, **options)


def test_an_interrupted_run_resumes_where_it_stopped(tmp_path, monkeypatch):
    ticks, cache = tmp_path / "ticks", tmp_path / "cache"
    whole = AlgorithmPerformance(MeanModel(), loss="absolute", n_points=30, random_state=0).fit(X, Y)
    monkeypatch.setenv("COUNTER_STOPS_AFTER", "12")
    with pytest.raises(FitError, match="training subset 12 of 30 failed: RuntimeError: interrupted"):
        counted(ticks, cache).fit(X, Y)
    monkeypatch.delenv("COUNTER_STOPS_AFTER")
    again = counted(ticks, cache).fit(X, Y)
    assert ticks.read_text() == "." * 30
    assert (again.losses_ == whole.losses_).all()
    # A third run fits nothing; another loss fits everything.
    assert (counted(ticks, cache).fit(X, Y).losses_ == whole.losses_).all()
    assert len(ticks.read_text()) == 30
    counted(ticks, cache).set_params(loss="squared").fit(X, Y)
    assert len(ticks.read_text()) == 60


def test_a_damaged_file_of_fits_is_fitted_again(tmp_path):
    ticks, cache = tmp_path / "ticks", tmp_path / "cache"
    first = counted(ticks, cache).fit(X, Y)
    files = sorted(cache.rglob("*.npz"))
    assert len(files) == 30
    files[3].write_bytes(files[3].read_bytes()[:40])
    assert (counted(ticks, cache).fit(X, Y).losses_ == first.losses_).all()
    assert len(ticks.read_text()) == 31


def test_a_run_resumes_with_another_number_of_workers(tmp_path, monkeypatch):
    ticks, cache = tmp_path / "ticks", tmp_path / "cache"
    monkeypatch.setenv("COUNTER_STOPS_AFTER", "7")
    with pytest.raises(FitError):
        counted(ticks, cache).fit(X, Y)
    monkeypatch.delenv("COUNTER_STOPS_AFTER")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        again = counted(ticks, cache).fit(X, Y)
    assert len(ticks.read_text()) == 30
    assert (again.losses_ == counted(tmp_path / "other", None).fit(X, Y).losses_).all()


def test_changed_code_of_the_algorithm_is_fitted_again(tmp_path, monkeypatch):
    ticks, cache = tmp_path / "ticks", tmp_path / "cache"
    first = counted(ticks, cache).fit(X, Y)
    original = Counter.predict
    monkeypatch.setattr(Counter, "predict", lambda self, X: 2 * original(self, X))
    changed = counted(ticks, cache).fit(X, Y)
    assert len(ticks.read_text()) == 60
    assert (changed.losses_ != first.losses_).all()


def test_progress_is_told_every_fit_and_ends_at_the_total():
    seen = []
    forecast(1, n_points=20, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (20, 20)
    assert [done for done, _ in seen] == list(range(21))


def test_the_bar_is_drawn_on_stderr(capsys):
    AlgorithmPerformance(MeanModel(), loss="absolute", n_points=20, progress=True).fit(X, Y)
    output = capsys.readouterr()
    assert output.out == ""
    assert "20/20" in output.err


def test_two_workers_name_the_first_failed_subset_and_leave_no_warning():
    with pytest.raises(FitError, match="training subset 0 of 40 failed: ValueError: mean too large"):
        AlgorithmPerformance(FailsOnLargeMean(), loss="absolute", n_points=40, n_jobs=2, random_state=0).fit(
            X, Y
        )
    gc.collect()


def test_failures_are_the_same_for_any_number_of_workers():
    def run(n_jobs):
        return AlgorithmPerformance(
            FailsOnLargeMean(),
            loss="absolute",
            n_points=20,
            on_failure="infinite",
            n_jobs=n_jobs,
            random_state=0,
        ).fit(X, Y - Y.mean())

    assert run(1).failures_ == run(2).failures_


def test_sparse_matrices_are_cut_by_rows():
    sparse = pytest.importorskip("scipy.sparse")
    dense = AlgorithmPerformance(LinearRegression(), loss="absolute", n_points=20, random_state=0).fit(X, Y)
    thin = AlgorithmPerformance(LinearRegression(), loss="absolute", n_points=20, random_state=0).fit(
        sparse.csr_matrix(X), Y
    )
    assert thin.losses_ == pytest.approx(dense.losses_, rel=1e-3)
