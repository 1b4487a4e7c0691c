"""What the split-conformal classifier and regressor share: train, split, group, weigh, warn."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _num_samples, check_is_fitted

from calipers.arrays import Array, as_numpy, spawn
from calipers.conformal.grouping import calibration_groups, fit_grouping, group_rows
from calipers.conformal.p_values import CalibrationScores, match_groups
from calipers.conformal.ranks import smallest_calibration_size
from calipers.exceptions import InputError, SmallSampleWarning, UnseenGroupWarning, warn
from calipers.inputs import check_groups


class SplitConformalEstimator(MetaEstimatorMixin, BaseEstimator, ABC):
    """Base of the two predictors; a subclass names its default model and scores its rows."""

    estimator: Any
    groups: Any
    calibration_size: Any
    random_state: Any
    likelihood_ratio: Any

    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Train the model; with a ``calibration_size``, on part of the rows, and conformalize on the rest.

        Parameters
        ----------
        X : table
            Rows of features, handed to the model as they are.
        y : array of shape (n,)
            Outcomes.
        groups : array of shape (n,), optional
            Group of each row, when ``calibration_size`` is set and groups are given as an array.
        **fit_params
            Handed to the model's ``fit`` (``sample_weight`` for instance), routed by metadata routing
            where that is enabled; rows left for calibration are left out of them.

        Returns
        -------
        self
        """
        params = self._fit_params(fit_params)
        self._forget()
        y = _one_column(y)
        if self.calibration_size is None:
            if groups is not None:
                raise InputError("groups belong to conformalize while calibration_size is None.")
            self._train(X, y, params)
            return self
        X, y, groups = indexable(X, y, groups)
        n = _num_samples(X)
        train, held_out = self._split_rows(n)
        self._train(
            _safe_indexing(X, train),
            None if y is None else _safe_indexing(y, train),
            {k: _safe_indexing(v, train) if _has_rows(v, n) else v for k, v in params.items()},
        )
        group_part = None if groups is None else _safe_indexing(groups, held_out)
        self.conformalize(_safe_indexing(X, held_out), _safe_indexing(y, held_out), groups=group_part)
        return self

    def predict(self, X: Any) -> Any:
        """The model's own point prediction; needs `fit` only.

        Parameters
        ----------
        X : table
            Rows of features.

        Returns
        -------
        array of shape (n,)
        """
        return self._model().predict(X)

    @abstractmethod
    def conformalize(self, X: Any, y: Any, groups: Any = None, *, weights: Any = None) -> Self:
        """Score calibration rows and keep the scores."""

    def get_metadata_routing(self) -> MetadataRouter:
        """Where fit parameters go: to the model's ``fit``."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self._template(), method_mapping=mapping)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or isinstance(self.estimator, FrozenEstimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._template()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    # The model

    @abstractmethod
    def _default_model(self) -> Any:
        """The model used when none was given."""

    def _template(self) -> Any:
        return self._default_model() if self.estimator is None else self.estimator

    def _model(self) -> Any:
        if hasattr(self, "estimator_"):
            return self.estimator_
        if isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            return self.estimator
        raise NotFittedError(
            f"This {type(self).__name__} is not fitted yet: call fit first, "
            "or wrap a fitted model in sklearn.frozen.FrozenEstimator."
        )

    def _train(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        self.estimator_ = clone(self._template()).fit(X, y, **params)
        self._adopt(self.estimator_)

    def _adopt(self, model: Any) -> None:
        """Take over what scikit-learn's tools expect to find on a fitted estimator."""
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def _fit_params(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        if not get_config()["enable_metadata_routing"]:
            return {k: v for k, v in fit_params.items() if v is not None}
        return dict(process_routing(self, "fit", **fit_params).estimator.fit)

    # Rows

    def _split_rows(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        count = _calibration_count(self.calibration_size, n)
        order = self._generators()[0].permutation(n)
        return np.sort(order[count:]), np.sort(order[:count])

    def _generators(self) -> list[np.random.Generator]:
        """Independent sources for the split and for the draws, the same for the same integer seed."""
        return spawn(self.random_state, 2)

    def _forget(self) -> None:
        for name in (
            "calibration_",
            "group_labels_",
            "grouping_",
            "calibration_weights_",
            "weighted_",
            "draw_seed_",
            "n_calibration_",
        ):
            if hasattr(self, name):
                delattr(self, name)

    def _calibrated(self) -> CalibrationScores:
        self._model()
        if not hasattr(self, "calibration_"):
            raise NotFittedError(
                f"This {type(self).__name__} is not conformalized yet: call conformalize with rows the "
                "model was not trained on, or set calibration_size."
            )
        table: CalibrationScores = self.calibration_
        return table

    def _start_calibration(self, X: Any, groups: Any, weights: Any) -> Array | None:
        """Draw seed, grouping and weights of the calibration rows; returns their group codes."""
        model, n = self._model(), _num_samples(X)
        if n == 0:
            raise InputError("X must have at least one calibration row, got none.")
        self._forget()
        if not hasattr(self, "estimator_"):
            self._adopt(model)
        self.n_calibration_ = n
        self.draw_seed_ = int(self._generators()[1].integers(2**63 - 1))
        self.grouping_ = fit_grouping(self.groups, X, self._predict_for_groups)
        given = self._row_weights(X, weights, n)
        if given is not None:
            self.calibration_weights_ = given
        rows = calibration_groups(self.grouping_, X, groups)
        if rows is None:
            self.group_labels_ = None
            return None
        self.group_labels_, codes = check_groups(rows, n)
        return codes.astype(np.int64)

    def _predict_for_groups(self, X: Any) -> Any:
        return self._model().predict(X)

    def _n_groups(self) -> int:
        return 1 if self.group_labels_ is None else len(self.group_labels_)

    def _test_groups(self, X: Any, groups: Any) -> np.ndarray | None:
        """Group codes of test rows; a group never seen in calibration gets the code after the last."""
        rows = group_rows(self.grouping_, X, groups)
        if (rows is None) != (self.group_labels_ is None):
            raise InputError(
                "groups must be given to conformalize and to every prediction, or to neither; "
                f"they were given to {'prediction' if self.group_labels_ is None else 'conformalize'} only."
            )
        if rows is None or self.group_labels_ is None:
            return None
        return match_groups(self.group_labels_, rows, _num_samples(X))

    def _row_weights(self, X: Any, given: Any, n: int) -> np.ndarray | None:
        """Likelihood-ratio weights of the rows: given, or from ``likelihood_ratio``; None without either."""
        if given is None and self.likelihood_ratio is not None:
            source = self.likelihood_ratio
            given = source.predict(X) if hasattr(source, "predict") else source(X)
        if given is None:
            return None
        values = np.asarray(as_numpy(given, name="weights"), dtype=np.float64)
        if values.shape != (n,):
            raise InputError(f"weights must have one entry per row ({n}), got shape {values.shape}.")
        if not (np.isfinite(values) & (values >= 0)).all():
            row = int(np.argmin(np.isfinite(values) & (values >= 0)))
            raise InputError(f"weights must be finite and not negative, got {values[row]} at row {row}.")
        return values

    def _test_weights(self, X: Any, weights: Any) -> np.ndarray | None:
        found = self._row_weights(X, weights, _num_samples(X))
        if (found is None) == hasattr(self, "calibration_weights_"):
            raise InputError("weights must be given to conformalize and to every prediction, or to neither.")
        return found

    # Warnings

    def _warn_unseen(self, groups: np.ndarray | None) -> None:
        if groups is None:
            return
        unseen = int(np.sum(groups == self._n_groups()))
        if unseen:
            warn(
                f"{unseen} of {len(groups)} rows belong to groups without calibration rows; nothing can be "
                f"excluded for them. Calibration saw {_some(self.group_labels_)}.",
                UnseenGroupWarning,
            )

    def _warn_small(
        self, sizes: np.ndarray, levels: tuple[Any, ...], what: str, needed: int | None = None
    ) -> None:
        strictest = min(levels)
        needed = smallest_calibration_size(strictest) if needed is None else needed
        small = sizes[(sizes > 0) & (sizes < needed)]
        if small.size:
            where = "" if self.calibration_.sizes.size == 2 else f" in {small.size} group(s) or label(s)"
            warn(
                f"With {int(small.min())} calibration rows{where} no {what} at alpha={float(strictest):g}; "
                f"{needed} are needed. Use a larger alpha or more rows.",
                SmallSampleWarning,
            )

    def _used_sizes(self, groups: np.ndarray | None) -> np.ndarray:
        """Calibration rows of every cell that the test rows ask about, (groups, labels)."""
        table = self.calibration_
        cells = table.sizes.reshape(table.n_groups + 1, table.n_labels)
        return np.asarray(cells[:1] if groups is None else cells[np.unique(groups)])


def _one_column(y: Any) -> Any:
    """Outcomes as a vector: a table of one column is flattened with scikit-learn's warning."""
    if getattr(y, "ndim", 1) != 2:
        return y
    if y.shape[1] != 1:
        raise InputError(f"y must be one outcome per row, got {y.shape[1]} columns.")
    return column_or_1d(y, warn=True)


def _has_rows(value: Any, n: int) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, dict)) and _num_samples(value) == n


def _calibration_count(size: Any, n: int) -> int:
    """Rows set aside: a share of the rows, or a whole number of them."""
    if isinstance(size, numbers.Integral) and not isinstance(size, bool):
        count = int(size)
    elif isinstance(size, numbers.Real) and not isinstance(size, bool) and 0 < float(size) < 1:
        count = int(np.ceil(n * float(size)))
    else:
        raise InputError(
            "calibration_size must be None, a share strictly between 0 and 1, or a whole number, "
            f"got {size!r}."
        )
    if not 1 <= count < n:
        raise InputError(
            f"calibration_size={size!r} with n_samples={n} leaves {max(n - count, 0)} rows for training and "
            f"{min(count, n)} for calibration; both need at least one."
        )
    return count


def _some(labels: Any) -> str:
    shown = ", ".join(repr(v) for v in np.asarray(labels)[:5].tolist())
    return shown + (", ..." if len(labels) > 5 else "")
