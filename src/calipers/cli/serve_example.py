"""The example of the local page: houses whose intervals fail in a corner, and later in the year."""

from __future__ import annotations

from pathlib import Path

import numpy as np

EXAMPLE_NAME = "example-houses.csv"


def write_example(folder: Path, *, rows: int = 2000) -> Path:
    """Write the rows as csv into the folder; the same ones every time."""
    import polars as pl

    rng = np.random.default_rng(0)
    latitude, income = rng.uniform(32, 42, rows), rng.gamma(3, 1.3, rows)
    day = np.datetime64("2024-01-01") + np.sort(rng.integers(0, 366, rows)).astype("timedelta64[D]")
    hard = (latitude > 38) & (income > 4) | (day > np.datetime64("2024-10-01"))
    price = 60_000 * income + np.where(hard, 110_000, 40_000) * rng.normal(size=rows)
    frame = pl.DataFrame({
        "y_true": price.round(), "lower": (60_000 * income - 75_000).round(),
        "upper": (60_000 * income + 75_000).round(), "latitude": latitude.round(3), "income": income.round(3),
        "group": np.array(["bay", "inland", "coast"])[rng.integers(0, 3, rows)], "time": day,
    })  # fmt: skip
    place = folder / EXAMPLE_NAME
    frame.write_csv(place)
    return place
