"""Conformal p-values of streamed probabilities, from the scores of a calibration sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calipers import conformal
from calipers.arrays import short_repr
from calipers.conformal.score_table import SCORES
from calipers.exceptions import InputError

if TYPE_CHECKING:
    from calipers.inputs.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class ConformalScores:
    """How probabilities become p-values: the calibration scores, the rule, and the draws.

    Parameters
    ----------
    calibration_scores : array of shape (n,)
        Nonconformity of the calibration labels, by the same rule.
    nonconformity : {"lac", "aps", "raps", "saps", "margin", "top_k"}
        The rule.
    smoothed : bool
        Whether ties are broken by a draw per row (eq. 2 of the criteria paper).
    randomized : bool
        Whether the rule itself takes a draw per row.
    seed : int
        The draws follow from it and from the row: its id, or its file and position. They do not depend
        on how rows are split, and are not shared with calibration rows.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.engines import Rows, ConformalScores
    >>> scores = ConformalScores(np.linspace(0.005, 0.995, 100))
    >>> rows = {"y_true": [0], "probabilities": [[0.8, 0.2]]}
    >>> Rows(rows, classes=[0, 1], conformal=scores)["p_values"].round(2).tolist()
    [[0.8, 0.21]]
    """

    calibration_scores: np.ndarray
    nonconformity: str = "lac"
    smoothed: bool = False
    randomized: bool = False
    seed: int = 0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.nonconformity not in SCORES:
            raise InputError(f"nonconformity must be one of {', '.join(SCORES)}, got {self.nonconformity!r}.")
        if self.randomized and not SCORES[self.nonconformity].is_randomizable:
            drawn = ", ".join(name for name, score in SCORES.items() if score.is_randomizable)
            raise InputError(f"{self.nonconformity} takes no draw; randomized goes with {drawn}.")

    def p_values(self, block: Rows) -> np.ndarray | None:
        """The p-values (n, K) of a block of probabilities; None when it has none."""
        probabilities = block.get("probabilities")
        if probabilities is None:
            return None
        rule = SCORES[self.nonconformity].function
        scores = (
            rule(probabilities, block.draws("score", self.seed)) if self.randomized else rule(probabilities)
        )
        tau = block.draws("tau", self.seed) if self.smoothed else None
        return np.asarray(conformal.conformal_p_values(self.calibration_scores, scores, tau=tau))
