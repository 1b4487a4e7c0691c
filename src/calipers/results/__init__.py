"""What comes out of a measurement: frozen, drawn by others, stored as JSON."""

from calipers.results.curve import Curve
from calipers.results.estimate import Estimate
from calipers.results.finding import OUTCOMES, SEVERITIES, Finding, nothing_told, severity_rank
from calipers.results.promise_table import PromiseCell, PromiseTable
from calipers.results.ranking import RankComparison
from calipers.results.serialization import SCHEMA, from_json, to_json
from calipers.results.table import EstimateTable
from calipers.results.writing import write_atomically, write_together

__all__ = [
    "OUTCOMES",
    "SCHEMA",
    "SEVERITIES",
    "Curve",
    "Estimate",
    "EstimateTable",
    "Finding",
    "PromiseCell",
    "PromiseTable",
    "RankComparison",
    "from_json",
    "nothing_told",
    "severity_rank",
    "to_json",
    "write_atomically",
    "write_together",
]


def __dir__() -> list[str]:
    return sorted(__all__)
