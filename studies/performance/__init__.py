"""Conformal performance prediction, sections 4.1, 4.2 and 5 of the paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from calipers.inference import clopper_pearson
from studies.outcome import Claim, StudyReport, write_table
from studies.performance import claims, digits, figures, optimisation
from studies.performance.descent import METHODS
from studies.performance.optimisation import DIMENSIONS, Sizes
from studies.performance.trials import TrialTable
from studies.progress import study_progress

TITLE = "Conformal performance prediction"
_QUICK = Sizes(
    trials=20, rows=400, test=100, points=40, algorithm_rows=40 * 75, retrainings=20, naive_trials=200
)


def run(data: Path | None, out: Path, *, quick: bool) -> StudyReport:
    """Run both experiments at the paper's sizes (some minutes) or small ones (seconds).

    The data are embedded in scikit-learn or simulated; ``data`` is not used.
    """
    sizes, digit_trials, cases = (_QUICK, 4, 6) if quick else (Sizes(), 1000, 400)
    dimensions = DIMENSIONS[:1] if quick else DIMENSIONS
    cache = out / "cache"
    with study_progress() as progress:
        svm = digits.candidate_tables(digit_trials, cache, progress)
        trial = digits.modulated_trial(cases, cache, progress)
        others = [digits.modulated_trial(cases, cache, progress, floor) for floor in digits.FLOORS]
        candidate = {d: optimisation.candidate_tables(d, sizes, cache, progress) for d in dimensions}
        algorithm = {d: optimisation.algorithm_tables(d, sizes, cache, progress) for d in dimensions}
        naive = {d: optimisation.naive_coverage(d, sizes, cache, progress) for d in dimensions}
    labelled = {"digits": svm}
    for d in dimensions:
        labelled |= {f"candidate d={d}": candidate[d], f"algorithm d={d}": algorithm[d]}
    rates = _rates(labelled, naive)
    found = _claims(labelled, trial, naive, sizes)
    floors = [reading for t in (trial, *others) for reading in digits.floor_readings(t)]
    found.append(claims.floor_claim(floors))
    buckets = claims.bucket_counts()
    found.append(claims.bucket_claim(buckets))
    files = [
        _coverage_table(labelled, out / "coverage.csv"),
        write_table(out / "floors.csv", digits.FloorReading._fields, floors),
        write_table(out / "naive.csv", ("interval", "cover rate", "low", "high"), rates),
        figures.bucket_figure(buckets, out / "figure3.png"),
        *_figures(svm, trial, candidate, algorithm, sizes.train_size, rates, out),
    ]
    verdicts = tuple(replace(claim, agrees=None) if quick else claim for claim in found)
    return StudyReport(name="performance", title=TITLE, claims=verdicts, files=tuple(files))


def _coverage_table(labelled: dict[str, list[TrialTable]], path: Path) -> Path:
    """New loss cover rate and test loss coverage of every method, with their binomial intervals."""
    header = (
        "experiment", "method", "trials", "n", "exact coverage", "new loss cover rate", "low", "high",
        "test loss coverage mean", "test loss coverage sd", "exact sd", "median lower end",
        "median upper end", "median width",
    )  # fmt: skip
    rows = []
    for where, tables in labelled.items():
        for t in tables:
            spread = t.coverage.std(ddof=1), t.law.share_std
            ends = np.median(t.low), np.median(t.high), np.median(t.width)
            numbers = (t.exact, *t.new_loss_rate(), t.coverage.mean(), *spread, *ends)
            rows.append((where, t.name, t.trials, t.n_losses, *(f"{value:.5g}" for value in numbers)))
    return write_table(path, header, rows)


def _rates(
    labelled: dict[str, list[TrialTable]], naive: dict[int, dict[str, np.ndarray]]
) -> list[tuple[str, float, float, float]]:
    """Cover rate of the conformal and the naive intervals, side by side."""
    rows = []
    for d, intervals in naive.items():
        rows += [(f"{t.name} d={d}, conformal", *t.new_loss_rate()) for t in labelled[f"algorithm d={d}"]]
        for key, covered in intervals.items():
            method, kind = key.split("_")
            low, high = clopper_pearson(int(covered.sum()), covered.size)
            rows.append((f"{method} d={d}, naive {kind}", float(covered.mean()), float(low), float(high)))
    return rows


def _claims(
    labelled: dict[str, list[TrialTable]],
    trial: digits.ModulatedTrial,
    naive: dict[int, dict[str, np.ndarray]],
    sizes: Sizes,
) -> list[Claim]:
    found = [claims.cover_rate_claim(t, where) for where, tables in labelled.items() for t in tables]
    found += [claims.coverage_law_claim(t, where) for where, tables in labelled.items() for t in tables]
    found += [claims.lower_ends_claim(labelled["digits"])]
    found += [claims.modulated_claim(trial, name) for name in digits.KERNELS]
    found += [claims.train_size_claim(sizes.train_size)]
    for d, intervals in naive.items():
        for method in METHODS:
            for kind in ("quantiles", "mean"):
                found.append(claims.naive_claim(f"{method} d={d}", intervals[f"{method}_{kind}"], kind))
    return found


def _figures(
    svm: list[TrialTable],
    trial: digits.ModulatedTrial,
    candidate: dict[int, list[TrialTable]],
    algorithm: dict[int, list[TrialTable]],
    train_size: int,
    rates: list[tuple[str, float, float, float]],
    out: Path,
) -> list[Path]:
    files = [
        figures.digits_overview(svm, trial, 0, out / "figure1.png"),
        figures.trial_figure(svm, "Digits: candidate forecasts, logistic loss", out / "figure4.png"),
        figures.case_figure(trial, 1, out / "figure5.png"),
    ]
    for d, tables in candidate.items():
        title = f"Gradient descent, dimension {d}"
        files += [
            figures.width_figure(tables, algorithm[d], train_size, title, out / f"figure2-d{d}.png"),
            figures.trial_figure(tables, f"{title}: candidate", out / f"figure6-d{d}.png"),
            figures.trial_figure(algorithm[d], f"{title}: algorithm, Z-free", out / f"figure7-d{d}.png"),
        ]
    return [*files, figures.naive_figure(rates, out / "naive.png")]
