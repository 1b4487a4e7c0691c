"""The six questions: plan, checks with codes, findings, repair and comparison of predictors."""

from calipers.auditing.plan import QuestionPlan
from calipers.auditing.reading import Picture
from calipers.auditing.result import Audit
from calipers.auditing.running import audit

__all__ = ["Audit", "Picture", "QuestionPlan", "audit"]
