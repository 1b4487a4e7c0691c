"""Files that are cut, mixed up, mislabelled or hostile."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

ROWS = 30


def _table(rng: np.random.Generator) -> pl.DataFrame:
    if rng.random() < 0.5:
        y = rng.normal(size=ROWS)
        return pl.DataFrame(
            {"y_true": y, "lower": y - 1, "upper": y + rng.random(ROWS), "x": rng.normal(size=ROWS)}
        )
    P = rng.dirichlet(np.ones(3), ROWS)
    columns = {f"p_{name}": P[:, j] for j, name in enumerate("abc")}
    return pl.DataFrame(
        {"y_true": rng.choice(list("abc"), ROWS), **columns, "group": rng.choice(["u", "v"], ROWS)}
    )


def _npz(table: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: table[name].to_numpy() for name in table.columns})
    return file.getvalue()


def _through(write: str) -> Callable[[pl.DataFrame], bytes]:
    def made(table: pl.DataFrame) -> bytes:
        file = io.BytesIO()
        getattr(table, write)(file)
        return file.getvalue()

    return made


FORMATS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    ".csv": _through("write_csv"),
    ".jsonl": _through("write_ndjson"),
    ".parquet": _through("write_parquet"),
    ".arrow": _through("write_ipc"),
    ".npz": _npz,
    ".csv.gz": lambda table: gzip.compress(_through("write_csv")(table)),
}
BAD_CELLS: tuple[object, ...] = (None, float("nan"), float("inf"), -1.0, 1e308, 2.0)


def _bad_table(rng: np.random.Generator) -> pl.DataFrame:
    """A table with one thing wrong."""
    table = _table(rng)
    name = str(rng.choice(table.columns))
    match int(rng.integers(9)):
        case 0:
            return table.drop(name)
        case 1:
            return table.with_columns(pl.lit(None).alias(name))
        case 2:
            return table.head(int(rng.integers(3)))
        case 3:
            return table.with_columns(pl.lit("text").alias(name))
        case 4:
            return (
                table.with_columns(pl.Series(name, [[1]] * ROWS)) if rng.random() < 0.3 else table.reverse()
            )
        case 5:
            return table.rename({name: name.upper() + "\x1b[2J"})
        case 6:
            return table.select(pl.all().cast(pl.String))
        case 7:
            return table.with_columns(pl.lit(0).alias("sample_weight"))
        case _:
            cells = table[name].to_list()
            bad = BAD_CELLS[int(rng.integers(len(BAD_CELLS)))]
            if isinstance(cells[0], float):
                cells[int(rng.integers(ROWS))] = bad
            return table.with_columns(pl.Series(name, cells, strict=False))


def _damage(content: bytes, rng: np.random.Generator) -> bytes:
    """The bytes, cut, flipped, repeated or preceded by others."""
    made = bytearray(content or b"x")
    at = int(rng.integers(len(made)))
    match int(rng.integers(6)):
        case 0:
            return bytes(made[:at])
        case 1:
            for place in rng.integers(len(made), size=4).tolist():
                made[place] ^= 1 << int(rng.integers(8))
            return bytes(made)
        case 2:
            return b"\xff\xfe" + bytes(made)
        case 3:
            return bytes(made[:at]) + bytes(rng.bytes(20)) + bytes(made[at:])
        case 4:
            return bytes(rng.bytes(200))
        case _:
            return bytes(made[:at]) + bytes(made[max(0, at - 50) :])


def malformed(folder: Path, seed: int) -> Path:
    """One file, the same for the same seed."""
    rng = np.random.default_rng([seed, 7])
    ending = str(rng.choice(list(FORMATS)))
    kind = (
        str(rng.choice(list(FORMATS))) if rng.random() < 0.1 else ending
    )  # at times another format than it says
    table = _bad_table(rng) if rng.random() < 0.6 else _table(rng)
    try:
        content = FORMATS[kind](table)
    except (pl.exceptions.PolarsError, ValueError, TypeError):
        content = b""
    if rng.random() < 0.6:
        content = _damage(content, rng)
    place = folder / f"rows{seed}{ending}"
    place.write_bytes(content)
    return place
