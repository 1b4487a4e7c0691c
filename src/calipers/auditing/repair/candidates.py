"""Candidates for new thresholds: every score with every partition, and conditional thresholds over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.auditing.repair.boosted_trees import boost, one_tree
from calipers.auditing.repair.density_ratio import DensityRatio, learn_ratio
from calipers.auditing.repair.feature_codes import FeatureCodes
from calipers.auditing.repair.nonconformity import IntervalScore, LabelScore
from calipers.auditing.repair.partitions import (
    AllRows,
    Partition,
    PredictedCoverageCells,
    RegionCells,
    difficulty_partition,
    group_partitions,
)
from calipers.auditing.repair.thresholds import FEWEST_ROWS, MOST_PATTERNS, fit_cells, fit_conditional
from calipers.auditing.repair.weighted_thresholds import fit_weighted
from calipers.conformal import conformal_quantile
from calipers.inputs.rows import Rows

PARTS = 5
# Fewest rows to fit trees to, and of a leaf that becomes a region.
FEWEST_TREE_ROWS = 150
_LEAF_ROWS = 50
# Units below this share of the mean distance are raised to it.
_FLOOR = 0.05

# Partitions beside the groups, in words.
_WORDS = {"foretold": "predicted coverage", "difficulty": "difficulty"}

# Calibration rows, their scores per level, the generator, and the fewest rows of a cell with a threshold.
Fit = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A score and a way to put thresholds on it.

    Parameters
    ----------
    name : str
        Both in words.
    score : LabelScore or IntervalScore
        The score.
    fit : callable
        Thresholds from calibration rows and their scores; None where they cannot be had.
    guaranteed : int
        Partitions of the comparison in whose every cell coverage is guaranteed.
    in_groups, in_learnt : bool
        Whether the groups that were given are among them, and parts along difficulty or predicted coverage.
    weighted : bool
        Whether it holds for new rows with other features.
    """

    name: str
    score: Any
    fit: Fit
    guaranteed: int
    in_groups: bool
    in_learnt: bool
    weighted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """What is learnt on rows that do not conformalise: partitions and scores.

    Parameters
    ----------
    groups : list of GroupCells
        The groups that were given.
    further : dict
        Name to partition: regions, predicted coverage, difficulty.
    scores : list
        The scores, simplest first.
    ratio : DensityRatio or None
        What rows count for new rows with other features.
    """

    groups: list[Any]
    further: dict[str, Any]
    scores: list[Any]
    ratio: DensityRatio | None = None

    def weighted(self, rows: Rows) -> Rows:
        """The rows counted like the new ones; as they are where the features are the same."""
        if self.ratio is None:
            return rows
        return rows.replace(
            sample_weight=self.ratio.of(rows) * (1.0 if rows.weights is None else rows.weights)
        )

    def slices(self) -> list[Partition]:
        """The partitions that candidates are compared in; regions are a candidate, not a slice."""
        return [*self.groups, *(p for name, p in self.further.items() if name != "regions")]


def learn_design(rows: Rows, rng: np.random.Generator, new_rows: Rows | None = None) -> Design:
    """Partitions and scores from these rows, and the ratio of new ones to them where they differ."""
    scores: list[Any] = _plain_scores(rows)
    further: dict[str, Any] = {}
    if rows.given.get("X") is not None and rows.n >= FEWEST_TREE_ROWS:
        codes = FeatureCodes.of(rows, with_statements=True)
        values = codes.values(rows)
        further |= _feature_partitions(rows, codes, values, scores[0], rng)
        if rows.task == "regression":
            scores += _fitted_scores(rows, codes, values, rng)
    if (along := difficulty_partition(rows, PARTS)) is not None:
        further["difficulty"] = along
    ratio = None if new_rows is None else learn_ratio(rows, new_rows, rng)
    return Design(group_partitions(rows), further, scores, ratio)


def _plain_scores(rows: Rows) -> list[Any]:
    if rows.task == "regression":
        stated = rows["interval_at_level"]
        widths = (stated[:, 1] - stated[:, 0]) / 2
        finite = widths[np.isfinite(widths)]
        scores: list[Any] = [IntervalScore("shift")]
        if len(finite) and np.ptp(finite) > 0:
            scores.append(IntervalScore("scale", floor=max(_FLOOR * float(finite.mean()), 1e-300)))
        return scores
    kinds = (["lac", "aps"] if rows.get("probabilities") is not None else []) + (
        ["p_values"] if "p_values" in rows.given else []
    )
    return [LabelScore(kind) for kind in kinds]


