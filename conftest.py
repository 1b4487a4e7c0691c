"""What holds for every test and every doctest: lanes, and an untouched global random state."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import rich.style  # noqa: F401 - draws one global number when first imported (scikit-learn imports it too)

# Loaded by Hugging Face's evaluate from its path, with evaluate installed; not a module of the package.
collect_ignore = ["src/calipers/integrations/hugging_face/calipers_audit.py"]
# Imports Triton, which few machines have; its kernels are tried in tests/unit/arrays/test_device_rows.py.
collect_ignore += ["src/calipers/arrays/device_kernels.py"]

# Marker -> the option that lets its tests run.
LANES = {"slow": "--slow", "gpu": "--gpu"}
# What `--fast` leaves out, by a sample of tests two fifths of the processor time of the suite: simulations,
# pages, notebooks and studies that are run from top to bottom, browsers, clusters, other packages and the
# benchmarks' own tests. CI runs everything.
LONG = (
    "tests/benchmarks/",
    "tests/browser/",
    "tests/clusters/",
    "tests/docs/test_pages.py::test_the_code_of_a_page",
    "tests/docs/test_scripts.py::",
    "tests/grid/",
    "tests/interop/",
    "tests/statistical/",
    "tests/triangulate/test_audit_sentences.py::",
    "tests/unit/studies/",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that open the long lanes."""
    group = parser.getgroup("calipers")
    group.addoption("--fast", action="store_true", help="leave out what only continuous integration must run")
    group.addoption("--slow", action="store_true", help="also run the long statistical tests")
    group.addoption("--gpu", action="store_true", help="also run the tests that need a CUDA device")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the lanes that were not asked for, by name; with ``--fast`` leave out the long tests."""
    if config.getoption("--fast"):
        long = [item for item in items if item.nodeid.startswith(LONG)]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.nodeid.startswith(LONG)]
    for marker, option in LANES.items():
        if config.getoption(option):
            continue
        skip = pytest.mark.skip(reason=f"{marker} lane: run with {option}")
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(skip)


def global_random_state() -> tuple[object, ...]:
    """The state of both global generators, comparable."""
    name, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002 - the thing guarded
    return random.getstate(), (name, keys.tobytes(), position, has_gauss, gauss)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test whose body moves the global random state of Python or numpy.

    A fixture would not see it: pytest-randomly seeds both generators again between the test's body
    and the end of its fixtures. So the body itself is wrapped. Hypothesis puts back the state it found.
    """
    body = item.runtest

    def guarded() -> None:
        before = global_random_state()
        body()
        if global_random_state() != before:
            pytest.fail("the global random state moved: pass a random_state or a Generator", pytrace=False)

    item.runtest = guarded  # type: ignore[method-assign]
    try:
        return (yield)
    finally:
        item.runtest = body  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Figures that a test or a doctest leaves open are closed; matplotlib warns of many."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")
