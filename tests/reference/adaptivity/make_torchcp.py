"""Makes the numbers of ``test_torchcp.py``: run it in an environment with TorchCP 1.2.1."""

from __future__ import annotations

import importlib
import sys
from unittest.mock import MagicMock

import numpy as np


def example() -> dict[str, np.ndarray]:
    """Top-k sets of random size over invented probabilities, labels drawn from them."""
    rng = np.random.default_rng(20)
    P = rng.dirichlet(np.full(12, 0.5), 400).round(5)
    labels = np.array([rng.choice(12, p=row / row.sum()) for row in P])
    order = np.argsort(-P, axis=1, kind="stable")
    size = rng.integers(1, 12, 400)
    sets = np.zeros(P.shape, dtype=bool)
    for row, (ranked, count) in enumerate(zip(order, size, strict=True)):
        sets[row, ranked[:count]] = True
    return {"P": P, "labels": labels, "sets": sets}


def main() -> None:
    """Print SSCV under both stratifications and DiffViolation."""
    for _ in range(40):
        try:
            metrics = importlib.import_module("torchcp.classification.utils.metrics").Metrics()
            break
        except ModuleNotFoundError as error:  # optional parts that these metrics do not use
            sys.modules[str(error.name)] = MagicMock()
    import torch

    data = {name: torch.tensor(values) for name, values in example().items()}
    raps = [[0, 1], [2, 3], [4, 6], [7, 10], [11, 100], [101, 1000]]
    print("SSCV, strata of RAPS:", metrics("SSCV")(data["sets"], data["labels"], 0.1, raps))
    print("SSCV, its default:", metrics("SSCV")(data["sets"], data["labels"], 0.1))
    print(
        "DiffViolation:",
        metrics("DiffViolation")(torch.log(data["P"] + 1e-9), data["sets"], data["labels"], 0.1),
    )


if __name__ == "__main__":
    main()
