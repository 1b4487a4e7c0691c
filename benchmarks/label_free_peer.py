"""NannyML's estimates for samples that `benchmarks.label_free` wrote; runs in NannyML's own environment.

``python label_free_peer.py FOLDER`` reads every ``*.npz`` of the folder (reference predictions, outcomes and
features, the same of new rows without outcomes) and writes ``peer.json``: per file and metric the estimate,
the ends of its band (three sampling errors to each side) and the sampling error.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import nannyml
import numpy as np
import pandas as pd


def frames(sample: Any) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Reference with outcomes, new rows without, and the names of the features."""
    names = [f"x{j}" for j in range(sample["X"].shape[1])]
    reference = pd.DataFrame(sample["X"], columns=names).assign(stated=sample["p"], y=sample["y"])
    new = pd.DataFrame(sample["X_new"], columns=names).assign(stated=sample["q"])
    for frame in (reference, new):
        frame["decided"] = (frame["stated"] >= 0.5).astype(int)
    return reference, new, names


def classified(sample: Any) -> Any:
    """Confidence-based performance estimation."""
    reference, new, _ = frames(sample)
    estimator = nannyml.CBPE(
        problem_type="classification_binary",
        y_pred_proba="stated",
        y_pred="decided",
        y_true="y",
        metrics=["accuracy", "roc_auc"],
        chunk_number=1,
    )
    return estimator.fit(reference).estimate(new)


def measured(sample: Any) -> Any:
    """Direct loss estimation."""
    reference, new, names = frames(sample)
    estimator = nannyml.DLE(
        feature_column_names=names, y_pred="stated", y_true="y", metrics=["mae", "mse"], chunk_number=1
    )
    return estimator.fit(reference).estimate(new)


def main() -> None:
    """Estimate every sample of the folder."""
    warnings.simplefilter("ignore")
    folder, found = Path(sys.argv[1]), {}
    for file in sorted(folder.glob("*.npz")):
        sample = np.load(file)
        result = classified(sample) if sample["is_class"] else measured(sample)
        row = result.filter(period="analysis").to_df().iloc[0]
        metrics = ("accuracy", "roc_auc") if sample["is_class"] else ("mae", "mse")
        ends = ("value", "lower_confidence_boundary", "upper_confidence_boundary", "sampling_error")
        found[file.stem] = {metric: [float(row[metric, end]) for end in ends] for metric in metrics}
    (folder / "peer.json").write_text(json.dumps({"version": nannyml.__version__, "found": found}))


if __name__ == "__main__":
    main()
