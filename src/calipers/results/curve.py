"""A measured function: values over a grid, with their band and the band of the null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from calipers.arrays import short_repr
from calipers.arrays.frames import build_frame
from calipers.arrays.library import as_numpy
from calipers.exceptions import InputError
from calipers.results.frozen_details import restore_frozen
from calipers.results.html import curve_html
from calipers.results.plotting import Plotted

_VECTORS = ("x", "y", "low", "high", "null_low", "null_high")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve(Plotted):
    """Values ``y`` over a grid ``x``; every plot is drawn from one, and can give its table.

    Parameters
    ----------
    name : str
        What the curve shows.
    x, y : array of the same length
        Grid and values.
    low, high : array or None
        Pointwise (or, where ``method`` says so, simultaneous) band around the values.
    confidence : float or None
        Level of that band.
    null_low, null_high : array or None
        Band of the null law.
    null_level : float or None
        Mass of that band.
    x_label, y_label : str
        Axis labels, with units.
    step : bool
        Whether the curve is constant between grid points (right-continuous) rather than a line.
    method, reason : str
        How it was made; why a band is missing.
    details : mapping
        Everything else.

    Examples
    --------
    >>> from calipers.results import Curve
    >>> Curve(name="coverage", x=[0.1, 0.2], y=[0.91, 0.8]).to_frame().shape
    (2, 2)
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    confidence: float | None = None
    null_low: np.ndarray | None = None
    null_high: np.ndarray | None = None
    null_level: float | None = None
    x_label: str = ""
    y_label: str = ""
    step: bool = False
    method: str = ""
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for key in _VECTORS:
            value = getattr(self, key)
            if value is not None:
                object.__setattr__(self, key, _frozen_vector(value, key, self.name))
        lengths = {key: len(v) for key in _VECTORS if (v := getattr(self, key)) is not None}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the vectors of a curve must have one length, got {lengths}.")
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    __setstate__ = restore_frozen

    def __eq__(self, other: object) -> bool:
        from calipers.results.serialization import same

        return isinstance(other, Curve) and same(self.to_dict(), other.to_dict())

    def __hash__(self) -> int:
        return hash((self.name, len(self.x), self.method))

    def __len__(self) -> int:
        return len(self.x)

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, details copied."""
        return {key: getattr(self, key) for key in self.__slots__ if key != "details"} | {
            "details": dict(self.details)
        }

    def to_frame(self, backend: str = "polars") -> Any:
        """One row per grid point, with the bands that exist, as a polars, pandas or pyarrow table."""
        columns = {key: v.tolist() for key in _VECTORS if (v := getattr(self, key)) is not None}
        return build_frame(columns, backend=backend)

    def _repr_html_(self) -> str:
        return curve_html(self)

    def __str__(self) -> str:
        return f"{self.name}: {len(self)} points, {self.x_label or 'x'} against {self.y_label or 'y'}"


def _frozen_vector(value: Any, key: str, name: str) -> np.ndarray:
    vector = np.array(as_numpy(value, name=key))
    if vector.ndim != 1:
        raise InputError(f"{key} of the curve {name!r} must have one dimension, got {vector.ndim}.")
    vector.flags.writeable = False
    return vector
