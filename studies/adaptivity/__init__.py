"""Adaptivity (Jang and Lee 2025): Tables 1 to 11, Figures 1, 3, 4 and 7 to 14, on public data.

What differs from the paper, and why: ImageNet, its nine pretrained models and the fundus images are not at
hand. The classifiers here are scikit-learn models, and a small network where torch is installed, trained on
few rows of Fashion-MNIST, USPS and digits (10 labels, not 1000), with pools of 1500 to 10 000 rows instead
of 50 000.
Scales, grids and the number of transformations are ours: the paper does not print its own. The regression
part uses a boosted Gaussian model on public tables. `studies.adaptivity.pictures` runs the path for a folder
of pictures and a torchvision model at the size of ImageNet, on a GPU and over invented pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calipers.datasets import load_cifar100
from studies.adaptivity import claims as checked
from studies.adaptivity import figures, regression, scale
from studies.adaptivity.cases import FULL, QUICK, available, outputs_of
from studies.adaptivity.classification import (
    ALPHAS,
    RIVALS,
    Effort,
    figure_1_curve,
    medians,
    noise_floor,
    rank_by_case,
    rank_frequencies,
    rank_over_cases,
    table_1_rows,
    table_2_rows,
)
from studies.adaptivity.methods import METHODS
from studies.caching import remembered
from studies.outcome import Claim, StudyReport, write_table
from studies.progress import study_progress

TITLE = "Adaptivity through input transformations"
# Repetitions, trials, pairs, rows and groups are the paper's.
_FULL_EFFORT = Effort(repetitions=100, trials=1000, pairs=10_000, rows=2000, group=100)
_QUICK_EFFORT = Effort(repetitions=2, trials=4, pairs=40, rows=200, group=20)
_REGRESSION = ("california", "bike", "kin8nm", "power", "wine_white")
_EXISTING = ("sscv", "escv", "deficit", "excess")
_MEASURES = (
    "t_cv_30",
    "t_cv_50",
    "t_cv_100",
    "t_ss_30",
    "t_ss_50",
    "t_ss_100",
    "coverage",
    "size",
    *_EXISTING,
)
_FULL_ROWS = {"seeds": 5, "rows": 4500, "n_bins": 30}
_QUICK_ROWS = {"seeds": 1, "rows": 900, "n_bins": 10}
Row = dict[str, Any]


def run(data: Path | None, out: Path, *, quick: bool = False) -> StudyReport:
    """Run the study; outputs and rows are kept in ``out`` and used again by the next run."""
    kept = out / "cache"
    cases, effort = (QUICK, _QUICK_EFFORT) if quick else (available(FULL), _FULL_EFFORT)
    first: list[Row] = []
    second: list[Row] = []
    curves, accuracy = {}, {}
    with study_progress() as progress:
        for case in progress.track(cases, description="classifiers"):
            outputs = outputs_of(case, data, kept)
            curves[case.name] = figure_1_curve(outputs)
            accuracy[case.name] = outputs.accuracy
            second += remembered(kept, table_2_rows, outputs, effort)
            first += remembered(kept, table_1_rows, outputs, effort)
        rows = _regression_rows(data, kept, quick, progress)
        large = _scale_rows(data, kept, quick, progress)
    files = _write(out, first, second, rows, large)
    files += _draw(out, curves, second, rows, quick)
    claims = _claims(curves, accuracy, first, second, rows, quick)
    return StudyReport(name="adaptivity", title=TITLE, claims=claims, files=tuple(files))


def _regression_rows(data: Path | None, kept: Path, quick: bool, progress: Any) -> list[Row]:
    if quick and data is None:
        return []
    names = _REGRESSION[3:4] if quick else _REGRESSION
    rows: list[Row] = []
    for name in progress.track(names, description="regression"):
        sizes = _QUICK_ROWS if quick else _FULL_ROWS
        rows += remembered(kept, regression.regression_rows, name, *regression.load_rows(name, data), **sizes)
    return rows


def _scale_rows(data: Path | None, kept: Path, quick: bool, progress: Any) -> dict[str, list[Row]]:
    size = (600, 20) if quick else (50_000, 1000)
    large = {}
    for name in progress.track(("synthetic", "cifar100")[: 1 if data is None else 2], description="scale"):
        if name == "synthetic":
            large[name] = remembered(kept, scale.synthetic_rows, *size, n_transforms=3 if quick else 10)
        else:
            outputs, n_rows = load_cifar100(data), 1000 if quick else None
            stated = dict(outputs.probabilities)
            large[name] = remembered(kept, scale.cifar_rows, stated, outputs.labels, n_rows=n_rows)
    return large


def _claims(
    curves: Mapping[str, Any],
    accuracy: Mapping[str, float],
    first: Sequence[Row],
    second: Sequence[Row],
    rows: Sequence[Row],
    quick: bool,
) -> tuple[Claim, ...]:
    n_bins = _bins(quick)
    found = [checked.figure_1_claim(curves), checked.table_1_claim(first), checked.table_3_claim(first)]
    for alpha in (0.1, 0.05):
        found += checked.table_2_claims(second, alpha, n_bins)
    found += checked.limitation_claims(second, accuracy, n_bins)
    if rows:
        found += checked.regression_claims(rows)
    if not quick:
        return tuple(found)
    return tuple(Claim(claim=c.claim, paper=c.paper, ours=c.ours, agrees=None) for c in found)


def _write(
    out: Path,
    first: Sequence[Row],
    second: Sequence[Row],
    rows: Sequence[Row],
    large: Mapping[str, Sequence[Row]],
) -> list[Path]:
    frequencies = rank_frequencies(first)
    files = [
        write_table(out / "table_1.csv", ("Rank", *RIVALS), frequencies),
        _table(out / "table_3.csv", first),
        _table(out / "repetitions.csv", second),
    ]
    body = [
        [alpha, key, case, *(row[m] for m in METHODS)]
        for alpha in ALPHAS
        for key in _MEASURES
        for case, row in medians(second, alpha, key).items()
    ]
    files.append(write_table(out / "table_2.csv", ("alpha", "median of", "case", *METHODS), body))
    if rows:
        files.append(_table(out / "regression.csv", rows, without=("widths", "errors")))
    files += [_table(out / f"{name}.csv", part) for name, part in large.items()]
    return files


def _bins(quick: bool) -> int:
    """Bins of T-CV and T-SS: the paper's 50, fewer where a quick run has few rows."""
    return 30 if quick else 50


