"""The real data of the case studies, cut small enough to lie beside them: ``python docs/notebooks/data/make.py FOLDER``.

FOLDER holds the files that `calipers.datasets` reads (`load_adult`, `load_cifar100`, `load_regression`). Nothing is
changed but what README.md in this folder says.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import polars as pl

from calipers.datasets import load_cifar100

HERE = Path(__file__).resolve().parent
ADULT = [
    "age",
    "workclass",
    "education_num",
    "marital_status",
    "occupation",
    "hours_per_week",
    "sex",
    "income",
]
BIKE = ["datetime", "holiday", "workingday", "weather", "temp", "humidity", "windspeed", "count"]
N_IMAGES = 4000


def main(folder: Path) -> None:
    """Write the three files."""
    people = pl.read_csv(folder / "adult_test.csv.gz")
    people = people.rename({name: name.replace("-", "_").replace(".", "_") for name in people.columns})
    write(people.select(ADULT), "adult.csv.gz")
    write(pl.read_csv(folder / "regression" / "bike.csv.gz").select(BIKE), "bike.csv.gz")
    images = load_cifar100(folder, models=["wrn_16_4"])
    surprise = -16 * np.log(images.probabilities["wrn_16_4"][:N_IMAGES].clip(1e-7))
    steps = np.rint(surprise - surprise.min(axis=1, keepdims=True)).clip(0, 255).astype(np.uint8)
    np.savez_compressed(HERE / "cifar100.npz", steps=steps, label=images.labels[:N_IMAGES].astype(np.uint8))


def write(table: pl.DataFrame, name: str) -> None:
    """A compressed csv that is the same bytes every time."""
    with (
        (HERE / name).open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as out,
    ):
        out.write(table.write_csv().encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
