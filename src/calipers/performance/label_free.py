"""What a model scores on rows whose labels have not come, from a labelled reference sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import RandomState, as_array, as_numpy, generator
from calipers.exceptions import InputError
from calipers.inputs import (
    Features,
    check_classes,
    check_confidence,
    check_features,
    check_positive_probabilities,
    check_probabilities,
    check_same_length,
    check_vector,
    encode_labels,
)
from calipers.inputs.block_sizes import BLOCK_ROWS
from calipers.inputs.row_keys import Place
from calipers.inputs.rows import Rows
from calipers.performance.covariate_shift import Comparison
from calipers.performance.expected_loss import LabelModel, LossModel, folds_of
from calipers.performance.expected_loss_interval import (
    MeanInterval,
    Tally,
    calibration_bound,
    mean_interval,
)
from calipers.performance.label_free_metrics import RATIOS, metric_interval, pilot_tables
from calipers.performance.label_free_state import LabelFreeState, Seen
from calipers.performance.label_losses import POINT_LOSSES, LabelTable, label_losses
from calipers.performance.shift import effective_sample_size
from calipers.results import Estimate

TASKS = ("classification", "regression")
# Losses that a bound of the calibration error says something about.
_BOUNDED_VARIATION = ("zero_one", "brier", "accuracy")
_ASSUMPTION = "holds while outcomes given the inputs follow the law of the reference"


class LabelFreePerformance(BaseEstimator):
    """Estimate of the loss a model will turn out to have on rows without labels.

    Classification: the expected loss under the stated probabilities, after they were calibrated on a labelled
    reference. Regression: the loss predicted by a model of the loss. Where features are given and their
    distribution has shifted, calibration looks at them too, and the reference is weighted to look like the
    new rows: the mean difference between its realised and its expected losses corrects the estimate.

    Parameters
    ----------
    loss : str, pair of costs or callable
        Classification: "zero_one", "log", "brier"; costs (false positive, false negative); a function
        ``loss(y, probabilities)`` with one value per row; or a metric, "accuracy", "precision", "recall",
        "f1" or "auroc". Regression: "squared", "absolute", or a function ``loss(y, prediction)``.
    confidence : float
        Level of the interval.
    random_state : RandomState
        Folds, resampling and the shift test.
    task : {"classification", "regression"} or None
        None: regression for the losses of regression, classification otherwise.
    classes : sequence of K labels or None
        The label of every column of the probabilities, when it cannot be read off ``y``.
    classifier : scikit-learn classifier with predict_proba, or None
        Tells new rows from reference rows. None: logistic regression on features and squares.
    certified : bool
        Whether to widen the interval by the guaranteed bound of the calibration error, where there is one.

    Attributes
    ----------
    n_reference_ : int
        Reference rows.
    reference_loss_ : float or None
        Mean loss on the reference; None for ratios such as F1.

    See Also
    --------
    CandidatePerformance : The loss of one new case, with a guarantee.
    RiskMonitor : Watches losses once the labels arrive.

    Notes
    -----
    With m the expected losses (fitted out of fold) and w the weights (1 without a shift), the middle of the
    interval is mean m over new rows + sum w (loss - m) / sum w over the reference. Its error is the
    difference of two means of independent noise; the half-width is a Student quantile times the root of
    their variances and of that of the weights (refitted on 15 resamples). The reference row that
    contributes most is counted twice, so that a loss with rare large values is not taken for a calm one.
    The value takes the correction only as far as it stands out from its noise, and what the weights add to it
    only beyond two standard errors.

    m is learned without weights, because the law of an outcome given its inputs is that of the reference:
    weights of a shift would leave few effective rows. Labels: an isotonic and a logistic map of the
    statements, with a shift also a logistic one of statements and features; losses of a regression: boosted
    trees and a line; mixed by their squared error out of fold. No weight exceeds the root of the number of
    reference rows.

    No shift found (classifier two-sample test at 5 %) means weights of 1. New rows without their like in the
    reference, by an unknown category or the distance to the nearest reference row, are not extrapolated: the
    value is that of the other rows, and the interval counts them with the best and the worst loss they can
    have. **If the law of the outcome given the inputs has moved, no estimate without labels can see it.**

    Precision, recall, F1 and the area under the ROC curve are ratios of such means; their intervals are those
    of their first-order error. Rows without their like are left out of them.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import LabelFreePerformance
    >>> rng = np.random.default_rng(0)
    >>> x, x_new = rng.normal(size=2000), rng.normal(1.0, 1.0, size=3000)
    >>> def truth(x): return 1 / (1 + np.exp(-x))
    >>> def stated(x): return 1 / (1 + np.exp(-2 * x))          # over-confident
    >>> y, y_new = rng.random(2000) < truth(x), rng.random(3000) < truth(x_new)
    >>> model = LabelFreePerformance(loss="brier", random_state=0).fit(stated(x), y, x)
    >>> estimate = model.estimate(stated(x_new), x_new)
    >>> realised = np.mean(2 * (stated(x_new) - y_new) ** 2)
    >>> bool(estimate.low < realised < estimate.high)
    True
    """

    def __init__(
        self,
        *,
        loss: Any = "zero_one",
        confidence: float = 0.95,
        random_state: RandomState = None,
        task: str | None = None,
        classes: Any = None,
        classifier: Any = None,
        certified: bool = False,
    ) -> None:
        self.loss = loss
        self.confidence = confidence
        self.random_state = random_state
        self.task = task
        self.classes = classes
        self.classifier = classifier
        self.certified = certified

    def fit(self, probabilities: Any, y: Any, X: Any = None) -> Self:
        """Take in the labelled reference: rows the model was not trained on.

        Parameters
        ----------
        probabilities : array (n,), (n, 2) or (n, K)
            Stated probabilities; in regression the point predictions (n,).
        y : array (n,)
            Labels, or outcomes.
        X : table of features, optional
            With it, covariate shift is tested and undone.
        """
        check_confidence(self.confidence)
        self._kind()  # a loss that makes no sense is refused before anything is read
        rng = generator(self.random_state)
        self.seed_ = int(rng.integers(2**63))
        n = check_same_length(probabilities=probabilities, y=y)
        self.n_reference_, self.features_ = n, None if X is None else _features(X, n)
        self.reference_model_ = self._model_of(
            probabilities, y, folds_of(n, rng), int(rng.integers(2**31 - 1))
        )
        ratio = self._kind() == "ratio"
        self.reference_loss_ = None if ratio else self._told(float(self.reference_model_.realised.mean()))
        return self

    def estimate(self, probabilities: Any, X: Any = None) -> Estimate:
        """The mean loss (or metric) that these rows will turn out to have.

        Parameters
        ----------
        probabilities : array (N,), (N, 2) or (N, K)
            Stated probabilities of the new rows; in regression their point predictions.
        X : table of features, optional
            Given exactly when it was given to ``fit``.

        Returns
        -------
        Estimate
            ``low`` and ``high`` are for the value that will be realised on these rows. ``details``: ``shift``
            (test and whether it was found), ``effective_rows`` of the weighted reference, ``shares`` of the
            half-width (sampling, weights, calibration), ``calibration_bound`` (only without a shift, for two
            classes and losses of bounded variation), ``unsupported_rows``, ``sampled_rows``,
            ``reference_loss``.
        """
        check_is_fitted(self, "n_reference_")
        if (X is None) != (self.features_ is None):
            raise InputError("X must be given to fit and to estimate, or to neither.")
        point = isinstance(self.reference_model_, LossModel)
        new = _vector(probabilities, "prediction") if point else _two_columns(probabilities)
        self.check_statements_(new)
        given: dict[str, Any] = {"y_pred" if point else "probabilities": new}
        if X is not None:
            given["X"] = _features(X, len(new))
        state = self.state(len(new))
        for start in range(0, len(new), BLOCK_ROWS):
            rows = {name: value[start : start + BLOCK_ROWS] for name, value in given.items()}
            state.absorb(Rows(rows, place=Place("array", start)))
        return state.finish()

    def state(self, n_rows: int, origins: Sequence[str] = ("array",)) -> LabelFreeState:
        """What absorbs blocks of unlabelled rows, merges and finishes into the estimate of them all.

        `calipers.engines.estimate_without_labels` fills it from files and arrays of any size.

        Parameters
        ----------
        n_rows : int
            Rows there are in all.
        origins : sequence of str
            The files they lie in, in their order.
        """
        check_is_fitted(self, "n_reference_")
        return LabelFreeState(self, n_rows, origins)

    def _kind(self) -> str:
        """Which estimate: "ratio", "mean" of a classifier's losses or "point" for those of a regression."""
        if self.task is not None and self.task not in TASKS:
            raise InputError(f"task must be one of {', '.join(TASKS)} or None, got {self.task!r}.")
        named_point = isinstance(self.loss, str) and self.loss in POINT_LOSSES
        if self.task == "regression" or (self.task is None and named_point):
            if not (named_point or callable(self.loss)):
                told = ", ".join(POINT_LOSSES)
                raise InputError(f"the loss of a regression must be {told} or a function, got {self.loss!r}.")
            return "point"
        return "ratio" if isinstance(self.loss, str) and self.loss in RATIOS else "mean"

    def _model_of(self, probabilities: Any, y: Any, folds: np.ndarray, seed: int) -> LabelModel | LossModel:
        if self._kind() == "point":
            prediction, outcome = _vector(probabilities, "prediction"), _vector(y, "y")
            loss = self.loss if callable(self.loss) else POINT_LOSSES[self.loss]
            return LossModel(prediction, _vector(loss(outcome, prediction), "the losses"), folds, seed)
        stated = _two_columns(probabilities)
        n_classes = stated.shape[1]
        if self._kind() == "ratio" and n_classes != 2:
            raise InputError(f"{self.loss} is for two classes, got {n_classes}; use accuracy, log or brier.")
        known = check_classes(self.classes, as_numpy(as_array(y, name="y")), n_classes, name="y")
        self.classes_ = np.arange(n_classes) if known is None else known
        codes = as_numpy(encode_labels(y, n_classes, classes=self.classes, name="y", table=probabilities))
        # Accuracy is one minus the zero-one loss; ratios look at the labels only.
        named = isinstance(self.loss, str) and self.loss in ("accuracy", *RATIOS)
        table = label_losses("zero_one" if named else self.loss, self.classes_)
        return LabelModel(stated, codes, table, folds)

    def check_statements_(self, new: np.ndarray) -> None:
        """Refuse statements that are not of the shape of the reference."""
        known = self.reference_model_.statements
        if new.shape[1:] != known.shape[1:]:
            raise InputError(
                f"probabilities must have the {known.shape[1]} columns of fit, got {new.shape[1]}."
            )

    def pilot_tables_(self) -> tuple[LabelTable, ...]:
        """The losses whose means make up the estimate."""
        if self._kind() == "ratio":
            return pilot_tables(self.loss)
        model = self.reference_model_
        # The loss of a regression has no table of labels; its model knows the one loss there is.
        return (model.table if isinstance(model, LabelModel) else np.asarray,)

    def estimate_of_(self, seen: Seen) -> Estimate:
        """The estimate from what was seen of the rows."""
        return self._ratio(seen) if self._kind() == "ratio" else self._mean(seen)

    def _told(self, value: float) -> float:
        return 1.0 - value if self.loss == "accuracy" else value

    def _mean(self, seen: Seen) -> Estimate:
        """The estimate of a mean of losses."""
        compared, kept = seen.compared, seen.compared.supported
        bound, why = self._calibration_bound(compared)
        inside = MeanInterval(np.nan, np.nan, 0.0, {"sampling": 0.0, "weights": 0.0})
        if kept.any():
            inside = mean_interval(
                self.reference_model_, seen.new[kept], compared, self.confidence, seen.population
            )
        extra = bound if self.certified and bound is not None else 0.0
        total = inside.half + extra
        shares = {name: part * inside.half / total if total else 0.0 for name, part in inside.shares.items()}
        ends = seen.tally.ends(replace(inside, half=total))
        low, high = sorted(self._told(end) for end in ends)
        return Estimate(
            name=_name(self.loss),
            value=self._told(inside.value),
            low=low,
            high=high,
            confidence=self.confidence,
            n=seen.tally.rows,
            method=self._method(seen),
            reason="; ".join(filter(None, [_unsupported(seen.tally, ends[1]), _ASSUMPTION])),
            details=self._details(seen)
            | {"shares": shares | {"calibration": extra / total if total else 0.0}}
            | {"calibration_bound": bound, "calibration_bound_reason": why},
        )

    def _calibration_bound(self, compared: Comparison) -> tuple[float | None, str]:
        """Guaranteed bound of the error that miscalibration can cause, and why there is none."""
        model = self.reference_model_
        if compared.found:
            return None, "a shift was found, and the bound is about rows like the reference"
        if not isinstance(model, LabelModel) or model.statements.shape[1] != 2:
            return None, "the bound is for two classes"
        named = isinstance(self.loss, str) and self.loss in _BOUNDED_VARIATION
        if not (named or isinstance(self.loss, (tuple, list))):
            return None, "the bound is for losses of bounded variation: zero_one, brier and pairs of costs"
        return calibration_bound(model, self.confidence), ""

    def _ratio(self, seen: Seen) -> Estimate:
        """Precision, recall, F1 or the area under the curve."""
        kept, model, tally = seen.compared.supported, self.reference_model_, seen.tally
        if not kept.any() or not isinstance(model, LabelModel):
            raise InputError("no row has its like in the reference: the metric cannot be estimated.")
        found = metric_interval(
            self.loss, model, seen.new[kept], seen.compared, self.confidence, seen.population
        )
        value, half = found.value, found.half
        missing = tally.rows - tally.kept
        left_out = f"{missing} of {tally.rows} rows have no like in the reference and are left out"
        reasons = [left_out if missing else "", _ASSUMPTION]
        if np.isnan(value):
            reasons = [f"{self.loss} is undefined: fewer than one event is expected", *reasons]
        return Estimate(
            name=_name(self.loss),
            value=value,
            low=max(0.0, min(found.centre - half, value)) if half >= 0 else None,
            high=min(1.0, max(found.centre + half, value)) if half >= 0 else None,
            confidence=self.confidence,
            n=tally.kept,
            method=self._method(seen) + ", first-order error of a ratio",
            reason="; ".join(filter(None, reasons)),
            details=self._details(seen) | {"shares": found.shares | {"calibration": 0.0}},
        )

    def _method(self, seen: Seen) -> str:
        how = "a model of the loss" if self._kind() == "point" else "calibrated probabilities"
        weighted = ", weighted for the shift of the features" if np.ptp(seen.compared.weights) > 0 else ""
        sampled = "" if seen.population is None else f", shift and noise from {len(seen.new)} sampled rows"
        return f"expected loss by {how}, corrected by realised losses of the reference{weighted}{sampled}"

    def _details(self, seen: Seen) -> dict[str, Any]:
        compared = seen.compared
        return {
            "shift": {
                "p_value": compared.test.p_value,
                "area": compared.test.area,
                "found": compared.found,
                "tested": "the model's statements" if self.features_ is None else "features",
            },
            "effective_rows": effective_sample_size(compared.weights),
            "largest_weight": float(compared.weights.max()),
            "reference_rows": self.n_reference_,
            "reference_loss": self.reference_loss_,
            "unsupported_rows": seen.tally.rows - seen.tally.kept,
            "sampled_rows": len(seen.new),
        }


