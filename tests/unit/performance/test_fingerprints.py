"""Names of data, objects and code: they change when these do, and only then, also from process to process."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from calipers.exceptions import InputTypeError
from calipers.performance.fingerprints import files_fingerprint, fingerprint, source_fingerprint

HEADER = "import functools, helper\nimport numpy as np\nfrom sklearn.base import BaseEstimator\n"


def make(text: str, name: str = "it", **modules: str):
    """What a module of the user's own with this text calls ``it``; other modules it imports by keyword."""
    import types

    space = types.ModuleType("user_module")
    for other, source in modules.items():
        module = types.ModuleType(other)
        exec(source, vars(module))  # noqa: S102 - the code under test
        vars(space)[other] = module
    body = "\n".join(line for line in text.splitlines())
    exec(HEADER.replace(", helper", "") + body, vars(space))  # noqa: S102
    return vars(space)[name]


# Name -> two texts whose ``it`` computes something else.
CHANGES = {
    "an instruction": ("def it(x): return x + 1", "def it(x): return x - 1"),
    "a constant": ("def it(x): return x + 1", "def it(x): return x + 2"),
    "a name": ("def it(x): return np.sin(x)", "def it(x): return np.cos(x)"),
    "a default": ("def it(x, k=1): return k * x", "def it(x, k=2): return k * x"),
    "a keyword default": ("def it(x, *, k=1): return k * x", "def it(x, *, k=2): return k * x"),
    "inside a lambda": ("def it(x): return (lambda v: 2 * v)(x)", "def it(x): return (lambda v: 3 * v)(x)"),
    "inside a comprehension": (
        "def it(x): return [2 * v for v in x if v]",
        "def it(x): return [3 * v for v in x if v]",
    ),
    "a global number": ("K = 1\ndef it(x): return K * x", "K = 2\ndef it(x): return K * x"),
    "a global table": (
        "K = {'a': [1]}\ndef it(x): return K['a']",
        "K = {'a': [2]}\ndef it(x): return K['a']",
    ),
    "a global array": (
        "K = np.arange(3)\ndef it(x): return K * x",
        "K = np.arange(4)\ndef it(x): return K * x",
    ),
    "a function it calls": (
        "def f(x): return x\ndef it(x): return f(x)",
        "def f(x): return 2 * x\ndef it(x): return f(x)",
    ),
    "a function that one calls": (
        "def g(x): return x\ndef f(x): return g(x)\ndef it(x): return f(x)",
        "def g(x): return -x\ndef f(x): return g(x)\ndef it(x): return f(x)",
    ),
    "what a partial calls": (
        "def f(k, x): return k * x\nit = functools.partial(f, 2)",
        "def f(k, x): return k + x\nit = functools.partial(f, 2)",
    ),
    "what a partial is given": (
        "def f(k, x): return k * x\nit = functools.partial(f, 2)",
        "def f(k, x): return k * x\nit = functools.partial(f, 3)",
    ),
    "a method": (
        "class it:\n    def fit(self, x): return x",
        "class it:\n    def fit(self, x): return -x",
    ),
    "a class attribute": ("class it:\n    k = 1", "class it:\n    k = 2"),
    "a property": (
        "class it:\n    @property\n    def k(self): return 1",
        "class it:\n    @property\n    def k(self): return 2",
    ),
    "a static method": (
        "class it:\n    @staticmethod\n    def k(): return 1",
        "class it:\n    @staticmethod\n    def k(): return 2",
    ),
    "a base class": (
        "class Base:\n    def k(self): return 1\nclass it(Base): pass",
        "class Base:\n    def k(self): return 2\nclass it(Base): pass",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_name_follows_the_code(change: str) -> None:
    old, new = CHANGES[change]
    assert fingerprint(make(old)) == fingerprint(make(old))
    assert fingerprint(make(old)) != fingerprint(make(new))


def test_the_name_follows_functions_of_other_modules() -> None:
    text = "def it(x): return helper.scale(x)"
    one, other = ({"helper": f"def scale(x): return {k} * x"} for k in (2, 3))
    assert fingerprint(make(text, **one)) == fingerprint(make(text, **one))
    assert fingerprint(make(text, **one)) != fingerprint(make(text, **other))


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\ndef it(x):\n    # another\n\n    return x + 1",
        "K = 7\ndef it(x): return x + 1",
        "def other(): return 2\ndef it(y): return y + 1",
    ],
    ids=["comments", "what it does not use", "names of variables"],
)
def test_what_changes_no_result_changes_no_name(text: str) -> None:
    assert fingerprint(make(text)) == fingerprint(make("def it(x): return x + 1"))


def test_functions_that_call_each_other_have_a_name() -> None:
    text = "def it(x): return f(x - 1) if x else 0\ndef f(x): return it(x - {}) if x else 1"
    assert fingerprint(make(text.format(1))) == fingerprint(make(text.format(1)))
    assert fingerprint(make(text.format(1))) != fingerprint(make(text.format(2)))


