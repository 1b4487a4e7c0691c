"""What MCGrad or MAPIE say of samples that `benchmarks.group_tests` wrote; runs in the peer's environment.

``python group_tests_peer.py PEER FOLDER`` reads every ``FAULT.NUMBER.npz`` and writes ``peer.json``: by fault
and metric one number per sample, a p-value or a value of which large ones are bad.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ALPHA = 0.1


def mcgrad(s: Any, fault: str) -> dict[str, float]:
    """The p-value of the worst segment of at most two attributes."""
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    if fault == "a region":
        return {}
    frame = pd.DataFrame({name: s[name] for name in ("sex", "site", "p", "y")})
    found = MulticalibrationError(
        frame, label_column="y", score_column="p", categorical_segment_columns=["sex", "site"], max_depth=2
    )
    return {"MulticalibrationError p-value": float(found.mce_pvalue)}


def mapie(s: Any, fault: str) -> dict[str, float]:
    """Coverage gap of the cells; one minus the worst slab's coverage, and the excess risk."""
    from mapie.metrics.conditional import coverage_gap, excess_risk_target_coverage, worst_slab_coverage

    # An interval around 0 that holds the outcome 0 and misses the outcome 9.
    y, ends = np.where(s["covered"], 0.0, 9.0), np.tile([-1.0, 1.0], (len(s["covered"]), 1))
    found = {}
    if fault != "a region":
        found["coverage_gap"] = coverage_gap(y, 3 * s["sex"] + s["site"], 1 - ALPHA, y_intervals=ends)
    if fault in {"nothing", "a region"}:
        found["worst_slab_coverage"] = 1 - worst_slab_coverage(s["X"], y, y_intervals=ends)
        found["excess risk"] = excess_risk_target_coverage(s["X"], y, 1 - ALPHA, y_intervals=ends)
    return {name: float(value) for name, value in found.items()}


def main() -> None:
    """Measure every sample of the folder."""
    warnings.simplefilter("ignore")
    measure: Callable[[Any, str], dict[str, float]] = {"mcgrad": mcgrad, "mapie": mapie}[sys.argv[1]]
    folder = Path(sys.argv[2])
    found: dict[str, dict[str, list[float]]] = {}
    for file in sorted(folder.glob("*.npz")):
        fault = file.name.split(".")[0]
        for name, value in measure(np.load(file), fault).items():
            found.setdefault(fault, {}).setdefault(name, []).append(value)
    (folder / "peer.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
