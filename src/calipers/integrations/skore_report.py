"""Calipers's checks in a skore report: ``report.checks.add(skore_checks(alpha=0.1))``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calipers.arrays import import_optional, short_repr
from calipers.auditing import Audit
from calipers.auditing.checks import CHECKS
from calipers.auditing.fitted_models import audit_model
from calipers.results import Finding, severity_rank


@dataclass(eq=False)
class AuditOfReport:
    """The audit of an estimator report, made once per report.

    Parameters
    ----------
    options : mapping
        Arguments of `audit_model`.
    """

    options: Mapping[str, Any]
    _last: tuple[Any, Audit] | None = field(default=None, repr=False)

    def findings(self, report: Any) -> dict[str, Finding]:
        """Every outcome by code."""
        if self._last is None or self._last[0] is not report:
            found = audit_model(report.estimator_, report.X_test, report.y_test, **self.options)
            self._last = (report, found)
        return {finding.code: finding for finding in self._last[1].findings}

    def __getstate__(self) -> dict[str, Any]:
        return {"options": dict(self.options), "_last": None}  # a stored report brings no audit along


@dataclass(eq=False)
class SkoreCheck:
    """One check of Calipers with the attributes that skore's protocol of checks asks for.

    Parameters
    ----------
    code, title : str
        As in the catalogue of findings.
    audit : AuditOfReport
        Shared by all checks of one call.
    least : str
        The least severity that is shown: "note", "warning" or "issue".
    report_types : list of str
        Reports it runs on.
    severity : str
        How skore files it.
    docs_url : str or None
        Nothing.
    slow : bool
        An audit is too slow for skore's fast mode.
    """

    code: str
    title: str
    audit: AuditOfReport
    least: str = "warning"
    report_types: list[str] = field(default_factory=lambda: ["estimator"])
    severity: str = "issue"
    docs_url: str | None = None
    slow: bool = True

    __repr__ = short_repr

    def check_function(self, report: Any) -> str | None:
        """The sentence of a fault, None when all is well; skore's own exception when it does not apply."""
        finding = self.audit.findings(report).get(self.code)
        if finding is None or finding.outcome in {"not_applicable", "cannot_tell"}:
            skore = import_optional("skore", purpose="checks of a report", install="calipers[skore]")
            raise skore.CheckNotApplicable("not measured" if finding is None else finding.sentence)
        if severity_rank(finding.severity) < max(1, severity_rank(self.least)):
            return None
        return f"{finding.sentence} ({finding.severity})"


def skore_checks(*, alpha: float = 0.1, least: str = "warning", **options: Any) -> list[SkoreCheck]:
    """The checks of an audit for ``report.checks.add`` of skore; one audit serves all of them.

    Parameters
    ----------
    alpha : float
        Allowed miscoverage.
    least : {"note", "warning", "issue"}
        The least severity that becomes an issue in skore.
    **options
        Further arguments of `calipers.audit`; ``random_state`` is 0 unless given, so that a stored report
        reads the same when it is opened again.

    Returns
    -------
    list of SkoreCheck
        For estimator reports, with codes CAL101 and so on.

    Notes
    -----
    The audit runs on the test rows of the report, with ``report.estimator_``. For numbers in
    ``report.metrics.summarize()`` add the scorers of `calipers.scorers` with ``report.metrics.add``.

    Examples
    --------
    >>> from calipers.integrations import skore_checks
    >>> checks = skore_checks(alpha=0.1)
    >>> checks[0].code, checks[0].severity, checks[0].report_types
    ('CAL101', 'issue', ['estimator'])
    """
    severity_rank(least)
    audit = AuditOfReport({"random_state": 0} | options | {"alpha": alpha})
    return [SkoreCheck(check.code, check.title, audit, least) for check in CHECKS]
