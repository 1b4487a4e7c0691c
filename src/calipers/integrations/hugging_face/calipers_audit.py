"""An audit as a metric of Hugging Face's evaluate; loaded by its path, see ``hugging_face_script``."""

from __future__ import annotations

from typing import Any

import datasets
import evaluate

import calipers

_DESCRIPTION = """
Calipers measures how far stated uncertainty can be trusted: coverage, conditional coverage, efficiency,
adaptivity and calibration, every number with its error bar, and findings with a code and a repair.
"""
_INPUTS = """
Args:
    predictions: per row the probabilities or p-values of all classes, the labels of a set, or [lower, upper],
        as the name of the configuration says: probabilities, p_values, sets, intervals.
    references: the label (an integer or a text) or the number that happened.
    alpha: allowed miscoverage, 0.1 by default.
    random_state: 0 by default, so that the same rows give the same numbers.
    Every other keyword of calipers.audit, such as n_calibration or classes.
Returns:
    severity: none, note, warning or issue.
    findings: the faults, each with its code, severity and sentence.
    Every estimate, with .low, .high and .p_value where it has them, by its name in letters, digits, spaces
    and _ . - : / only, which every tracker takes: see calipers.integrations.flat_numbers.
"""
_CITATION = "The Calipers developers. Calipers: how far a model's uncertainty can be trusted."

_ROW = datasets.Sequence(datasets.Value("float64"))
_LABELS = ("int64", "string")
# Name of the configuration -> the forms that its rows may take.
_FORMS: dict[str, list[dict[str, Any]]] = {
    "probabilities": [{"predictions": _ROW, "references": datasets.Value(kind)} for kind in _LABELS],
    "p_values": [{"predictions": _ROW, "references": datasets.Value(kind)} for kind in _LABELS],
    "sets": [
        {"predictions": datasets.Sequence(datasets.Value(kind)), "references": datasets.Value(kind)}
        for kind in _LABELS
    ],
    "intervals": [{"predictions": _ROW, "references": datasets.Value("float64")}],
}


class CalipersAudit(evaluate.Metric):
    """``compute(predictions=..., references=..., alpha=0.1)`` runs `calipers.audit`."""

    config_name: str

    def _info(self) -> Any:
        if self.config_name == "default":
            self.config_name = "probabilities"
        if self.config_name not in _FORMS:
            raise ValueError(
                f"config_name must be one of {', '.join(_FORMS)}, got {self.config_name!r}: "
                'evaluate.load(path, "intervals").'
            )
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=[datasets.Features(form) for form in _FORMS[self.config_name]],
        )

    def _compute(self, predictions: Any, references: Any, **options: Any) -> dict[str, Any]:
        from calipers.integrations import flat_numbers

        stated = {self.config_name: predictions, "random_state": 0} | options
        found = calipers.audit(references, **stated)
        faults = [
            {"code": finding.code, "severity": finding.severity, "sentence": finding.sentence}
            for finding in found.faults
        ]
        return {"severity": found.severity, "findings": faults, **flat_numbers(found.estimates)}
