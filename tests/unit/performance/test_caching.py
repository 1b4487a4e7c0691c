"""The resumable cache: what is read back, what counts as missing, and what makes a new one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calipers
from calipers.exceptions import InputError, InputTypeError
from calipers.performance import caching
from calipers.performance.caching import ResumableCache

VALUE = {
    "rows": [{"name": "a", "value": 0.1, "missing": None, "nan": float("nan"), "ok": True}],
    "large": float("inf"),
    "table": np.arange(6.0).reshape(2, 3)[:, ::-1],
    "fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "words": np.array(["north", "south"]),
    "flags": np.array([True, False]),
    "empty": np.empty((0, 4)),
    "nested": [[np.array(3), ("text", 5)], {}],
}


def assert_same(found, expected) -> None:
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected or (found != found and expected != expected)
        assert type(found) is type(expected)


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    cache = ResumableCache.open(tmp_path, "it", 1)
    cache.store("part", VALUE)
    assert_same(cache.read("part"), VALUE)
    (only,) = cache.read_all()
    assert_same(only, VALUE)


def test_scalars_of_numpy_come_back_as_numbers(tmp_path: Path) -> None:
    cache = ResumableCache.open(tmp_path, "it", 1)
    cache.store("part", [np.float64(0.1), np.int32(3), np.bool_(True), np.str_("a")])
    assert_same(cache.read("part"), [0.1, 3, True, "a"])


@pytest.mark.parametrize("value", [object(), {1: "a"}, np.array([object()]), {1, 2}, [b"bytes"]])
def test_other_values_are_refused(tmp_path: Path, value) -> None:
    cache = ResumableCache.open(tmp_path, "it", 1)
    with pytest.raises(InputTypeError, match="a cache keeps numbers, text and arrays of them, got"):
        cache.store("part", value)
    assert list(tmp_path.rglob("*.npz")) == []


def test_what_was_computed_is_not_computed_again_and_is_the_same_to_the_last_bit(
    tmp_path: Path, seed
) -> None:
    rng, calls = np.random.default_rng(seed), []

    def compute():
        calls.append(1)
        return {"table": rng.normal(size=(50, 7)).T[::2], "mean": rng.normal()}

    first, second = (ResumableCache.open(tmp_path, "it", seed).get("part", compute) for _ in range(2))
    assert calls == [1]
    assert_same(first, second)
    assert first["table"].strides == second["table"].strides  # the order in which sums are added


def test_without_a_folder_nothing_is_kept() -> None:
    cache = ResumableCache.open(None, "it", object())
    assert [cache.get("part", lambda k=k: k) for k in range(2)] == [0, 1]
    cache.store("part", 1)
    with pytest.raises(KeyError):
        cache.read("part")
    assert list(cache.read_all()) == []


@pytest.mark.parametrize("damage", [b"", b"not a zip file", None], ids=["empty", "foreign", "cut off"])
def test_a_damaged_part_is_computed_again(tmp_path: Path, damage: bytes | None) -> None:
    cache = ResumableCache.open(tmp_path, "it", 1)
    cache.store("good", 1)
    cache.store("part", VALUE)
    (path,) = tmp_path.rglob("part.npz")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage is None else damage)
    with pytest.raises(KeyError):
        cache.read("part")
    assert list(cache.read_all()) == [1]
    assert cache.get("part", lambda: 5) == 5
    assert cache.read("part") == 5


def test_a_flipped_bit_never_gives_another_value(tmp_path: Path) -> None:
    cache, value = ResumableCache.open(tmp_path, "it", 1), {"a": np.array([0.5, 2.0]), "b": "text", "c": 3}
    cache.store("part", value)
    (path,) = tmp_path.rglob("part.npz")
    content = path.read_bytes()
    found = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        try:
            assert_same(cache.read("part"), value)  # a byte that means nothing, such as a date
        except KeyError:
            found += 1
    assert found > len(content) / 2


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    cache = ResumableCache.open(tmp_path, "it", 1)
    cache.store("part", 1)
    (path,) = tmp_path.rglob("part.npz")
    with path.open("wb") as file:
        np.savez(file, skeleton=np.array([object()]))
    with pytest.raises(KeyError):
        cache.read("part")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), (2, 1)),
        ((np.arange(3),), (np.arange(4),)),
        ((lambda x: x + 1,), (lambda x: x + 2,)),
        (("a", None), ("a",)),
    ],
    ids=["parameters", "data", "code", "number"],
)
def test_something_else_is_another_cache(tmp_path: Path, one, other) -> None:
    ResumableCache.open(tmp_path, "it", *one).store("part", 1)
    assert ResumableCache.open(tmp_path, "it", *one).read("part") == 1
    with pytest.raises(KeyError):
        ResumableCache.open(tmp_path, "it", *other).read("part")
    with pytest.raises(KeyError):
        ResumableCache.open(tmp_path, "other", *one).read("part")


def test_another_version_of_a_library_is_another_cache(tmp_path: Path, monkeypatch) -> None:
    ResumableCache.open(tmp_path, "it").store("part", 1)
    monkeypatch.setattr(caching, "library_versions", lambda: ("numpy 99",))
    with pytest.raises(KeyError):
        ResumableCache.open(tmp_path, "it").read("part")


def test_a_file_in_the_place_of_the_folder_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cache must be a folder, got the file .*file. Give another place."):
        ResumableCache.open(tmp_path / "file", "it")


def test_an_interrupted_store_leaves_no_part(tmp_path: Path, monkeypatch) -> None:
    cache = ResumableCache.open(tmp_path, "it", 1)
    cache.store("done", 1)

    def stop(*_) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            cache.store("part", 2)
    assert list(cache.read_all()) == [1]
    assert [path.name for path in cache.folder.iterdir()] == ["done.npz"]


@pytest.fixture(scope="module")
def copied_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that may be changed."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        Path(calipers.__file__).parent, folder / "calipers", ignore=shutil.ignore_patterns("__pycache__")
    )
    return folder


def test_changed_code_of_the_package_is_another_cache(copied_package: Path, tmp_path: Path) -> None:
    code = (
        "from calipers.performance.caching import ResumableCache as Cache; import sys\n"
        "from calipers.conformal import conformal_rank\n"
        "print(Cache.open(sys.argv[1], 'it', 5).get('part', lambda: conformal_rank(99, 0.1)))"
    )

    def run() -> int:
        environment = os.environ | {"PYTHONPATH": str(copied_package)}
        command = [sys.executable, "-c", code, str(tmp_path)]
        return int(
            subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        )

    assert (run(), run()) == (90, 90)
    assert len(list(tmp_path.iterdir())) == 1
    ranks = copied_package / "calipers" / "conformal" / "ranks.py"
    before = ranks.read_text(encoding="utf-8")
    ranks.write_text(before + "\n\ndef conformal_rank(n, alpha):\n    return 17\n", encoding="utf-8")
    assert run() == 17
    ranks.write_text(before, encoding="utf-8")
    assert run() == 90
    assert len(list(tmp_path.iterdir())) == 2
