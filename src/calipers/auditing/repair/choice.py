"""Which candidate to take: compared on rows kept for the choice, in every slice of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.auditing.comparison_measures import BRIER_SCORE, INTERVAL_SCORE, LOG_LOSS
from calipers.auditing.repair.candidates import Candidate, Design, candidates
from calipers.auditing.repair.partitions import Partition, group_partitions
from calipers.auditing.repair.recalibration import recalibrations
from calipers.auditing.repair.rule import RepairRule
from calipers.auditing.repair.thresholds import FEWEST_ROWS
from calipers.inputs.rows import Rows
from calipers.results.formatting import format_number

FOLDS = 2
# Where thresholds are compared: more parts where each part would otherwise fit few rows.
SMALL_FOLDS, SMALL_ROWS = 4, 500
# Slices of fewer rows say too little to decide by.
FEWEST_SLICE_ROWS = 30
TENTHS = 10
# Shortfalls that differ by less, and sizes that differ by less than this share, count as equal.
SAME_SHORTFALL = 0.01
SAME_SIZE = 0.02
# Coverage of all rows beyond the promise, and beyond noise, that even coverage may cost.
MOST_EXCESS = 0.03
# By which share even coverage, or a guarantee of it, may cost more; a shortfall that is not worth more.
HIGH_PRICE = 0.5
SMALL_SHORTFALL = 0.02
# Findings about slices; the first is about groups.
SLICE_CODES = {GROUP_CODE := "CAL201", "CAL202", "CAL203", "CAL401", "CAL402"}


def _size_text(size: float) -> str:
    """Four digits; written out where a power of ten would stand."""
    return format_number(size) if abs(size) >= 1e4 else f"{size:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One candidate on the rows kept for the choice.

    Parameters
    ----------
    promise : {"coverage", "probabilities"}
        What it is to mend.
    name : str
        What it does.
    rows : int
        Rows it was compared on.
    coverage, worst_coverage : float or None
        Coverage of all rows, and of the slice that falls short most.
    worst_slice : str
        That slice; for probabilities the one whose mean is off most.
    mean_size : float or None
        Mean size or width.
    scores : dict
        Mean proper scores.
    shortfall : float
        By how much slices are off beyond noise, in the partition where they are off most.
    noise : float
        Standard deviation of the squared shortfall.
    excess : float
        By how much all rows are covered more often than promised, beyond noise.
    guaranteed : int
        Partitions of the comparison in whose every cell coverage is guaranteed.
    in_groups, in_learnt : bool
        Whether the groups that were given are among them, and parts along difficulty or predicted coverage.
    weighted : bool
        Whether it holds for new rows with other features.
    chosen : bool
        Whether it was taken.
    """

    promise: str
    name: str
    rows: int
    coverage: float | None = None
    worst_coverage: float | None = None
    worst_slice: str = ""
    mean_size: float | None = None
    scores: dict[str, float]
    shortfall: float
    noise: float = 0.0
    excess: float = 0.0
    guaranteed: int = 0
    in_groups: bool = False
    in_learnt: bool = False
    weighted: bool = False
    chosen: bool = False

    def __str__(self) -> str:
        words = [] if self.coverage is None else [f"coverage {self.coverage:.3f}"]
        if self.worst_coverage is not None:
            words.append(f"{self.worst_coverage:.3f} in {self.worst_slice}")
        words += [] if self.mean_size is None else [f"mean size {_size_text(self.mean_size)}"]
        words += [f"{name} {value:.4f}" for name, value in self.scores.items() if self.coverage is None]
        return f"{self.name}: {', '.join(words)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the report."""
        names = ("promise", "name", "rows", "coverage", "worst_slice", "worst_coverage", "mean_size")
        return {name: getattr(self, name) for name in names} | {
            "scores": dict(self.scores), "shortfall": self.shortfall, "chosen": self.chosen
        }  # fmt: skip


Slices = list[tuple[str, np.ndarray]]


def slices_of(rows: Rows, partitions: Sequence[Partition]) -> Slices:
    """The cells of all partitions, and of pairs of groups, that have rows enough: name and row numbers."""
    return [own for slices in slices_by_partition(rows, partitions)[1:] for own in slices]


