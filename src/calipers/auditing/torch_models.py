"""Networks of torch, and predictors of TorchCP, asked about rows; torch itself is never imported here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inputs.row_checks import one_column

# How far the probabilities of a row may be from a sum of one, in single precision.
ROUNDING = 1e-4
BATCH_ROWS = 4096


def answer_of_network(network: Any, X: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Probabilities that a network states, whether its last layer gives them or logits."""
    outputs = as_numpy(_outputs(network, X))
    probabilities, reading = probabilities_of(outputs)
    return {"probabilities": probabilities}, (f"forward pass without gradients, read as {reading}",)


def answer_of_torchcp(predictor: Any, X: Any, *, alpha: float) -> tuple[dict[str, Any], tuple[str, ...]]:
    """P-values of a classifier; intervals of a regressor at the level that it was calibrated for."""
    rows = _tensor(X, _network_of(predictor))
    with _torch().no_grad():
        if ".classification." in f"{type(predictor).__module__}.":
            return {"p_values": as_numpy(predictor.predict_p(rows))}, ("predict_p",)
        stated = as_numpy(predictor.predict(rows)).reshape(len(rows), -1)
    if stated.shape[1] != 2:
        raise InputError(f"TorchCP must state one interval per row, got shape {stated.shape}.")
    return {"intervals": stated}, (f"predict, calibrated by you for alpha={alpha:g}",)


def probabilities_of(outputs: np.ndarray) -> tuple[np.ndarray, str]:
    """Probabilities behind what a network or a function returned, and how it was read."""
    values = one_column(np.asarray(outputs, dtype=np.float64))
    if values.ndim not in (1, 2) or not np.isfinite(values).all():
        raise InputError(
            f"a model must return a finite number per row, or per row and class, got shape {values.shape}."
        )
    within = bool(((values >= 0) & (values <= 1)).all())
    if values.ndim == 1:
        return (
            (values, "probability of the positive class")
            if within
            else (expit(values), "logit of the positive class")
        )
    if within and np.abs(values.sum(axis=1) - 1).max() <= ROUNDING:
        return values / values.sum(axis=1, keepdims=True), "probabilities"
    return softmax(values, axis=1), "logits"


def _outputs(network: Any, X: Any) -> Any:
    """The network's outputs in batches, in evaluation mode; its mode is put back."""
    torch, was_training = _torch(), network.training
    rows = _tensor(X, network)
    network.eval()
    try:
        with torch.no_grad():
            parts = [network(rows[i : i + BATCH_ROWS]) for i in range(0, len(rows), BATCH_ROWS)]
    finally:
        network.train(was_training)
    # Models of Hugging Face return an object that holds the logits.
    return torch.cat([getattr(part, "logits", part) for part in parts])


def _tensor(X: Any, network: Any) -> Any:
    """The rows as a tensor of the kind and in the place of the network's parameters."""
    torch = _torch()
    if isinstance(X, torch.Tensor):
        return X
    like = next(iter(network.parameters()), None) if network is not None else None
    kind = {} if like is None else {"dtype": like.dtype, "device": like.device}
    return torch.as_tensor(as_numpy(X, name="X"), **kind)


def _network_of(predictor: Any) -> Any:
    return getattr(predictor, "_model", getattr(predictor, "model", None))


def _torch() -> Any:
    """The torch that the model was made with, which is loaded."""
    return sys.modules["torch"]
