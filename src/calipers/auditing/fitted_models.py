"""A fitted model as the arguments of an audit: it is asked for everything it can state."""

from __future__ import annotations

from typing import Any

from calipers.auditing.result import Audit
from calipers.auditing.running import audit
from calipers.exceptions import InputTypeError


def audit_model(model: Any, X: Any, y: Any, *, alpha: float = 0.1, **options: Any) -> Audit:
    """Audit what a fitted model says about these rows: p-values, sets, intervals, probabilities.

    Parameters
    ----------
    model : fitted estimator
        With ``predict_p``, ``predict_set``, ``predict_interval`` or ``predict_proba``: a predictor of
        `calipers.conformal`, or any classifier of scikit-learn.
    X : table of shape (n, d)
        Rows that the model was neither trained nor conformalised on.
    y : array of shape (n,)
        What happened.
    alpha : float
        Allowed miscoverage.
    **options
        Further arguments of `calipers.audit`.

    Returns
    -------
    Audit
        Its coverage test allows for the calibration rows of our own predictors (one group, marginal).

    Raises
    ------
    InputTypeError
        For a model that states no uncertainty, such as a plain regressor.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calipers.conformal import ConformalClassifier
    >>> import calipers
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(calibration_size=0.5, random_state=0).fit(X[::2], y[::2])
    >>> calipers.audit_model(model, X[1::2], y[1::2], random_state=0)
    Audit(ConformalClassifier, 75 rows, severity none)
    """
    stated = stated_by(model, X, alpha=alpha)
    known = {"X": X, "name": type(model).__name__} | stated | options
    return audit(y, alpha=alpha, **known)


def states_uncertainty(model: Any) -> bool:
    """Whether the model has one of the methods that an audit reads."""
    return any(hasattr(model, m) for m in ("predict_p", "predict_set", "predict_interval", "predict_proba"))


def stated_by(model: Any, X: Any, *, alpha: float) -> dict[str, Any]:
    """What the model states, by the names of the arguments of an audit."""
    if hasattr(model, "predict_interval"):
        return {"intervals": model.predict_interval(X, alpha=alpha)} | _calibration_rows(model)
    stated: dict[str, Any] = {}
    if hasattr(model, "predict_p"):
        stated["p_values"] = model.predict_p(X)
    elif hasattr(model, "predict_set"):
        stated["sets"] = model.predict_set(X, alpha=alpha)
    if stated:
        stated |= _calibration_rows(model)
    if hasattr(model, "predict_proba"):
        stated["probabilities"] = model.predict_proba(X)
    if not stated:
        raise InputTypeError(
            f"an audit needs stated uncertainty, and {type(model).__name__} has none of predict_proba, "
            "predict_set, predict_p and predict_interval. "
            "Wrap it: ConformalRegressor(model, calibration_size=0.4)."
        )
    classes = getattr(model, "classes_", None)
    return stated if classes is None else stated | {"classes": classes}


def _calibration_rows(model: Any) -> dict[str, int]:
    """Rows that one of our predictors was conformalised on, where its coverage has their law."""
    cells = getattr(model, "calibration_", None)
    if cells is None or not type(model).__module__.startswith("calipers."):
        return {}
    other_law = (
        cells.n_labels * cells.n_groups > 1
        or hasattr(model, "weighted_")
        or getattr(model, "guarantee", "marginal") != "marginal"
    )
    return {} if other_law else {"n_calibration": int(cells.sizes.sum())}
