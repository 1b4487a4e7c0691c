"""Maps of stated probabilities, each written down by a few numbers: candidates for a recalibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from calipers.auditing.repair.boosted_trees import Trees, boost
from calipers.auditing.repair.feature_codes import FeatureCodes
from calipers.auditing.repair.partitions import GroupCells, group_partitions
from calipers.auditing.repair.saved_repair import part
from calipers.calibration import (
    IsotonicCalibrator,
    LinkCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)
from calipers.inference import fit_logistic
from calipers.inference.logistic import clipped_log_odds
from calipers.inputs.rows import Rows
from calipers.results.formatting import format_share

# Probabilities are kept so far from 0 and 1 before a logarithm.
_TINY = 1e-6
# Classes beyond which a map per class has too little to learn from.
MOST_CLASSES = 20
MOST_BOOSTED_CLASSES = 4
# Rows of a group below which it follows all rows.
FEWEST_ROWS = 10
# Standard deviation of a group's parameters around those of all rows, as a normal prior.
_SPREAD = 1.5
# Bound of a logarithm of a temperature and of the log-odds of a share.
_WIDEST = 10.0


@part("temperature")
@dataclass(frozen=True, slots=True)
class Temperature:
    """Probabilities to the power 1/T, brought back to sum 1.

    Parameters
    ----------
    temperature : float
        T; above 1 the model was over-confident.
    """

    temperature: float
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def words(self) -> str:
        """What was done."""
        return f"temperature {self.temperature:.3g}"

    def apply(self, rows: Rows) -> np.ndarray:
        """The new probabilities."""
        return sharpened(rows["probabilities"].astype(float), self.temperature)


def sharpened(P: np.ndarray, temperature: Any) -> np.ndarray:
    """Probabilities to the power 1/temperature, brought back to sum 1."""
    logs = np.log(np.maximum(P, 1e-30)) / temperature
    raised = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


@part("temperature and uniform")
@dataclass(frozen=True, slots=True)
class TemperatureAndUniform:
    """A share of the uniform distribution over the classes mixed into a temperature map.

    Parameters
    ----------
    temperature : float
        T; above 1 the model was over-confident.
    uniform : float
        Share of the uniform distribution, in [0, 1).

    Notes
    -----
    A part of the mixture of [1]_. A few rows in which a model is sure and wrong raise the most likely
    temperature so far that all other rows become under-confident; the uniform share explains them instead.

    References
    ----------
    .. [1] Zhang, Kailkhura and Han (2020), Mix-n-Match: ensemble and compositional methods for uncertainty
       calibration in deep learning. ICML.
    """

    temperature: float
    uniform: float
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def words(self) -> str:
        """What was done."""
        share = format_share(self.uniform)
        return f"temperature {self.temperature:.3g}, mixed with {share} of equal probabilities"

    def apply(self, rows: Rows) -> np.ndarray:
        """The new probabilities."""
        return mixed(rows["probabilities"].astype(float), self.temperature, self.uniform)


def mixed(P: np.ndarray, temperature: Any, uniform: Any) -> np.ndarray:
    """Probabilities at a temperature, with a share of equal probabilities in them."""
    return np.asarray((1.0 - uniform) * sharpened(P, temperature) + uniform / P.shape[1])


@part("curves")
@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """A non-decreasing curve per class through knots, then rows divided by their sums.

    Parameters
    ----------
    name : str
        How the curves were fitted.
    knots : tuple of arrays (2, m)
        Stated and calibrated probability, per class; one curve, of the positive class, for two classes.
    """

    name: str
    knots: tuple[np.ndarray, ...]
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def words(self) -> str:
        """What was done."""
        return f"{self.name} map" + (" of the positive class" if len(self.knots) == 1 else " per class")

    def apply(self, rows: Rows) -> np.ndarray:
        """The new probabilities."""
        P = rows["probabilities"].astype(float)
        if len(self.knots) == 1:
            return two_columns(np.interp(P[:, 1], *self.knots[0]))
        return normalised(np.column_stack([np.interp(P[:, k], *own) for k, own in enumerate(self.knots)]), P)


@part("beta")
@dataclass(frozen=True, slots=True)
class Beta:
    """The log-odds ``a log p - b log(1 - p) + c`` of the positive class.

    Parameters
    ----------
    a, b, c : float
        The coefficients.
    """

    a: float
    b: float
    c: float
    needs: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[str] = "beta map of the positive class"

    def apply(self, rows: Rows) -> np.ndarray:
        """The new probabilities."""
        p = np.clip(rows["probabilities"][:, 1].astype(float), _TINY, 1 - _TINY)
        return two_columns(expit(self.a * np.log(p) - self.b * np.log1p(-p) + self.c))


@part("venn-abers")
@dataclass(frozen=True, slots=True, eq=False)
class VennAbers:
    """The merged probability of two isotonic fits with the new row in them.

    Parameters
    ----------
    scores, lower, upper : arrays
        Distinct stated probabilities, and both probabilities of a new row there.
    """

    scores: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    needs: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[str] = "Venn-Abers map of the positive class"

    def apply(self, rows: Rows) -> np.ndarray:
        """The new probabilities."""
        fitted = VennAbersCalibrator()
        fitted.scores_, fitted.p0_, fitted.p1_ = self.scores, self.lower, self.upper
        return two_columns(np.asarray(fitted.predict(rows["probabilities"][:, 1].astype(float))))


@part("per segment")
@dataclass(frozen=True, slots=True, eq=False)
class PerSegment:
    """A line of log-odds per group; for several classes a temperature and a uniform share per group.

    Parameters
    ----------
    partition : GroupCells
        The groups.
    lines : array (groups + 1, 2)
        Intercept and slope of each group, or its uniform share and 1 / temperature; the last is for all rows.
    """

    partition: GroupCells
    lines: np.ndarray
    needs: ClassVar[tuple[str, ...]] = ("groups",)

    @property
    def words(self) -> str:
        """What was done."""
        return f"a map for each of {len(self.lines) - 1} groups"

    def apply(self, rows: Rows) -> np.ndarray:
        """The new probabilities."""
        P, own = rows["probabilities"].astype(float), self.lines[self.partition.cells(rows)]
        if P.shape[1] > 2:
            return mixed(P, 1.0 / own[:, 1:], own[:, :1])
        return two_columns(expit(own[:, 0] + own[:, 1] * clipped_log_odds(P[:, 1], _TINY)))


@part("multicalibrated")
@dataclass(frozen=True, slots=True, eq=False)
class Multicalibrated:
    """A line of the log-odds corrected by boosted trees over groups, features and the stated log-odds.

    Parameters
    ----------
    partitions : tuple of GroupCells
        Groups the trees may split by.
    codes : FeatureCodes or None
        Features they may split by.
    trees : tuple of Trees
        One sum per class; one, of the positive class, for two classes.
    lines : array (sums, 2) or None
        Intercept and slope of the stated log-odds that each sum starts from; None as they are stated.

    Notes
    -----
    The line spares the trees what is wrong with all rows. Trees are added as long as they lower the log loss
    on rows kept aside, perhaps none: what they change was worth it on rows that did not fit them. A leaf is a
    group, an intersection or a region, within a range of the stated probability, so each step corrects the
    calibration of such a slice.
    """

    partitions: tuple[GroupCells, ...]
    codes: FeatureCodes | None
    trees: tuple[Trees, ...]
    lines: np.ndarray | None = None

    @property
    def words(self) -> str:
        """What was done."""
        return (
            f"multicalibrated over groups, regions and stated probability by {len(self.trees[0].value)} trees"
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """Groups and features, where there are some."""
        return (*(("groups",) if self.partitions else ()), *(("X",) if self.codes is not None else ()))

    def apply(self, rows: Rows) -> np.ndarray:
        """The new probabilities."""
        P, values = rows["probabilities"].astype(float), self.values(rows)
        stated = clipped_log_odds(P, _TINY)
        columns = [1] if len(self.trees) == 1 else range(P.shape[1])
        lines = np.tile([0.0, 1.0], (len(self.trees), 1)) if self.lines is None else self.lines
        new = []
        for k, trees, (a, b) in zip(columns, self.trees, lines, strict=True):
            added = trees.predict(np.column_stack([values, stated[:, k]]).astype(np.float32))
            new.append(expit(a + b * stated[:, k] + added))
        return two_columns(new[0]) if len(new) == 1 else normalised(np.column_stack(new), P)

    def values(self, rows: Rows) -> np.ndarray:
        """What trees split by, but for the log-odds: an indicator per group, and the features."""
        columns = [(p.cells(rows) == k).astype(float) for p in self.partitions for k in range(len(p.labels))]
        own = np.column_stack(columns) if columns else np.empty((rows.n, 0))
        return own if self.codes is None else np.column_stack([own, self.codes.values(rows)])


def two_columns(positive: np.ndarray) -> np.ndarray:
    """Both probabilities of two classes."""
    return np.column_stack([1.0 - positive, positive])


def normalised(raw: np.ndarray, stated: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; a row of zeros keeps what was stated."""
    sums = raw.sum(axis=1, keepdims=True)
    return np.where(sums > 0, raw / np.where(sums > 0, sums, 1.0), stated)


