"""Is the promise kept at all times? The largest departure over windows of time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.inference import NO_EXACT_LAW, State
from calipers.inference.null_law import NULL_LEVEL
from calipers.inference.staged_law import STAGES, staged_law
from calipers.inputs import check_alpha, check_count, check_covered, check_same_length, check_weights
from calipers.inputs.levels import check_row_alpha
from calipers.inputs.option_checks import check_choice
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry
from calipers.metrics.over_time.change_points import change_details
from calipers.metrics.over_time.scan_windows import WindowTails
from calipers.metrics.over_time.time_nulls import TimeNull, flat_null, target_null
from calipers.metrics.over_time.time_state import TimeState
from calipers.metrics.over_time.time_units import TimeUnits
from calipers.results import Estimate

NULLS = ("flat", "target")
_NO_INTERVAL = "no interval: that of a largest departure is not known"
# Numbers drawn at a time.
_BATCH = 1 << 20


def change_over_time(
    covered: Any,
    time: Any,
    *,
    alpha: Any,
    null: str = "flat",
    n_calibration: int | None = None,
    sample_weight: Any = None,
    n_draws: int = STAGES[0],
    random_state: RandomState = None,
) -> Estimate:
    """How far coverage departs, in some window of time, from all other times or from the promise.

    Looks at every time from which coverage may have changed, and at windows of all lengths in between: a
    break, a recent break, a bad week and a slow drift are all departures of some window. The value is the
    departure of the window that stands out most, in standard deviations; a promise that is kept at all
    times reads up to ``null_high``, about 3 for long windows and more for short ones.

    Parameters
    ----------
    covered : bool array of shape (n,)
        Whether each promise came true: the outcome lay in its set, the top label was right.
    time : array of shape (n,)
        When: numbers, dates, or text such as 2024-05-31. Rows of one time stay together.
    alpha : float, or array of shape (n,)
        Allowed miscoverage; per row, one minus the promised probability, in [0, 1].
    null : {"flat", "target"}
        "flat": covered minus promised has the same mean at all times, whatever it is. "target": every promise
        is kept.
    n_calibration : int, optional
        Rows the predictor was conformalised on, for "target": all rows then share the luck of that sample.
        "flat" does not need it.
    sample_weight : array of shape (n,), optional
        Weights. Whole numbers are repeated rows; with others there is no test.
    n_draws : int
        Simulated data sets to begin with.
    random_state : int, Generator or None
        Source of the draws of the null law.

    Returns
    -------
    Estimate
        ``details``: "changed_at" (the time from which things are different, as given; None when nothing can
        have changed), "until" (the last time of a passing change, None when it lasts), "window" (first
        and last time that stand out), "sign" (-1: covered less often there), "coverage_before" and
        "coverage_after" (from "changed_at" on, up to "until"), "promised_before", "promised_after",
        "rows_before", "rows_after", "sentence", "n_draws" and "resolution".

    Raises
    ------
    InputError
        For lengths that differ, alpha outside its range, an unknown null, or times that are none.

    Notes
    -----
    Windows: all that begin or end with the data, and inside it lengths and places told apart to a sixth of
    the length, over at most 256 cells of consecutive times (the place of the change is then found among all
    times). A window inside that holds a share s of the noise is charged sqrt(2 log(1 / s)) - 0.5, one at an
    end 0.7 sqrt(2 log(1 + log(1 / s))) and one inside at least 0.4 more than that, because short windows are
    many; the window with the largest departure after its charge is reported, and ``null_high`` is the limit
    for windows of its length.
    "flat" shuffles outcomes over time, exactly; with several promises among rows of the same promise (of
    the same fiftieth of the promises when these are many). "target" tosses coins with the promised
    probabilities; with ``n_calibration`` = n coins with a common coverage from Beta(k, n + 1 - k), for
    several levels order statistics of one sample. p-value from ``n_draws``, and up to 9 999 and 99 999 while
    fewer than ten reach the value; below their resolution a sum of Poisson tails over windows. A
    promise of probability 1 (or 0) that is broken rejects "target" by itself.
    Cost: O(n log n), then O(1) per cell and window and draw, 0.2 s for 100 000 rows.

    References
    ----------
    Duembgen and Spokoiny (2001), Multiscale testing of qualitative hypotheses. Rivera and Walther (2013),
    Optimal detection of a jump in the intensity of a Poisson process or in a density with likelihood ratio
    statistics. Vovk (2012), Conditional validity of inductive conformal predictors.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import change_over_time
    >>> rng = np.random.default_rng(0)
    >>> day = np.datetime64("2024-01-01") + np.arange(2000) // 10
    >>> covered = rng.random(2000) < np.where(np.arange(2000) < 1500, 0.95, 0.8)
    >>> change = change_over_time(covered, day, alpha=0.1, random_state=0)
    >>> change.details["changed_at"], change.p_value < 1e-4
    (np.datetime64('2024-05-31'), True)
    """
    check_choice(null, NULLS, name="null")
    given = {"covered": as_numpy(check_covered(covered)), "time": as_numpy(time, name="time")}
    n = check_same_length(covered=covered, time=time, sample_weight=sample_weight)
    check_weights(sample_weight, n)
    is_scalar = np.ndim(alpha) == 0
    if not is_scalar:
        given["promised"] = 1.0 - check_row_alpha(alpha, n)
    options = {
        "alpha": alpha if is_scalar else 0.5, "null": null, "n_calibration": n_calibration,
        "n_draws": check_count(n_draws, name="n_draws"), "random_state": random_state,
    }  # fmt: skip
    state = time_state(_ENTRY, options)
    state.absorb(Rows(given | {"sample_weight": sample_weight}))
    return cast("Estimate", state.finish())


def time_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Counts per time."""
    finish = partial(
        change_of_units,
        null=options.get("null", "flat"),
        n_calibration=options.get("n_calibration"),
        n_draws=options.get("n_draws", STAGES[0]),
        random_state=options.get("random_state"),
    )
    return TimeState(finish, check_alpha(options["alpha"]))


