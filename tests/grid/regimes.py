"""The regimes that are crossed: rows, quality of the model, rarity of events, form of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

FORMS = ("plain", "ties", "constant", "whole weights", "importance weights", "float32", "clusters")
MODELS = ("sound", "near-perfect", "hopeless", "uneven")


@dataclass(frozen=True, slots=True)
class Regime:
    """One column of the grid.

    ``model``: "sound" keeps the promise that is tested; "near-perfect" hardly ever errs; "hopeless" knows
    nothing; "uneven" is wrong by different amounts in different places. ``events``: expected number of events
    (misses, positives) when they are rare. ``n_calibration``: rows the audited predictor was conformalised on.
    """

    n: int = 200
    model: str = "sound"
    form: str = "plain"
    events: float | None = None
    n_calibration: int | None = None

    @property
    def name(self) -> str:
        """Its words in the tables."""
        words = [f"{self.n} rows"]
        words += [f"{self.events:g} expected events"] if self.events is not None else [self.model]
        words += [self.form] if self.form != "plain" else []
        words += [f"{self.n_calibration} calibration rows"] if self.n_calibration else []
        return ", ".join(words)


SIZES = (
    *(Regime(20, model) for model in ("sound", "near-perfect", "uneven")),
    *(Regime(200, model) for model in MODELS),
    *(Regime(2000, model) for model in ("sound", "near-perfect", "uneven")),
    *(Regime(20_000, model) for model in ("sound", "uneven")),
)
EVENTS = tuple(Regime(2000, "sound", events=events) for events in (0.2, 1.0, 10.0))
TIES = (Regime(20, "sound", "ties"), Regime(200, "sound", "ties"), Regime(200, "uneven", "ties"))
CONSTANT = (Regime(200, "sound", "constant"),)
SINGLE = (Regime(200, "sound", "float32"), Regime(2000, "uneven", "float32"))
WHOLE = (Regime(200, "sound", "whole weights"), Regime(2000, "uneven", "whole weights"))
IMPORTANCE = (
    Regime(200, "sound", "importance weights"),
    Regime(200, "uneven", "importance weights"),
    Regime(2000, "near-perfect", "importance weights"),
)
CLUSTERS = (
    Regime(200, "sound", "clusters"),
    Regime(2000, "sound", "clusters"),
    Regime(2000, "uneven", "clusters"),
)
CLUSTER_SIZE = 5
CALIBRATION = (Regime(200, n_calibration=19), Regime(2000, n_calibration=200))


def places(rng: np.random.Generator, regime: Regime) -> tuple[np.ndarray, np.ndarray | None]:
    """A place x in (0, 1) per row, from which all else follows, and an importance weight.

    Importance weights: rows are drawn with density 1/2 + x and weigh the inverse, so that the weighted
    population is the uniform one.
    """
    n = regime.n
    if regime.form in ("ties", "whole weights"):
        return rng.choice(TIED_PLACES, n), None
    if regime.form == "constant":
        return np.full(n, 0.5), None
    if regime.form != "importance weights":
        return uniforms(rng, regime), None
    x = (np.sqrt(1.0 + 8.0 * rng.random(n)) - 1.0) / 2.0
    return x, 1.0 / (0.5 + x)


def uniforms(rng: np.random.Generator, regime: Regime) -> np.ndarray:
    """A uniform number per row; in clusters half of the rows have that of the first row of their cluster."""
    drawn = rng.random(regime.n)
    if regime.form != "clusters":
        return drawn
    return np.where(rng.random(regime.n) < 0.5, drawn[CLUSTER_SIZE * cluster_codes(regime)], drawn)


def cluster_codes(regime: Regime) -> np.ndarray:
    """The cluster of every row."""
    return np.arange(regime.n) // CLUSTER_SIZE


TIED_PLACES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


def population_places(regime: Regime, size: int = 20_000) -> np.ndarray:
    """Equally likely places that stand for the population of a regime."""
    if regime.form in ("ties", "whole weights"):
        return TIED_PLACES
    return np.full(1, 0.5) if regime.form == "constant" else (np.arange(size) + 0.5) / size


def in_form(data: dict[str, np.ndarray], weight: np.ndarray | None, regime: Regime) -> dict[str, Any]:
    """The rows as the regime gives them: in single precision, compressed to weights, with weights or clusters."""
    if regime.form == "clusters":
        return data | {"cluster": cluster_codes(regime)}
    if regime.form == "float32":
        return {name: single(values) for name, values in data.items()}
    if regime.form == "whole weights":
        return compressed(data)
    return data if weight is None else data | {"sample_weight": weight}


def single(values: np.ndarray) -> np.ndarray:
    """Floats in single precision."""
    return values.astype(np.float32) if values.dtype == np.float64 else values


def compressed(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Distinct rows, and how often each occurs as its weight."""
    columns = [np.asarray(v, dtype=float).reshape(len(v), -1) for v in data.values()]
    _, first, counts = np.unique(np.hstack(columns), axis=0, return_index=True, return_counts=True)
    return {name: values[first] for name, values in data.items()} | {"sample_weight": counts}
