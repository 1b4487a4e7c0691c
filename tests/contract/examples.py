"""One example of arguments per registered metric; the contract tests run every metric on its own.

`EXAMPLES[name](rng, n)` gives ``(data, options)``: data is a dictionary of row arrays (first axis n),
options are keyword arguments that do not depend on the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Example = Callable[[np.random.Generator, int], tuple[dict[str, Any], dict[str, Any]]]


def _coverage(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    y = rng.normal(size=n)
    return {"y_true": y, "prediction": np.tile([-1.5, 1.5], (n, 1))}, {"alpha": 0.1, "n_calibration": 200}


def _binary_probabilities(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    f = np.round(rng.random(n), 2)
    return {"y_true": (rng.random(n) < f**1.5).astype(np.int64), "probabilities": f}, {}


EXAMPLES: dict[str, Example] = {
    "coverage": _coverage,
    "calibration_error": _binary_probabilities,
}
