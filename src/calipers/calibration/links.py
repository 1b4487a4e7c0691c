"""Parametric calibrators: Platt, temperature, beta and monotone spline links."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from calipers.arrays import Array, as_numpy
from calipers.calibration.calibrator import BinaryCalibrator, CalibrationRows, beside
from calipers.calibration.isotonic import pool_ties
from calipers.calibration.link_families import make_family
from calipers.calibration.minimum_error import minimum_error
from calipers.exceptions import InputError
from calipers.inference import fit_logistic
from calipers.inputs import check_count

OBJECTIVES = ("likelihood", "calibration_error")
# Pulls the coefficients to their start with the force of 1e-8 of the rows: invisible on ordinary data, and a
# finite answer where the classes are separated and the likelihood has no maximum.
_RIDGE = 1e-8


class LinkCalibrator(BinaryCalibrator):
    r"""A smooth non-decreasing link with few parameters, fitted to outcomes.

    Needs fewer rows than isotonic regression and keeps the ranking. A family that is too rigid leaves a
    calibration error that more rows do not remove: test what comes out.

    Parameters
    ----------
    family : {"platt", "temperature", "beta", "spline"}
        The log-odds of the calibrated probability, with s = log(p / (1 - p)):
        ``a s + b`` (platt); ``s / T`` (temperature); ``a log p - b log(1 - p) + c`` (beta [1]_); a monotone
        cubic spline of s, straight beyond the data (spline). a, b, 1/T and the spline's increments are >= 0.
    objective : {"likelihood", "calibration_error"}
        Maximum likelihood, or the smallest c_emp [2]_ by a sequence of linear programs started there.
    n_knots : int
        Inner knots of the spline, at quantiles of s.
    inputs : {"probabilities", "scores"}
        With "scores" s is the score itself (Platt's original form); not for beta.
    pos_label : label or None
        The positive label; None takes the larger of two.

    Attributes
    ----------
    coefficients_ : array
        Coefficients of the family's features: (b, a) for platt, (1/T,) for temperature, (c, a, b) for beta.
    link_ : LinkFamily
        The family with its knots.

    Notes
    -----
    Stated probabilities are clipped to [2^-24, 1 - 2^-24] before the logarithm. The likelihood carries a
    penalty towards the identity worth a millionth of a row, so separated classes give a finite answer.
    Minimum c_emp pays only for a family that is too rigid, with much data; otherwise likelihood generalises
    better, and its log loss is never worse. Cost: a sort, then a few passes over the distinct scores per
    step.

    References
    ----------
    .. [1] Kull, Silva Filho and Flach (2017), Beta calibration. AISTATS.
    .. [2] Gao, Parameswaran and Peng (2017), Section 3.2.3 (minimum calibration error). AISTATS.

    Examples
    --------
    >>> from calipers.calibration import LinkCalibrator
    >>> from calipers.datasets import ScoreWorld
    >>> p, y = ScoreWorld("uniform", "slope", 0.5).sample(20_000, random_state=0)
    >>> LinkCalibrator("temperature").fit(p, y).coefficients_.round(2)
    array([0.5])
    """

    def __init__(
        self,
        family: str = "platt",
        objective: str = "likelihood",
        *,
        n_knots: int = 5,
        inputs: str = "probabilities",
        pos_label: Any = None,
    ) -> None:
        self.family = family
        self.objective = objective
        self.n_knots = n_knots
        self.inputs = inputs
        self.pos_label = pos_label

    def _fit(self, rows: CalibrationRows) -> None:
        if self.objective not in OBJECTIVES:
            raise InputError(f"objective must be one of {', '.join(OBJECTIVES)}, got {self.objective!r}.")
        n_knots = check_count(self.n_knots, name="n_knots", minimum=0)
        scores, means, weights = pool_ties(*rows)
        self.link_ = make_family(self.family, self.inputs, scores, weights, n_knots)
        features = self.link_.features(scores)
        start, lower = self.link_.start, self.link_.lower
        fit = fit_logistic(features, means, weights=weights, start=start, lower=lower, ridge=_RIDGE)
        fitted = fit.coefficients
        if self.objective == "calibration_error":
            fitted = minimum_error(features, means, weights, fitted, lower)
        self.coefficients_ = fitted

    def _map(self, scores: Array) -> Array:
        odds = self.link_.features(np.asarray(as_numpy(scores), dtype=np.float64)) @ self.coefficients_
        return beside(np.asarray(expit(odds)), scores)
