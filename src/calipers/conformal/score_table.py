"""The table of nonconformity scores, by the name that predictors and engines take.

To add a score: write a file with its public function and its rule, and one line in ``SCORES``. Classifiers,
the scores stored for streams and their messages follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from calipers.arrays import Array
from calipers.conformal import scores
from calipers.conformal.scores import MatrixRule, Rule, checked_scores
from calipers.exceptions import InputError


@dataclass(frozen=True, slots=True)
class Score:
    """One line of the table.

    Parameters
    ----------
    function : callable
        (n, K) probabilities to (n, K) scores; takes ``u`` second where scores can be randomised.
    rule : callable
        Its options to the rule that scores all labels, or one per row.
    is_randomizable : bool
        Whether it takes draws ``u``.
    """

    function: Callable[..., Array]
    rule: Callable[..., Rule]
    is_randomizable: bool = True


SCORES: dict[str, Score] = {
    "lac": Score(scores.lac, scores.lac_rule, is_randomizable=False),
    "aps": Score(scores.aps, scores.aps_rule),
    "raps": Score(scores.raps, scores.raps_rule),
    "saps": Score(scores.saps, scores.saps_rule),
    "margin": Score(scores.margin, scores.margin_rule, is_randomizable=False),
    "top_k": Score(scores.top_k, scores.top_k_rule),
}


def score_rule(nonconformity: Any) -> Rule:
    """The rule behind a name, one of the score functions (also inside `functools.partial`) or a callable."""
    named = {score.function: name for name, score in SCORES.items()}
    function, options = nonconformity, {}
    if isinstance(nonconformity, partial) and nonconformity.func in named and not nonconformity.args:
        function, options = nonconformity.func, dict(nonconformity.keywords)
    name = function if isinstance(function, str) else named.get(function) if callable(function) else None
    if name in SCORES and not options.get("u"):
        return SCORES[name].rule(**options)
    if callable(nonconformity):
        return MatrixRule(checked_scores(nonconformity), randomizable=True)
    raise InputError(
        f"nonconformity must be one of {', '.join(SCORES)} or a callable on (n, K) probabilities, "
        f"got {nonconformity!r}."
    )
