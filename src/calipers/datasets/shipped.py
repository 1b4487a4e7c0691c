"""Two small real data sets that come with scikit-learn, for the demo: nothing is downloaded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.datasets.dataset import Dataset
from calipers.exceptions import InputError


def load_demo_classification() -> Dataset:
    """Handwritten digits: 1797 images of 8 x 8 pixels, ten classes.

    Beside the 64 pixels (0 to 16) there are three readable features: ``ink`` (mean pixel), ``rightness``
    and ``lowness`` (centre of the ink, 0 to 7, from the left and from the top). A fault planted in the
    heavy or slanted images can then be reported in words.

    Returns
    -------
    Dataset
        X of shape (1797, 67), y from 0 to 9.

    Examples
    --------
    >>> from calipers.datasets import load_demo_classification
    >>> data = load_demo_classification()
    >>> data.X.shape, data.feature_names[-3:]
    ((1797, 67), ('ink', 'rightness', 'lowness'))
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.asarray(bunch.images, dtype=float)
    total = images.sum(axis=(1, 2))
    centre_x = (images.sum(axis=1) * np.arange(8)).sum(axis=1) / total
    centre_y = (images.sum(axis=2) * np.arange(8)).sum(axis=1) / total
    X = np.column_stack([images.reshape(len(images), 64), total / 64, centre_x, centre_y])
    pixels = tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))
    return Dataset(
        name="digits",
        X=X,
        y=np.asarray(bunch.target),
        feature_names=(*pixels, "ink", "rightness", "lowness"),
        target_name="digit",
        class_names=tuple(str(d) for d in range(10)),
        description=(
            "A row is a scanned digit, 8 x 8 pixels from 0 to 16; ink, rightness and lowness are computed "
            "from them."
        ),
        source="Optical Recognition of Handwritten Digits, UCI; shipped with scikit-learn (load_digits)",
        licence="none stated with the data; scikit-learn is BSD-3-Clause",
    )


def load_demo_regression() -> Dataset:
    """Diabetes progression of 442 patients, ten measurements in their own units.

    Returns
    -------
    Dataset
        X of shape (442, 10), y the disease progression one year on, 25 to 346.

    Examples
    --------
    >>> from calipers.datasets import load_demo_regression
    >>> load_demo_regression().feature_names[:4]
    ('age', 'sex', 'bmi', 'bp')
    """
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    names = ("age", "sex", "bmi", "bp", "tc", "ldl", "hdl", "tch", "ltg", "glu")
    return Dataset(
        name="diabetes",
        X=np.asarray(bunch.data, dtype=float),
        y=np.asarray(bunch.target, dtype=float),
        feature_names=names,
        target_name="progression",
        categorical=("sex",),
        description="A row is a patient; measurements unscaled, sex coded 1 and 2; nothing was changed.",
        source="Efron et al. (2004), Least Angle Regression; shipped with scikit-learn (load_diabetes)",
        licence="none stated with the data; scikit-learn is BSD-3-Clause",
    )


def plant_fault(
    data: Dataset, feature: str, *, above: float, strength: float, random_state: RandomState = None
) -> Dataset:
    """Return the data set with outcomes made unpredictable where a feature exceeds a threshold.

    A model fitted before the fault, or one that cannot see it, will cover too rarely there: a known
    answer for failing regions and conditional coverage.

    Parameters
    ----------
    data : Dataset
        Classification (it has class_names) or regression.
    feature : str
        Name of the feature.
    above : float
        Rows with feature > above are affected.
    strength : float
        Classification: probability that the label is replaced by another one, drawn evenly. Regression:
        standard deviation of the added normal noise, in standard deviations of the target.
    random_state : int, Generator or None
        Source of the draws.

    Returns
    -------
    Dataset
        A copy; the original is not touched.

    Examples
    --------
    >>> from calipers.datasets import load_demo_regression, plant_fault
    >>> data = load_demo_regression()
    >>> faulty = plant_fault(data, "bmi", above=30, strength=1.0, random_state=0)
    >>> bool((faulty.y != data.y).sum() == (data.column("bmi") > 30).sum())
    True
    """
    where = np.flatnonzero(data.column(feature) > above)
    if not len(where):
        raise InputError(f"above must leave rows with {feature} > above, got {above}; there are none.")
    rng = generator(random_state)
    y = (
        _redraw_labels(data.y, where, strength, rng)
        if data.class_names
        else _add_noise(data.y, where, strength, rng)
    )
    note = f" Fault planted where {feature} > {above:g}, strength {strength:g}, in {len(where)} rows."
    return replace(data, y=y, description=data.description + note)


def _redraw_labels(y: np.ndarray, where: np.ndarray, rate: float, rng: np.random.Generator) -> np.ndarray:
    if not 0 <= rate <= 1:
        raise InputError(f"strength must lie in [0, 1] for class labels, got {rate}; it is a probability.")
    classes, codes = np.unique(y, return_inverse=True)
    hit = where[rng.random(len(where)) < rate]
    moved = codes.copy()
    moved[hit] = (codes[hit] + rng.integers(1, len(classes), size=len(hit))) % len(classes)
    return np.asarray(classes[moved])


def _add_noise(y: np.ndarray, where: np.ndarray, strength: float, rng: np.random.Generator) -> np.ndarray:
    if not strength >= 0:
        raise InputError(f"strength must not be negative, got {strength}.")
    noisy = np.array(y, dtype=float)
    noisy[where] += strength * noisy.std() * rng.standard_normal(len(where))
    return noisy
