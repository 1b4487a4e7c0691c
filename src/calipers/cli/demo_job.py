"""The work behind ``calipers demo``: a real model with a real fault, and a fault planted on purpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from calipers.auditing import Audit, Repair, audit
from calipers.conformal import ConformalClassifier
from calipers.datasets import Dataset, load_demo_classification, plant_fault

# Heavy images: about a quarter of them. Their labels become a lottery in two of five cases.
PLANTED_FEATURE, PLANTED_ABOVE, PLANTED_STRENGTH = "ink", 5.4, 0.4
READABLE = ("ink", "rightness", "lowness")


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What the demo found, and what the repair brought."""

    found: Audit
    repaired: Repair

    def document(self) -> dict[str, object]:
        """The document of the audit, with the repair added."""
        repair = self.repaired.to_dict()["repair"] | {"faults_shown": "before"}
        return self.found.to_dict() | {"repair": repair}


def demonstrate(*, alpha: float, seed: int) -> Demonstration:
    """Train, conformalise, audit, repair and audit again."""
    data = plant_fault(
        load_demo_classification(), PLANTED_FEATURE, above=PLANTED_ABOVE, strength=PLANTED_STRENGTH,
        random_state=seed,
    )  # fmt: skip
    train, calibration, test = three_parts(data, seed)
    pixels = slice(0, 64)
    # Naive Bayes takes every pixel for independent evidence, so it is far too sure of itself: a real fault.
    model = GaussianNB(var_smoothing=1e-3).fit(train.X[:, pixels], train.y)
    predictor = ConformalClassifier(FrozenEstimator(model)).fit(calibration.X[:, pixels], calibration.y)
    predictor.conformalize(calibration.X[:, pixels], calibration.y)
    X = test.X[:, pixels]
    found = audit(
        test.y,
        probabilities=model.predict_proba(X),
        p_values=predictor.predict_p(X),
        X=readable_features(test),
        groups=np.where(test.column(PLANTED_FEATURE) > PLANTED_ABOVE, "heavy", "light"),
        alpha=alpha,
        n_calibration=len(calibration),
        random_state=seed,
        name="naive Bayes on handwritten digits",
    )
    return Demonstration(found, found.repair())


def three_parts(data: Dataset, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    """Training, calibration and test rows: a quarter, a quarter, a half."""
    rows = np.arange(len(data))
    early, test = train_test_split(rows, test_size=0.5, random_state=seed)
    train, calibration = train_test_split(early, test_size=0.5, random_state=seed)
    return data.rows(train), data.rows(calibration), data.rows(test)


def readable_features(data: Dataset) -> object:
    """The features a person can read, as a frame."""
    import polars as pl

    return pl.DataFrame({name: data.column(name) for name in READABLE})