def _name(loss: Any) -> str:
    if isinstance(loss, str) and loss in ("accuracy", *RATIOS):
        return f"{loss} without labels"
    told = loss if isinstance(loss, str) else "cost" if isinstance(loss, (tuple, list)) else "own"
    return f"mean {told} loss without labels"


def _unsupported(tally: Tally, high: float) -> str:
    if tally.kept == tally.rows:
        return ""
    how = "the upper end is infinite, because their loss has no bound"
    if np.isfinite(high):
        how = "they count with the best and the worst loss they can have"
    return f"{tally.rows - tally.kept} of {tally.rows} rows have no like in the reference: {how}"


def _vector(values: Any, name: str) -> np.ndarray:
    return np.asarray(as_numpy(check_vector(values, name=name)), dtype=np.float64)


def _two_columns(probabilities: Any) -> np.ndarray:
    """Probabilities (n, K); a vector is the positive class of two."""
    if as_array(probabilities, name="probabilities").ndim == 1:
        p = np.asarray(as_numpy(check_positive_probabilities(probabilities)), dtype=np.float64)
        return np.column_stack([1.0 - p, p])
    return np.asarray(as_numpy(check_probabilities(probabilities)), dtype=np.float64)


def _features(X: Any, n: int) -> Features:
    features = check_features(X)
    if len(features) != n:
        raise InputError(f"probabilities and X must have the same length, got {n} and {len(features)}.")
    return features
