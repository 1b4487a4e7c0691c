"""The six questions: plan, checks with codes, findings, repair and comparison of predictors."""

from calipers.auditing.audit_result import Audit
from calipers.auditing.check_result import Picture
from calipers.auditing.comparison import Comparison, compare
from calipers.auditing.fitted_models import audit_model
from calipers.auditing.history import AuditHistory, keep_audit, read_history
from calipers.auditing.plan import QuestionPlan
from calipers.auditing.power import rows_needed
from calipers.auditing.repair import Repair, RepairedClassifier, RepairedRegressor, SavedRepair, load_repair
from calipers.auditing.run_audit import audit, audit_stream

__all__ = [
    "Audit",
    "AuditHistory",
    "Comparison",
    "Picture",
    "QuestionPlan",
    "Repair",
    "RepairedClassifier",
    "RepairedRegressor",
    "SavedRepair",
    "audit",
    "audit_model",
    "audit_stream",
    "compare",
    "keep_audit",
    "load_repair",
    "read_history",
    "rows_needed",
]


def __dir__() -> list[str]:
    return sorted(__all__)
