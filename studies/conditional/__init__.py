"""Conditional coverage diagnostics: the poster of Braun, Holzmüller, Jordan and Bach (2025).

(a) value against n on worlds with known truth, (b) classifiers and (c) conformal scores on public data,
(d) CIFAR-10H, where coverage given the image can be counted, (e) the picture in one dimension, (f) two
outputs. Finished parts are kept in ``out/cache`` and not computed twice.
"""

from __future__ import annotations

from pathlib import Path

from calipers.datasets import HeteroscedasticWorld
from studies.caching import remembered
from studies.conditional import benchmark, claims, figures, humans, synthetic
from studies.conditional.rows import Row, write_rows
from studies.outcome import Claim, StudyReport, write_table
from studies.progress import study_progress

__all__ = ["run"]


def __dir__() -> list[str]:
    return sorted(__all__)


TITLE = "Conditional coverage: excess risk against its rivals"
_IMAGE_MODELS = {"cifar10": "resnet110", "cifar100": "wrn_16_4"}
_REGRESSION = ("concrete", "energy", "kin8nm", "power", "wine_white", "california")


def run(data: Path | None, out: Path, *, quick: bool = False) -> StudyReport:
    """Run the study; what is already in ``out/cache`` is used again.

    Parameters
    ----------
    data : Path or None
        Folder of the public sets; None reads CALIPERS_DATA.
    out : Path
        Folder for the results.
    quick : bool
        Small sizes, one seed, one or two data sets: seconds instead of minutes.

    Returns
    -------
    StudyReport
        Claims and files.
    """
    worlds_claims, worlds_files = _worlds(out, quick)
    data_claims, data_files = _public_data(data, out, quick)
    return StudyReport(
        name="conditional", title=TITLE, claims=(*worlds_claims, *data_claims),
        files=(*worlds_files, *data_files),
    )  # fmt: skip


def _worlds(out: Path, quick: bool) -> tuple[list[Claim], list[Path]]:
    """Parts (a), (e) and (f)."""
    truth = HeteroscedasticWorld().ert(alpha=0.1)["l1"]
    sizes = (300,) if quick else (500, 1000, 2000, 5000, 10_000)
    seeds, cache = 1 if quick else 6, out / "cache"
    with study_progress() as progress:
        rows = synthetic.sample_efficiency(sizes, seeds, cache, progress)
        curve = remembered(cache, synthetic.one_dimension, 300 if quick else 3000)
        volumes = synthetic.two_outputs(200 if quick else 2000, seeds, cache, progress)
    write_rows(out / "sample_efficiency.csv", synthetic.HEADER, rows)
    write_rows(out / "one_dimension.csv", synthetic.CURVE_HEADER, curve)
    write_rows(out / "two_outputs.csv", synthetic.VOLUME_HEADER, volumes)
    found = [
        *claims.check_worlds(rows, truth, decide=not quick),
        *claims.check_curve(curve, decide=not quick),
        *claims.check_volumes(volumes, decide=not quick),
    ]
    files = [out / f"{name}.csv" for name in ("sample_efficiency", "one_dimension", "two_outputs")]
    files.append(figures.draw_efficiency(rows, truth, out / "sample_efficiency.png"))
    files.append(figures.draw_curve(curve, out / "one_dimension.png"))
    by_seed = [row | {"data": row["seed"]} for row in volumes]
    files.append(figures.draw_scores(by_seed, out / "two_outputs.png", "size / smallest size of the seed"))
    return found, files


def _public_data(data: Path | None, out: Path, quick: bool) -> tuple[list[Claim], list[Path]]:
    """Parts (b), (c) and (d)."""
    names = ("concrete", "energy") if quick else _REGRESSION
    sizes = (200,) if quick else (500, 2000, 4000)
    rows = 1200 if quick else 10_000
    judged = ("resnet110",) if quick else ("resnet110", "lenet5", "vgg16")
    pictures = {"cifar10": "resnet110"} if quick else _IMAGE_MODELS
    sources, cache = benchmark.load_sources(names, data), out / "cache"
    scored = dict(list(sources.items())[: 1 if quick else None])
    with study_progress() as progress:
        compared = benchmark.compare_classifiers(sources, sizes, 1, 20 if quick else 100, cache, progress)
        widths = benchmark.compare_scores(scored, cache, progress)
        sets = benchmark.compare_set_scores(data, pictures, rows, cache, progress)
        votes = humans.human_coverage(data, judged, rows, cache, progress)
    write_rows(out / "classifiers.csv", benchmark.CLASSIFIER_HEADER, compared)
    write_rows(out / "regression_scores.csv", benchmark.SCORE_HEADER, widths)
    write_rows(out / "set_scores.csv", benchmark.SCORE_HEADER, sets)
    write_rows(out / "humans.csv", humans.HEADER, votes)
    found = [
        *claims.check_classifiers(claims.recovered(compared), decide=not quick),
        *claims.check_scores(widths, decide=not quick),
        *claims.check_scores(sets, decide=not quick),
        *claims.check_humans(votes, decide=not quick),
    ]
    files = [out / f"{name}.csv" for name in ("classifiers", "regression_scores", "set_scores", "humans")]
    return found, [*files, *_draw_public_data(claims.recovered(compared), widths, sets, out)]


def _draw_public_data(
    shares: dict[str, tuple[float, float, float]], widths: list[Row], sets: list[Row], out: Path
) -> list[Path]:
    header = ("classifier", "share of largest L1", "share of largest L2", "CPU seconds per 1000 rows")
    return [
        write_table(out / "recovered.csv", header, [(name, *values) for name, values in shares.items()]),
        figures.draw_classifiers(shares, out / "classifiers.png"),
        figures.draw_scores(widths, out / "regression_scores.png"),
        figures.draw_scores(sets, out / "set_scores.png"),
    ]
