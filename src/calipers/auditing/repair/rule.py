"""What a repair does to the columns of any rows: a map of probabilities, then thresholds on scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.auditing.repair.stored import part
from calipers.inputs.rows import Rows

# The statements that a repair makes anew.
REPAIRABLE = ("probabilities", "p_values", "sets", "intervals")


@part("repair")
@dataclass(frozen=True, slots=True, eq=False)
class RepairRule:
    """A repair as data.

    Parameters
    ----------
    task : {"classification", "regression"}
        What is predicted.
    alphas : tuple of float
        Levels of sets and intervals.
    classes : tuple of str
        Label of every column.
    columns : tuple of str
        Which of probabilities, p_values, sets and intervals were audited.
    probability_map : map or None
        What changes probabilities.
    score, thresholds : parts or None
        What makes new sets, p-values or intervals.
    """

    task: str
    alphas: tuple[float, ...]
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    probability_map: Any = None
    score: Any = None
    thresholds: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is changed."""
        return self.probability_map is None and self.thresholds is None

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done, in words."""
        steps = []
        if self.probability_map is not None:
            steps.append(f"probabilities recalibrated ({self.probability_map.words})")
        if self.thresholds is not None:
            words = f"{self.score.words}, {self.thresholds.words}"
            steps.append(f"conformalised again on {self.thresholds.rows} rows ({words})")
        return tuple(steps)

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns that `apply` gives."""
        found = ["probabilities"] if self.probability_map is not None else []
        if self.thresholds is not None:
            found += [c for c in REPAIRABLE[1:] if c in self.columns] or ["p_values"]
        return tuple(found)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that `apply` reads."""
        wanted: list[str] = []
        if self.probability_map is not None:
            wanted += ["probabilities", *self.probability_map.needs]
        if self.thresholds is not None:
            wanted += [*self.score.needs, *self.thresholds.needs]
        return tuple(dict.fromkeys(wanted))

    @property
    def guarantee(self) -> str:
        """What holds for new rows that are exchangeable with the calibration rows."""
        if self.thresholds is not None:
            return str(self.thresholds.guarantee)
        return "none for single rows; the comparison on untouched rows is the evidence"

    @property
    def n_calibration(self) -> int | None:
        """Rows the thresholds come from."""
        return None if self.thresholds is None else int(self.thresholds.rows)

    def apply(self, rows: Rows) -> dict[str, np.ndarray]:
        """The repaired columns of these rows."""
        out: dict[str, np.ndarray] = {}
        if self.probability_map is not None:
            out["probabilities"] = self.probability_map.apply(rows)
            rows = rows.replace(**out)
        if self.thresholds is not None:
            out |= self._intervals(rows) if self.task == "regression" else self._sets(rows)
        return out

    def repaired(self, rows: Rows) -> Rows:
        """The rows with what they state repaired."""
        new: dict[str, Any] = self.apply(rows)
        if "p_values" in new and "sets" not in new:
            new = new | {"sets": None}
        return rows.replace(**new) if new else rows

    def _intervals(self, rows: Rows) -> dict[str, np.ndarray]:
        layers = [
            self.score.intervals(rows, level, self.thresholds.at(rows, level))
            for level in range(len(self.alphas))
        ]
        stated = np.ndim(rows.given["intervals"])
        return {"intervals": layers[0] if stated == 2 else np.stack(layers, axis=-1)}

    def _sets(self, rows: Rows) -> dict[str, np.ndarray]:
        scores, out = self.score.of_labels(rows), {}
        if "p_values" in self.changes:
            out["p_values"] = self.thresholds.p_values(rows, scores)
        if "sets" in self.changes:
            layers = [scores <= self.thresholds.at(rows, level)[:, None] for level in range(len(self.alphas))]
            several = np.ndim(rows.given["sets"]) == 3 if "sets" in rows.given else len(layers) > 1
            out["sets"] = np.stack(layers, axis=-1) if several else layers[0]
        return out
