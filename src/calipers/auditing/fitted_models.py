"""A fitted model as the arguments of an audit: it is asked for everything it can state."""

from __future__ import annotations

from typing import Any

from calipers.auditing.audit_result import Audit
from calipers.auditing.model_answers import KINDS, Question, answer_of
from calipers.auditing.run_audit import audit


def audit_model(model: Any, X: Any, y: Any, *, alpha: float = 0.1, **options: Any) -> Audit:
    """Audit what a fitted model says about these rows: p-values, sets, intervals, quantiles, probabilities.

    Parameters
    ----------
    model : fitted model, function, or list of quantile regressors
        Predictors of `calipers.conformal`, MAPIE, crepes, puncc and TorchCP; classifiers with
        ``predict_proba`` (scikit-learn, LightGBM, XGBoost, CatBoost); regressors with
        ``predict(X, return_std=True)``, read as a normal distribution; quantile regressors and quantile
        forests; networks of torch, which return probabilities or logits; classification pipelines of Hugging
        Face with ``top_k=None``; functions of X that return probabilities, logits, label and score per class,
        or a mapping with names of arguments of `calipers.audit`.
    X : table of shape (n, d), or n texts
        Rows that the model was neither trained nor conformalised on. Texts are given to the model only.
    y : array of shape (n,)
        What happened.
    alpha : float
        Allowed miscoverage.
    **options
        Further arguments of `calipers.audit`; they win over what the model says.

    Returns
    -------
    Audit
        Its ``origin`` says what the model was asked for. The coverage test allows for the calibration rows of
        predictors with one threshold (ours, split ones of MAPIE, crepes); for others give ``n_calibration``.

    Raises
    ------
    InputTypeError
        For a model that states no uncertainty, such as a plain regressor.
    InputError
        For a level that the model cannot state, and a standard deviation that is not positive.

    Notes
    -----
    The standard deviation of a Gaussian process is that of the outcome only when its kernel has a
    ``WhiteKernel``; otherwise it is that of the function behind it, and the audit will find it too small.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calipers.conformal import ConformalClassifier
    >>> import calipers
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(calibration_size=0.5, random_state=0).fit(X[::2], y[::2])
    >>> found = calipers.audit_model(model, X[1::2], y[1::2], random_state=0)
    >>> found
    Audit(ConformalClassifier, 75 rows, severity none)
    >>> found.origin
    'ConformalClassifier asked for predict_p'
    """
    name = name_of(model)
    answer = answer_of(model, Question(X, y, alpha, options.get("random_state")))
    known = {} if _are_texts(X) else {"X": X}
    known |= {"name": name, "origin": f"{name} asked for {', '.join(answer.calls)}"}
    return audit(y, alpha=alpha, **(known | answer.stated | options))


def _are_texts(X: Any) -> bool:
    """Whether the rows are texts, which no part of an audit could read."""
    return not hasattr(X, "columns") and len(X) > 0 and isinstance(X[0], str)


def name_of(model: Any) -> str:
    """How the report calls the model: its type, or the name of a function."""
    if isinstance(model, list | tuple):
        return ", ".join(dict.fromkeys(type(part).__name__ for part in model))
    return str(getattr(model, "__name__", type(model).__name__))


def states_uncertainty(model: Any) -> bool:
    """Whether an audit knows how to ask the model."""
    return any(kind.holds(model) for kind in KINDS)


def stated_by(model: Any, X: Any, y: Any = None, *, alpha: float) -> dict[str, Any]:
    """What the model states, by the names of the arguments of an audit."""
    return answer_of(model, Question(X, y, alpha)).stated
