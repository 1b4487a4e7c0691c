"""The images of the study: the original split, normalised one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from calipers.datasets import load_usps
from calipers.performance.fingerprints import fingerprint

QUICK_STRIDE = 18


@dataclass(frozen=True, eq=False)
class Digits:
    """Normalised and raw images of both parts, with labels.

    Parameters
    ----------
    train, test : ndarray of shape (n, 256)
        Every image has mean 0 and standard deviation 1 over its pixels.
    raw_train, raw_test : ndarray of shape (n, 256)
        Pixels as they come, in [-1, 1].
    y_train, y_test : ndarray of shape (n,)
        Digits.
    """

    train: np.ndarray
    test: np.ndarray
    raw_train: np.ndarray
    raw_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray

    @cached_property
    def fingerprint(self) -> str:
        """A name that changes when an image or a label does."""
        return fingerprint((self.train, self.test, self.raw_train, self.raw_test, self.y_train, self.y_test))


def load_digits(data: Path | None, *, quick: bool) -> Digits:
    """USPS in its original split; the quick version takes every 18th image of either part."""
    usps = load_usps(data)
    stride = QUICK_STRIDE if quick else 1
    train, test = usps.train, usps.test
    return Digits(
        normalise(train.X[::stride]),
        normalise(test.X[::stride]),
        train.X[::stride],
        test.X[::stride],
        train.y[::stride],
        test.y[::stride],
    )


def normalise(images: np.ndarray) -> np.ndarray:
    """The affine map of each image that gives its pixels mean 0 and standard deviation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from studies.efficiency.digits import normalise
    >>> normalise(np.array([[0.0, 0.0, 2.0, 2.0]])).tolist()
    [[-1.0, -1.0, 1.0, 1.0]]
    """
    centred = images - images.mean(axis=1, keepdims=True)
    return np.asarray(centred / centred.std(axis=1, keepdims=True))
