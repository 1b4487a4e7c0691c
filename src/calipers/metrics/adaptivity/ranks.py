"""The rank of the true label among the model's scores."""

from __future__ import annotations

from typing import Any

from calipers.arrays import Array, as_array, fused, namespace, on_device_of
from calipers.exceptions import InputError
from calipers.inputs import check_same_length, encode_labels, require_finite
from calipers.inputs.row_checks import numeric


def true_rank(y_true: Any, probabilities: Any, *, classes: Any = None) -> Array:
    """1-based rank of the true label by descending probability; ties take the worst rank.

    1 means that the model's favourite was right. It is the papers' measure of how hard a row was.

    Parameters
    ----------
    y_true : array (n,)
        Labels.
    probabilities : array (n, K), or (n,) for the positive class
        Any scores with higher for likelier labels serve: only their order matters.
    classes : sequence of K labels, optional
        The label of every column; needed only when it cannot be read off ``y_true``.

    Returns
    -------
    int array (n,)
        In the array library and on the device of ``probabilities``.

    Raises
    ------
    InputError
        For NaN, lengths that differ or labels without a column.

    Notes
    -----
    The number of labels with a probability at least that of the true one. A model that gives all labels
    the same probability ranks the truth last, not first. Cost: one pass over the probabilities.

    Examples
    --------
    >>> from calipers.metrics import true_rank
    >>> true_rank([0, 2, 1], [[0.6, 0.3, 0.1], [0.4, 0.4, 0.2], [0.4, 0.4, 0.2]])
    array([1, 3, 2])
    """
    scores = require_finite(
        numeric(as_array(probabilities, name="probabilities"), "probabilities"), name="probabilities"
    )
    xp = namespace(scores)
    if scores.ndim == 1:
        scores = xp.stack([1 - scores, scores], axis=1)
    if scores.ndim != 2:
        raise InputError(f"probabilities must be (n, K) or (n,), got shape {tuple(scores.shape)}.")
    check_same_length(y_true=y_true, probabilities=probabilities)
    codes = encode_labels(y_true, scores.shape[1], classes=classes, table=probabilities)
    return rank_of_label(on_device_of(codes, scores), scores)


def rank_of_label(codes: Array, scores: Array) -> Array:
    """Kernel: labels that score at least as high as the label at ``codes``, itself included."""
    return fused(_count_at_least, scores)(codes, scores)


def _count_at_least(xp: Any, codes: Array, scores: Array) -> Array:
    own = xp.take_along_axis(scores, codes[:, None], axis=1)
    # One byte per entry; the sum widens.
    return xp.sum(xp.astype(scores >= own, xp.int8), axis=1, dtype=xp.int64)
