"""A fitted model and a repair as one scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from calipers.auditing.repair.repair_result import SavedRepair
from calipers.exceptions import InputError, InputTypeError


class _RepairedModel(BaseEstimator):
    """What both share: the model as it is, its statements through the repair.

    ``fit`` fits nothing. The model was trained and the repair chosen on other rows already.
    """

    _task: ClassVar[str]

    def __init__(self, estimator: Any, repair: Any, *, groups: Any = None) -> None:
        self.estimator = estimator
        self.repair = repair
        self.groups = groups

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check that the repair fits the model; neither is changed.

        Parameters
        ----------
        X, y : ignored
            There for pipelines.

        Returns
        -------
        self
        """
        if not isinstance(self.repair, SavedRepair):
            raise InputTypeError(
                f"repair must be what audit.repair() or load_repair gives, got {type(self.repair).__name__}."
            )
        if self.repair.rule.task != self._task:
            raise InputError(f"the repair is of {self.repair.rule.task}, {type(self).__name__} is not.")
        check_is_fitted(self.estimator)
        self.fitted_ = True
        return self

    def __sklearn_is_fitted__(self) -> bool:
        # A fitted model and a repair need nothing further.
        return isinstance(self.repair, SavedRepair)

    def __sklearn_clone__(self) -> Self:
        # A copy without the training of the model would state nothing that the repair fits.
        return type(self)(self.estimator, self.repair, groups=self.groups)

    def __getstate__(self) -> dict[str, Any]:
        # The evidence of a repair, two audits with their rows, is not needed to apply it.
        state = dict(super().__getstate__())
        if isinstance(self.repair, SavedRepair):
            state["repair"] = SavedRepair(rule=self.repair.rule)
        return state

    @property
    def n_features_in_(self) -> int:
        """Columns of X that the model was trained on."""
        return int(self.estimator.n_features_in_)

    def predict(self, X: Any) -> Any:
        """The model's own prediction.

        Parameters
        ----------
        X : table
            Rows of features.

        Returns
        -------
        array (n,)
        """
        return self.estimator.predict(X)

    def _applied(self, stated: dict[str, Any], X: Any, groups: Any) -> dict[str, Any]:
        """What the model states about these rows, repaired."""
        self.fit()
        needs = self.repair.needs
        given = stated | ({"X": X} if "X" in needs else {})
        if "groups" in needs:
            given["groups"] = self._group_labels(X, groups)
        repaired: dict[str, Any] = self.repair.apply(given)
        return stated | repaired

    def _group_labels(self, X: Any, groups: Any) -> Any:
        from calipers.conformal.grouping import group_rows

        found = group_rows(self.groups, X, groups)
        if found is None:
            raise InputError(
                "this repair has a threshold per group: give groups, or name their column: groups='site'."
            )
        return found


