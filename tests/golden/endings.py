"""The same rows under every ending, named in every way: which audits run, and the numbers all of them give."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from calipers.cli import main
from tests.golden.audits import same
from tests.object_store import KEYS, running_s3_server

ENDINGS = (
    "csv",
    "csv.gz",
    "tsv",
    "tsv.gz",
    "parquet",
    "pq",
    "arrow",
    "feather",
    "ipc",
    "jsonl",
    "ndjson",
    "npz",
)
REGIONS = ("north", "south", "west")
MUTED = "CAL103,CAL203,CAL302,CAL601"  # they draw or look at the order of rows
BUCKET = "pins"
# How the files are named on the command line, from the folder, or the address, that `lay_out` filled.
SOURCES: dict[str, Callable[[str, str], list[str]]] = {
    "file": lambda base, ending: [f"{base}/one.{ending}"],
    "file streamed": lambda base, ending: [f"{base}/one.{ending}", "--engine", "local"],
    "several files": lambda base, ending: [f"{base}/parts/part-0.{ending}", f"{base}/parts/part-1.{ending}"],
    "pattern": lambda base, ending: [f"{base}/parts/part-*.{ending}"],
    "folder": lambda base, ending: [f"{base}/parts"],
    "partitioned folder": lambda base, ending: [f"{base}/regions"],
    "S3 file": lambda base, ending: [f"{base}/one.{ending}"],
    "S3 pattern": lambda base, ending: [f"{base}/parts/part-*.{ending}"],
    "S3 partitioned folder": lambda base, ending: [f"{base}/regions/"],
}


class Answer(NamedTuple):
    """What a command answered: its exit code, its numbers, what it said on standard error."""

    code: int
    numbers: dict[str, float]
    said: str


def rows() -> pl.DataFrame:
    """300 rows of three classes with probabilities, sets and groups; numbers that any format keeps exactly."""
    rng = np.random.default_rng(301)
    P = rng.multinomial(60, [0.5, 0.3, 0.2], 300) / 64 + [1 / 64, 1 / 64, 2 / 64]
    y = (rng.random((300, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    columns = (
        {"y_true": y} | {f"p_{k}": P[:, k] for k in range(3)} | {f"set_{k}": P[:, k] > 0.2 for k in range(3)}
    )
    return pl.DataFrame(columns | {"group": np.array(REGIONS)[np.arange(300) % 3]})


def write(frame: pl.DataFrame, place: Path) -> None:
    """The rows in the format of the ending."""
    place.parent.mkdir(parents=True, exist_ok=True)
    name = place.name
    if ".csv" in name or ".tsv" in name:
        text = frame.write_csv(separator="\t" if ".tsv" in name else ",").encode()
        place.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    elif name.endswith((".parquet", ".pq")):
        frame.write_parquet(place)
    elif name.endswith((".arrow", ".feather", ".ipc")):
        frame.write_ipc(place)
    elif name.endswith((".jsonl", ".ndjson")):
        frame.write_ndjson(place)
    else:
        np.savez(place, **_arrays(frame))


def _arrays(frame: pl.DataFrame) -> dict[str, np.ndarray]:
    matrices = {"probabilities": "p_", "sets": "set_"}
    found = {name: frame.select(f"^{start}.*$").to_numpy() for name, start in matrices.items()}
    grouped = {"groups": frame["group"].to_numpy().astype(str)} if "group" in frame.columns else {}
    return {"y_true": frame["y_true"].to_numpy(), **found, **grouped}


def lay_out(folder: Path, ending: str) -> None:
    """One file, two parts, and a folder per region."""
    table = rows()
    write(table, folder / f"one.{ending}")
    for part in range(2):
        write(table[150 * part : 150 * (part + 1)], folder / "parts" / f"part-{part}.{ending}")
    for region in REGIONS:
        own = table.filter(pl.col("group") == region).drop("group")
        write(own, folder / "regions" / f"group={region}" / f"part-0.{ending}")


def upload(folder: Path, address: str) -> None:
    """The whole folder into the bucket."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem(**KEYS, endpoint_url=address)
    system.mkdir(BUCKET)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        system.put_file(str(file), f"{BUCKET}/{file.relative_to(folder).as_posix()}")


def audited(source: str, ending: str, folder: Path, address: str = "") -> Answer:
    """The audit by the command line."""
    remote = source.startswith("S3")
    base = f"s3://{BUCKET}/{ending}" if remote else str(folder / ending)
    words = SOURCES[source](base, ending)
    if remote:
        options = KEYS | {"endpoint_url": address}
        words += [word for name, value in options.items() for word in ("--storage", f"{name}={value}")]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["audit", *words, "--mute", MUTED, "--json"])
    estimates = json.loads(out.getvalue())["estimates"] if code in (0, 1) else {}
    numbers = {name: entry["value"] for name, entry in estimates.items()}
    return Answer(code, numbers, err.getvalue())


def combinations() -> Iterator[tuple[str, str]]:
    return ((source, ending) for source in SOURCES for ending in ENDINGS)


def record() -> dict[str, Any]:
    """Which combinations run today, and the numbers that all of them give."""
    with TemporaryDirectory() as name, running_s3_server() as address:
        folder = Path(name)
        for ending in ENDINGS:
            lay_out(folder / ending, ending)
        upload(folder, address)
        found = {pair: audited(*pair, folder, address) for pair in combinations()}
    answered = [answer for answer in found.values() if answer.code in (0, 1)]
    shared = {
        name: value
        for name, value in answered[0].numbers.items()
        if all(_has(answer.numbers, name, value) for answer in answered)
    }
    return {
        "numbers": shared,
        "run": {source: [e for e in ENDINGS if found[source, e].code in (0, 1)] for source in SOURCES},
    }


def _has(numbers: Mapping[str, float], name: str, value: float) -> bool:
    return name in numbers and same(numbers[name], value)
