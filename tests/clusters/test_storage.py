"""A partitioned dataset on a real S3 server gives the numbers of the same files on disk."""

import json
import pickle

import numpy as np
import polars as pl
import pytest

from calipers.auditing import audit
from calipers.cli import main
from calipers.engines import FileSource, measure
from calipers.exceptions import CalipersError, InputError
from calipers.inputs.files import ColumnChoice
from tests.object_store import KEYS, running_s3_server
from tests.randomness import restored_python_generator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the server's own parts
METRICS = ["coverage", "proper_scores", "calibration_error"]
MUTED = ("CAL103", "CAL203", "CAL601")  # they simulate for seconds and say nothing about storage


def rows(n, seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    columns = {"y_true": y} | {f"p_{k}": P[:, k] for k in range(3)}
    return pl.DataFrame(columns | {f"set_{k}": P[:, k] > 0.15 for k in range(3)})


@pytest.fixture(scope="module")
def server():
    """The address of an S3 server on this machine."""
    with running_s3_server() as address:
        yield address


@pytest.fixture(scope="module")
def dataset(server, tmp_path_factory):
    """The same partitioned files on disk and in a bucket."""
    import s3fs

    folder = tmp_path_factory.mktemp("dataset")
    system = s3fs.S3FileSystem(**KEYS, endpoint_url=server)
    system.mkdir("bucket")
    for number, region in enumerate(("north", "south", "west")):
        place = folder / f"region={region}"
        place.mkdir()
        rows(200 + 50 * number, number).write_parquet(place / "part-0.parquet")
        system.put_file(str(place / "part-0.parquet"), f"bucket/logs/region={region}/part-0.parquet")
    (folder / "_SUCCESS").touch()
    system.touch("bucket/logs/_SUCCESS")
    return str(folder)


@pytest.fixture(autouse=True)
def python_generator():
    """The server and its clients draw from Python's own generator."""
    with restored_python_generator():
        yield


def spelled(server):
    """The same options as people of polars, of s3fs and of boto write them."""
    return {
        "polars": {
            "aws_access_key_id": "somebody", "aws_secret_access_key": "hush", "aws_endpoint_url": server,
            "aws_region": "us-east-1", "aws_allow_http": "true",
        },
        "s3fs": KEYS | {"endpoint_url": server},
        "boto": KEYS | {"client_kwargs": {"endpoint_url": server, "region_name": "us-east-1"}},
    }  # fmt: skip


def assert_equal(found, expected):
    assert list(found) == list(expected)
    for name, estimate in found.items():
        assert (estimate.value, estimate.low, estimate.high, estimate.p_value, estimate.n) == (
            expected[name].value, expected[name].low, expected[name].high, expected[name].p_value, expected[name].n,
        )  # fmt: skip


@pytest.mark.parametrize("style", ["polars", "s3fs", "boto"])
@pytest.mark.parametrize(
    "place",
    ["s3://bucket/logs/", "s3://bucket/logs/*/*.parquet", "s3://bucket/logs/region=north/part-0.parquet"],
)
def test_options_of_storage_are_understood_in_every_spelling(server, dataset, style, place):
    here = place.replace("s3://bucket/logs", dataset)
    options = {"calibration_error": {"random_state": 0}}
    found = measure(
        FileSource(place, storage=spelled(server)[style], piece_rows=150), METRICS, options=options
    )
    assert_equal(found, measure(FileSource(here, piece_rows=150), METRICS, options=options))


def test_the_environment_is_understood_without_options(server, dataset, monkeypatch):
    for name, value in {
        "ACCESS_KEY_ID": "somebody",
        "SECRET_ACCESS_KEY": "hush",
        "ENDPOINT_URL": server,
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    assert_equal(measure(FileSource("s3://bucket/logs/")), measure(FileSource(dataset)))


def test_folders_of_the_bucket_are_groups_of_an_audit(server, dataset):
    def audited(source):
        return audit(source=source, alpha=0.1, random_state=0, mute=MUTED, sample_rows=200)

    choice = ColumnChoice(group="region")
    there = FileSource("s3://bucket/logs/", choice=choice, storage=spelled(server)["s3fs"], features=True)
    found, expected = audited(there), audited(FileSource(dataset, choice=choice, features=True))
    assert_equal(found.estimates, expected.estimates)
    assert [(f.code, f.sentence) for f in found.findings] == [(f.code, f.sentence) for f in expected.findings]
    assert set(found.data["groups"]) == {"north", "south", "west"}


def test_the_commands_take_the_options(server, dataset, capsys):
    words = [
        word
        for name, value in (KEYS | {"endpoint_url": server}).items()
        for word in ("--storage", f"{name}={value}")
    ]

    def printed(*command):
        assert main([*command, "--json"]) in (0, 1)
        return json.loads(capsys.readouterr().out)

    assert printed("measure", "s3://bucket/logs/", *words) == printed("measure", dataset)
    command = ["--group", "region", "--mute", ",".join(MUTED)]
    there = printed("audit", "s3://bucket/logs/", *command, *words)
    assert there["estimates"] == printed("audit", dataset, *command)["estimates"]
    assert there["about"]["rows"] == 750


def test_what_cannot_be_reached_is_said_in_one_sentence(server, dataset, capsys):
    words = ["--storage", "key=somebody", "--storage", "secret=hush", "--storage", f"endpoint_url={server}"]
    cases = {
        "s3://no-such-bucket/": "no-such-bucket",
        "s3://bucket/nothing/": "no file matches s3://bucket/nothing/",
        "s3://bucket/logs/region=north/part-9.parquet": "part-9.parquet",
    }
    for place, said in cases.items():
        assert main(["measure", place, *words]) == 2
        found = capsys.readouterr().err
        assert said in found
        assert found.count("\n") == 1
    assert main(["measure", "s3://bucket/logs/", "--storage", "endpoint_url"]) == 2
    assert "--storage must be name=value, got 'endpoint_url'" in capsys.readouterr().err
    with pytest.raises(CalipersError, match="s3://bucket/logs/ cannot be read"):
        FileSource("s3://bucket/logs/", storage=KEYS | {"endpoint": server, "no_such_option": "1"}).pieces()


def test_pieces_travel_with_their_options_and_do_not_show_them(server, dataset):
    source = FileSource("s3://bucket/logs/", storage=spelled(server)["s3fs"])
    pieces = source.pieces()
    assert "hush" not in f"{source!r} {pieces[0]!r}"
    (block,) = pickle.loads(pickle.dumps(pieces[0])).blocks()
    assert block.n == 200


def test_an_address_without_a_file_system_is_refused():
    with pytest.raises(InputError, match="nowhere://bucket/ cannot be read"):
        FileSource("nowhere://bucket/").pieces()
