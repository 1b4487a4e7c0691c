"""Calibration in the agnostic setting: the experiments of Gao, Parameswaran and Peng (2017), with error bars.

Writes ``table1.csv`` (topic-model documents), ``learners.csv`` and ``loss_ratios.csv`` (Figures 2 and 3 on
Adult and Covertype), ``certificates.csv``, ``convergence.csv`` (Claim 6), ``links.csv`` (likelihood against
minimum calibration error), ``images.csv`` (CIFAR-10), ``joint_learners.csv`` and ``joint_minimum.csv``
(section 3.2.2), their figures, and the claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.progress import Progress

from studies.caching import remembered
from studies.calibration import images, repairs
from studies.calibration.claims import check_claims
from studies.calibration.documents import TableOne, run_once, topic_curve
from studies.calibration.figures import (
    draw_certificates,
    draw_convergence,
    draw_errors,
    draw_images,
    draw_ratios,
    draw_topic,
)
from studies.calibration.joint_learners import JointGap, JointReading, joint_gaps, read_joint_learners
from studies.calibration.settings import FULL, QUICK, Settings
from studies.calibration.tables import (
    DATASETS,
    LEARNERS,
    Stated,
    load_table,
    state_probabilities,
)
from studies.calibration.theory import (
    Convergence,
    LinkReading,
    Widths,
    convergence,
    link_comparison,
    widths,
)
from studies.outcome import StudyReport, write_table
from studies.progress import study_progress

__all__ = ["run"]


def __dir__() -> list[str]:
    return sorted(__all__)


TITLE = "Calibration measured, certified and repaired"


def run(data: Path | None, out: Path, *, quick: bool = False) -> StudyReport:
    """Run the study; learners' probabilities and topic-model runs already in ``out`` are used again.

    Parameters
    ----------
    data : Path or None
        Folder with the Adult, Covertype and CIFAR-10 files; None reads CALIPERS_DATA.
    out : Path
        Folder for the results; ``out/cache`` keeps what is expensive.
    quick : bool
        Small samples and few trees: seconds instead of minutes, and no verdicts.

    Returns
    -------
    StudyReport
        Claims and files.
    """
    settings = QUICK if quick else FULL
    cache = out / "cache"
    with study_progress() as progress:
        runs = [
            TableOne(*remembered(cache, run_once, settings, i))
            for i in progress.track(range(settings.lda_runs), description="topic-model documents")
        ]
        judged = list(_judge_learners(data, settings, cache, progress))
        seen = list(progress.track(images.read_images(data, settings), total=11, description="image models"))
        approach = list(convergence(settings))
        links = list(link_comparison(settings))
        joint = list(_joint_readings(data, settings, cache, progress))
        gaps = [JointGap(*row) for row in remembered(cache, joint_gaps, settings)]
    bounds = widths(settings.certificate_sizes)
    files = (
        write_table(out / "table1.csv", TableOne._fields, runs),
        write_table(out / "learners.csv", repairs.HEADER, [repairs.row_of(r) for r in judged]),
        _write_ratios(judged, out / "loss_ratios.csv"),
        write_table(out / "certificates.csv", Widths._fields, bounds),
        write_table(out / "convergence.csv", Convergence._fields, approach),
        write_table(out / "links.csv", LinkReading._fields, links),
        write_table(out / "images.csv", images.HEADER, [images.row_of(r) for r in seen]),
        write_table(out / "joint_learners.csv", JointReading._fields, joint),
        write_table(out / "joint_minimum.csv", JointGap._fields, gaps),
        draw_topic(topic_curve(settings), out / "figure1.png"),
        draw_errors(judged, out / "figure2.png"),
        draw_ratios(judged, out / "figure3.png"),
        draw_certificates(bounds, out / "certificates.png"),
        draw_convergence(approach, out / "convergence.png"),
        draw_images(seen, out / "images.png"),
    )
    claims = check_claims(settings, runs, judged, approach, bounds, joint, gaps)
    return StudyReport(name="calibration", title=TITLE, claims=claims, files=files)


def _judge_learners(
    data: Path | None, settings: Settings, cache: Path, progress: Progress
) -> Iterator[repairs.Repair]:
    """Every learner on every data set."""
    bar = progress.add_task("learners", total=len(DATASETS) * len(LEARNERS))
    for dataset in DATASETS:
        table = load_table(dataset, data, settings)
        for learner in LEARNERS:
            stated = Stated(*remembered(cache, state_probabilities, learner, table, settings))
            yield repairs.judge(dataset, learner, stated, settings.n_draws)
            progress.advance(bar)


def _joint_readings(
    data: Path | None, settings: Settings, cache: Path, progress: Progress
) -> Iterator[JointReading]:
    for dataset in progress.track(DATASETS, description="calibrated learners"):
        table = load_table(dataset, data, settings)
        yield from (
            JointReading(*row) for row in remembered(cache, read_joint_learners, dataset, table, settings)
        )


def _write_ratios(judged: list[repairs.Repair], path: Path) -> Path:
    header = ("dataset", "learner", "p", "loss_ratio", "low", "high")
    rows = []
    for r in judged:
        points = r.ratio.to_frame().select("x", "y", "low", "high").rows()
        rows += [(r.dataset, r.learner, *point) for point in points]
    return write_table(path, header, rows)
