"""What an audit gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.auditing.check_result import Picture
from calipers.auditing.measurements import Design
from calipers.auditing.plan import QuestionPlan
from calipers.deprecation import warn_deprecated
from calipers.exceptions import InputError
from calipers.inputs.rows import Rows
from calipers.report import audit_document, render_html, render_json, render_markdown, render_text
from calipers.results import EstimateTable, Finding, PromiseTable, severity_rank
from calipers.results.plotting import Plotted
from calipers.results.text_files import also_written

if TYPE_CHECKING:
    from calipers.auditing.repair import Repair


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Audit(Plotted):
    """The answers to the six questions, with everything behind them.

    Parameters
    ----------
    data : Rows
        The rows that were audited; a random sample of them when they were streamed.
    design : Design
        What the audit was asked for: levels, confidence, seed, classes.
    plan : tuple of QuestionPlan
        Per question: what was checked, and what to add so that the rest can be.
    findings : tuple of Finding
        Every check with its outcome: faults first, the most serious on top.
    estimates : EstimateTable
        Every number, by name.
    pictures : tuple of Picture
        The curves of the report.
    measured : mapping
        Question -> names of the estimates made for it.
    sample_rows : int
        Rows that models were fitted and pictures drawn on.
    name, origin : str
        How the predictor is called, and where its rows came from.
    promises : PromiseTable
        What was promised, over which slices, and whether it was kept.
    selectors : mapping
        Code -> which rows its fault is about; see `rows_of`.
    columns : mapping
        Column -> what it was taken for, for rows that were read from files.
    history : mapping, optional
        The audits before this one, where a history was given; see `after`.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> y = np.random.default_rng(2).normal(size=1000)
    >>> found = calipers.audit(y, intervals=np.tile([-1.645, 1.645], (1000, 1)), random_state=0)
    >>> found.severity, round(float(found.estimates["coverage"]), 3)
    ('none', 0.895)
    """

    data: Rows
    design: Design
    plan: tuple[QuestionPlan, ...]
    findings: tuple[Finding, ...]
    estimates: EstimateTable
    pictures: tuple[Picture, ...] = ()
    measured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sample_rows: int = 0
    name: str = ""
    origin: str = ""
    promises: PromiseTable = field(default_factory=lambda: PromiseTable(()))
    selectors: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    history: Mapping[str, Any] | None = None

    def rows_of(self, code: str) -> np.ndarray:
        """Which rows a fault is about, as bool (n,); of streamed rows those of the sample.

        A fault of all rows is about those that broke the promise (over-coverage about all of them), one of a
        group, region, time or range of scores about the rows there.

        Parameters
        ----------
        code : str
            Code of a fault of this audit.
        """
        known = [finding.code for finding in self.faults]
        if code not in known:
            raise InputError(
                f"code must be that of a fault ({', '.join(known) or 'there is none'}), got {code!r}."
            )
        choose = self.selectors.get(code)
        if choose is None:
            return np.ones(self.data.n, dtype=bool)
        return np.asarray(choose(self.data), dtype=bool)

    @property
    def rows(self) -> int:
        """Rows that were audited."""
        return self.design.n

    @property
    def material(self) -> Rows:
        """The old name of ``data``."""
        warn_deprecated("Audit.material is now called Audit.data", "0.4")
        return self.data

    @property
    def n_rows(self) -> int | None:
        """The old name of ``rows``, where models and pictures saw a sample of them; else None."""
        warn_deprecated("Audit.n_rows is now called Audit.rows", "0.4")
        return None if self.sample_rows == self.rows else self.rows

    @property
    def source(self) -> str:
        """The old name of ``origin``."""
        warn_deprecated("Audit.source is now called Audit.origin", "0.4")
        return self.origin

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that are faults."""
        return tuple(finding for finding in self.findings if finding.outcome == "fault")

    @property
    def severity(self) -> str:
        """The worst severity: none, note, warning or issue."""
        return max((finding.severity for finding in self.findings), key=severity_rank, default="none")

    def to_dict(self) -> dict[str, Any]:
        """The one dictionary that the report, the Markdown and the JSON are made of."""
        from calipers.auditing.row_tables import examples

        return audit_document(
            about={
                "name": self.name,
                "source": self.origin,
                "rows": self.rows,
                "sample_rows": None if self.sample_rows == self.rows else self.sample_rows,
                "task": self.design.task,
                "classes": [str(label) for label in self.design.classes],
                "alphas": list(self.design.alphas),
                "n_calibration": self.design.n_calibration,
                "confidence": self.design.confidence,
                "seed": self.design.seed if self.design.random_state is None else self.design.random_state,
                "promises": [promise.in_words() for promise in self.design.promises],
                "columns": dict(self.columns),
                "given": sorted(self.design.have),
            },
            questions=[
                plan.to_dict() | {"numbers": list(self.measured.get(plan.question, ()))} for plan in self.plan
            ],
            findings=self.findings,
            estimates=self.estimates,
            pictures=[
                {
                    "name": p.name,
                    "question": p.question,
                    "title": p.title,
                    "caption": p.caption,
                    "kind": p.kind,
                    "reference": p.reference,
                    "labels": list(p.labels),
                    "curves": [curve.to_dict() for curve in p.curves],
                }
                for p in self.pictures
            ],
            promises=self.promises.to_dict(),
            examples=examples(self),
            history=self.history,
        )

    def after(self, folder: Path | str) -> Audit:
        """The same audit as the next of a history: reports tell what changed and link to the earlier ones.

        Parameters
        ----------
        folder : path
            Holds what `keep_audit` wrote; without an earlier audit nothing is added.
        """
        from calipers.auditing.earlier_audits import earlier_audits
        from calipers.auditing.history_rows import contributions

        return replace(self, history=earlier_audits(self.to_dict(), folder, contributions(self)))

    def to_json(self, path: Path | str | None = None) -> str:
        """Everything as strict JSON; also written to the path when one is given."""
        return also_written(render_json(self.to_dict()), path)

    def to_markdown(self, path: Path | str | None = None) -> str:
        """A summary for a pull request; also written to the path when one is given."""
        return also_written(render_markdown(self.to_dict()), path)

    def to_html(self, path: Path | str | None = None) -> str:
        """One self-contained page; also written to the path when one is given."""
        return also_written(render_html(self.to_dict(), place=path), path)

    def repair(self, *, held_out: float = 0.5, X_new: Any = None) -> Repair:
        """Repair the faults on a part of the rows and compare on the rest; see `Repair`.

        Parameters
        ----------
        held_out : float
            Share of the rows that stays untouched.
        X_new : table of features, optional
            Of rows that the repair is for; outcomes are not needed. If a classifier tells them from the
            audited ones, thresholds and the comparison count rows by the estimated likelihood ratio.
        """
        from calipers.auditing.repair_loop import repair_audit

        return repair_audit(self, held_out=held_out, X_new=X_new)

    def __repr__(self) -> str:
        return f"Audit({self.name or self.design.task}, {self.rows} rows, severity {self.severity})"

    def __str__(self) -> str:
        return render_text(self.to_dict())

    def _repr_html_(self) -> str:
        return render_html(self.to_dict(), embedded=True)
