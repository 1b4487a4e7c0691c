"""Files of predictions, from their names to checked rows.

The table of formats says how each kind of file is scanned and written, the readers read any range of rows,
the roles say which column is what, and pieces yield blocks of rows. A file is opened for reading only. What
cannot be read, is empty or does not fit into memory gets one sentence with the remedy.
"""

from calipers.inputs.files.column_roles import ColumnChoice
from calipers.inputs.files.columns_to_arrays import arguments_of_frame
from calipers.inputs.files.pieces import FilePiece
from calipers.inputs.files.readers import read_table

__all__ = ["ColumnChoice", "FilePiece", "arguments_of_frame", "read_table"]


def __dir__() -> list[str]:
    return sorted(__all__)