def test_a_long_chain_of_calls_is_followed_to_its_end() -> None:
    links = "\n".join(f"def f{k}(x): return f{k + 1}(x)" for k in range(1, 2000))
    text = "def it(x): return f1(x)\n" + links + "\ndef f2000(x): return x * {}"
    assert fingerprint(make(text.format(1))) != fingerprint(make(text.format(2)))


class Local(BaseEstimator):
    """An estimator of the user's own."""

    def __init__(self, k: int = 1) -> None:
        self.k = k

    def fit(self, X, y):
        return self


def other_fit(self, X, y):
    return None


def test_the_name_of_an_estimator_follows_its_parameters_and_the_code_of_its_class(monkeypatch) -> None:
    model = make_pipeline(FunctionTransformer(np.log1p), Local(k=2))
    name = fingerprint(model)
    assert name == fingerprint(make_pipeline(FunctionTransformer(np.log1p), Local(k=2)))
    assert name != fingerprint(make_pipeline(FunctionTransformer(np.log1p), Local(k=3)))
    assert name != fingerprint(make_pipeline(FunctionTransformer(np.expm1), Local(k=2)))
    monkeypatch.setattr(Local, "fit", other_fit)
    assert name != fingerprint(model)


def test_installed_code_counts_by_its_version(monkeypatch) -> None:
    from calipers.performance import fingerprints

    name = fingerprint(Ridge())
    fingerprints._installed_version.cache_clear()
    monkeypatch.setattr("sklearn.__version__", "99.0")
    try:
        assert fingerprint(Ridge()) != name
    finally:
        fingerprints._installed_version.cache_clear()


def test_closures_follow_what_they_close_over() -> None:
    def make_loss(factor):
        return lambda model, A, y: factor * y

    assert fingerprint(make_loss(2)) == fingerprint(make_loss(2))
    assert fingerprint(make_loss(2)) != fingerprint(make_loss(3))
    assert fingerprint(make_loss(np.arange(3))) != fingerprint(make_loss(np.arange(4)))


def test_bound_methods_follow_their_object() -> None:
    assert fingerprint(Local(1).fit) == fingerprint(Local(1).fit)
    assert fingerprint(Local(1).fit) != fingerprint(Local(2).fit)


def test_values_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 2))
    values = [None, 0, 1, 1.0, True, "1", b"1", (1,), [1], (1, 1), {"a": 1}, {"a": 2}, X, X.T, X[:4], X + 1e-16 * X, X.astype("f4")]  # fmt: skip
    names = [fingerprint(value) for value in values]
    assert len(set(names)) == len(values)
    assert fingerprint(X.copy()) == fingerprint(X)


def test_an_object_that_cannot_be_pickled_is_refused_with_the_remedy() -> None:
    with pytest.raises(InputTypeError, match="cache needs an estimator and a loss that can be pickled"):
        fingerprint(FunctionTransformer(lambda A: A))


def test_a_table_with_a_lock_in_it_does_not_stop_a_function() -> None:
    text = "import threading\nLOCKS = {{'a': threading.Lock()}}\ndef it(x): return LOCKS['a'], {}"
    assert fingerprint(make(text.format(1))) != fingerprint(make(text.format(2)))


def test_names_are_the_same_in_every_process() -> None:
    code = (
        "import functools, numpy as np\n"
        "from sklearn.linear_model import Ridge\n"
        "from calipers.performance.fingerprints import fingerprint\n"
        "WORDS = {'one', 'two', 'three'}\n"
        "def f(x): return x in {'four', 'five', 'six'} and x in WORDS and [v for v in x]\n"
        "class M(Ridge):\n    def fit(self, X, y): return f(X)\n"
        "print(fingerprint((M(), f, functools.partial(f, 1), np.arange(3), {'a': {'b', 'c', 'd'}})))"
    )
    names = set()
    for hash_seed in ("1", "2", "3"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        names.add(done.stdout)
    assert len(names) == 1


def test_source_files_count_by_name_and_content(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "sourced_package"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/work.py"):
        (package / name).write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def name() -> str:
        source_fingerprint.cache_clear()
        return source_fingerprint("sourced_package")

    first = name()
    (package / "notes.txt").write_text("not source", encoding="utf-8")
    assert name() == first
    (package / "inner" / "work.py").write_text("x = 1", encoding="utf-8")
    second = name()
    (package / "inner" / "work.py").rename(package / "inner" / "play.py")
    third = name()
    source_fingerprint.cache_clear()
    assert len({first, second, third}) == 3


def test_contents_do_not_run_together(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abcd"]
    for path, text in zip(paths, ("xy", "z", "x", "yz"), strict=True):
        path.write_text(text, encoding="utf-8")
    assert files_fingerprint({"1": paths[0], "2": paths[1]}) != files_fingerprint(
        {"1": paths[2], "2": paths[3]}
    )


def test_partials_of_installed_functions_have_a_name() -> None:
    assert fingerprint(functools.partial(np.add, 1)) != fingerprint(functools.partial(np.add, 2))
