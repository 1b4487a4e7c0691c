"""Files of predictions: csv, parquet, arrow, npz and json-lines, read into the arguments of an audit.

A file is opened for reading only. What cannot be read, is empty or does not fit into memory gets one
sentence with the remedy.
"""

from calipers.inputs.files.formats import read_table
from calipers.inputs.files.predictions import (
    Predictions,
    extract_predictions,
    predictions_of_frame,
    read_predictions,
)
from calipers.inputs.files.roles import ColumnChoice

__all__ = [
    "ColumnChoice",
    "Predictions",
    "extract_predictions",
    "predictions_of_frame",
    "read_predictions",
    "read_table",
]


def __dir__() -> list[str]:
    return sorted(__all__)
