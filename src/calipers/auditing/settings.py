"""Settings of an audit that are checked before any row is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.exceptions import DoubtfulInputWarning, InputError, warn
from calipers.inputs import check_confidence, check_count
from calipers.inputs.option_checks import check_flag, check_number, check_range


def check_settings(
    *,
    random_state: RandomState,
    sample_rows: int,
    confidence: float,
    n_calibration: int | None,
    label_conditional: bool,
    bound: float | None,
    loss_range: tuple[float, float],
) -> dict[str, Any]:
    """Settings of the design of an audit, checked; ``seed`` is drawn from ``random_state``."""
    shown = shown_seed(random_state)
    return {
        "seed": int(generator(shown).integers(2**31)),
        "random_state": shown,
        "sample_rows": check_count(sample_rows, name="sample_rows"),
        "confidence": check_confidence(confidence),
        "n_calibration": None if n_calibration is None else check_count(n_calibration, name="n_calibration"),
        "label_conditional": check_flag(label_conditional, name="label_conditional"),
        "bound": check_bound(bound, loss_range),
        "loss_range": (float(loss_range[0]), float(loss_range[1])),
    }


def shown_seed(random_state: RandomState) -> int:
    """The seed that gives this audit again: the one that was given, or a draw from what was given."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(generator(random_state).integers(2**31))


def ask_about(alphas: Sequence[float]) -> None:
    """Warn where every level promises less than half of the outcomes: confidence was probably meant."""
    if min(alphas) > 0.5:
        alpha = float(alphas[0])
        warn(
            f"alpha={alpha:g} promises that {100 * (1 - alpha):g} % are covered. If {100 * alpha:g} % was "
            f"meant, give alpha={1 - alpha:g}: alpha is the allowed miscoverage.",
            DoubtfulInputWarning,
        )


def check_bound(bound: Any, loss_range: Any) -> float | None:
    """The promised bound of the mean loss, which must lie inside the range of a loss."""
    low, high = check_range(loss_range, name="loss_range")
    if bound is None:
        return None
    if not low <= check_number(bound, name="bound") < high:
        raise InputError(
            f"bound must lie in loss_range [{low:g}, {high:g}), got {bound!r}. It is the promised mean loss; "
            "give loss_range where a loss can be larger than 1."
        )
    return float(bound)
