"""An interrupted run goes on where it stopped and ends with the bits of an uninterrupted one."""

from __future__ import annotations

import inspect
import json
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from calipers import metrics
from calipers.auditing import audit
from calipers.engines import (
    ArraySource,
    FileSource,
    ResumableEngine,
    measure,
    merge_rules,
    resuming,
    running,
)
from calipers.engines.state_content import content_of, with_content
from calipers.exceptions import InputError, InputTypeError
from calipers.performance.caching import ResumableCache
from tests.contract.examples import EXAMPLES
from tests.unit.auditing.test_stream import world, write


class StoppedError(Exception):
    """The run was interrupted."""


@pytest.fixture
def files(tmp_path: Path) -> FileSource:
    return FileSource(write(world(), tmp_path, [900, 2100]), features=True, piece_rows=300)


@pytest.fixture(autouse=True)
def stored_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are stored after every piece."""
    monkeypatch.setattr(resuming, "_SECONDS", 0.0)
    monkeypatch.setattr(resuming, "_RATIO", 0.0)


def audited(source: FileSource, engine: object = None, **options: object) -> dict:
    found = audit(source=source, engine=engine, random_state=0, sample_rows=1000, **options)
    return json.loads(found.to_json())


def stop_after(calls: int):
    done = []

    def progress(what: str, n: int, total: int) -> None:
        done.append(what)
        if len(done) > calls:
            raise StoppedError

    return progress


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of the pieces that are absorbed from now on."""
    seen, real = [], running.absorb_piece

    def absorb(piece, states):
        seen.append(piece.rows)
        return real(piece, states)

    monkeypatch.setattr(running, "absorb_piece", absorb)
    return seen


def test_a_stopped_audit_ends_as_if_it_had_not_been_stopped(
    files: FileSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, cache = audited(files), tmp_path / "cache"
    for calls in (7, 11, 25):  # in the first pass, in the second, while models are evaluated
        with pytest.raises(StoppedError):
            audited(files, ResumableEngine(cache), progress=stop_after(calls))
    absorbed = counted(monkeypatch)
    assert audited(files, ResumableEngine(cache)) == expected
    resumed = sum(absorbed)
    absorbed.clear()
    assert audited(files, ResumableEngine(cache)) == expected
    assert sum(absorbed) == 0  # every pass was complete
    assert audited(files) == expected
    assert resumed < sum(absorbed)


def test_nothing_old_is_found_when_something_changed(
    files: FileSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    audited(files, ResumableEngine(cache))
    absorbed = counted(monkeypatch)
    other = audited(files, ResumableEngine(cache), alpha=0.2)
    assert sum(absorbed) > 3000
    assert other == audited(files, alpha=0.2)
    path = min(tmp_path.glob("*.parquet"))
    pl.read_parquet(path).with_columns(y_true=pl.lit(0)).write_parquet(path)
    assert audited(files, ResumableEngine(cache)) == audited(files)


def test_damaged_work_is_done_again(files: FileSource, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    expected = audited(files, ResumableEngine(cache))
    rng = np.random.default_rng(0)
    for path in cache.rglob("*.npz"):
        content = bytearray(path.read_bytes())
        for place in rng.integers(len(content), size=40).tolist():
            content[place] ^= 255
        path.write_bytes(bytes(content))
    assert audited(files, ResumableEngine(cache)) == expected


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() & merge_rules().keys()))
def test_every_metric_resumes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, options = EXAMPLES[name](np.random.default_rng(0), 60)
    options = dict(options)  # those of an example belong to every test
    alpha = options.pop("alpha", 0.1)
    if "random_state" in inspect.signature(getattr(metrics, name)).parameters:
        options["random_state"] = 0
    source = ArraySource(data, alpha=alpha, piece_rows=20)
    expected = measure(source, [name], alpha=alpha, options={name: options})
    absorbed = counted(monkeypatch)
    for _ in range(2):
        engine = ResumableEngine(tmp_path)
        again = measure(source, [name], alpha=alpha, options={name: options}, engine=engine)
        assert str(again) == str(expected)
    passes = len(absorbed) / 3
    # A classifier of the user cannot be stored without pickle: its rows are read again.
    assert passes == (2 if "classifier" in options else len(list(tmp_path.iterdir())))


def test_files_at_an_address_are_not_kept() -> None:
    rows = ArraySource({"y_true": np.zeros(9), "intervals": np.tile([-1.0, 1.0], (9, 1))})
    piece = rows.pieces()[0]
    object.__setattr__(piece, "path", "s3://bucket/rows.parquet")
    with pytest.raises(InputError, match="finished work is kept only for local files"):
        resuming._described(piece)


def test_a_file_in_the_place_of_the_folder_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="cache must be a folder"):
        ResumableEngine(tmp_path / "cache")


@pytest.mark.parametrize(
    "content",
    [
        ["object", "os:system", {}, None],
        ["object", "calipers.cli:main", {}, None],
        ["given"],
        ["unknown"],
        [],
    ],
)
def test_a_stored_state_names_no_code(content: list) -> None:
    with pytest.raises(resuming._UNREADABLE):
        with_content(None, content)


def test_objects_of_others_are_not_stored() -> None:
    with pytest.raises(InputTypeError, match=r"a state with a datetime.date in it cannot be stored"):
        content_of([date(2024, 1, 1)])


def test_frames_and_generators_come_back_as_they_were(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1.5, None], "b": ["x", "y"]}).with_columns(c=pl.col("b").cast(pl.Categorical))
    rng, stored = np.random.default_rng(3), ResumableCache(tmp_path)
    rng.random(7)
    stored.store("both", content_of([frame, rng]))
    again, draws = with_content(None, stored.read("both"))
    assert again.equals(frame)
    assert again.schema == frame.schema
    assert draws.random(5).tolist() == rng.random(5).tolist()


@pytest.mark.parametrize(
    "value",
    [
        None, True, -3, 0.1, float("inf"), "text", (1, [2.5, {"a": (1, 2)}]), {(1, "b"): {3}, None: frozenset({4})},
        np.float32(0.1), np.arange(6.0).reshape(2, 3), np.array(["a", None, 1.5], dtype=object).reshape(3, 1),
        np.array(["2024-01-01"], dtype="M8[D]"), np.bool_(True),
    ],
)  # fmt: skip
def test_plain_values_come_back_as_they_were(value: object, tmp_path: Path) -> None:
    stored = ResumableCache(tmp_path)
    stored.store("value", content_of(value))
    again = with_content(None, stored.read("value"))
    assert type(again) is type(value)
    np.testing.assert_equal(again, value)


def test_measures_resume_too(files: FileSource, tmp_path: Path) -> None:
    names = ["coverage", "calibration_error"]
    options = {"calibration_error": {"random_state": 0}}
    expected = str(measure(files, names, options=options))
    for _ in range(2):
        assert str(measure(files, names, engine=ResumableEngine(tmp_path), options=options)) == expected
