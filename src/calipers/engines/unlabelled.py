"""Estimates without labels over any number of rows, in one pass."""

from __future__ import annotations

from collections.abc import Mapping

from calipers.engines.running import Engine, Progress, engine_of, run_states, silent, unchanging_files
from calipers.engines.sources import Source
from calipers.inference.state import State
from calipers.performance import LabelFreePerformance
from calipers.results import Estimate, EstimateTable


def estimate_without_labels(
    models: Mapping[str, LabelFreePerformance],
    source: Source,
    *,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> EstimateTable:
    """What a model scores on rows whose labels have not come, read once, however many they are.

    Parameters
    ----------
    models : mapping
        Name to a fitted `LabelFreePerformance`, one per loss or metric.
    source : ArraySource, FileSource or alike
        The rows: ``probabilities``, or ``y_pred`` of a regression, and ``X`` where the reference has
        features. A file without outcomes is read with ``ColumnChoice(y=())``.
    engine : {"local", "dask", "spark"} or object
        Where the work is done, as in `measure`.
    progress : callable, optional
        Called with (pieces done, pieces in all).

    Returns
    -------
    EstimateTable
        One entry per model, as its ``estimate`` gives.

    Notes
    -----
    Up to 100 000 rows all are looked at, and the result is that of ``estimate``. Of more rows a sample of so
    many, the same for any split of the rows, tells the shift, its weights and the noise; what the unweighted
    reference expects, and rows without their like in it, are summed over all rows. Without a shift of the
    features means are exact; otherwise, and for the area under the ROC curve, the noise of the sample is part
    of the interval. Memory: one block per worker and the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.engines import ArraySource, estimate_without_labels
    >>> from calipers.performance import LabelFreePerformance
    >>> rng = np.random.default_rng(0)
    >>> p, q = rng.random(500), rng.random(300_000)
    >>> model = LabelFreePerformance(random_state=0).fit(p, rng.random(500) < p)
    >>> source = ArraySource({"probabilities": q}, piece_rows=10_000)
    >>> found = estimate_without_labels({"error": model}, source)
    >>> found["error"].n, found["error"].details["sampled_rows"]
    (300000, 100000)
    >>> bool(found["error"].low < 0.25 < found["error"].high)
    True
    """
    pieces = source.pieces()
    n_rows, origins = sum(piece.rows for piece in pieces), list(dict.fromkeys(p.origin for p in pieces))
    states: dict[str, State] = {name: model.state(n_rows, origins) for name, model in models.items()}
    with unchanging_files(pieces):
        finished = run_states(states, pieces, engine_of(engine), progress or silent)
    found = {name: finished[name].finish() for name in models}
    return EstimateTable({name: one for name, one in found.items() if isinstance(one, Estimate)})
