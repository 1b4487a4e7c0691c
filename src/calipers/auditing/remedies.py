"""What a repair does to predictions: learnt on some rows, applied to others, no model needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from calipers.auditing.checks.features import expected_coverage
from calipers.auditing.measurements import Design
from calipers.conformal import conformal_p_values, conformal_quantile, lac
from calipers.inputs import check_features
from calipers.inputs.rows import Rows

# Rows of a part of the data below which it does not get a threshold of its own.
FEWEST_ROWS = 50
DIFFICULTY_PARTS = 5
REGION_PARTS = 5


def recalibrate(learn: Rows, apply_to: Rows) -> tuple[np.ndarray, str]:
    """Probabilities mapped so that stated and observed frequencies agree on the rows to learn from."""
    P, Q = learn["probabilities"].astype(float), apply_to["probabilities"].astype(float)
    if P.shape[1] == 2:
        from calipers.calibration import IsotonicCalibrator

        calibrator = IsotonicCalibrator().fit(P[:, 1], (learn["y"] == 1).astype(int))
        positive = np.asarray(calibrator.predict(Q[:, 1]), dtype=float)
        return np.column_stack([1 - positive, positive]), "isotonic map of the positive class"
    temperature = best_temperature(P, learn["y"])
    return sharpened(Q, temperature), f"temperature {temperature:.3g}"


def best_temperature(P: np.ndarray, y: np.ndarray) -> float:
    """The temperature at which the outcomes are most likely."""
    logs = np.log(np.maximum(P, 1e-12))
    rows = np.arange(len(y))

    def loss(log_temperature: float) -> float:
        scaled = logs / np.exp(log_temperature)
        top = scaled.max(axis=1)
        return float(np.mean(top + np.log(np.exp(scaled - top[:, None]).sum(axis=1)) - scaled[rows, y]))

    found = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded")
    return float(np.exp(found.x))


def sharpened(P: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities to the power 1/temperature, brought back to sum 1."""
    logs = np.log(np.maximum(P, 1e-12)) / temperature
    raised = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Grouping:
    """A group per row for two sets of rows, and what the groups are."""

    learn: np.ndarray
    apply_to: np.ndarray
    words: str


def no_groups(learn: Rows, apply_to: Rows) -> Grouping:
    """One threshold for all."""
    return Grouping(np.zeros(learn.n, dtype=int), np.zeros(apply_to.n, dtype=int), "one threshold")


def named_groups(learn: Rows, apply_to: Rows) -> Grouping:
    """The groups that were given."""
    labels, codes = np.unique(np.concatenate([learn["groups"], apply_to["groups"]]), return_inverse=True)
    words = f"a threshold for each of {len(labels)} groups"
    return Grouping(codes[: learn.n], codes[learn.n :], words)


def difficulty_groups(design: Rows, learn: Rows, apply_to: Rows) -> Grouping:
    """Parts of equal size along the ease; their edges come from rows that do not conformalise."""
    edges = np.quantile(design["difficulty"], np.arange(1, DIFFICULTY_PARTS) / DIFFICULTY_PARTS)
    codes = [np.searchsorted(edges, part["difficulty"]) for part in (learn, apply_to)]
    return Grouping(codes[0], codes[1], f"a threshold for each of {DIFFICULTY_PARTS} parts along difficulty")


def region_groups(design: Rows, learn: Rows, apply_to: Rows, rng: np.random.Generator) -> Grouping:
    """Parts by the coverage that a classifier, fitted on other rows, expects of the rows."""
    covered = design["covered"]
    if covered.all() or not covered.any():
        return no_groups(learn, apply_to)
    features, *others = (check_features(part.given["X"]) for part in (design, learn, apply_to))
    values = np.concatenate([other.values for other in others])
    both = expected_coverage(features, covered, values, rng)
    expected = both[: learn.n], both[learn.n :]
    edges = np.unique(np.quantile(expected[0], np.arange(1, REGION_PARTS) / REGION_PARTS))
    codes = [np.searchsorted(edges, part) for part in expected]
    words = f"a threshold for each of {len(edges) + 1} parts by the coverage their features foretell"
    return Grouping(codes[0], codes[1], words)