def _feature_partitions(
    rows: Rows, codes: FeatureCodes, values: np.ndarray, score: Any, rng: np.random.Generator
) -> dict[str, Any]:
    """Parts by predicted coverage, and regions: both learnt from the misses of one threshold."""
    alpha, own = rows.alphas[0], score.of_outcomes(rows, 0)
    missed = own > conformal_quantile(own, alpha)
    if missed.all() or not missed.any():
        return {}
    share = float(missed.mean())
    trees = boost(values, missed, rng, loss="logistic", start=float(np.log(share / (1 - share))))
    found: dict[str, Any] = {}
    if len(used := trees.used()):
        predicted = trees.predict(values)
        edges = np.unique(np.quantile(predicted, np.arange(1, PARTS) / PARTS))
        found["foretold"] = PredictedCoverageCells(codes.only(used), trees.renumbered(used), edges)
    tree = one_tree(values, missed, rng, leaf_rows=max(_LEAF_ROWS, rows.n // 10))
    if len(used := tree.used()):
        leaves = np.unique(tree.leaves(values))
        found["regions"] = RegionCells(codes.only(used), tree.renumbered(used), leaves)
    return found


def _fitted_scores(
    rows: Rows, codes: FeatureCodes, values: np.ndarray, rng: np.random.Generator
) -> list[IntervalScore]:
    """Distances from the middle in units of a fitted spread, and fitted quantiles around the middle."""
    stated = rows["interval_at_level"].astype(float)
    finite = np.isfinite(stated).all(axis=1)
    if finite.sum() < FEWEST_TREE_ROWS:
        return []
    away = (rows["outcomes"] - stated.mean(axis=1))[finite]
    values, scores = values[finite], []
    mean = float(np.abs(away).mean())
    spread = boost(values, np.abs(away), rng, start=mean)
    if len(used := spread.used()):
        scores.append(
            IntervalScore("normalised", codes.only(used), None, spread.renumbered(used), _FLOOR * mean)
        )
    if len(rows.alphas) == 1:
        levels = rows.alphas[0] / 2, 1 - rows.alphas[0] / 2
        ends = [
            boost(values, away, rng, loss="quantile", level=q, start=float(np.quantile(away, q)))
            for q in levels
        ]
        if len(used := np.union1d(ends[0].used(), ends[1].used())):
            lower, upper = (trees.renumbered(used) for trees in ends)
            scores.append(IntervalScore("quantile", codes.only(used), lower, upper))
    return scores


def has_choice(rows: Rows) -> bool:
    """Whether there is more than one threshold on one score to choose from."""
    further = ("X", "groups", "ease", "probabilities")
    return any(rows.given.get(name) is not None for name in further) or len(_plain_scores(rows)) > 1


def candidates(design: Design, rows: Rows) -> Iterator[Candidate]:
    """All candidates, simplest first; conditional thresholds only where no p-values are asked for."""
    wants_p_values = rows.task == "classification" and ("p_values" in rows.given or "sets" not in rows.given)
    partitions: list[Any] = [AllRows(), *design.groups, *design.further.values()]
    slices = design.slices()
    for score in design.scores:
        for partition in partitions:
            name, in_groups = f"{score.words}, {partition.title}", partition in design.groups
            known = int(partition in slices), in_groups, partition in slices and not in_groups
            yield Candidate(name, score, _cells_fit(partition, wants_p_values), *known)
            if design.ratio is not None:
                fit = _weighted_fit(partition, design.ratio, wants_p_values)
                name = f"{name}, weighted for the new rows"
                yield Candidate(name, score, fit, *known, weighted=True)
    if wants_p_values:
        return
    for words, overlapping in _overlapping(design).items():
        for score in design.scores:
            fit = _conditional_fit(overlapping)
            known = len(overlapping), bool(design.groups), len(overlapping) > len(design.groups)
            yield Candidate(f"{score.words}, conditional on {words}", score, fit, *known)


def _overlapping(design: Design) -> dict[str, list[Any]]:
    """Partitions to be covered at once: all of them, or groups with each one where all have many cells."""
    slices = design.slices()
    if len(slices) < 2:
        return {}
    if not design.groups or math.prod(len(p.names()) for p in slices) <= MOST_PATTERNS:
        return {"overlapping parts": slices}
    return {
        f"groups and {_WORDS[name]}": [*design.groups, p]
        for name, p in design.further.items()
        if name in _WORDS
    }


def _cells_fit(partition: Any, keep_scores: bool) -> Fit:
    def fit(
        rows: Rows, scores: list[np.ndarray], rng: np.random.Generator, fewest: float = FEWEST_ROWS
    ) -> Any:
        return fit_cells(partition, rows, scores, rows.alphas, keep_scores=keep_scores, fewest=fewest)

    return fit


def _weighted_fit(partition: Any, ratio: DensityRatio, keep_scores: bool) -> Fit:
    def fit(
        rows: Rows, scores: list[np.ndarray], rng: np.random.Generator, fewest: float = FEWEST_ROWS
    ) -> Any:
        return fit_weighted(
            partition, rows, scores, rows.alphas, ratio, keep_scores=keep_scores, fewest=fewest
        )

    return fit


def _conditional_fit(partitions: list[Any]) -> Fit:
    def fit(
        rows: Rows, scores: list[np.ndarray], rng: np.random.Generator, fewest: float = FEWEST_ROWS
    ) -> Any:
        return fit_conditional(partitions, rows, scores, rows.alphas, rng)

    return fit
