"""Which questions can be answered with what was given, and what to add for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calipers.auditing.check import ADD_LOSS, ADD_PROBABILITIES, Check
from calipers.auditing.measurements import Design
from calipers.auditing.questions import QUESTIONS, TITLES

_ADD_PREDICTION = "Add sets, p_values or intervals: what the predictor promises to contain the outcome."

# Task -> what states probabilities.
_ADD_PROBABILITIES = {
    "classification": ADD_PROBABILITIES,
    "regression": "Add quantiles (q_<level>) or pit, to read the predictive distribution as probabilities.",
    "outcomes": "Add promised: the probability that was promised for every row.",
}

_OF_TASK = {"classification": "sets of labels", "regression": "intervals"}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """One question: what will be checked, and what to add so that the rest can be.

    Parameters
    ----------
    question, title : str
        Short name and the question itself.
    checks : tuple of str
        Codes that will run.
    missing : tuple of (str, str)
        Codes that will not, each with what to add.
    """

    question: str
    title: str
    checks: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]

    @property
    def answered(self) -> bool:
        """Whether at least one check runs."""
        return bool(self.checks)

    def to_dict(self) -> dict[str, object]:
        """Plain values for the report."""
        return {
            "question": self.question,
            "title": self.title,
            "checks": list(self.checks),
            "missing": [{"code": code, "add": add} for code, add in self.missing],
        }

    def __str__(self) -> str:
        if self.answered:
            return f"{self.title} Checked by {', '.join(self.checks)}."
        return f"{self.title} Not asked. {' '.join(dict.fromkeys(add for _, add in self.missing))}"


def plan_audit(design: Design, checks: Sequence[Check]) -> tuple[QuestionPlan, ...]:
    """The plan for the six questions."""
    return tuple(_plan_question(design, question, checks) for question in QUESTIONS)


def _plan_question(design: Design, question: str, checks: Iterable[Check]) -> QuestionPlan:
    mine = [check for check in checks if check.question == question]
    # A check of another kind of prediction is not missing, unless the whole question is about that kind.
    relevant = [check for check in mine if design.task in check.tasks] or mine
    ready = tuple(check.code for check in relevant if is_ready(check, design))
    waiting = [check for check in relevant if check.code not in ready]
    missing = tuple((check.code, what_to_add(check, design)) for check in waiting)
    return QuestionPlan(question=question, title=TITLES[question], checks=ready, missing=missing)


def what_to_add(check: Check, design: Design) -> str:
    """The inputs that the check lacks: the prediction alone, or what the check itself asks for."""
    if design.task not in check.tasks:
        own = " or ".join(_OF_TASK[task] for task in check.tasks if task != "outcomes")
        return f"This can be asked of {own} only."
    if not check.once and not design.promises_of(check.kinds):
        return _ADD_PROBABILITIES[design.task] if check.question == "probabilities" else _ADD_PREDICTION
    lacking = set(check.needs) - design.have
    if not lacking.isdisjoint({"loss", "bound"}):
        return ADD_LOSS
    return _ADD_PREDICTION if lacking == {"prediction"} else check.add


def is_ready(check: Check, design: Design) -> bool:
    """Whether everything the check needs was given."""
    promised = check.once or bool(design.promises_of(check.kinds))
    return promised and design.task in check.tasks and design.have.issuperset(check.needs)
