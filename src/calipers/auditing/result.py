"""What an audit gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calipers.auditing.material import Material
from calipers.auditing.plan import QuestionPlan
from calipers.auditing.reading import Picture
from calipers.report import audit_document, render_html, render_json, render_markdown, render_text
from calipers.results import EstimateTable, Finding, severity_rank, write_atomically

if TYPE_CHECKING:
    from calipers.auditing.repairing import Repair


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Audit:
    """The answers to the six questions, with everything behind them.

    Parameters
    ----------
    material : Material
        The checked inputs.
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
    name, source : str
        How the predictor is called, and the file it came from.
    n_rows : int or None
        Rows in all, when the material is a sample of them.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> y = np.random.default_rng(2).normal(size=1000)
    >>> found = calipers.audit(y, intervals=np.tile([-1.645, 1.645], (1000, 1)), random_state=0)
    >>> found.severity, round(float(found.estimates["coverage"]), 3)
    ('none', 0.895)
    """

    material: Material
    plan: tuple[QuestionPlan, ...]
    findings: tuple[Finding, ...]
    estimates: EstimateTable
    pictures: tuple[Picture, ...] = ()
    measured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name: str = ""
    source: str = ""
    n_rows: int | None = None

    @property
    def rows(self) -> int:
        """Rows that were audited."""
        return self.material.n if self.n_rows is None else self.n_rows

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
        return audit_document(
            about={
                "name": self.name,
                "source": self.source,
                "rows": self.rows,
                "sample_rows": None if self.n_rows is None else self.material.n,
                "task": self.material.task,
                "classes": [str(label) for label in self.material.classes],
                "alphas": list(self.material.alphas),
                "n_calibration": self.material.n_calibration,
                "confidence": self.material.confidence,
                "seed": self.material.seed,
                "given": sorted(self.material.have),
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
        )

    def to_json(self, path: Path | str | None = None) -> str:
        """Everything as strict JSON; also written to the path when one is given."""
        return _written(render_json(self.to_dict()), path)

    def to_markdown(self, path: Path | str | None = None) -> str:
        """A summary for a pull request; also written to the path when one is given."""
        return _written(render_markdown(self.to_dict()), path)

    def to_html(self, path: Path | str | None = None) -> str:
        """One self-contained page; also written to the path when one is given."""
        return _written(render_html(self.to_dict()), path)

    def repair(self, *, held_out: float = 0.5) -> Repair:
        """Repair the faults on a part of the rows and compare on the rest; see `Repair`.

        Parameters
        ----------
        held_out : float
            Share of the rows that stays untouched.
        """
        from calipers.auditing.repairing import repair_audit

        return repair_audit(self, held_out=held_out)

    def __repr__(self) -> str:
        return f"Audit({self.name or self.material.task}, {self.rows} rows, severity {self.severity})"

    def __str__(self) -> str:
        return render_text(self.to_dict())

    def _repr_html_(self) -> str:
        return render_html(self.to_dict(), embedded=True)


def _written(text: str, path: Path | str | None) -> str:
    if path is not None:
        write_atomically(path, text)
    return text