def _table(path: Path, rows: Sequence[Row], without: Sequence[str] = ()) -> Path:
    header = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in without]
    return write_table(path, header, [[row.get(key, "") for key in header] for row in rows])


def _draw(
    out: Path, curves: Mapping[str, Any], second: Sequence[Row], rows: Sequence[Row], quick: bool
) -> list[Path]:
    n_bins = _bins(quick)
    files = [figures.figure_1(curves, out / "figure_1.png")]
    for alpha in (0.1, 0.05):
        tables = {
            f"median {name}, alpha {alpha:g} ({n_bins} bins)": medians(second, alpha, f"{key}_{n_bins}")
            for name, key in (("T-CV", "t_cv"), ("T-SS", "t_ss"))
        }
        sizes = {row["case"]: row["rows"] for row in second}
        floors = {case: noise_floor(n, n_bins, alpha) for case, n in sizes.items()}
        files.append(figures.table_2_figure(tables, floors, out / f"table_2_alpha_{alpha:g}.png"))
        for (title, table), key, higher in zip(tables.items(), ("t_cv", "t_ss"), (False, True), strict=True):
            own = title.removeprefix("median ")
            comparison = rank_over_cases(table, higher=higher)
            if comparison is not None:
                path = out / f"critical_difference_{key}_alpha_{alpha:g}.png"
                files.append(figures.cd_figure(comparison, f"{title}, cases as blocks", path))
            found = rank_by_case(second, alpha, f"{key}_{n_bins}", higher=higher)
            found = {case: c for case, c in found.items() if c.can_differ}
            if found:
                path = out / f"figures_7_to_14_{key}_alpha_{alpha:g}.png"
                files.append(figures.cd_panels(found, f"{own}, repetitions as blocks", path))
    if rows:
        sizes = _QUICK_ROWS if quick else _FULL_ROWS
        floor = noise_floor(sizes["rows"] // 3, sizes["n_bins"], 0.3)
        files.append(figures.regression_figure(rows, floor, out / "figure_3.png"))
        files.append(_width_figure(rows, out / "figure_4.png"))
    return files


def _width_figure(rows: Sequence[Row], path: Path, alpha: float = 0.3) -> Path:
    """Figure 4 for the first data set and seed, every method with widths that differ."""
    first = rows[0]
    same = [r for r in rows if (r["data"], r["seed"], r["alpha"]) == (first["data"], first["seed"], alpha)]
    points = {row["method"]: row for row in same if row["widths"]}
    return figures.width_figure(points, f"{first['data']}, alpha {alpha:g}: means over bins of width", path)