def slices_by_partition(
    rows: Rows, partitions: Sequence[Partition], fewest: float = FEWEST_SLICE_ROWS
) -> list[Slices]:
    """All rows, the cells of every partition, and those of pairs of groups, that have rows enough."""
    cells = [(p, p.cells(rows)) for p in partitions]
    found: list[Slices] = [[("all rows", np.arange(rows.n))]]
    for partition, own in cells:
        found.append([(name, np.flatnonzero(own == k)) for k, name in enumerate(partition.names())])
    attributes = [(p, own) for p, own in cells if p.needs == ("groups",)]
    for i, (first, one) in enumerate(attributes):
        for second, other in attributes[i + 1 :]:
            pairs = [
                (f"{a} and {b}", np.flatnonzero((one == j) & (other == k)))
                for j, a in enumerate(first.names())
                for k, b in enumerate(second.names())
            ]
            found.append(pairs)
    return [[(name, which) for name, which in own if len(which) >= fewest] for own in found]


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceRows:
    """Rows that candidates are compared on, and what was learnt on others.

    Parameters
    ----------
    design : Design
        Partitions and scores.
    rows : Rows
        Rows that it was not learnt on.
    """

    design: Design
    rows: Rows


def choose_thresholds(
    parts: Sequence[ChoiceRows],
    rule: RepairRule,
    rng: np.random.Generator,
    *,
    codes: set[str],
    n_calibration: int,
) -> tuple[list[str], list[Trial]]:
    """Names of the candidates, the best first for these faults, and all trials.

    The winner will be fitted to ``n_calibration`` rows; cells that then have a threshold have one here.
    """
    tried: list[dict[str, tuple[Rows, list[Slices]]]] = []
    known: dict[str, Candidate] = {}
    for part in parts:
        folds = FOLDS if part.rows.n >= SMALL_ROWS else SMALL_FOLDS
        fold = rng.permutation(part.rows.n) % folds
        fewest = FEWEST_ROWS * min(1.0, part.rows.n * (folds - 1) / folds / n_calibration)
        slices = slices_by_partition(part.rows, part.design.slices(), FEWEST_SLICE_ROWS / len(parts))
        tried.append({})
        for candidate in candidates(part.design, part.rows):
            if (new := _cross_fitted(candidate, part.rows, rule, fold, rng, fewest)) is not None:
                tried[-1][candidate.name] = part.design.weighted(new), slices
                known.setdefault(candidate.name, candidate)
    # Where no spread, risk or region could be fitted in one part, a candidate acts as the plainest one.
    plainest = next(iter(known), "")
    changed = {name: [own[name if name in own else plainest] for own in tried] for name in known
               if all(plainest in own for own in tried)}  # fmt: skip
    trials = [
        replace(
            _coverage_trial(name, new),
            guaranteed=known[name].guaranteed,
            in_groups=known[name].in_groups,
            in_learnt=known[name].in_learnt,
            weighted=known[name].weighted,
        )
        for name, new in changed.items()
    ]
    if not trials:
        return [], []
    order = _order(trials, codes)
    return [trials[i].name for i in order], [replace(t, chosen=i == order[0]) for i, t in enumerate(trials)]


def _cross_fitted(
    candidate: Candidate,
    rows: Rows,
    rule: RepairRule,
    fold: np.ndarray,
    rng: np.random.Generator,
    fewest: float,
) -> Rows | None:
    """Every row with new statements from the thresholds of the other folds."""
    parts, places = [], []
    for k in range(int(fold.max()) + 1):
        fit, out = rows.take(fold != k), np.flatnonzero(fold == k)
        scores = [candidate.score.of_outcomes(fit, level) for level in range(len(rows.alphas))]
        thresholds = candidate.fit(fit, scores, rng, fewest)
        if thresholds is None:
            return None
        own = replace(rule, probability_map=None, score=candidate.score, thresholds=thresholds)
        parts.append(own.apply(rows.take(out)))
        places.append(out)
    order = np.argsort(np.concatenate(places), kind="stable")
    new: dict[str, Any] = {name: np.concatenate([p[name] for p in parts])[order] for name in parts[0]}
    return rows.replace(**({"sets": None} | new if "p_values" in new else new))


def _coverage_trial(name: str, parts: list[tuple[Rows, list[Slices]]]) -> Trial:
    t = 1 - float(parts[0][0].alpha)
    weights = np.concatenate([_weights(rows) for rows, _ in parts])
    covered = np.concatenate([rows["covered"] for rows, _ in parts])
    size = np.concatenate([rows["size"].astype(float) for rows, _ in parts])
    scores = [INTERVAL_SCORE.rows(rows) for rows, _ in parts]
    shortfall, noise, worst = _shortfall(parts, t)
    coverage = float(np.average(covered, weights=weights))
    error = np.sqrt(t * (1 - t) * np.sum(weights**2)) / np.sum(weights)
    score = {} if any(own is None for own in scores) else {
        "interval score": float(np.average(np.concatenate(scores), weights=weights))  # type: ignore[arg-type]
    }  # fmt: skip
    return Trial(
        promise="coverage", name=name, rows=len(covered),
        coverage=coverage, excess=max(0.0, coverage - t - 2 * float(error)),
        worst_slice=worst[0], worst_coverage=worst[1], mean_size=float(np.average(size, weights=weights)),
        scores=score, shortfall=shortfall, noise=noise,
    )  # fmt: skip


