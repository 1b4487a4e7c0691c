"""Cutting n rows into equal disjoint blocks: training rows and evaluation rows of every fit.

The rows are put in random order first. Equal disjoint blocks of exchangeable rows are exchangeable
whatever is done inside a block, so no symmetry of the algorithm (eq. 21) is needed; what is needed is
that the future training rows come in random order too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.inputs import check_count, check_fraction, exact_level
from calipers.performance.guarantee import losses_needed

# Default number of points where a regression is learned from them: this many times the smallest number with
# two finite ends. Without one the smallest number itself, so that the training samples are as large as can
# be.
_POINTS_TO_LEARN_FROM = 5


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """Which rows every fit trains on and is evaluated on.

    Parameters
    ----------
    train : int array (parts, k, m)
        Training rows of each block of each part.
    evaluate : int array (parts, k, b)
        Evaluation rows of each block.
    discarded : int array
        The remainder, chosen at random.
    """

    train: np.ndarray
    evaluate: np.ndarray
    discarded: np.ndarray

    @property
    def n_points(self) -> int:
        """Blocks per part, k."""
        return int(self.train.shape[1])

    @property
    def train_size(self) -> int:
        """Training rows per block, m."""
        return int(self.train.shape[2])


def plan_blocks(
    n: int,
    *,
    n_points: int | None,
    train_size: int | None,
    points_per_loss: int,
    parts: int,
    alpha: Any,
    generator: np.random.Generator,
) -> BlockPlan:
    """Random disjoint blocks, eq. 18 (one part), eq. 22 (two parts), section 3.3 (three parts).

    Either number may be given: ``n_points`` = k makes the blocks as large as the rows allow,
    ``train_size`` = m makes as many blocks as the rows allow. With neither, k is the smallest number
    for which both ends at ``alpha`` are finite (20 at 0.1), with several parts five times that.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.splitting import plan_blocks
    >>> plan = plan_blocks(103, n_points=10, train_size=None, points_per_loss=1, parts=1, alpha=0.1,
    ...                    generator=np.random.default_rng(0))
    >>> plan.train.shape, plan.evaluate.shape, plan.discarded.size
    ((1, 10, 9), (1, 10, 1), 3)
    """
    b = check_count(points_per_loss, name="points_per_loss")
    k, m = _block_sizes(n, n_points, train_size, b, parts, alpha)
    order = generator.permutation(n)
    used = order[: parts * k * (m + b)].reshape(parts, k, m + b)
    return BlockPlan(used[..., b:], used[..., :b], order[used.size :])


def _block_sizes(
    n: int, n_points: int | None, train_size: int | None, b: int, parts: int, alpha: Any
) -> tuple[int, int]:
    k = None if n_points is None else check_count(n_points, name="n_points")
    m = None if train_size is None else check_count(train_size, name="train_size")
    if k is None and m is not None:
        k = n // (parts * (m + b))
    elif k is None:
        k = losses_needed(alpha, "two-sided") * (1 if parts == 1 else _POINTS_TO_LEARN_FROM)
    if m is None:
        m = n // (parts * k) - b if k else 0
    if k < 1 or m < 1 or parts * k * (m + b) > n:
        raise InputError(_too_few_rows(n, n_points, train_size, k, max(m, 1), b, parts))
    return k, m


def _too_few_rows(
    n: int, n_points: int | None, train_size: int | None, k: int, m: int, b: int, parts: int
) -> str:
    needed = parts * max(k, 1) * (m + b)
    times = f"{parts} x " if parts > 1 else ""
    asked = {"n_points": n_points, "train_size": train_size}
    given = " and ".join(f"{name}={value}" for name, value in asked.items() if value is not None)
    return (
        f"{given or 'the default number of points'} needs at least {needed} rows "
        f"({times}{max(k, 1)} blocks of {m} training and {b} evaluation rows), got {n}. "
        "Lower n_points or train_size, or bring more rows."
    )


def split_candidate(
    n: int, calibration_size: Any, points_per_loss: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and calibration rows (k, b) of Algorithm 1; a remainder of the latter is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.splitting import split_candidate
    >>> train, calibration = split_candidate(11, 0.5, 2, np.random.default_rng(0))
    >>> train.shape, calibration.shape
    ((6,), (2, 2))
    """
    size = _calibration_rows(n, calibration_size)
    order = generator.permutation(n)
    return order[size:], group_rows(order[:size], points_per_loss)


def group_rows(order: np.ndarray, points_per_loss: int) -> np.ndarray:
    """Shuffled rows in groups of ``points_per_loss``, (k, b); the last incomplete group is dropped."""
    b = check_count(points_per_loss, name="points_per_loss")
    k = order.size // b
    if k == 0:
        raise InputError(
            f"points_per_loss must not exceed the {order.size} calibration rows, got {b}. "
            "Bring more rows or average over fewer."
        )
    return order[: k * b].reshape(k, b)


def _calibration_rows(n: int, calibration_size: Any) -> int:
    whole = isinstance(calibration_size, (int, np.integer)) and not isinstance(calibration_size, bool)
    if whole:
        size = check_count(calibration_size, name="calibration_size")
    else:
        meaning = "It is the share of rows kept for calibration (or a whole number of rows)"
        check_fraction(calibration_size, name="calibration_size", meaning=meaning)
        share = exact_level(calibration_size, name="calibration_size")
        size = n * share.numerator // share.denominator
    if not 1 <= size < n:
        raise InputError(
            f"calibration_size={calibration_size} must leave at least one row to train on and one to "
            f"calibrate on, got {size} of {n} rows for calibration."
        )
    return size
