"""What a loader returns: rows with their names, their source and what was done to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calipers.exceptions import InputError


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Features, target and where they come from.

    Parameters
    ----------
    name : str
        Short name.
    X : ndarray of shape (n, d), or polars frame when a column is text
        Features.
    y : ndarray of shape (n,)
        Target: class labels or real numbers.
    feature_names : tuple of str
        Names of the d features.
    target_name : str
        Name of the target.
    class_names : tuple of str, default=()
        For classification: names of the labels in sorted order of the labels.
    categorical : tuple of str, default=()
        Features that are categories, as text or as codes.
    n_train : int, optional
        The first n_train rows are the source's training part, the others its test part.
    description : str
        What a row is, and every step of cleaning.
    source, licence : str
        Where the data come from and their licence as stated there.

    Examples
    --------
    >>> from calipers.datasets import load_demo_regression
    >>> data = load_demo_regression()
    >>> data
    Dataset 'diabetes': 442 rows, 10 features, target 'progression'
    >>> data.column("bmi")[:2]
    array([32.1, 21.6])
    """

    name: str
    X: Any
    y: np.ndarray
    feature_names: tuple[str, ...]
    target_name: str
    description: str
    source: str
    licence: str
    class_names: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    n_train: int | None = None

    def __repr__(self) -> str:
        shape = f"{len(self)} rows, {len(self.feature_names)} features"
        return f"Dataset {self.name!r}: {shape}, target {self.target_name!r}"

    def __len__(self) -> int:
        return len(self.y)

    @property
    def train(self) -> Dataset:
        """The source's own training part."""
        return self.rows(slice(0, self._split()))

    @property
    def test(self) -> Dataset:
        """The source's own test part."""
        return self.rows(slice(self._split(), None))

    def rows(self, which: Any) -> Dataset:
        """Return the chosen rows (slice, indices or mask) as a data set without a split."""
        X = self.X[which] if isinstance(self.X, np.ndarray) else self._frame_rows(which)
        return replace(self, X=X, y=self.y[which], n_train=None)

    def column(self, name: str) -> np.ndarray:
        """One feature by name."""
        if name not in self.feature_names:
            raise InputError(
                f"{self.name} has no feature {name!r}; it has {', '.join(self.feature_names[:12])}."
            )
        if isinstance(self.X, np.ndarray):
            return np.asarray(self.X[:, self.feature_names.index(name)])
        return np.asarray(self.X[name].to_numpy())

    def to_frame(self) -> Any:
        """Features and target as one polars frame."""
        import polars as pl

        columns = {name: self.column(name) for name in self.feature_names}
        return pl.DataFrame(columns | {self.target_name: self.y})

    def _split(self) -> int:
        if self.n_train is None:
            raise InputError(f"{self.name} comes without a training and test part; split it yourself.")
        return self.n_train

    def _frame_rows(self, which: Any) -> Any:
        return self.X[which] if isinstance(which, slice) else self.X[np.arange(len(self))[which]]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelOutputs:
    """What several models stated about the same labelled rows.

    Parameters
    ----------
    name : str
        Short name.
    labels : ndarray of shape (n,)
        True class of each row, 0 to K - 1.
    probabilities : mapping of str to ndarray of shape (n, K)
        By model. Values are those of the file, widened to float64; rows sum to 1 within the rounding of
        the source (about 1e-7, for one model 1e-5).
    logits : mapping of str to ndarray of shape (n, K)
        By model, where the source gives them.
    human_counts : ndarray of shape (n, K), optional
        How many annotators gave each class.
    class_names : tuple of str
        Names of the classes.
    description, source, licence : str
        As in `Dataset`.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.datasets import ModelOutputs
    >>> ModelOutputs(name="toy", labels=np.array([0, 1]), probabilities={"tree": np.eye(2)},
    ...              description="two rows", source="by hand", licence="none")
    ModelOutputs 'toy': 2 rows, models tree
    """

    name: str
    labels: np.ndarray
    probabilities: Mapping[str, np.ndarray] = field(default_factory=dict)
    logits: Mapping[str, np.ndarray] = field(default_factory=dict)
    human_counts: np.ndarray | None = None
    class_names: tuple[str, ...] = ()
    description: str
    source: str
    licence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "probabilities", MappingProxyType(dict(self.probabilities)))
        object.__setattr__(self, "logits", MappingProxyType(dict(self.logits)))

    def __repr__(self) -> str:
        return f"ModelOutputs {self.name!r}: {len(self)} rows, models {', '.join(self.models)}"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return (*self.probabilities, *(m for m in self.logits if m not in self.probabilities))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyLabels:
    """Clean labels and what human annotators gave instead.

    Parameters
    ----------
    name : str
        Short name.
    clean : ndarray of shape (n,)
        True class of each row.
    noisy : mapping of str to ndarray of shape (n,)
        Annotated class, by way of annotation.
    description, source, licence : str
        As in `Dataset`.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.datasets import NoisyLabels
    >>> labels = NoisyLabels(name="toy", clean=np.array([0, 1]), noisy={"one": np.array([0, 0])},
    ...                      description="two rows", source="by hand", licence="none")
    >>> labels.noise_rate("one")
    0.5
    """

    name: str
    clean: np.ndarray
    noisy: Mapping[str, np.ndarray]
    description: str
    source: str
    licence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "noisy", MappingProxyType(dict(self.noisy)))

    def __repr__(self) -> str:
        return f"NoisyLabels {self.name!r}: {len(self.clean)} rows, {', '.join(self.noisy)}"

    def noise_rate(self, kind: str) -> float:
        """Share of rows whose annotated class is not the clean one."""
        if kind not in self.noisy:
            raise InputError(f"kind must be one of {', '.join(self.noisy)}, got {kind!r}.")
        return float(np.mean(self.noisy[kind] != self.clean))


def check_names(chosen: Sequence[str] | None, known: Sequence[str], *, name: str) -> tuple[str, ...]:
    """Return the chosen names, all known ones by default."""
    if chosen is None:
        return tuple(known)
    picked = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    for item in picked:
        if item not in known:
            raise InputError(f"{name} must be among {', '.join(known)}, got {item!r}.")
    return picked
