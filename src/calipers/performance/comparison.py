"""Several algorithms on the same subsets: side by side, pair by pair, and against the training size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference import clopper_pearson
from calipers.inputs import check_alpha, check_confidence, check_count
from calipers.performance.algorithm import RANDOM_ORDER, AlgorithmPerformance
from calipers.performance.forecast import LossForecast
from calipers.performance.losses import Loss, is_scorer, resolve_loss
from calipers.results import Curve, Estimate, EstimateTable


@dataclass(frozen=True, eq=False)
class AlgorithmComparison(Mapping[str, LossForecast]):
    """Forecasts of several algorithms from the same training subsets and cases; a mapping by name.

    Parameters
    ----------
    forecasts : dict of LossForecast
        One per algorithm; entry j of every ``losses_`` comes from the same subset and case.
    train_size : int
        Training rows per subset.
    higher_is_better : bool
        Whether the loss is a score.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.dummy import DummyRegressor
    >>> from sklearn.linear_model import Ridge
    >>> from calipers.performance import compare_algorithms
    >>> X, y = load_diabetes(return_X_y=True)
    >>> both = compare_algorithms({"ridge": Ridge(alpha=0.1), "mean": DummyRegressor()}, X, y,
    ...                           loss="absolute", n_points=40, random_state=0)
    >>> print(both.beats("ridge", "mean"))
    P(ridge beats mean) 0.68 [0.50, 0.82] at 95 %
    """

    forecasts: dict[str, LossForecast]
    train_size: int
    higher_is_better: bool = False

    def __getitem__(self, name: str) -> LossForecast:
        if name not in self.forecasts:
            raise KeyError(f"{name!r} was not compared; there are {', '.join(self.forecasts)}.")
        return self.forecasts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.forecasts)

    def __len__(self) -> int:
        return len(self.forecasts)

    def difference(self, first: str, second: str) -> LossForecast:
        """Forecast of the first algorithm's loss minus the second's on the same new sample and case.

        Wholly below 0: the first is better with probability at least 1 - alpha. Two infinite losses
        (both fits failed) differ by 0.
        """
        rows = self.train_size
        with np.errstate(invalid="ignore"):
            gap = self[first].losses_ - self[second].losses_
        (low, high), (other_low, other_high) = self[first].limits, self[second].limits
        return LossForecast(
            np.where(np.isnan(gap), 0.0, gap),
            self[first].alpha,
            target=f"the loss of {first} minus that of {second}, both trained anew on {rows} rows,",
            condition=RANDOM_ORDER,
            train_size=self.train_size,
            limits=(low - other_high, high - other_low),
        )

    def beats(self, first: str, second: str, *, confidence: float = 0.95) -> Estimate:
        """Probability that the first has the strictly better loss on the next sample and case.

        Returns
        -------
        Estimate
            Share of subsets with an exact (Clopper-Pearson) interval for independent rows; the share of
            ties in details.
        """
        level = check_confidence(confidence)
        gap = self.difference(first, second).losses_
        gap = -gap if self.higher_is_better else gap
        wins, n = int(np.sum(gap < 0)), gap.size
        low, high = clopper_pearson(wins, n, confidence=level)
        return Estimate(
            name=f"P({first} beats {second})",
            value=wins / n,
            std_error=float(np.sqrt(wins * (n - wins) / n**3)),
            low=float(low),
            high=float(high),
            confidence=level,
            n=n,
            method="share of paired differences, Clopper-Pearson",
            details={"wins": wins, "ties": int(np.sum(gap == 0)), "losses": int(np.sum(gap > 0))},
        )

    def table(self) -> EstimateTable:
        """Median, interval, bound and width of every algorithm's next loss, side by side."""
        return EstimateTable(
            [forecast.to_estimate(name) for name, forecast in self.items()],
            title=f"next loss after training on {self.train_size} rows",
            notes=["value: median loss; interval: conformal, for one new sample and case"],
        )

    def pairs(self, *, confidence: float = 0.95) -> EstimateTable:
        """Probability that each algorithm beats each other one on the next case."""
        return EstimateTable(
            [self.beats(first, second, confidence=confidence) for first, second in permutations(self, 2)],
            title="who has the better loss on the next case",
        )

    def __str__(self) -> str:
        return f"{self.table()}\n\n{self.pairs()}"