def fit_temperature(rows: Rows, rng: np.random.Generator) -> Temperature:
    """The temperature at which the outcomes are most likely."""
    K = rows["probabilities"].shape[1]
    fitted = TemperatureCalibrator(classes=list(range(K))).fit(rows["probabilities"].astype(float), rows["y"])
    return Temperature(float(fitted.temperature_))


def fit_temperature_and_uniform(rows: Rows, rng: np.random.Generator) -> TemperatureAndUniform:
    """The temperature and the uniform share under which the outcomes are most likely."""
    share, inverse = _mixture(rows, None)
    return TemperatureAndUniform(1.0 / float(inverse), float(share))


def fit_beta(rows: Rows, rng: np.random.Generator) -> Beta:
    """Beta calibration by likelihood."""
    p = np.clip(rows["probabilities"][:, 1].astype(float), _TINY, 1 - _TINY)
    c, a, b = LinkCalibrator("beta").fit(p, rows["y"] == 1).coefficients_
    return Beta(float(a), float(b), float(c))


def fit_isotonic(rows: Rows, rng: np.random.Generator) -> Curves:
    """Isotonic regression of each class; knots are the ends of its steps."""
    P, y = rows["probabilities"].astype(float), rows["y"]
    columns = [1] if P.shape[1] == 2 else range(P.shape[1])
    return Curves("isotonic", tuple(_steps(P[:, k], y == k) for k in columns))