def change_of_units(
    units: TimeUnits,
    *,
    null: str = "flat",
    n_calibration: int | None = None,
    n_draws: int = STAGES[0],
    random_state: RandomState = None,
) -> Estimate:
    """The estimate from pooled rows; every change over time is found here."""
    rows = None if n_calibration is None else check_count(n_calibration, name="n_calibration")
    units = units if units.whole else _at_effective_size(units)
    law = flat_null(units) if null == "flat" else target_null(units, rows)
    departures = law.windows.departures(law.seen[None])[0]
    charged = np.abs(departures) - law.windows.charge
    at = int(np.argmax(charged)) if len(charged) else None
    fields: dict[str, Any] = {
        "name": "change over time",
        "value": 0.0 if at is None else float(abs(departures[at])),
        "n": float(units.weight.sum()),
        "method": f'largest charged departure over {len(charged)} windows, null "{null}"',
        "reason": _NO_INTERVAL,
        "details": change_details(units, law, at),
    }
    if not units.whole:
        return Estimate(**(fields | {"reason": f"{_NO_INTERVAL}; {NO_EXACT_LAW}"}))
    if at is None:
        return Estimate(**(fields | _UNTESTED))
    return Estimate(**(fields | _tested(fields, law, at, float(charged[at]), n_draws, random_state)))


def _at_effective_size(units: TimeUnits) -> TimeUnits:
    """Importance weights in the unit in which they add up to the effective number of rows."""
    unit = float(units.weight.sum() / units.squares.sum())
    return replace(
        units, weight=unit * units.weight, hits=unit * units.hits, squares=unit * unit * units.squares
    )


_UNTESTED = {
    "p_value": 1.0,
    "alternative": "greater",
    "reason": "no window of time with other times beside it has enough uncertain outcomes; " + _NO_INTERVAL,
}


def _tested(
    fields: dict[str, Any], law: TimeNull, at: int, charged: float, n_draws: int, random_state: RandomState
) -> dict[str, Any]:
    """p-value, limit of the null and how they were found."""
    rng, bound = generator(random_state), WindowTails(law.windows) if law.is_bounded else None
    null = staged_law(partial(_draws, law, rng), charged, cost=law.cost, bound=bound, n_draws=n_draws)
    p_value, details = null.p_value(charged), fields["details"]
    if law.n_impossible:  # no draw can show what was promised not to happen
        p_value = min(p_value, null.resolution or 1.0)
    return {
        "p_value": p_value,
        "alternative": "greater",
        "null_high": null.point(NULL_LEVEL) + float(law.windows.charge[at]),
        "null_level": NULL_LEVEL,
        "method": f"{fields['method']}, {law.law}, {null.n_draws} draws",
        "details": details | {"n_draws": null.n_draws, "resolution": null.resolution},
    }


def _draws(law: TimeNull, rng: np.random.Generator, n_draws: int) -> np.ndarray:
    """Largest charged departures of so many data sets drawn under the null."""
    batch = max(1, _BATCH // law.width)
    sizes = [min(batch, n_draws - start) for start in range(0, n_draws, batch)]
    return np.concatenate([law.windows.largest(law.draw(size, rng)) for size in sizes])


_ENTRY = MetricEntry(
    function=change_over_time,
    question="coverage",
    inputs=("covered", "time"),
    direction="lower",
    good="not above null_high, about 3 for long windows",
    bounds=(0.0, float("inf")),
    null="coverage is the same at all times (shuffled outcomes), or as promised at all times",
    no_interval="the interval of a largest departure is not known",
    merge="counts",
    scaled="a test statistic grows with the rows; importance weights have their effective number",
    state=time_state,
    weighted=True,
    randomized=True,
)
ENTRIES = (_ENTRY,)
