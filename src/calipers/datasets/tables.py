"""Loaders of classification sets: USPS, Fashion-MNIST, Adult, Covertype."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from calipers.datasets.dataset import Dataset
from calipers.datasets.folder import data_file, read_arrays

Folder = str | os.PathLike[str] | None

_ADULT_NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
_COVER_TYPES = (
    "spruce/fir",
    "lodgepole pine",
    "ponderosa pine",
    "cottonwood/willow",
    "aspen",
    "douglas-fir",
    "krummholz",
)
_GARMENTS = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def load_usps(data_dir: Folder = None) -> Dataset:
    """USPS zip-code digits: 9298 images of 16 x 16 pixels, ten classes.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``usps.npz`` (arrays X_train, y_train, X_test, y_test); by default the one named
        by the environment variable CALIPERS_DATA.

    Returns
    -------
    Dataset
        X of shape (9298, 256), row-major pixels in [-1, 1] (the stored integers / 1000, exact to the
        source's three decimals); the first 7291 rows are the original training part.

    Raises
    ------
    InputError
        When the folder or the file is missing.

    Examples
    --------
    >>> from calipers.datasets import load_usps
    >>> load_usps("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds usps.npz, got
    'no/such/folder'.
    """
    origin = "zip.train and zip.test of the R package ElemStatLearn (github.com/cran/ElemStatLearn)"
    arrays = _split_images(data_file("usps.npz", data_dir, origin=origin))
    return Dataset(
        name="usps",
        X=arrays["X"] / 1000.0,
        y=arrays["y"].astype(np.int64),
        feature_names=tuple(f"pixel_{i // 16}_{i % 16}" for i in range(256)),
        target_name="digit",
        class_names=tuple(str(d) for d in range(10)),
        n_train=7291,
        description="A row is a scanned digit, 16 x 16 pixels in [-1, 1]; original split and order.",
        source=origin,
        licence="none stated; GPL (>= 2) as part of ElemStatLearn",
    )


def load_fashion_mnist(data_dir: Folder = None) -> Dataset:
    """Fashion-MNIST: 28 x 28 images of garments, ten classes.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``fashion_mnist.npz``; by default the one named by CALIPERS_DATA.

    Returns
    -------
    Dataset
        X of shape (40000, 784), bytes 0 to 255 as stored (divide by 255 before fitting); the first 30000
        rows are the first half of the original training part, the others its whole test part.

    Raises
    ------
    InputError
        When the folder or the file is missing.

    Examples
    --------
    >>> from calipers.datasets import load_fashion_mnist
    >>> load_fashion_mnist("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds fashion_mnist.npz,
    got 'no/such/folder'.
    """
    origin = "the image files of github.com/zalandoresearch/fashion-mnist"
    arrays = _split_images(data_file("fashion_mnist.npz", data_dir, origin=origin))
    return Dataset(
        name="fashion_mnist",
        X=arrays["X"],
        y=arrays["y"].astype(np.int64),
        feature_names=tuple(f"pixel_{i // 28}_{i % 28}" for i in range(784)),
        target_name="garment",
        class_names=_GARMENTS,
        n_train=30000,
        description="A row is a garment, 28 x 28 bytes; the first 30000 training images and all test images.",
        source=origin,
        licence="MIT",
    )


def load_adult(data_dir: Folder = None) -> Dataset:
    """Adult census income: 48842 persons, six numbers and eight categories.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``adult_train.csv.gz`` and ``adult_test.csv.gz``; by default the one named by
        CALIPERS_DATA.

    Returns
    -------
    Dataset
        X a polars frame of 14 columns; y 1 where income exceeds 50K. A missing category "?" is kept as a
        category of its own. The first 32561 rows are the original training part.

    Raises
    ------
    InputError
        When the folder or a file is missing.

    Examples
    --------
    >>> from calipers.datasets import load_adult
    >>> load_adult("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds adult_train.csv.gz,
    got 'no/such/folder'.
    """
    import polars as pl

    origin = "adult.data and adult.test (UCI Adult), data/ of github.com/yazdanimehdi/FairBiNN"
    parts = [
        pl.read_csv(
            data_file(f"adult_{part}.csv.gz", data_dir, origin=origin).read_bytes(), infer_schema_length=None
        )
        for part in ("train", "test")
    ]
    frame = pl.concat(parts)
    X = frame.drop("income")
    return Dataset(
        name="adult",
        X=X,
        y=(frame["income"] == ">50K").to_numpy().astype(np.int64),
        feature_names=tuple(X.columns),
        target_name="income_above_50k",
        class_names=("<=50K", ">50K"),
        categorical=tuple(name for name in X.columns if name not in _ADULT_NUMBERS),
        n_train=len(parts[0]),
        description=(
            'A row is a person of the 1994 census; "?" stays a category; fnlwgt is the survey weight and is '
            "kept as a feature."
        ),
        source=origin,
        licence="repository: MIT; data: UCI Adult",
    )


def load_covtype(data_dir: Folder = None, *, binary: bool = False) -> Dataset:
    """Forest cover type: 581012 cells, 54 features, seven classes.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``covtype.npz``; by default the one named by CALIPERS_DATA.
    binary : bool, default=False
        Whether y is 1 for the largest class (2, lodgepole pine) and 0 for the rest, as in Gao et al. (2017).

    Returns
    -------
    Dataset
        X of shape (581012, 54), int16, ten numbers and 44 indicators; y from 1 to 7, or 0 and 1.

    Raises
    ------
    InputError
        When the folder or the file is missing.

    Examples
    --------
    >>> from calipers.datasets import load_covtype
    >>> load_covtype("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds covtype.npz, got
    'no/such/folder'.
    """
    origin = "covtype.csv (UCI Covertype) of the Python package scikit-multiflow 0.4.1"
    arrays = read_arrays(data_file("covtype.npz", data_dir, origin=origin), ("X", "y", "feature_names"))
    names = tuple(str(name) for name in arrays["feature_names"])
    y = arrays["y"].astype(np.int64)
    return Dataset(
        name="covtype",
        X=arrays["X"],
        y=(y == 2).astype(np.int64) if binary else y,
        feature_names=names,
        target_name="is_lodgepole_pine" if binary else "cover_type",
        class_names=("other", _COVER_TYPES[1]) if binary else _COVER_TYPES,
        categorical=names[10:],
        description="A row is a 30 m x 30 m cell, in the source's order; nothing was changed.",
        source=origin,
        licence="package: BSD-3-Clause; data: UCI Covertype",
    )


def _split_images(path: Path) -> dict[str, np.ndarray]:
    parts = read_arrays(path, ("X_train", "y_train", "X_test", "y_test"))
    images = np.concatenate([parts["X_train"], parts["X_test"]])
    return {
        "X": images.reshape(len(images), -1),
        "y": np.concatenate([parts["y_train"], parts["y_test"]]),
    }
