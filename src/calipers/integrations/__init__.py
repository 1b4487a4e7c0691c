"""Where Calipers meets other tools: MLflow, skore and Hugging Face's evaluate.

Nothing here imports them: each part loads its tool when it is used. The MLflow evaluator is found by MLflow
itself, through the entry point ``mlflow.model_evaluator``.
"""

from calipers.auditing import audit_model
from calipers.integrations.hugging_face import hugging_face_script
from calipers.integrations.mlflow_evaluator import CalipersEvaluator
from calipers.integrations.numbers import flat_numbers
from calipers.integrations.skore_report import SkoreCheck, skore_checks

__all__ = [
    "CalipersEvaluator",
    "SkoreCheck",
    "audit_model",
    "flat_numbers",
    "hugging_face_script",
    "skore_checks",
]


def __dir__() -> list[str]:
    return sorted(__all__)
