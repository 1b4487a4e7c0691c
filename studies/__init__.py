"""The papers' experiments, one folder each, run by ``python3 dev.py study NAME --data DIR --out DIR``.

To add a study: write ``studies/<name>/__init__.py`` with a function ``run(data, out, *, quick)`` that
returns a `StudyReport`, and add one line to ``STUDIES``. A study writes its tables (CSV), its figures
(PNG) and, computed in code, which of the paper's claims it confirms; it keeps what is expensive in
``out/cache`` (`studies.caching`), so that a second run continues where the first one stopped. Studies are
loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from studies.outcome import Claim as Claim
    from studies.outcome import StudyReport as StudyReport

__all__ = ["STUDIES", "Claim", "StudyReport", "run_study"]


def __dir__() -> list[str]:
    return sorted(__all__)


# Name on the command line, which is also the folder -> one line for the help page.
STUDIES: dict[str, str] = {
    "conditional": "excess risk against worst slabs and group gaps; classifiers, scores, CIFAR-10H",
    "calibration": "documents, Adult, Covertype, CIFAR-10: calibration measured, certified and repaired",
    "efficiency": "full kNN conformal prediction of USPS digits; which one is best depends on the criterion",
    "performance": "forecasts of the next loss: SVMs on digits, GD against SGD, naive cross-validation",
    "adaptivity": "difficulty by input transformations: T-CV, T-SS and the predictors built on them",
}


def run_study(name: str, data: Any, out: Any, *, quick: bool = False) -> StudyReport:
    """Run one study of the table and write its claims beside what it wrote itself.

    Parameters
    ----------
    name : str
        A name in ``STUDIES``.
    data : path or None
        Folder of the public data sets; None leaves it to the environment variable CALIPERS_DATA.
    out : path
        Folder for tables, figures and cached work; made if it does not exist.
    quick : bool
        Run a small version, in seconds: it shows that everything works, not what the paper found.

    Returns
    -------
    StudyReport
        Claims with the paper's and our reading, and the files written (``claims.csv`` among them).

    Raises
    ------
    InputError
        When there is no such study, or ``out`` is a file.

    Examples
    --------
    >>> from studies import run_study
    >>> run_study("alchemy", None, "somewhere")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: study must be one of ..., got 'alchemy'.
    """
    from pathlib import Path

    from calipers.exceptions import InputError
    from studies.caching import take_fingerprints_of_code
    from studies.outcome import write_claims

    if name not in STUDIES:
        raise InputError(f"study must be one of {', '.join(STUDIES)}, got {name!r}.")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"out must be a folder, got the file {folder}. Give another place.")
    folder.mkdir(parents=True, exist_ok=True)
    study = importlib.import_module(f"studies.{name}")
    take_fingerprints_of_code()
    report: StudyReport = study.run(None if data is None else Path(data), folder, quick=quick)
    return report.with_file(write_claims(report.claims, folder / "claims.csv"))


def __getattr__(name: str) -> Any:
    if name in {"Claim", "StudyReport"}:
        return getattr(importlib.import_module("studies.outcome"), name)
    raise AttributeError(f"module 'studies' has no attribute {name!r}")
