"""TorchCP without the parts of it that need what does not build here.

``import torchcp`` also imports its graph and language-model rooms and torchsort. None is used by the scores,
predictors and metrics measured here; empty modules stand in for them.
"""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any

MISSING = ("torchsort", "torch_geometric", "transformers")


class Empty(types.ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Finder:
    """Finds the missing modules, and all inside them, empty."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        return ModuleSpec(name, Finder, is_package=True) if name.partition(".")[0] in MISSING else None

    @staticmethod
    def create_module(spec: Any) -> Any:
        return Empty(spec.name)

    @staticmethod
    def exec_module(module: Any) -> None:
        return None


def torchcp_rooms() -> tuple[Any, Any, Any]:
    """Its predictors, scores and metrics of classification, on one thread."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)  # type: ignore[arg-type]
    import torch
    from torchcp.classification import predictor, score
    from torchcp.classification.utils import metrics

    torch.set_num_threads(1)
    return predictor, score, metrics