def compare_algorithms(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any = None,
    *,
    loss: str | Loss,
    alpha: Any = 0.1,
    random_state: RandomState = None,
    **options: Any,
) -> AlgorithmComparison:
    """Forecast several algorithms on the same training subsets and cases.

    Parameters
    ----------
    estimators : mapping
        Name to estimator, at least two.
    X, y : features and targets
        The rows; cut once, so that every algorithm sees the same subsets.
    loss, alpha : as in `AlgorithmPerformance`
        The same for all.
    random_state : RandomState
        Order of the rows and seeds of the fits: fit j has the same seed for every algorithm.
    **options
        Further options of `AlgorithmPerformance`: n_points, train_size, points_per_loss, n_jobs,
        on_failure, cache, progress, inner_threads, tight.

    Returns
    -------
    AlgorithmComparison
        ``table()``, ``difference(first, second)``, ``beats(first, second)``, ``pairs()``.

    Raises
    ------
    InputError
        With fewer than two algorithms, or with modulation (compare two modulated forecasts directly).

    Notes
    -----
    Paired losses share sample and case, so their difference is exchangeable too, and usually much less
    spread out than either loss: "B beats A" is decided on far fewer subsets than two separate intervals need.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Lasso, Ridge
    >>> from calipers.performance import compare_algorithms
    >>> X, y = load_diabetes(return_X_y=True)
    >>> both = compare_algorithms({"ridge": Ridge(), "lasso": Lasso()}, X, y, loss="absolute", n_points=20)
    >>> list(both), both.train_size
    (['ridge', 'lasso'], 21)
    """
    if len(estimators) < 2:
        raise InputError(f"estimators must hold at least two algorithms, got {len(estimators)}.")
    if options.get("modulation") is not None:
        raise InputError(
            "modulation must be None in a comparison; fit one AlgorithmPerformance per algorithm."
        )
    seed = int(generator(random_state).integers(2**31 - 1))
    fitted = {
        name: AlgorithmPerformance(estimator, loss=loss, alpha=alpha, random_state=seed, **options).fit(X, y)
        for name, estimator in estimators.items()
    }
    first = next(iter(fitted.values()))
    return AlgorithmComparison(
        {name: forecast.forecast_ for name, forecast in fitted.items()},
        first.train_size_,
        higher_is_better=is_scorer(resolve_loss(loss)),
    )


def forecast_learning_curves(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any = None,
    *,
    loss: str | Loss,
    train_sizes: Iterable[int],
    alpha: Any = 0.1,
    random_state: RandomState = None,
    **options: Any,
) -> dict[str, Curve]:
    """Forecast of the next loss against the number of training rows, one curve per algorithm.

    Parameters
    ----------
    estimators : mapping
        Name to estimator.
    X, y : features and targets
        The rows; every training size cuts all of them anew.
    loss, alpha, random_state, **options
        As in `compare_algorithms`. Without ``n_points`` each size uses as many subsets as the rows allow.
    train_sizes : iterable of int
        Training rows per subset.

    Returns
    -------
    dict of Curve
        Median loss over the training size, with the conformal interval as band; the upper bounds and the
        numbers of subsets in details. An end is infinite where the rows give too few subsets.

    Notes
    -----
    Each point of a curve holds by itself, for that training size; the band is not simultaneous.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from calipers.performance import forecast_learning_curves
    >>> X, y = load_diabetes(return_X_y=True)
    >>> curve = forecast_learning_curves({"ridge": Ridge()}, X, y, loss="absolute", train_sizes=[5, 10, 20],
    ...                                  random_state=0)["ridge"]
    >>> curve.details["n_points"]
    [73, 40, 21]
    """
    sizes = sorted({check_count(m, name="train_sizes") for m in train_sizes})
    if not sizes:
        raise InputError("train_sizes must hold at least one size, got none.")
    seeds = generator(random_state).integers(2**31 - 1, size=len(sizes)).tolist()
    curves = {}
    for name, estimator in estimators.items():
        forecasts = [
            AlgorithmPerformance(
                estimator, loss=loss, alpha=alpha, train_size=m, random_state=seed, **options
            ).fit(X, y)
            for m, seed in zip(sizes, seeds, strict=True)
        ]
        curves[name] = _curve(name, sizes, [forecast.forecast_ for forecast in forecasts])
    return curves


def _curve(name: str, sizes: list[int], forecasts: list[LossForecast]) -> Curve:
    ends = np.array([forecast.interval() for forecast in forecasts])
    return Curve(
        name=name,
        x=np.array(sizes),
        y=np.array([np.median(forecast.losses_) for forecast in forecasts]),
        low=ends[:, 0],
        high=ends[:, 1],
        confidence=1.0 - check_alpha(forecasts[0].alpha),
        x_label="training rows",
        y_label="next loss",
        method="conformal interval for the next loss at each training size; the line is the median",
        details={
            "n_points": [int(forecast.losses_.size) for forecast in forecasts],
            "upper_bound": [forecast.upper_bound() for forecast in forecasts],
        },
    )