def _weights(rows: Rows) -> np.ndarray:
    return np.ones(rows.n) if rows.weights is None else rows.weights


def _shortfall(parts: list[tuple[Rows, list[Slices]]], t: float) -> tuple[float, float, tuple[str, float]]:
    """By how much slices fall short in the worst partition, its noise, and the slice that is worst.

    Over the slices of a partition, the mean of max(0, t - coverage)^2 less what binomial noise alone gives,
    half a variance; its standard deviation then is sqrt(5/4) times that of the slices' variances.
    """
    found, worst = (-np.inf, 0.0), ("", 0.0, -np.inf)
    for p in range(len(parts[0][1])):
        shares: dict[str, list[float]] = {}
        for rows, slices in parts:
            weights = _weights(rows)
            for label, which in slices[p] if p < len(slices) else ():
                own = shares.setdefault(label, [0.0, 0.0, 0.0])
                own[0] += float(np.sum(weights[which] * rows["covered"][which]))
                own[1] += float(np.sum(weights[which]))
                own[2] += float(np.sum(weights[which] ** 2))
        table = np.array([own for own in shares.values() if own[1] > 0]).reshape(-1, 3)
        if not len(table):
            continue
        coverage, mass = table[:, 0] / table[:, 1], table[:, 1] / table[:, 1].sum()
        variance = t * (1 - t) * table[:, 2] / table[:, 1] ** 2
        square = float(np.sum(mass * (np.maximum(0.0, t - coverage) ** 2 - variance / 2)))
        found = max(found, (square, float(np.sqrt(1.25 * np.sum((mass * variance) ** 2)))))
        short = t - coverage - np.sqrt(variance)
        k = int(np.argmax(short))
        if short[k] > worst[2]:
            worst = (list(shares)[k], float(coverage[k]), float(short[k]))
    return float(np.sqrt(max(0.0, found[0]))), found[1], worst[:2]


def _order(trials: list[Trial], codes: set[str]) -> list[int]:
    """The best of those that fall short least and are nearly the smallest of them, then all others.

    Coverage that differs by features or difficulty asks for a guarantee in such parts, a broken group for one
    in the groups: all rows showed the fault, and those kept for the choice may be too few to show it again.
    Of those left the best is the one that guarantees the most slices, else the simplest. New rows with other
    features ask for thresholds that hold for them.
    """
    pool = _comparable(trials)
    able = _able(trials, pool)
    if codes & SLICE_CODES - {GROUP_CODE}:
        able = _affordable(trials, able, [i for i in able if trials[i].in_learnt])
    if GROUP_CODE in codes:
        able = _affordable(trials, able, [i for i in able if trials[i].in_groups])
    least = min(_price(trials[i]) for i in able)
    near = [i for i in able if _price(trials[i]) <= least + SAME_SIZE * abs(least)]
    if codes & SLICE_CODES:
        most = max(trials[i].guaranteed for i in near)
        near = sorted((i for i in near if trials[i].guaranteed == most), key=lambda i: _price(trials[i]))
    first = near[0]
    others = sorted(range(len(trials)), key=lambda i: (i not in able, i not in pool, trials[i].shortfall))
    return [first, *(i for i in others if i != first)]


def _able(trials: list[Trial], pool: list[int]) -> list[int]:
    """Those that fall short least, within noise; or any nearly as even that cost much less.

    Of many candidates one may look even by luck: sets of 28 labels would be taken where 4 labels fall short
    by a point.
    """
    best = min((trials[i] for i in pool), key=lambda trial: trial.shortfall)
    even = max(best.noise, SAME_SHORTFALL**2)
    able = [i for i in pool if trials[i].shortfall ** 2 <= best.shortfall**2 + even]
    least = min(_price(trials[i]) for i in able)
    close = [i for i in pool if trials[i].shortfall <= best.shortfall + SMALL_SHORTFALL]
    return [i for i in close if (1 + HIGH_PRICE) * _price(trials[i]) < least] or able


def _affordable(trials: list[Trial], able: list[int], wanted: list[int]) -> list[int]:
    """The wanted ones that do not cost half as much again as the cheapest of all; all where there is none."""
    least = min(_price(trials[i]) for i in able)
    return [i for i in wanted if _price(trials[i]) <= (1 + HIGH_PRICE) * least] or able


def _price(trial: Trial) -> float:
    """The interval score, which asks for the right width of every row; for sets the mean size."""
    return trial.scores.get("interval score", trial.mean_size or 0.0)


