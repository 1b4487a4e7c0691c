"""Probabilities that MCGrad repairs; runs in its own environment.

``python multicalibration_peer.py FOLDER`` reads ``rows.npz`` of `benchmarks.multicalibration`, fits the first
half and writes the repaired probabilities of the other one to ``peer.npy``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np


def main() -> None:
    """Fit and predict with the defaults."""
    import pandas as pd
    from mcgrad.methods import MCGrad

    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    with np.load(folder / "rows.npz") as stored:
        columns = {name: stored[name] for name in stored.files}
    X, half = columns.pop("X"), int(columns.pop("half"))
    attributes = [name for name in columns if name not in ("y", "stated")]
    numbers = [f"x{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(columns | dict(zip(numbers, X.T, strict=True)))
    known = {
        "prediction_column_name": "stated",
        "categorical_feature_column_names": attributes,
        "numerical_feature_column_names": numbers,
    }
    model = MCGrad().fit(frame.iloc[:half], label_column_name="y", **known)
    np.save(folder / "peer.npy", np.asarray(model.predict(frame.iloc[half:], **known)))


if __name__ == "__main__":
    main()
