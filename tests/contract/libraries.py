"""The array libraries every kernel is run on; those that live on a GPU belong to the gpu lane."""

import importlib
import os
from typing import Any

import numpy as np
import pytest

LIBRARIES = (
    "array_api_strict",
    "torch",
    pytest.param("torch on cuda", marks=pytest.mark.gpu),
    pytest.param("cupy", marks=pytest.mark.gpu),
)


def move(values: Any, library: str) -> Any:
    """Numpy values as an array of the library, on its device; None stays None."""
    if values is None:
        return None
    name = library.split(maxsplit=1)[0]
    # `python3 dev.py interop` has installed torch: there, nothing may be missing.
    required = "CALIPERS_REQUIRE_PEERS" in os.environ
    xp = importlib.import_module(name) if required else pytest.importorskip(name)
    if library.endswith("cuda"):
        if not xp.cuda.is_available():
            pytest.fail("the gpu lane needs a CUDA device", pytrace=False)
        return xp.asarray(np.asarray(values), device="cuda")
    return xp.asarray(np.asarray(values))


def assert_lies_with(answer: Any, like: Any) -> None:
    """The answer is an array of the same library on the same device: nothing was copied to the host."""
    assert type(answer) is type(like)
    assert answer.device == like.device