def _comparable(trials: list[Trial]) -> list[int]:
    """Those for new rows with other features, where there are such; of them those that do not state too much.

    Stating everything never falls short: clearly more coverage of all rows than was promised and infinite
    intervals are not evidence for a candidate. Some excess is the price of even coverage: where one label is
    nearly always right, no set covers less.
    """
    pool = [i for i, trial in enumerate(trials) if trial.weighted] or list(range(len(trials)))
    pool = [i for i in pool if np.isfinite(trials[i].mean_size or 0.0)] or pool
    least = min(trials[i].excess for i in pool)
    return [i for i in pool if trials[i].excess <= least + MOST_EXCESS]


def choose_map(rows: Rows, all_rows: Rows, rng: np.random.Generator) -> tuple[Any, list[Trial]]:
    """The simplest map that no other one beats on these rows, fitted to all; or None."""
    maps = recalibrations(rows)
    fold, slices = rng.permutation(rows.n) % FOLDS, slices_by_partition(rows, group_partitions(rows))
    changed = {"as stated": rows}
    for name, fit in maps.items():
        P = np.empty(rows["probabilities"].shape)
        for k in range(FOLDS):
            out = np.flatnonzero(fold == k)
            P[out] = fit(rows.take(fold != k), rng).apply(rows.take(out))
        changed[name] = rows.replace(probabilities=P)
    trials = [_probability_trial(name, new, slices) for name, new in changed.items()]
    losses = np.stack([_row_losses(new) for new in changed.values()])
    best = _simplest(losses, trials, rows.weights)
    chosen = list(changed)[best]
    trials = [replace(trial, chosen=i == best) for i, trial in enumerate(trials)]
    return (None if best == 0 else maps[chosen](all_rows, rng)), trials


def _row_losses(rows: Rows) -> np.ndarray:
    found = BRIER_SCORE.rows(rows)
    if found is None:
        raise RuntimeError("rows with probabilities have a Brier score")
    return found


def _probability_trial(name: str, rows: Rows, slices: list[Slices]) -> Trial:
    P, y = rows["probabilities"].astype(float), rows["y"]
    at = np.ones(rows.n, dtype=int) if P.shape[1] == 2 else P.argmax(axis=1)
    stated = P[np.arange(rows.n), at]
    tenths = np.array_split(np.argsort(stated, kind="stable"), TENTHS)
    own = [(f"tenth {i + 1} by stated probability", which) for i, which in enumerate(tenths)]
    shortfall, noise, worst = _miscalibration((y == at) - stated, stated * (1 - stated), [*slices, own])
    scores = {m.name: float(np.average(r, weights=rows.weights)) for m in (BRIER_SCORE, LOG_LOSS)
              if (r := m.rows(rows)) is not None}  # fmt: skip
    return Trial(
        promise="probabilities", name=name, rows=rows.n, worst_slice=worst, scores=scores,
        shortfall=shortfall, noise=noise,
    )  # fmt: skip


def _miscalibration(off: np.ndarray, variance: np.ndarray, slices: list[Slices]) -> tuple[float, float, str]:
    """How far slices are off in the worst partition, the noise of its square, and the slice that is worst."""
    found, worst = (-np.inf, 0.0), ("", -np.inf)
    for partition in slices:
        kept = [(label, which) for label, which in partition if len(which)]
        if not kept:
            continue
        mass = np.array([len(which) for _, which in kept], dtype=float)
        gaps = np.array([off[which].mean() for _, which in kept])
        noise = np.array([variance[which].sum() for _, which in kept]) / mass**2
        share = mass / mass.sum()
        # The square of a gap holds its variance by noise alone; that of a normal square is twice its square.
        square = float(np.sum(share * (gaps**2 - noise)))
        found = max(found, (square, float(np.sqrt(2 * np.sum((share * noise) ** 2)))))
        k = int(np.argmax(np.abs(gaps) - np.sqrt(noise)))
        worst = max(worst, (kept[k][0], float(abs(gaps[k]) - np.sqrt(noise[k]))), key=lambda pair: pair[1])
    return float(np.sqrt(max(0.0, found[0]))), found[1], worst[0]


def _simplest(losses: np.ndarray, trials: list[Trial], weights: np.ndarray | None) -> int:
    """The first map whose worst slice and whose loss are within noise of the best, and that lowers the loss.

    A map that does not lower the mean Brier score of all rows is never taken, so the marginal is not given
    up for a slice.
    """
    means = np.average(losses, axis=1, weights=weights)
    better = [i for i in range(1, len(means)) if means[i] < means[0]]
    if not better:
        return 0
    least = min((trials[i] for i in better), key=lambda trial: trial.shortfall)
    allowed = least.shortfall**2 + max(least.noise, SAME_SHORTFALL**2)
    able = [i for i in better if trials[i].shortfall ** 2 <= allowed]
    best = min(able, key=lambda i: means[i])
    noise = [np.std(losses[i] - losses[best]) / np.sqrt(losses.shape[1]) for i in able]
    return next(i for i, error in zip(able, noise, strict=True) if means[i] <= means[best] + error)