class RepairedClassifier(ClassifierMixin, _RepairedModel):
    """A fitted classifier whose probabilities, p-values or sets go through a repair.

    Parameters
    ----------
    estimator : fitted classifier
        With ``predict_proba``, or one of `calipers.conformal`.
    repair : Repair or SavedRepair
        From ``audit.repair()`` of that model's statements, or from `load_repair`.
    groups : str, int or callable, optional
        Where the groups of a row stand, when the repair needs them: a column of X, or a function of X.

    Notes
    -----
    `predict` is the label with the largest repaired probability.

    Examples
    --------
    >>> import calipers
    >>> from calipers.auditing import RepairedClassifier
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(4000, n_features=10, n_redundant=5, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> found = calipers.audit(y[1000:], probabilities=model.predict_proba(X[1000:]), random_state=0)
    >>> RepairedClassifier(model, found.repair()).predict_proba(X[:5]).shape
    (5, 2)
    """

    _task = "classification"

    @property
    def classes_(self) -> Any:
        """Labels of the columns."""
        return self.estimator.classes_

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        """The label with the largest repaired probability; the model's own where it states none.

        Parameters
        ----------
        X : table
            Rows of features.
        groups : array (n,), optional
            Group of every row.

        Returns
        -------
        array (n,)
        """
        if not hasattr(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict(X))
        labels: np.ndarray = np.asarray(self.classes_)[self.predict_proba(X, groups).argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any, groups: Any = None) -> np.ndarray:
        """Repaired probabilities (n, K).

        Parameters
        ----------
        X : table
            Rows of features.
        groups : array (n,), optional
            Group of every row.

        Returns
        -------
        array (n, K)
        """
        return np.asarray(self._statements(X, groups)["probabilities"])

    def predict_set(self, X: Any, groups: Any = None) -> np.ndarray:
        """Repaired sets (n, K) at the level of the audit.

        Parameters
        ----------
        X : table
            Rows of features.
        groups : array (n,), optional
            Group of every row.

        Returns
        -------
        bool array (n, K)
        """
        from calipers.inputs.p_value_sets import sets_at

        stated = self._statements(X, groups)
        if "sets" in stated:
            return np.asarray(stated["sets"])
        if "p_values" not in stated:
            raise InputError("the model was audited without sets or p-values; it has none to repair.")
        return np.asarray(sets_at(np.asarray(stated["p_values"]), self.repair.rule.alphas[0]))

    def predict_p(self, X: Any, groups: Any = None) -> np.ndarray:
        """Repaired p-values (n, K).

        Parameters
        ----------
        X : table
            Rows of features.
        groups : array (n,), optional
            Group of every row.

        Returns
        -------
        array (n, K)
        """
        stated = self._statements(X, groups)
        if "p_values" not in stated:
            raise InputError("the model was audited without p-values; it has none to repair.")
        return np.asarray(stated["p_values"])

    def _statements(self, X: Any, groups: Any) -> dict[str, Any]:
        rule, stated = self.repair.rule, {}
        if hasattr(self.estimator, "predict_proba"):
            stated["probabilities"] = np.asarray(self.estimator.predict_proba(X), dtype=float)
        if "p_values" in rule.columns and hasattr(self.estimator, "predict_p"):
            stated["p_values"] = self.estimator.predict_p(X)
        if "sets" in rule.columns and hasattr(self.estimator, "predict_set"):
            stated["sets"] = self.estimator.predict_set(X, alpha=rule.alphas[0])
        return self._applied(stated, X, groups)


class RepairedRegressor(RegressorMixin, _RepairedModel):
    """A fitted regressor with ``predict_interval`` whose intervals go through a repair.

    Parameters
    ----------
    estimator : fitted regressor
        One of `calipers.conformal`, or any with ``predict_interval(X, alpha=...)``.
    repair : Repair or SavedRepair
        From ``audit.repair()`` of that model's intervals, or from `load_repair`.
    groups : str, int or callable, optional
        Where the groups of a row stand, when the repair needs them.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> from calipers.auditing import RepairedRegressor
    >>> from calipers.conformal import ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(3000, 2))
    >>> y = X[:, 1] + (0.1 + 2 * (X[:, 0] > 0.8)) * rng.normal(size=3000)
    >>> model = ConformalRegressor(calibration_size=0.5, random_state=0).fit(X[:500], y[:500])
    >>> repair = calipers.audit_model(model, X[500:], y[500:], random_state=0).repair()
    >>> widths = np.ptp(RepairedRegressor(model, repair).predict_interval([[0.1, 0.5], [0.9, 0.5]]), axis=1)
    >>> bool(widths[1] > 4 * widths[0])
    True
    """

    _task = "regression"

    def predict_interval(self, X: Any, alpha: Any = None, groups: Any = None) -> np.ndarray:
        """Repaired intervals (n, 2), or (n, 2, L), at the level of the audit.

        Parameters
        ----------
        X : table
            Rows of features.
        alpha : float, optional
            Must be the level of the audit; the repair knows no other.
        groups : array (n,), optional
            Group of every row.

        Returns
        -------
        array (n, 2)
        """
        alphas = self.repair.rule.alphas
        level = alphas[0] if len(alphas) == 1 else list(alphas)
        if alpha is not None and alpha != level:
            raise InputError(
                f"the repair was made at alpha={level}, got {alpha}. Repair again at that level."
            )
        stated = {"intervals": self.estimator.predict_interval(X, alpha=level)}
        return np.asarray(self._applied(stated, X, groups)["intervals"])
