"""Tables 1, 2 and 4 and Figure 1 of the paper, on the study's own classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from calipers.arrays import generator
from calipers.exceptions import CalipersWarning
from calipers.inference import compare_ranks
from calipers.metrics import t_cv
from calipers.metrics.adaptivity.binning import STRATA, bin_by_ease, bin_by_strata
from calipers.metrics.adaptivity.concordance import draw_pairs, harder_first
from calipers.results import Curve, RankComparison
from studies.adaptivity.cases import splits
from studies.adaptivity.methods import BASELINES, METHODS, bare_t_ss, main_ease, run_method
from studies.adaptivity.outputs import Outputs

ALPHAS = (0.05, 0.1, 0.15, 0.2)
BINS = (30, 50, 100)
# Bins of the test whether a method is accused.
N_BINS = 50
RIVALS = ("Deficit", "Excess", "SSCV", "ESCV", "T-SS")
# A metric for which lower is better should fall as the property holds more often.
_SIGNS = {"Deficit": -1, "Excess": -1, "SSCV": -1, "ESCV": -1, "T-SS": 1}

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to do: repetitions of Table 2, trials and pairs of Table 1, rows per trial."""

    repetitions: int
    trials: int
    pairs: int
    rows: int
    group: int


def table_2_rows(outputs: Outputs, effort: Effort) -> list[Row]:
    """One row per repetition, level and method: coverage, size, T-CV and T-SS for every number of bins."""
    rows: list[Row] = []
    ease, ranks = main_ease(outputs), outputs.ranks
    for repetition, (validation, test) in enumerate(splits(len(outputs.labels), effort.repetitions)):
        for method in METHODS:
            answers = run_method(method, outputs, validation, test, ALPHAS, repetition)
            for alpha, found in answers.items():
                row: Row = {
                    "case": outputs.name,
                    "repetition": repetition,
                    "alpha": alpha,
                    "method": method,
                    "chosen": found.chosen,
                    "rows": len(test),
                    "coverage": float(found.covered.mean()),
                    "size": float(found.size.mean()),
                } | _existing_metrics(ranks[test], found.size, found.covered, alpha)
                for n_bins in BINS:
                    means = bin_by_ease([found.covered], ease[test], n_bins).means()[0]
                    row[f"t_cv_{n_bins}"] = float(np.nanmax(np.abs(means - (1 - alpha))))
                    row[f"t_ss_{n_bins}"] = bare_t_ss(ranks[test], found.size, ease[test], n_bins)
                if method in ("LAC", "O-LAC", "O-SAPS"):
                    # Rows behind each threshold: all of them, or half of them shared by the bins.
                    bins = 1 if method == "LAC" else 2 * int(found.chosen.split()[0])
                    behind = len(validation) // bins
                    row["accused"] = _accused(
                        found.covered, ease[test], alpha, behind if bins == 1 else np.full(N_BINS, behind)
                    )
                rows.append(row)
    return rows


def _existing_metrics(ranks: np.ndarray, size: np.ndarray, covered: np.ndarray, alpha: float) -> Row:
    """The four metrics of Tables 6 and 7."""
    r, s = ranks.astype(float), size.astype(float)
    return {
        "sscv": _worst(covered, s, STRATA, alpha),
        "escv": _worst(covered, s, np.unique(s), alpha),
        "deficit": float(np.maximum(r - s, 0).mean()),
        "excess": float(np.maximum(s - r, 0).mean()),
    }


def noise_floor(rows: int, n_bins: int, alpha: float) -> float:
    """The median T-CV of a predictor that covers every bin exactly as promised."""
    order = np.arange(rows)
    perfect = t_cv(order % 2 == 0, order, alpha=alpha, n_bins=n_bins, n_draws=199, random_state=0)
    return float(perfect.details["null_median"])


def _accused(covered: np.ndarray, ease: np.ndarray, alpha: float, behind: int | np.ndarray) -> bool:
    """Whether T-CV rejects at 5 %, knowing how few rows are behind each threshold."""
    p_value = t_cv(
        covered, ease, alpha=alpha, n_bins=N_BINS, n_calibration=behind, n_draws=199, random_state=0
    ).p_value
    return bool(p_value is not None and p_value <= 0.05)


def table_1_rows(outputs: Outputs, effort: Effort, alpha: float = 0.1) -> list[Row]:
    """Per algorithm the Spearman correlation, over trials, of each metric with the share of Property 1."""
    validation, test = next(splits(len(outputs.labels), 1))
    rows = []
    for method in BASELINES:
        found = run_method(method, outputs, validation, test, [alpha], 0)[alpha]
        readings = _trials(outputs, test, found.covered, found.size, effort, alpha)
        rate = readings.pop("rate")
        row: Row = {"case": outputs.name, "method": method}
        for name, values in readings.items():
            row[name], row[f"p-value of {name}"] = _spearman(_SIGNS[name] * values, rate)
        row |= {f"rank of {name}": rank for name, rank in correlation_ranks(row).items()}
        rows.append(row)
    return rows


def correlation_ranks(row: Mapping[str, Any]) -> dict[str, int]:
    """The metrics by their correlation, highest first; an undefined correlation ranks after all others."""
    values = np.array([row[name] for name in RIVALS], dtype=float)
    order = stats.rankdata(np.where(np.isnan(values), np.inf, -values), method="min")
    return {name: int(rank) for name, rank in zip(RIVALS, order, strict=True)}


