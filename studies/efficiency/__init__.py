"""Which predictor is most efficient depends on the criterion: the USPS experiment of Vovk et al. (2017).

Section 7 of "Criteria of efficiency for conformal prediction": three nearest-neighbour conformity
measures, two metrics, K = 1..50, judged by average unconfidence (U, not probabilistic) and by average
observed fuzziness (OF, probabilistic). Writes ``predictors.csv`` (every predictor, every criterion that
needs no level), ``nearest_neighbour.csv``, ``figure1.png``, ``figure2.png`` and the claims.
"""

from __future__ import annotations

from pathlib import Path

from studies.efficiency.claims import check_claims
from studies.efficiency.digits import load_digits
from studies.efficiency.figure import draw_digits, draw_figure
from studies.efficiency.matrices import METRICS, MatrixStore
from studies.efficiency.predictors import (
    evaluate,
    neighbour_p_values,
    one_neighbour_errors,
    write_predictors,
)
from studies.outcome import StudyReport, write_table
from studies.progress import study_progress

__all__ = ["run"]


def __dir__() -> list[str]:
    return sorted(__all__)


TITLE = "Efficiency of nearest-neighbour conformal predictors on USPS digits"
LARGEST_K, QUICK_K = 50, 10
SEED = 0


def run(data: Path | None, out: Path, *, quick: bool = False) -> StudyReport:
    """Run the study; what is already in ``out`` is used again.

    Parameters
    ----------
    data : Path or None
        Folder with ``usps.npz``; None reads CALIPERS_DATA.
    out : Path
        Folder for the results; ``out/cache`` keeps distances and p-values (about 700 MB).
    quick : bool
        Every 18th image and K up to 10: seconds instead of minutes.

    Returns
    -------
    StudyReport
        Claims and files.
    """
    digits = load_digits(data, quick=quick)
    store = MatrixStore(digits, out / "cache")
    largest = QUICK_K if quick else LARGEST_K
    with study_progress() as progress:
        for metric in METRICS:
            store.compute(metric, progress)
        errors = one_neighbour_errors(digits, store, progress)
        p_values = neighbour_p_values(digits, store, largest, seed=SEED, progress=progress)
    results = evaluate(digits.y_test, p_values)
    files = (
        write_predictors(results, out / "predictors.csv"),
        write_table(out / "nearest_neighbour.csv", ("metric", "pixels", "error", "std_error"), errors),
        draw_digits(digits, out / "figure1.png"),
        draw_figure(results, out / "figure2.png"),
    )
    claims = check_claims(digits.y_test, results, p_values, errors, decide=not quick)
    return StudyReport(name="efficiency", title=TITLE, claims=claims, files=files)
