"""What is left of a fault when the rows of another one are left out, or looked at apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from calipers.auditing.check_result import CheckResult
from calipers.auditing.checks.forecast import dated_by
from calipers.auditing.measurements import Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import PromiseRows, promise_rows, recalibrated
from calipers.auditing.promises import IMPLIED_SETS, PER_ROW, TOP
from calipers.inputs.rows import Rows
from calipers.metrics import calibration_error
from calipers.results import Estimate

# A fault is gone when a test at this level does not find it, and at most this share of its effect is left.
LEFT, HALF = 0.01, 0.5
# Families of slices that name some of the rows.
PLACES = ("groups", "time", "features", "difficulty")
# Those whose slices were given by name; the others are searched for.
NAMED = ("groups", "time")
# Faults of all rows, or of a range of stated probabilities.
WHOLE = ("all rows", "score")


@dataclass(frozen=True, slots=True, eq=False)
class FaultsWithoutRows:
    """Compares the faults of one audit by their rows.

    Parameters
    ----------
    m : Measurements
        What the audit measured.
    results : mapping
        Code -> the result that is told under it.
    """

    m: Measurements
    results: Mapping[str, CheckResult]

    def is_place(self, code: str) -> bool:
        """Whether a fault is one of some rows that it names."""
        result = self.results[code]
        return result.slices in PLACES and result.rows is not None and self._promise(result) is not None

    def is_whole(self, code: str) -> bool:
        """Whether a fault is one of all rows, or of a range of stated probabilities."""
        return self.results[code].slices in WHOLE and self._promise(self.results[code]) is not None

    def breadth(self, code: str) -> tuple[bool, float, int]:
        """What leads first: places that were named, then those with few rows, then by their family."""
        result = self.results[code]
        side = self._side(result)
        share = 1.0 if side is None or result.rows is None else float(np.mean(result.rows(side.rows)))
        return result.slices not in NAMED, round(share, 2), PLACES.index(result.slices)

    def are_of_one_kind(self, *codes: str) -> bool:
        """Whether all are about what was predicted, or all about probabilities and what they imply."""
        kinds = set()
        for code in codes:
            promise = self.results[code].promise
            kinds.add(code.startswith("CAL5") or promise.startswith((IMPLIED_SETS, PER_ROW)))
        return len(kinds) == 1

    def gone_without(self, whole: str, place: str) -> bool:
        """Whether a fault of all rows is gone when the rows of a place are left out.

        The place holds at most half of the rows. At most half of the effect may be left, beyond its standard
        error, and either a test does not find it or it is within the tolerance; and enough rows must be left
        to show an effect of that size.
        """
        result, where = self.results[whole], self.results[place].rows
        side, effect = self._side(result), result.effect
        if side is None or where is None or not effect:
            return False
        outside = ~np.asarray(where(side.rows), dtype=bool)
        # What holds most of the rows is no place in them.
        if not HALF <= outside.mean() < 1:
            return False
        rest, sign = side.take(outside), _sign(result, side)
        noise = float(np.sqrt(np.mean(rest.promised * (1 - rest.promised)) / len(rest.kept)))
        left = sign * float(np.sum(_told_rows(result, rest) * (rest.kept - rest.promised))) / len(rest.kept)
        if noise > HALF * effect or left - noise > HALF * effect:
            return False
        if result.slices != "all rows":
            return self._is_calibrated(result, rest)
        within = left <= result.tolerance or ndtr(-left / max(noise, 1e-300)) > LEFT
        return bool(within) and self._others_are_kept(result, where)

    def _others_are_kept(self, result: CheckResult, where: Callable[[Rows], np.ndarray]) -> bool:
        """Whether the other levels or quantiles, of which the worst is told, are kept outside a place too."""
        told = self._promise(result)
        others = [p for p in self.m.design.promises if told and p.kind == told.kind and p.name != told.name]
        for promise in others:
            side = promise_rows(self.m, promise)
            if side is None:
                return False
            rest = side.take(~np.asarray(where(side.rows), dtype=bool))
            noise = np.sqrt(np.mean(rest.promised * (1 - rest.promised)) / len(rest.kept))
            over = ndtr(-abs(rest.gap) / max(float(noise), 1e-300)) <= LEFT / len(others)
            if abs(rest.gap) > result.tolerance and over:
                return False
        return True

    def _is_calibrated(self, result: CheckResult, rest: PromiseRows) -> bool:
        """Whether stated probabilities are right in every range, over the rows that are left."""
        rng = self.m.generator(f"left of {result.code}")
        if result.code == "CAL503" and len(self.m.classes) > 2:
            y, stated = rest.rows["y"], np.asarray(rest.rows["probabilities"], dtype=float)
            classes = range(stated.shape[1])
            error = calibration_error(y, stated, multiclass="max", classes=classes, random_state=rng)
        else:
            error = calibration_error(rest.kept, rest.promised, pos_label=True, random_state=rng)
        return float(error) <= result.tolerance or (error.p_value or 0.0) > LEFT

    def vanishes(self, one: str, other: str) -> bool:
        """Whether the fault of some rows is gone where the rows of another place are looked at apart."""
        first, second = self.results[one], self.results[other]
        side = self._side(first)
        if side is None or first.rows is None or second.rows is None:
            return False
        rows, apart = (np.asarray(choose(side.rows), dtype=bool) for choose in (first.rows, second.rows))
        if not rows.any() or not apart.any() or apart.all():
            return False
        promise = self._promise(first)
        if promise is None or not promise.per_row:
            return vanishes_within(side.kept - side.promised, rows, apart)
        expected = side.promised.copy()
        for stratum in (apart, ~apart):
            expected[stratum] = recalibrated(side.kept[stratum], side.promised[stratum])
        error = calibration_error(
            side.kept[rows], expected[rows], pos_label=True, random_state=self.m.generator(f"left of {one}")
        )
        return (error.p_value or 0.0) > LEFT

    def one_date(self, change: str) -> tuple[Estimate, str] | None:
        """Evidence and sentence of drifting losses, dated by a promise that changed; None if that differs."""
        drift, promise = self.results["CAL601"].evidence, self.results[change]
        rows, about = self.m.counted_rows(), {} if promise.evidence is None else promise.evidence.details
        if rows is None or drift is None or promise.rows is None or about.get("until") is not None:
            return None
        inside = np.asarray(promise.rows(rows), dtype=bool)
        return dated_by(drift, rows, inside, about["changed_at"]) if 0 < inside.sum() < rows.n else None

    def _promise(self, result: CheckResult) -> Promise | None:
        name = result.details.get("single_promise", result.promise)
        stated = (part for promise in (*self.m.design.promises, TOP) for part in (promise, *promise.parts))
        named = next((p for p in stated if p.name == name), None)
        if named is None or not named.parts:
            return named
        evidence = result.evidence
        label = None if evidence is None else evidence.details.get("class")
        return next((p for p, own in zip(named.parts, self.m.classes, strict=True) if own == label), None)

    def _side(self, result: CheckResult) -> PromiseRows | None:
        promise = self._promise(result)
        return None if promise is None else promise_rows(self.m, promise)


def _sign(result: CheckResult, side: PromiseRows) -> float:
    """1 where the fault is that promises come true too often, -1 where too rarely."""
    inside = _told_rows(result, side)
    return 1.0 if float(np.sum(inside * (side.kept - side.promised))) > 0 else -1.0


def _told_rows(result: CheckResult, side: PromiseRows) -> np.ndarray:
    """The range of stated probabilities that the fault names, else all rows."""
    span = None if result.evidence is None else result.evidence.details.get("interval")
    if result.slices != "score" or span is None:
        return np.ones(len(side.kept), dtype=bool)
    return np.asarray((side.promised > span[0]) & (side.promised <= span[1]))


def vanishes_within(departures: np.ndarray, rows: np.ndarray, other: np.ndarray) -> bool:
    """Whether what distinguishes some rows is gone when those of another fault are looked at apart.

    Parameters
    ----------
    departures : array (n,)
        Whether the promise came true, minus its probability.
    rows, other : bool array (n,)
        The rows of a fault, and those of the one that may explain it.

    Returns
    -------
    bool
        Whether the one-sided test of Cochran, Mantel and Haenszel, stratified by ``other``, finds no
        difference between ``rows`` and the rest in the direction of the fault.

    Examples
    --------
    >>> import numpy as np
    >>> late = np.arange(1000) >= 600
    >>> narrow = late & (np.arange(1000) % 2 == 0)
    >>> kept = np.random.default_rng(0).random(1000) < np.where(late, 0.6, 0.9)
    >>> vanishes_within(kept - 0.9, narrow, late), vanishes_within(kept - 0.9, late, narrow)
    (True, False)
    """
    sign = np.sign(departures[rows].mean() - departures.mean())
    total = variance = 0.0
    for stratum in (other, ~other):
        inside, n = rows[stratum], int(stratum.sum())
        own, d = int(inside.sum()), departures[stratum]
        if n > 1:
            total += float(sign * (d[inside].sum() - own * d.mean()))
            variance += own * (n - own) / (n - 1) * float(d.var())
    return bool(variance == 0 or ndtr(-total / np.sqrt(variance)) > LEFT)
