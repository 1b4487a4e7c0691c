"""From which certainty on may the model speak? The largest share whose risk is certified."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.inputs import check_fraction
from calipers.inputs.option_checks import check_number
from calipers.metrics.entry import MetricEntry
from calipers.metrics.selective.bounded_tests import mean_p_value, upper_bounds
from calipers.metrics.selective.kept_rows import KeptRows, check_kept_rows
from calipers.results import Estimate

_NO_INTERVAL = "a certified share has no interval and no test: the certificate is on the risk"
# Sequences of tests begin with these shares of all rows, then with a quarter, an eighth, ... On 70 worlds
# with smooth, overconfident, tied and saturated certainties, 300 to 5000 rows, they certify 93 % of what the
# best of eight designs does, and never less than 63 %; halves alone 79 %, and nothing where most rows share
# the top certainty.
_START_SHARES = (1.0, 0.85, 0.7, 0.5)
_MOST_HALVES = 32


def selective_threshold(
    loss: Any,
    certainty: Any,
    *,
    risk: float,
    delta: float = 0.05,
    loss_range: tuple[float, float] = (0, 1),
) -> Estimate:
    """Largest share of rows that can be kept with an expected loss of at most ``risk``, certified.

    With probability 1 - ``delta`` over these rows, new rows at least as certain as ``details["threshold"]``
    have an expected loss of at most ``risk``. 1 is best; 0 means that nothing could be certified.

    Parameters
    ----------
    loss : array of shape (n,)
        Loss of every row.
    certainty : array of shape (n,)
        The larger, the rather a row is kept. Rows of equal certainty are kept together. It must not have been
        chosen with these rows.
    risk : float
        Allowed expected loss of the rows kept, inside ``loss_range``.
    delta : float
        Allowed probability that the certificate is wrong.
    loss_range : (float, float)
        The smallest and the largest loss there can be.

    Returns
    -------
    Estimate
        The share of rows kept. ``details``: "threshold" (the certainty from which rows are kept: the smallest
        number above the most certain row that is not; -inf when all are kept, inf when none), "rows",
        "lowest_kept" (smallest certainty among them), "mean_loss" (of the rows kept), "bound" (upper bound of
        their expected loss, at most ``risk``), "risk", "delta" and "sentence".

    Raises
    ------
    InputError
        For a risk outside the range of the loss, lengths that differ, missing values and losses outside their
        range.

    Notes
    -----
    Learn then test, by fixed sequences: beginning with all rows, 85, 70 and 50 % of them, a quarter, an
    eighth, ..., thresholds are lowered one distinct certainty at a time while the test rejects "the expected
    loss exceeds ``risk``"; each of the m sequences has the error delta / m, and takes it along to the next
    start that it reaches. The largest share that any of them reaches is certified. A sequence can only fail
    at the first threshold whose true risk exceeds ``risk``; the rows above it are independent draws of
    expected loss ``risk``. Where the risk falls and rises several times, a start below the earlier rises
    tells that few of these rows lie above it, where the risk is at most ``risk``: that only makes the sum of
    losses larger (and every test here rejects less with a larger mean, whatever the law), so that the
    certificate holds for any certainty, monotone or not. A start inside a block
    of equal certainties moves up to the block before. Sequences that begin with fewer rows than log(delta /
    m) / log(1 - risk) could not reject and are left out. Tests: binomial for losses at the two ends of their
    range, otherwise Hoeffding-Bentkus and, for losses that vary little, empirical Bernstein at half of the
    error each. Cost: one sort.

    References
    ----------
    Angelopoulos, Bates, Candes, Jordan and Lei (2021), Learn then test. Geifman and El-Yaniv (2017),
    Selective classification for deep neural networks.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import selective_threshold
    >>> rng = np.random.default_rng(0)
    >>> top = rng.uniform(0.5, 1, 2000)
    >>> share = selective_threshold(rng.random(2000) > top, top, risk=0.15)
    >>> share.details["sentence"]
    '46.7 % of the rows, from certainty 0.767996 on, have an expected loss of at most 0.15 (seen: 0.126)'
    """
    kept = check_kept_rows(loss, certainty, loss_range)
    allowed, level = _scaled_risk(risk, kept), check_fraction(delta, name="delta")
    starts = sequence_starts(kept.n, allowed, level)
    at, error = last_certified(kept, starts, allowed, level)
    return Estimate(
        name="selective threshold",
        value=0.0 if at is None else float(kept.rows[at] / kept.n),
        n=float(kept.n),
        method=f"{len(starts)} fixed sequences of "
        f"{'binomial' if kept.is_binary else kept.sums().method} tests at delta = {level:g} together",
        reason=_NO_INTERVAL if at is not None else f"{_NO_INTERVAL}; {_nothing(allowed, level, kept)}",
        details=_details(kept, at, risk, level, error),
    )


def sequence_starts(n: int, risk: float, delta: float) -> list[int]:
    """Rows with which sequences of tests begin, falling, as long as rows without loss could pass.

    Examples
    --------
    >>> from calipers.metrics.selective.certified_share import sequence_starts
    >>> sequence_starts(10_000, 0.05, 0.05)
    [10000, 8500, 7000, 5000, 2500, 1250, 625, 312, 156]
    """
    halves = [_START_SHARES[-1] / 2**j for j in range(1, _MOST_HALVES)]
    starts = sorted({int(n * share) for share in (*_START_SHARES, *halves)} - {0}, reverse=True)
    while starts and starts[-1] < math.log(delta / len(starts)) / math.log1p(-risk):
        starts.pop()
    return starts


def last_certified(kept: KeptRows, starts: list[int], risk: float, delta: float) -> tuple[int | None, float]:
    """The last block that tests in fixed order certify, and the error of its test; None when no test does.

    Every start brings its part of ``delta``; a sequence that reaches the next start takes that part along.
    """
    certified, found = None, 0.0
    p = mean_p_value(kept.sums(), risk)
    places, parts = np.unique(kept.last_within(np.array(starts, dtype=float)), return_counts=True)
    error, stop = 0.0, -1
    for number, (place, n_starts) in enumerate(zip(places.tolist(), parts.tolist(), strict=True)):
        if place < 0:  # the first block is longer than the start: nothing to test there
            continue
        part = n_starts * delta / len(starts)
        error = error + part if stop == place else part
        stop = int(places[number + 1]) if number + 1 < len(places) else len(p)
        failed = np.flatnonzero(p[place:stop] > error)
        if failed.size:
            stop = place + int(failed[0])
        if stop > place:
            certified, found = stop - 1, error
        if failed.size:
            stop = -1
    return certified, found


def _scaled_risk(risk: Any, kept: KeptRows) -> float:
    scaled = (check_number(risk, name="risk") - kept.low) / (kept.high - kept.low)
    if not 0 < scaled < 1:
        raise InputError(
            f"risk must lie strictly inside loss_range ({kept.low:g}, {kept.high:g}), got {risk}. "
            "It is the allowed mean loss of the rows kept."
        )
    return scaled


def _nothing(risk: float, delta: float, kept: KeptRows) -> str:
    needed = math.ceil(math.log(delta) / math.log1p(-risk))
    if kept.n < needed:
        return f"no share can be certified: {needed} rows without any loss are needed, there are {kept.n}"
    return "no share can be certified: the most certain rows lose too much"


def _details(kept: KeptRows, at: int | None, risk: float, delta: float, error: float) -> dict[str, Any]:
    common = {"risk": float(risk), "delta": delta}
    if at is None:
        none = {"threshold": math.inf, "lowest_kept": None, "rows": 0, "mean_loss": None, "bound": None}
        return common | none | {"sentence": "no rows can be kept with this risk certified"}
    bound = float(kept.in_units(upper_bounds(kept.sums(slice(at, at + 1)), error))[0])
    mean, lowest = float(kept.in_units(kept.means[at])), float(kept.certainty[at])
    share = kept.rows[at] / kept.n
    return common | {
        "threshold": kept.threshold(at),
        "lowest_kept": lowest,
        "rows": int(kept.rows[at]),
        "mean_loss": mean,
        "bound": min(bound, float(risk)),
        "sentence": f"{100 * share:.1f} % of the rows, from certainty {lowest:.6g} on, have an expected "
        f"loss of at most {float(risk):g} (seen: {mean:.3g})",
    }


ENTRIES = (
    MetricEntry(
        function=selective_threshold,
        question="forecast",
        inputs=("loss", "certainty"),
        direction="higher",
        good="1: every row may be kept",
        bounds=(0.0, 1.0),
        no_null="the certificate is on the risk, not on the share",
        no_interval="the certificate is on the risk, not on the share",
        merge="gather",
        weighted=False,
    ),
)
