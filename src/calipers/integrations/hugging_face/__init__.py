"""The module script for Hugging Face's ``evaluate``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["hugging_face_script"]

_SCRIPT = "calipers_audit.py"  # loaded by evaluate, never imported from here


def hugging_face_script() -> str:
    """The path of the script, for ``evaluate.load(hugging_face_script(), "intervals")``; works offline.

    Returns
    -------
    str
        The second argument of ``evaluate.load`` says what the predictions are: "probabilities" (the default),
        "p_values", "sets" (lists of labels) or "intervals".

    Examples
    --------
    >>> from pathlib import Path
    >>> from calipers.integrations import hugging_face_script
    >>> Path(hugging_face_script()).name
    'calipers_audit.py'
    """
    return str(Path(__file__).with_name(_SCRIPT))


def __dir__() -> list[str]:
    return sorted(__all__)
