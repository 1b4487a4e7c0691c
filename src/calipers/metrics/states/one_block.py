"""Calling a metric on arrays: one block of rows through its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows
from calipers.metrics.states.total_weight import WeightState


def over_one_block(state: State, given: Mapping[str, Any], *, classes: Any = None) -> Result:
    """What the state finishes with after as many passes over the rows as it asks for."""
    block, weight = Rows(given, classes=classes), WeightState()
    weight.absorb(block)
    weight.advance()
    while True:
        state.absorb(block)
        following = state.advance()
        if following is None:
            return state.finish()
        state = following
