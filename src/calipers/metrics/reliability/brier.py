"""The Brier score and what it is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.inference import Moments, SimulatedLaw, mean_estimate
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import NO_EXACT_LAW, Weights, check_confidence, check_count
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.calibration_test import (
    MAX_COINS,
    levels_to_draw,
    simulated_hits,
)
from calipers.metrics.reliability.cumulative_differences import pooled_scores
from calipers.metrics.reliability.distinct_scores import ScoreLevels
from calipers.metrics.reliability.isotonic import isotonic_frequencies
from calipers.metrics.reliability.multiclass import check_reliability_rows
from calipers.metrics.row_scores import event_brier_rows
from calipers.results import Estimate, EstimateTable

_NO_LAW = "an isotonic fit has no normal law, so there is no standard error or interval"


def brier_decomposition(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    n_draws: int = 199,
    random_state: RandomState = None,
) -> EstimateTable:
    """The mean squared error of the probabilities, split into miscalibration, discrimination, uncertainty.

    With two classes ``brier`` is the Brier score of scikit-learn; with more it is the Brier score of the
    statement "the top label is right", not the sum over all classes.

    brier = miscalibration - discrimination + uncertainty, exactly. Miscalibration (0 is best) is what
    recalibration could win, discrimination (large is good) is what the order of the scores is worth, and
    uncertainty is the score of always stating the base rate.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels, or soft labels in [0, 1].
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class; with K > 2 those of the top label.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    classes : sequence of K labels, optional
        The label of every column.
    confidence : float
        Level of the interval of the Brier score.
    n_draws : int
        Draws of the null law of the miscalibration.
    random_state : int, Generator or None
        Source of those draws.

    Returns
    -------
    EstimateTable
        ``brier``, ``miscalibration``, ``discrimination``, ``uncertainty``.

    Raises
    ------
    InputError
        As `calibration_error`.

    Notes
    -----
    CORP decomposition: the recalibrated probabilities are the isotonic regression of the outcomes on the
    scores, ties pooled. Miscalibration is therefore never negative and positive even for a calibrated model;
    its null law redraws the outcomes from the stated probabilities. Interval of the Brier score: that of rows
    of a known range. Cost: one sort, and one linear pass per draw.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import brier_decomposition
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(2000)
    >>> table = brier_decomposition(rng.random(2000) < f**2, f, random_state=0)
    >>> print(table["miscalibration"])
    miscalibration 0.03867; a valid predictor would read up to 0.004237 (p = 0.005); an isotonic fit has no
    normal law, so there is no standard error or interval
    """
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    ).to_host()
    level, draws = check_confidence(confidence), check_count(n_draws, name="n_draws")
    values, mass, sums = pooled_scores(rows)
    lost, won = _parts(values, mass, sums)
    total = float(mass.sum())
    n = total if rows.weights is None else Weights.of(rows.weights).effective
    brier = _brier(rows, level)
    score = float(brier)
    shared: dict[str, Any] = {"n": n, "method": "isotonic (CORP) decomposition", "reason": _NO_LAW}
    return EstimateTable(
        [
            brier,
            _miscalibration(rows, (values, mass, sums), lost, shared, draws, generator(random_state)),
            Estimate(name="discrimination", value=won, **shared),
            Estimate(name="uncertainty", value=score - lost + won, **shared),
        ],
        title="What the Brier score is made of",
    )  # fmt: skip


def _brier(rows: BinaryRows, confidence: float) -> Estimate:
    """Weighted mean of (y - f)^2, which lies in [0, 1] in every row."""
    moments = Moments()
    for f, y, w in rows.blocks():
        moments = moments.merge(Moments.of(event_brier_rows(f, y), w))
    mean = mean_estimate(moments, name="brier", confidence=confidence, limits=(0.0, 1.0))
    return replace(mean, reason="its law depends on how hard the problem is, so there is no null")


def _parts(values: np.ndarray, mass: np.ndarray, sums: np.ndarray) -> tuple[float, float]:
    """Miscalibration and discrimination, from pooled scores.

    With g the isotonic frequencies, sum of w (y - f)^2 - w (y - g)^2 over a level needs the level's sum of
    outcomes only: mass (f^2 - g^2) - 2 sums (f - g).
    """
    g, total = isotonic_frequencies(mass, sums), mass.sum()
    base = sums.sum() / total
    lost = np.sum(mass * (values**2 - g**2) - 2 * sums * (values - g)) / total
    won = np.sum(mass * (base**2 - g**2) - 2 * sums * (base - g)) / total
    return max(0.0, float(lost)), max(0.0, float(won))


def _miscalibration(
    rows: BinaryRows,
    pooled: tuple[np.ndarray, np.ndarray, np.ndarray],
    value: float,
    shared: dict[str, Any],
    n_draws: int,
    rng: np.random.Generator,
) -> Estimate:
    reason = "soft labels have no Bernoulli law" if rows.soft else "" if rows.whole else NO_EXACT_LAW
    levels = None if reason else levels_to_draw(ScoreLevels(*pooled), n_draws=n_draws, most_coins=MAX_COINS)
    if levels is None:
        reason = f"{_NO_LAW}; {reason or 'too many distinct scores to simulate the null'}"
        return Estimate(name="miscalibration", value=value, **(shared | {"reason": reason}))

    def lost(hits: np.ndarray) -> float:
        return _parts(levels.values, levels.trials, hits.astype(float))[0]

    draws = [lost(hits) for batch in simulated_hits(levels, n_draws, rng) for hits in batch]
    return Estimate(
        name="miscalibration",
        value=value,
        **shared,
        # Of cells of the score the test looks at what is lost by cell.
        **SimulatedLaw(np.array(draws)).estimate_fields(lost(levels.hits), level=NULL_LEVEL),
        details={"noise_floor": float(np.mean(draws))},
    )
