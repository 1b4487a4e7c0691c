"""Test first, then repair: calibration for models that need it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from calipers.arrays import Array, RandomState, as_numpy, floating, generator
from calipers.calibration.calibrator import BinaryCalibrator, CalibrationRows
from calipers.calibration.isotonic import IsotonicCalibrator
from calipers.calibration.links import LinkCalibrator
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_alpha, check_count
from calipers.metrics import calibration_error, calibration_tests
from calipers.metrics.row_scores import event_brier_rows
from calipers.results import Estimate
from calipers.results.formatting import p_in_words


class ConditionalCalibrator(BinaryCalibrator):
    """A calibrator that leaves a model alone unless its calibration is rejected and repair helps.

    Calibrating a calibrated model makes it worse: isotonic regression on 2000 rows triples the calibration
    error of logistic regression on Adult. So the model is tested first; only a rejected one is repaired, by
    the simplest candidate whose cross-fitted probabilities pass the same test.

    Parameters
    ----------
    calibrators : sequence of calibrators or None
        Candidates, simplest first; a monotone spline by likelihood, then isotonic regression.
    alpha : float
        Level of the test: the share of calibrated models that are repaired all the same.
    n_folds : int
        Folds of the cross-fit that compares the candidates.
    pos_label : label or None
        The positive label; None takes the larger of two.
    random_state : int, Generator or None
        Source of the test's draws and of the folds.

    Attributes
    ----------
    needed_ : bool
        Whether calibration was rejected at ``alpha``.
    repaired_ : bool
        Whether probabilities are changed by ``predict``; False also when every candidate made them worse.
    calibrator_ : calibrator or None
        The chosen one, fitted on all rows.
    before_, after_ : Estimate
        Calibration error as stated, and of the chosen candidate's cross-fitted probabilities (None when not
        needed).
    preview_ : array or None
        The cross-fitted probabilities that ``after_`` is about.
    test_ : Estimate
        The verdict of all tests before repair; its ``p_value`` decides.
    verdict_ : str
        What was done and why, in a sentence.

    Notes
    -----
    The test is the verdict of `calipers.metrics.calibration_tests`: five statistics, slopes and oscillations
    among them, one exact Monte-Carlo null under calibration. Cross-fitted probabilities of a row come from a
    calibrator that did not see it, so ``after_`` is an honest preview (a test of it is approximate: the folds
    share rows). A candidate must also lower the cross-fitted Brier score.

    Examples
    --------
    >>> from calipers.calibration import ConditionalCalibrator
    >>> from calipers.datasets import ScoreWorld
    >>> p, y = ScoreWorld("uniform", "shift", 1.0).sample(2000, random_state=0)
    >>> ConditionalCalibrator(random_state=0).fit(p, y).repaired_
    True
    """

    inputs = "probabilities"

    def __init__(
        self,
        *,
        calibrators: Any = None,
        alpha: float = 0.05,
        n_folds: int = 5,
        pos_label: Any = None,
        random_state: RandomState = None,
    ) -> None:
        self.calibrators = calibrators
        self.alpha = alpha
        self.n_folds = n_folds
        self.pos_label = pos_label
        self.random_state = random_state

    def _fit(self, rows: CalibrationRows) -> None:
        check_alpha(self.alpha)
        check_count(self.n_folds, name="n_folds", minimum=2)
        p, y = as_numpy(rows.scores).astype(np.float64), as_numpy(rows.outcomes)
        if y.dtype != bool:
            raise InputError("y must hold labels: soft labels have no test of calibration to decide by.")
        weights = None if rows.weights is None else as_numpy(rows.weights)
        rng = generator(self.random_state)
        self.before_ = calibration_error(y, p, sample_weight=weights, random_state=rng)
        tests = calibration_tests(y, p, sample_weight=weights, random_state=rng)
        self.test_, self._impossible = tests["verdict"], tests["impossible"]
        self.needed_ = _p(self.test_) < self.alpha
        self.calibrator_: BinaryCalibrator | None = None
        self.after_: Estimate | None = None
        self.preview_: np.ndarray | None = None
        if self.needed_:
            self._repair(p, y, weights, rng)
        self.repaired_ = self.calibrator_ is not None
        self.verdict_ = self._sentence()

    def _repair(
        self, p: np.ndarray, y: np.ndarray, weights: np.ndarray | None, rng: np.random.Generator
    ) -> None:
        folds = rng.permutation(y.size) % self.n_folds
        best = _brier(p, y, weights)
        for candidate in self._candidates():
            preview = cross_fit(candidate, p, y, weights, folds)
            score = _brier(preview, y, weights)
            if score >= best:
                continue
            best = score
            self.preview_ = preview
            self.after_ = calibration_error(y, preview, sample_weight=weights, random_state=rng)
            self.calibrator_ = clone(candidate).fit(p, y, weights)
            if _p(_verdict(preview, y, weights, rng)) >= self.alpha:
                return

    def _candidates(self) -> list[BinaryCalibrator]:
        if self.calibrators is None:
            return [LinkCalibrator("spline"), IsotonicCalibrator()]
        if not isinstance(self.calibrators, (list, tuple)) or not all(
            hasattr(one, "fit") and hasattr(one, "get_params") for one in self.calibrators
        ):
            shown = repr(self.calibrators)[:60]
            raise InputTypeError(f"calibrators must be a list of calibrators, got {shown}.")
        return list(self.calibrators)

    def _map(self, scores: Array) -> Array:
        return floating(scores) if self.calibrator_ is None else self.calibrator_.predict(scores)

    def _sentence(self) -> str:
        before = f"calibration error {float(self.before_):.4f}"
        verdict = f"five tests of calibration together: {p_in_words(_p(self.test_))}"
        if self.needed_ and float(self._impossible) > 0:
            verdict += f"; {float(self._impossible):g} outcomes had been stated as impossible"
        if not self.needed_:
            return f"Left alone: {before} is what a calibrated model reads ({verdict})."
        if self.calibrator_ is None or self.after_ is None:
            return f"Left alone: {before} ({verdict}), but no candidate lowers the Brier score."
        name = type(self.calibrator_).__name__
        after = f"{float(self.after_):.4f}"
        return f"Repaired by {name}: {before} ({verdict}) becomes {after} on rows it did not see."


def _p(estimate: Estimate) -> float:
    # Without a p-value there is no ground to repair.
    return 1.0 if estimate.p_value is None else estimate.p_value


def _verdict(p: np.ndarray, y: np.ndarray, weights: np.ndarray | None, rng: np.random.Generator) -> Estimate:
    return calibration_tests(y, p, sample_weight=weights, random_state=rng)["verdict"]


def calibrate_if_needed(
    probabilities: Any,
    y: Any,
    *,
    calibrators: Any = None,
    alpha: float = 0.05,
    n_folds: int = 5,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
) -> ConditionalCalibrator:
    """Test calibration, repair only what is broken, and say what was done.

    Parameters
    ----------
    probabilities : array (n,) or (n, 2)
        Stated probability of the positive class, on rows the model was not trained on.
    y : array (n,)
        What happened.
    calibrators : sequence of calibrators or None
        Candidates, simplest first; a monotone spline by likelihood, then isotonic regression.
    alpha : float
        Level of the test.
    n_folds : int
        Folds of the cross-fit that compares the candidates.
    pos_label : label or None
        The positive label; None takes the larger of two.
    sample_weight : array (n,) or None
        Repetitions of the rows.
    random_state : int, Generator or None
        Source of the test's draws and of the folds.

    Returns
    -------
    ConditionalCalibrator
        Fitted: ``predict`` gives the probabilities to use, ``verdict_`` says why, ``repaired_`` whether
        they changed.

    Raises
    ------
    InputError
        For probabilities outside [0, 1], unequal lengths, or soft labels.

    Examples
    --------
    >>> from calipers.calibration import calibrate_if_needed
    >>> from calipers.datasets import ScoreWorld
    >>> p, y = ScoreWorld().sample(2000, random_state=1)
    >>> calibrate_if_needed(p, y, random_state=0).repaired_  # calibrated by construction
    False
    """
    calibrator = ConditionalCalibrator(
        calibrators=calibrators, alpha=alpha, n_folds=n_folds, pos_label=pos_label, random_state=random_state
    )
    return calibrator.fit(probabilities, y, sample_weight)


def cross_fit(
    calibrator: Any,
    p: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    folds: np.ndarray,
) -> np.ndarray:
    """Each row's probabilities, (n,) or (n, K), from a calibrator fitted on the other folds."""
    preview = np.empty(p.shape)
    for fold in np.unique(folds):
        out = folds == fold
        kept = None if weights is None else weights[~out]
        preview[out] = as_numpy(clone(calibrator).fit(p[~out], y[~out], kept).predict(p[out]))
    return preview


def _brier(p: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> float:
    return float(np.average(event_brier_rows(p, y), weights=weights))
