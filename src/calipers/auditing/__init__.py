"""The six questions: plan, checks with codes, findings, repair and comparison of predictors."""

from calipers.auditing.comparison import Comparison, compare
from calipers.auditing.plan import QuestionPlan
from calipers.auditing.reading import Picture
from calipers.auditing.repairing import Repair
from calipers.auditing.result import Audit
from calipers.auditing.running import audit
from calipers.auditing.streaming import audit_stream

__all__ = ["Audit", "Comparison", "Picture", "QuestionPlan", "Repair", "audit", "audit_stream", "compare"]


def __dir__() -> list[str]:
    return sorted(__all__)
