"""The guard of the global random state catches what it must and leaves the rest alone."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOVERS = {
    "numpy": "import numpy as np\ndef test_body():\n    np.random.random()\n",
    "python": "import random\ndef test_body():\n    random.random()\n",
    "seeding": "import numpy as np\ndef test_body():\n    np.random.seed(0)\n",
    "doctest": 'def f():\n    """\n    >>> import random; _ = random.random()\n    """\n',
}
STILL = {
    "generator": "import numpy as np\ndef test_body():\n    np.random.default_rng(0).random()\n",
    "hypothesis": (
        "from hypothesis import given, strategies as st\n"
        "@given(st.integers())\ndef test_body(n):\n    assert n == n\n"
    ),
}

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(test_inner=body)
    return pytester.runpytest_subprocess("--doctest-modules", "-p", "no:cacheprovider", "-p", "no:xdist")


@pytest.mark.parametrize("mover", MOVERS)
def test_a_test_that_moves_the_global_state_fails(pytester: pytest.Pytester, mover: str) -> None:
    result = run(pytester, MOVERS[mover])
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the global random state moved*"])


@pytest.mark.parametrize("still", STILL)
def test_a_test_with_its_own_generator_passes(pytester: pytest.Pytester, still: str) -> None:
    run(pytester, STILL[still]).assert_outcomes(passed=1)
