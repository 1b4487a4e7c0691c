"""Every ending can be audited from wherever it can be today, and the numbers are the same everywhere."""

from __future__ import annotations

import pytest

from tests.golden import endings
from tests.golden.audits import unequal
from tests.golden.storage import load
from tests.object_store import running_s3_server
from tests.randomness import restored_python_generator

STORED = load("endings")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the server's own parts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("endings")
    for ending in endings.ENDINGS:
        endings.lay_out(made / ending, ending)
    return made


@pytest.fixture(scope="module")
def server(folder):
    with running_s3_server() as address:
        endings.upload(folder, address)
        yield address


@pytest.fixture(autouse=True)
def python_generator():
    """The server and its clients draw from Python's own generator."""
    with restored_python_generator():
        yield


@pytest.mark.parametrize(("source", "ending"), list(endings.combinations()))
def test_a_file_is_read_wherever_it_lies_or_refused_in_one_sentence(source, ending, folder, request):
    address = request.getfixturevalue("server") if source.startswith("S3") else ""
    found = endings.audited(source, ending, folder, address)
    if found.code in {0, 1}:
        assert unequal(STORED["numbers"], found.numbers) == {}
        return
    assert ending not in STORED["run"][source], found.said
    said = [line for line in found.said.splitlines() if line.startswith("calipers: ")]
    assert found.code == 2
    assert len(said) == 1
    assert ending in said[0]


def test_every_ending_is_stored_for_at_least_one_source():
    assert {ending for run in STORED["run"].values() for ending in run} == set(endings.ENDINGS)
    assert set(STORED["run"]) == set(endings.SOURCES)