def rank_frequencies(rows: Sequence[Row]) -> list[list[Any]]:
    """Table 1 as printed: how often each metric had each rank, and the average rank."""
    ranks = {name: [row[f"rank of {name}"] for row in rows] for name in RIVALS}
    body: list[list[Any]] = [
        [place, *(ranks[name].count(place) for name in RIVALS)] for place in range(1, len(RIVALS) + 1)
    ]
    return [*body, ["Avg.", *(float(np.mean(ranks[name])) for name in RIVALS)]]


def _spearman(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Correlation and p-value (Table 3); NaN and 1 where a side is constant or too short."""
    known = ~(np.isnan(x) | np.isnan(y))
    if known.sum() < 3 or np.ptp(x[known]) == 0 or np.ptp(y[known]) == 0:
        return float("nan"), 1.0
    found = stats.spearmanr(x[known], y[known])
    return float(found.statistic), float(found.pvalue)


def _trials(
    outputs: Outputs,
    test: np.ndarray,
    covered: np.ndarray,
    size: np.ndarray,
    effort: Effort,
    alpha: float,
) -> dict[str, np.ndarray]:
    """Every metric and the share of pairs with Property 1, in each trial.

    Groups are places in a trial's rows, which come in random order: the same places serve all trials, and the
    totals of all groups over many trials are one product of matrices. At most half of the test rows make a
    trial: with all of them no metric would differ between trials.
    """
    ranks, ease = outputs.ranks[test].astype(float), main_ease(outputs)[test]
    n = min(effort.rows, len(test) // 2)
    source, *own = generator(5).spawn(effort.trials + 1)
    pairs = draw_pairs(n, effort.group, effort.pairs, source)
    samples = [rng.permutation(len(test))[:n] for rng in own]
    readings = {name: np.empty(effort.trials) for name in RIVALS}
    for t, rows in enumerate(samples):
        r, s = ranks[rows], size[rows].astype(float)
        found = _existing_metrics(r, s, covered[rows], alpha)
        for name in RIVALS[:-1]:
            readings[name][t] = found[name.lower()]
        readings["T-SS"][t] = bare_t_ss(r, s, ease[rows])
    rates = [_rates(ranks, size, part, pairs, effort.group) for part in _parts(samples)]
    return readings | {"rate": np.concatenate(rates)}


def _parts(samples: list[np.ndarray], together: int = 50) -> list[np.ndarray]:
    return [np.stack(samples[i : i + together]) for i in range(0, len(samples), together)]


def _rates(ranks: np.ndarray, size: np.ndarray, samples: np.ndarray, pairs: Any, group: int) -> np.ndarray:
    """Share of pairs of groups with Property 1 in each sample of rows (trials, n)."""
    harder = harder_first(np.concatenate([ranks[samples], size[samples].astype(float)]), pairs, group)
    return np.asarray(np.mean(harder[:, : len(samples)] == harder[:, len(samples) :], axis=0))


def _worst(covered: np.ndarray, size: np.ndarray, ends: Iterable[float], alpha: float) -> float:
    means = bin_by_strata([covered], size, tuple(ends)).means()[0]
    return float(np.nanmax(np.abs(means - (1 - alpha))))


def figure_1_curve(outputs: Outputs, n_bins: int = 50) -> Curve:
    """Mean rank of the true label in bins of ease, hardest first."""
    n_bins = min(n_bins, len(outputs.labels) // 20)
    ranks = outputs.ranks.astype(float)
    bins = bin_by_ease([ranks, ranks**2], main_ease(outputs), n_bins)
    mean, square = bins.means()
    error = np.sqrt(np.maximum(square - mean**2, 0) / np.maximum(bins.mass - 1, 1))
    return Curve(
        name=outputs.name,
        x=(np.arange(n_bins) + 0.5) / n_bins,
        y=mean,
        low=mean - 1.96 * error,
        high=mean + 1.96 * error,
        confidence=0.95,
        x_label="quantile of the ease (0 hardest, 1 easiest)",
        y_label="mean rank of the true label",
        method=f"{n_bins} uniform-mass bins, normal band",
    )


def medians(rows: Sequence[Row], alpha: float, key: str) -> dict[str, dict[str, float]]:
    """Median over repetitions, by case and method."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    return {
        case: {method: _median(_select(rows, case, alpha, method, key)) for method in METHODS}
        for case in cases
    }


def _select(rows: Sequence[Row], case: str, alpha: float, method: str, key: str) -> list[float]:
    return [
        row[key] for row in rows if row["case"] == case and row["alpha"] == alpha and row["method"] == method
    ]


def _median(values: Sequence[float]) -> float:
    known = [v for v in values if v is not None and not np.isnan(v)]
    return float(np.median(known)) if known else float("nan")


def rank_by_case(rows: Sequence[Row], alpha: float, key: str, *, higher: bool) -> dict[str, RankComparison]:
    """The paper's way: per model, repetitions as blocks (they are not independent: the result says so)."""
    found = {}
    for case in dict.fromkeys(row["case"] for row in rows):
        table = np.array([_select(rows, case, alpha, method, key) for method in METHODS], dtype=float).T
        table = table[~np.isnan(table).any(axis=1)]
        if len(table) < 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalipersWarning)  # the note stays in the result
            found[case] = compare_ranks(table, METHODS, higher_is_better=higher, blocks="repetitions")
    return found


def rank_over_cases(table: Mapping[str, Mapping[str, float]], *, higher: bool) -> RankComparison | None:
    """Cases as blocks, medians as measurements: what a Friedman test is made for."""
    values = np.array([[row[method] for method in METHODS] for row in table.values()])
    values = values[~np.isnan(values).any(axis=1)]
    if len(values) < 2:
        return None
    comparison = compare_ranks(values, METHODS, higher_is_better=higher, post_hoc="nemenyi")
    return comparison if comparison.can_differ else None