def reconformalise(learn: Rows, apply_to: Rows, groups: Grouping) -> Rows | None:
    """New sets or intervals from a threshold per group; None when there is no score to put one on."""
    if learn.task == "regression":
        return apply_to.replace(intervals=_stretch(learn, apply_to, groups))
    scores = _scores(learn), _scores(apply_to)
    if scores[0] is None or scores[1] is None:
        return None
    true = scores[0][np.arange(learn.n), learn["y"]]
    known, seen = _enough(groups)
    p = conformal_p_values(true, scores[1], calibration_groups=known, test_groups=seen)
    return apply_to.replace(p_values=np.asarray(p, dtype=float), sets=None)


def _scores(rows: Rows) -> np.ndarray | None:
    """Nonconformity of every label: the given p-values turned round, or one minus the probability."""
    if (probabilities := rows.get("probabilities")) is not None:
        return np.asarray(lac(probabilities))
    p_values = rows.get("p_values")
    return None if p_values is None else 1.0 - p_values


def _enough(groups: Grouping) -> tuple[np.ndarray, np.ndarray]:
    """Groups with too few rows to learn from are thrown together with all that are new."""
    labels, rows = np.unique(groups.learn, return_counts=True)
    large = labels[rows >= FEWEST_ROWS]
    known = np.where(np.isin(groups.learn, large), groups.learn, -1)
    # Without rows of their own the small groups take the threshold of everybody.
    seen = np.where(np.isin(groups.apply_to, large), groups.apply_to, -1)
    return (known, seen) if (known == -1).any() or not (seen == -1).any() else (known * 0, seen * 0)


def _stretch(learn: Rows, apply_to: Rows, groups: Grouping) -> np.ndarray:
    """Intervals moved out (or in) by the conformal quantile of how far outcomes lie outside, per group."""
    known, seen = _enough(groups)
    given, new, y = learn["intervals"], np.array(apply_to["intervals"], dtype=float), learn["y"]
    for position, alpha in enumerate(apply_to.alphas):
        ends = given if given.ndim == 2 else given[:, :, position]
        outside = np.maximum(ends[:, 0] - y, y - ends[:, 1])
        for group in np.unique(seen):
            shift = conformal_quantile(outside[known == group], alpha)
            rows = seen == group
            view = new if new.ndim == 2 else new[:, :, position]
            view[rows] = _moved(view[rows], shift)
    return new


def _moved(intervals: np.ndarray, shift: float) -> np.ndarray:
    """Both ends moved out by the shift; an interval that would turn inside out shrinks to its middle."""
    low, high = intervals[:, 0] - shift, intervals[:, 1] + shift
    crossed = low > high
    middle = np.where(crossed, (low + high) / 2, 0.0)
    return np.column_stack([np.where(crossed, middle, low), np.where(crossed, middle, high)])


def needs_design(codes: set[str], rows: Rows) -> bool:
    """Whether the groups must be learnt from rows of their own."""
    return not ("CAL201" in codes and rows.get("groups") is not None) and bool(
        codes & {"CAL202", "CAL203", "CAL401", "CAL402"}
    )


def groups_for(codes: set[str], settings: Design, parts: dict[str, Rows]) -> Grouping:
    """The grouping that answers the faults: named groups first, then regions, then difficulty."""
    learn, apply_to, design = parts["learn"], parts["apply_to"], parts["design"]
    if "CAL201" in codes and learn.get("groups") is not None:
        return named_groups(learn, apply_to)
    if codes & {"CAL202", "CAL203"} and learn.get("X") is not None:
        return region_groups(design, learn, apply_to, settings.generator("regions"))
    if codes & {"CAL401", "CAL402"}:
        return difficulty_groups(design, learn, apply_to)
    return no_groups(learn, apply_to)
