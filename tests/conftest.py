"""Fixtures shared by all tests: seeds and the folder of real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A test that is right on an idle machine must not fail on a busy one.
settings.register_profile("calipers", deadline=None)
settings.load_profile("calipers")

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_SEED = 7
ALL_SEEDS = range(20)


def chosen_seeds(text: str) -> list[int]:
    """Seeds named by CALIPERS_TEST_SEEDS: empty, "all", "3" or "3,5,8"."""
    if not text:
        return [DEFAULT_SEED]
    return list(ALL_SEEDS) if text == "all" else [int(word) for word in text.split(",")]


@pytest.fixture(params=chosen_seeds(os.environ.get("CALIPERS_TEST_SEEDS", "")), ids="seed{}".format)
def seed(request: pytest.FixtureRequest) -> int:
    """One fixed seed; every seed of a range with CALIPERS_TEST_SEEDS=all."""
    return int(request.param)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets; tests that need it are skipped where it is not."""
    named = os.environ.get("CALIPERS_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if named and not folder.is_dir():
        pytest.fail(f"CALIPERS_DATA must name a folder, got {named}.", pytrace=False)
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}: set CALIPERS_DATA")
    return folder
