"""Split-conformal classification: prediction sets, p-values, confidence and credibility."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from calipers.arrays import Array, as_numpy, namespace, on_device_of
from calipers.conformal.blocks import row_blocks
from calipers.conformal.draws import row_draws
from calipers.conformal.label_levels import levels_by_label, one_level_per_label
from calipers.conformal.p_values import CalibrationScores, match_groups
from calipers.conformal.score_table import score_rule
from calipers.conformal.scores import RankedRule, Rule, levels_last
from calipers.conformal.split_estimator import SplitConformalEstimator
from calipers.conformal.weighted import WeightedScores, calibration_order
from calipers.exceptions import InputError, InputTypeError, UnseenGroupWarning, warn
from calipers.inputs import check_alphas, check_probabilities, check_same_length, exact_level
from calipers.inputs.row_checks import one_column

# Which draws a stream serves; calibration and test rows never share one.
_CALIBRATION_U, _TEST_U, _TAU = 0, 1, 2
_BLOCK = 1 << 17


class ConformalClassifier(ClassifierMixin, SplitConformalEstimator):
    """Wrap any classifier with ``predict_proba`` and get prediction sets that cover ``1 - alpha``.

    Parameters
    ----------
    estimator : classifier, optional
        The model; default logistic regression. A fitted model comes in a ``FrozenEstimator`` and
        needs no `fit`.
    nonconformity : str or callable
        "lac" (smallest sets), "aps", "raps", "saps", "margin", "top_k"; one of these functions in a
        ``functools.partial`` with its options; or any function from (n, K) probabilities to (n, K)
        scores (with ``randomized=True`` it is called with u as second argument).
    label_conditional : bool
        Cover ``1 - alpha`` of the rows of every label, not only on average.
    groups : str, int, callable or grouping estimator, optional
        Cover ``1 - alpha`` in every group (Mondrian): a column of X by name or index, a function of X,
        or an object with ``fit(X, predict_proba)`` and ``assign(X)``, which is copied and fitted on the
        calibration rows. Arrays of groups are given to `conformalize` and ``predict_*`` instead.
    calibration_size : None, float or int
        None: `fit` trains only and `conformalize` follows. A share or a number of rows: `fit` sets that
        many aside at random and does both, so pipelines, grid searches and scorers work.
    smoothed : bool
        Break ties at random (eq. 2). Smoothed p-values of true labels are exactly uniform; smoothed sets
        follow them, so a label may be dropped with probability at most alpha even where the
        unsmoothed set would be full for lack of calibration rows.
    randomized : bool
        Draw the u of "aps", "raps", "saps" and "top_k"; otherwise u = 0 and everything is deterministic.
    random_state : None, int or Generator
        Source of the split and of the draws.
    likelihood_ratio : callable or object with predict, optional
        Weights for covariate shift, worked out from X: see `LikelihoodRatio`. Weights known by number
        are given to `conformalize` and ``predict_*`` instead.

    Attributes
    ----------
    estimator_ : the fitted model.
    classes_ : labels, in the order of the columns of sets and p-values.
    calibration_ : the calibration scores, sorted within groups and labels.
    n_calibration_ : how many calibration rows there were, which `calipers.audit` takes.

    Notes
    -----
    Sets keep the labels with p > alpha, decided in whole numbers; without smoothing that is
    ``score <= conformal_quantile``. Draws are keyed to the row's probabilities: the same fitted predictor
    gives the same row the same answer in any batch, as long as rows do not repeat and the model's
    probabilities do not depend on the batch. A group or label without calibration rows is never
    excluded, with a warning. Marginal coverage holds over calibration sets; that of one predictor varies
    as Beta(k, n + 1 - k).

    References
    ----------
    Vovk, Gammerman, Shafer (2005), Algorithmic learning in a random world.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calipers.conformal import ConformalClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(calibration_size=0.5, random_state=0)
    >>> model.fit(X[::2], y[::2]).predict_set(X[1::25], alpha=0.1).sum(axis=1)
    array([1, 1, 1, 1, 2, 1])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        nonconformity: Any = "lac",
        label_conditional: bool = False,
        groups: Any = None,
        calibration_size: Any = None,
        smoothed: bool = False,
        randomized: bool = False,
        random_state: Any = None,
        likelihood_ratio: Any = None,
    ) -> None:
        self.estimator = estimator
        self.nonconformity = nonconformity
        self.label_conditional = label_conditional
        self.groups = groups
        self.calibration_size = calibration_size
        self.smoothed = smoothed
        self.randomized = randomized
        self.random_state = random_state
        self.likelihood_ratio = likelihood_ratio

    def conformalize(self, X: Any, y: Any, groups: Any = None, *, weights: Any = None) -> Self:
        """Score rows the model was not trained on; a second call replaces the first.

        Parameters
        ----------
        X : table
            Calibration rows, exchangeable with the rows to come.
        y : array of shape (n,)
            Their labels. A label the model never saw is scored infinitely strange, with a warning.
        groups : array of shape (n,), optional
            Group of each row, when groups are given as arrays.
        weights : array of shape (n,), optional
            Likelihood ratio of each row (target over source) under covariate shift.

        Returns
        -------
        self
        """
        rule = self._rule()
        codes = self._start_calibration(X, groups, weights)
        P = self._probabilities(X)
        labels = self._label_codes(y, int(P.shape[0]))
        u = self._uniforms(P, _CALIBRATION_U)
        known = labels >= 0
        device_labels = on_device_of(np.where(known, labels, 0), P)
        scores = rule.at_labels(P, device_labels, u)
        if not known.all():
            xp = namespace(scores)
            infinite = xp.full_like(scores, float("inf"))
            scores = xp.where(on_device_of(known, P), scores, infinite)
        self._keep(scores, labels, known, codes)
        return self

    def predict_p(self, X: Any, groups: Any = None, *, weights: Any = None) -> Array:
        """The p-value of every label for every row.

        Parameters
        ----------
        X : table
            Rows to predict.
        groups : array of shape (n,), optional
            Group of each row, when groups were given as arrays.
        weights : array of shape (n,), optional
            Likelihood ratio of each row, when weights were given as arrays.

        Returns
        -------
        float64 array of shape (n, K)
            Columns in the order of ``classes_``; 1 where nothing is known about a label.
        """
        table, P, codes, own = self._prepare(X, groups, weights)
        self._warn_absent(codes)
        return self._p_values(table, P, codes, own)

    def predict_set(
        self, X: Any, alpha: Any = 0.1, groups: Any = None, *, weights: Any = None, label_alpha: Any = None
    ) -> Array:
        """The labels with p-value above alpha.

        Parameters
        ----------
        X : table
            Rows to predict.
        alpha : float, Fraction, Decimal or list of them
            Allowed miscoverage.
        groups, weights : array of shape (n,), optional
            As in `predict_p`.
        label_alpha : sequence of K levels, or mapping of label to level, optional
            A level for every label in the order of ``classes_``, instead of ``alpha``: label k is kept when
            its p-value exceeds the k-th.
            With ``label_conditional=True`` the rows of label k are then covered with probability
            ``1 - label_alpha[k]``; otherwise only ``1 - max(label_alpha)`` on average is promised.

        Returns
        -------
        bool array of shape (n, K), or (n, K, L) for a list of L levels
        """
        self._calibrated()
        levels, columns = levels_by_label(alpha, label_alpha, self.classes_)
        table, P, codes, own = self._prepare(X, groups, weights)
        self._warn_absent(codes)
        if own is None:
            self._warn_small_labels(self._used_sizes(codes), levels, columns)
        sets = self._sets(table, P, codes, own, levels)
        return one_level_per_label(sets, columns)

    def predict_labels(
        self, X: Any, alpha: Any = 0.1, groups: Any = None, *, weights: Any = None, label_alpha: Any = None
    ) -> list[list[Any]]:
        """`predict_set` at one level as a list of labels per row.

        Parameters
        ----------
        X : table
            Rows to predict.
        alpha : float, Fraction or Decimal
            Allowed miscoverage, one level.
        groups, weights : array of shape (n,), optional
            As in `predict_p`.
        label_alpha : sequence or mapping, optional
            A level for every label, as in `predict_set`.

        Returns
        -------
        list of lists of labels
        """
        if not check_alphas(alpha)[1]:
            raise InputError("predict_labels takes one alpha; call it once per level, or use predict_set.")
        sets = as_numpy(self.predict_set(X, alpha, groups, weights=weights, label_alpha=label_alpha))
        labels = np.asarray(self.classes_)
        return [labels[row].tolist() for row in sets]

    def predict_confidence(self, X: Any, groups: Any = None, *, weights: Any = None) -> Array:
        """Confidence (1 minus the second largest p-value) and credibility (the largest) of every row.

        High confidence means that all labels but one can be excluded; low credibility means that the row
        is unlike the calibration rows whatever its label.

        Parameters
        ----------
        X : table
            Rows to predict.
        groups, weights : array of shape (n,), optional
            As in `predict_p`.

        Returns
        -------
        float64 array of shape (n, 2)
        """
        p = self.predict_p(X, groups, weights=weights)
        xp = namespace(p)
        ordered = xp.sort(p, axis=1)
        last = int(p.shape[1]) - 1
        second = ordered[:, last - 1] if last else xp.zeros_like(ordered[:, 0])
        return xp.stack([1 - second, ordered[:, last]], axis=1)

    def _default_model(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()

    def _train(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        self._rule()  # a wrong option is refused before time is spent on the model
        super()._train(X, y, params)

    def _rule(self) -> Rule:
        rule = score_rule(self.nonconformity)
        if self.randomized and not rule.randomizable:
            raise InputError(
                f'randomized=True has no meaning for nonconformity="{self.nonconformity}", which takes no u. '
                "Use aps, raps, saps or top_k, or smoothed=True for random tie-breaking."
            )
        return rule

    def _probabilities(self, X: Any) -> Array:
        model = self._model()
        if not hasattr(model, "predict_proba"):
            raise InputTypeError(
                f"estimator must have predict_proba, {type(model).__name__} has none. "
                "Wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        return check_probabilities(model.predict_proba(X), name="predict_proba(X)")

    def _predict_for_groups(self, X: Any) -> Any:
        return self._model().predict_proba(X)

    def _uniforms(self, P: Array, stream: int) -> Array | None:
        return row_draws(P, seed=self.draw_seed_, stream=stream) if self.randomized else None

    def _label_codes(self, y: Any, n: int) -> np.ndarray:
        """Column of every label, -1 for labels the model does not know."""
        labels = one_column(as_numpy(y, name="y"))
        check_same_length(X=np.empty(n), y=labels)
        known = np.asarray(self.classes_)
        codes = match_groups(known, labels, n, name="y")
        codes = np.where(codes == len(known), -1, codes)
        unknown = codes < 0
        if unknown.all():
            raise InputError(
                f"y holds no label the model knows; it knows {', '.join(map(repr, known[:5].tolist()))}, "
                f"got {labels.tolist()[0]!r} at row 0."
            )
        if unknown.any():
            warn(
                f"{int(unknown.sum())} of {n} calibration labels are unknown to the model "
                f"(first at row {int(np.argmax(unknown))}: {labels[unknown].tolist()[0]!r}); "
                "no set can contain them, and the others grow to make up for it.",
                UnseenGroupWarning,
            )
        return codes

    def _keep(self, scores: Array, labels: np.ndarray, known: np.ndarray, codes: Array | None) -> None:
        """Sort the calibration scores into their cells."""
        if self.label_conditional and not known.all():
            scores, labels, codes = scores[on_device_of(known, scores)], labels[known], _rows(codes, known)
            if hasattr(self, "calibration_weights_"):
                self.calibration_weights_ = self.calibration_weights_[known]
        n_labels = len(self.classes_) if self.label_conditional else 1
        self.calibration_ = CalibrationScores.build(
            scores,
            labels=on_device_of(labels, scores) if self.label_conditional else None,
            n_labels=n_labels,
            groups=None if codes is None else on_device_of(codes, scores),
            n_groups=self._n_groups(),
        )
        if hasattr(self, "calibration_weights_"):
            cells = (0 if codes is None else codes * n_labels) + (labels if self.label_conditional else 0)
            cells = np.broadcast_to(cells, (int(scores.shape[0]),))
            order = calibration_order(as_numpy(scores), cells)
            self.weighted_ = WeightedScores(self.calibration_, self.calibration_weights_, order)

    def _prepare(self, X: Any, groups: Any, weights: Any) -> tuple[Any, ...]:
        table = self._calibrated()
        codes = self._test_groups(X, groups)
        own = self._test_weights(X, weights)
        self._warn_unseen(codes)
        return table, self._probabilities(X), codes, own

    def _warn_absent(self, codes: np.ndarray | None) -> None:
        """Labels without calibration rows in a group that has some."""
        if not self.label_conditional:
            return
        sizes = self._used_sizes(codes)
        absent = np.flatnonzero(((sizes == 0) & (sizes.sum(axis=1) > 0)[:, None]).any(axis=0))
        if absent.size:
            names = ", ".join(repr(v) for v in np.asarray(self.classes_)[absent][:5].tolist())
            warn(
                f"{absent.size} of {len(self.classes_)} labels have no calibration rows ({names}); "
                "they cannot be excluded from any set.",
                UnseenGroupWarning,
            )

    def _warn_small_labels(
        self, sizes: np.ndarray, levels: tuple[Any, ...], columns: np.ndarray | None
    ) -> None:
        """Too few calibration rows for the level of their label; without cells by label, for any level."""
        what = "set leaves a label out"
        if columns is None or sizes.shape[1] == 1:
            self._warn_small(sizes, levels, what)
            return
        for i, level in enumerate(levels):
            self._warn_small(sizes[:, columns == i], (level,), what)

    def _p_values(
        self, table: CalibrationScores, P: Array, codes: np.ndarray | None, own: np.ndarray | None
    ) -> Array:
        scores = self._rule().matrix(P, self._uniforms(P, _TEST_U))
        tau = row_draws(P, seed=self.draw_seed_, stream=_TAU) if self.smoothed else None
        if own is not None:
            draw = None if tau is None else as_numpy(tau)
            return on_device_of(self.weighted_.p_values(as_numpy(scores), own, codes, draw), P)
        return table.p_values(scores, groups=_moved(codes, P), tau=tau)

    def _sets(
        self,
        table: CalibrationScores,
        P: Array,
        codes: np.ndarray | None,
        own: np.ndarray | None,
        levels: tuple[Any, ...],
    ) -> Array:
        xp, groups = namespace(P), _moved(codes, P)
        if own is not None:
            p = self._p_values(table, P, codes, own)
            return levels_last(xp.stack([p > float(exact_level(level)) for level in levels]))
        rule, u = self._rule(), self._uniforms(P, _TEST_U)
        if self.smoothed:
            scores, tau = rule.matrix(P, u), row_draws(P, seed=self.draw_seed_, stream=_TAU)
            kept = [table.smoothed_sets(scores, level, groups=groups, tau=tau) for level in levels]
            return levels_last(xp.stack(kept))
        thresholds = table.thresholds(levels)
        if isinstance(rule, RankedRule) and table.n_labels == 1:
            n = int(P.shape[0])
            shape = (n, len(levels))
            limits = (
                xp.broadcast_to(thresholds[:1, :], shape)
                if groups is None
                else xp.take(thresholds, groups, axis=0)
            )
            return rule.sets(P, limits, u)
        return _thresholded(rule, table, P, u, thresholds, groups)


def _thresholded(
    rule: Rule, table: CalibrationScores, P: Array, u: Array | None, thresholds: Array, groups: Array | None
) -> Array:
    """``score <= threshold of its cell`` at every level, in blocks of rows."""
    xp, levels = namespace(P), int(thresholds.shape[1])
    masks = xp.empty((levels, *P.shape), dtype=xp.bool, device=P.device)
    for rows in row_blocks(P, host_entries=_BLOCK):
        scores = rule.matrix(P[rows, ...], None if u is None else u[rows])
        codes = None if groups is None else groups[rows]
        for i in range(levels):
            masks[i, rows, ...] = table.threshold_sets(scores, thresholds[:, i], groups=codes)
    return levels_last(masks)


def _moved(codes: np.ndarray | None, like: Array) -> Array | None:
    return None if codes is None else on_device_of(codes, like)


def _rows(values: Any, keep: np.ndarray) -> Any:
    return None if values is None else values[keep]
