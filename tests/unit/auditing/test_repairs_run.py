"""Every repair a finding proposes is code that runs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression

from calipers.auditing import repairs

SNIPPETS = {
    "classification again": ("classification", repairs.reconformalise("classification", 0.1)),
    "classification by group": ("classification", repairs.by_group("classification", 0.1)),
    "classification by difficulty": ("classification", repairs.by_difficulty("classification", 0.1)),
    "classification narrower": ("classification", repairs.narrower("classification", 0.1)),
    "regression narrower": ("regression", repairs.narrower("regression", 0.1)),
    "regression again": ("regression", repairs.reconformalise("regression", 0.1)),
    "regression by group": ("regression", repairs.by_group("regression", 0.1)),
    "regression by difficulty": ("regression", repairs.by_difficulty("regression", 0.1)),
    "calibration": ("classification", repairs.calibrate()),
}


def reader(task: str) -> dict[str, object]:
    """The names a reader of a snippet has."""
    make = make_regression if task == "regression" else make_classification
    X, y = make(n_samples=600, n_features=5, random_state=0)
    model = (LinearRegression() if task == "regression" else LogisticRegression()).fit(X[:200], y[:200])
    names: dict[str, object] = {
        "model": model, "X_held_out": X[200:500], "y_held_out": y[200:500], "X_new": X[500:],
        "groups_held_out": np.arange(300) % 2, "groups_new": np.arange(100) % 2,
    }  # fmt: skip
    if task == "classification":
        names |= {
            "probabilities_held_out": model.predict_proba(X[200:500])[:, 1],
            "probabilities_new": model.predict_proba(X[500:])[:, 1],
        }
    return names


@pytest.mark.parametrize("case", SNIPPETS)
def test_the_snippet_runs(case: str) -> None:
    task, snippet = SNIPPETS[case]
    names = reader(task)
    exec(snippet, names)  # noqa: S102 - our own text, run on purpose
    made = next(names[key] for key in ("sets", "intervals", "probabilities") if key in names)
    assert len(made) == 100