def _steps(p: np.ndarray, happened: np.ndarray) -> np.ndarray:
    at = np.unique(p)
    values = np.asarray(IsotonicCalibrator().fit(p, happened).predict(at), dtype=float)
    ends = np.ones(len(at), dtype=bool)
    ends[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    return np.stack([at[ends], values[ends]])


def fit_venn_abers(rows: Rows, rng: np.random.Generator) -> VennAbers:
    """Inductive Venn-Abers of the positive class."""
    fitted = VennAbersCalibrator().fit(rows["probabilities"][:, 1].astype(float), rows["y"] == 1)
    return VennAbers(fitted.scores_, fitted.p0_, fitted.p1_)


def fit_segments(rows: Rows, rng: np.random.Generator) -> PerSegment:
    """A line of log-odds per group, pulled towards that of all rows."""
    partition = group_partitions(rows)[0]
    cells, several = partition.cells(rows), rows["probabilities"].shape[1] > 2
    fit: Callable[[Rows, Any], np.ndarray] = _mixture if several else _positive_line
    pooled = fit(rows, None)
    lines = []
    for k in range(len(partition.labels)):
        own = np.flatnonzero(cells == k)
        lines.append(pooled if len(own) < FEWEST_ROWS else fit(rows.take(own), pooled))
    return PerSegment(partition, np.array([*lines, pooled]))


def _positive_line(rows: Rows, start: np.ndarray | None) -> np.ndarray:
    s = clipped_log_odds(rows["probabilities"][:, 1].astype(float), _TINY)
    return _line(s, rows["y"] == 1, start)


def _line(log_odds: np.ndarray, happened: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Intercept and slope by likelihood; a normal prior around the start keeps small groups near all rows."""
    begin = np.array([0.0, 1.0]) if start is None else start
    features = np.column_stack([np.ones(len(log_odds)), log_odds])
    ridge = 1e-8 if start is None else 1.0 / _SPREAD**2 / len(log_odds)
    lower = np.array([-np.inf, 0.0])
    fit = fit_logistic(features, happened.astype(float), start=begin, lower=lower, ridge=ridge)
    return np.asarray(fit.coefficients)


def _mixture(rows: Rows, start: np.ndarray | None) -> np.ndarray:
    """Uniform share and inverse temperature by likelihood; those of a group keep near those of all rows."""
    centre = None if start is None else np.array([np.log(start[1]), clipped_log_odds(start[0], _TINY)])
    # Not convex: rows that are sure and wrong have a minimum at a high temperature and one at a large share.
    alone = -np.log(fit_temperature(rows, np.random.default_rng(0)).temperature)
    starts = [np.array([alone, -4.0]), np.array([0.0, -2.0]), *([] if centre is None else [centre])]
    bounds = [(-_WIDEST, _WIDEST), (-_WIDEST, _WIDEST)]
    loss = mixture_loss(rows, centre)
    tried = [minimize(loss, np.clip(own, -_WIDEST, _WIDEST), jac=True, method="L-BFGS-B", bounds=bounds)
             for own in starts]  # fmt: skip
    found = min(tried, key=lambda one: float(one.fun))
    return np.array([expit(found.x[1]), np.exp(found.x[0])])


def mixture_loss(rows: Rows, centre: np.ndarray | None) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Mean log loss and its gradient, by the logarithm of 1/temperature and the log-odds of the share.

    A centre adds the logarithm of a normal prior around it, divided by the number of rows.
    """
    P, weights = rows["probabilities"].astype(float), _weights(rows)
    logs, at = np.log(np.maximum(P, 1e-30)), (np.arange(rows.n), rows["y"])

    def loss(own: np.ndarray) -> tuple[float, np.ndarray]:
        q, uniform = sharpened(P, np.exp(-own[0])), expit(own[1])
        p = (1.0 - uniform) * q[at] + uniform / P.shape[1]
        by_slope = (1.0 - uniform) * q[at] * (logs[at] - np.sum(q * logs, axis=1)) * np.exp(own[0])
        by_uniform = (1.0 / P.shape[1] - q[at]) * uniform * (1.0 - uniform)
        gradient = -np.array([np.average(part / p, weights=weights) for part in (by_slope, by_uniform)])
        away = np.zeros(2) if centre is None else (own - centre) / _SPREAD
        value = -float(np.average(np.log(p), weights=weights)) + float(away @ away) / (2 * rows.n)
        return value, gradient + away / _SPREAD / rows.n

    return loss


def _weights(rows: Rows) -> np.ndarray:
    return np.ones(rows.n) if rows.weights is None else rows.weights


def fit_multicalibrated(rows: Rows, rng: np.random.Generator) -> Multicalibrated:
    """Boosted corrections of the log-odds."""
    codes = FeatureCodes.of(rows) if rows.given.get("X") is not None else None
    map_ = Multicalibrated(tuple(group_partitions(rows)), codes, ())
    P, values = rows["probabilities"].astype(float), map_.values(rows)
    stated = clipped_log_odds(P, _TINY)
    columns = [1] if P.shape[1] == 2 else range(P.shape[1])
    lines = np.array([_line(stated[:, k], rows["y"] == k) for k in columns])
    trees = tuple(
        boost(
            np.column_stack([values, stated[:, k]]).astype(np.float32), rows["y"] == k, rng,
            loss="logistic", offset=a + b * stated[:, k],
        )
        for k, (a, b) in zip(columns, lines, strict=True)
    )  # fmt: skip
    return Multicalibrated(map_.partitions, codes, trees, lines)


def recalibrations(rows: Rows) -> dict[str, Callable[[Rows, np.random.Generator], Any]]:
    """The candidates for these rows by name, simplest first."""
    K = rows["probabilities"].shape[1]
    has_groups, has_X = rows.given.get("groups") is not None, rows.given.get("X") is not None
    found: dict[str, Callable[[Rows, np.random.Generator], Any]] = {"temperature": fit_temperature}
    if K == 2:
        found["beta"] = fit_beta
    else:
        found["temperature and uniform"] = fit_temperature_and_uniform
    if K <= MOST_CLASSES:
        found["isotonic"] = fit_isotonic
    if K == 2:
        found["Venn-Abers"] = fit_venn_abers
    if has_groups:
        found["per segment"] = fit_segments
    if (has_groups or has_X) and K <= MOST_BOOSTED_CLASSES:
        found["multicalibrated"] = fit_multicalibrated
    return found
