"""A promise watched in every group at once, with one false-alarm rate for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inputs import check_fraction, check_groups
from calipers.performance.betting_monitor import SCHEMA, refuse_other_monitors
from calipers.performance.promise_monitor import PromiseMonitor
from calipers.performance.risk_monitor import RiskMonitor
from calipers.results import EstimateTable


class GroupMonitor:
    """Watches a promise in every group; tells which group breaks it.

    Parameters
    ----------
    groups : sequence or None
        The groups, known beforehand: each gets an equal part of the false-alarm rate. None: groups are taken
        as they appear, the k-th with a part of 1 / (k (k + 1)).
    false_alarm_rate : float
        Probability of ever raising an alarm, in any group, while all promises are kept.
    **options
        Those of `PromiseMonitor`, or, with ``bound``, of `RiskMonitor`.

    Attributes
    ----------
    monitors_ : dict
        Group -> its own monitor.
    alarms_ : dict
        Group -> 0-based row of the whole stream that raised its alarm, in the order of those rows.
    alarm_ : bool
        Whether any group has alarmed, or all together have.
    e_value_ : float
        The evidence against "every group keeps its promise": the weighted mean of the groups' e-values.
    n_rows_ : int
        Rows taken in.

    See Also
    --------
    PromiseMonitor : All rows as one stream.

    Notes
    -----
    A weighted mean of e-processes is an e-process, whatever the dependence between groups; it is at least
    each group's e-value times its weight. So the groups that alarm at 1 / (rate times weight) and the merged
    alarm at 1 / rate share one false-alarm rate. The merged one sees many groups that are a little worse
    each; it is looked at after each update.

    References
    ----------
    Vovk and Wang (2021), E-values: calibration, combination and applications, Annals of Statistics 49.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import GroupMonitor
    >>> rng = np.random.default_rng(0)
    >>> site = rng.choice(["a", "b", "c"], 3000)
    >>> covered = rng.random(3000) < np.where(site == "c", 0.8, 0.92)
    >>> GroupMonitor(groups=["a", "b", "c"], alpha=0.1).update(covered, site)
    GroupMonitor(alarm in c at row 521; 3000 rows in 3 groups (false-alarm rate 0.05))
    """

    def __init__(
        self, groups: Sequence[Any] | None = None, *, false_alarm_rate: float = 0.05, **options: Any
    ) -> None:
        meaning = "It is the probability of ever raising a false alarm"
        self.false_alarm_rate = check_fraction(false_alarm_rate, name="false_alarm_rate", meaning=meaning)
        self.groups = None if groups is None else list(dict.fromkeys(groups))
        if self.groups is not None and not self.groups:
            raise InputError("groups must name at least one group, or be None.")
        self.options = dict(options)
        self.monitors_: dict[Any, PromiseMonitor | RiskMonitor] = {}
        self.alarms_: dict[Any, int] = {}
        self.n_rows_ = 0
        self.merged_at_: int | None = None
        self._weights: dict[Any, float] = {}
        self._open(self.groups if self.groups is not None else [])
        if self.groups is None:  # options that make no sense are refused at once
            self._made(1.0)

    def update(self, outcomes: Any, groups: Any, promised: Any = None) -> Self:
        """Take in the next rows, in their order; the monitor itself is returned.

        Parameters
        ----------
        outcomes : array (n,)
            Whether each row was covered; losses with a ``bound``.
        groups : array (n,)
            The group of each row.
        promised : array (n,), number or None
            Promised probability of each row, as in `PromiseMonitor`.
        """
        values = np.asarray(as_numpy(outcomes, name="outcomes"))
        labels, codes = check_groups(groups, values.size)
        # Refused as a whole: a row is not to be counted in one group when another one refuses its rows.
        x, t = self._made(1.0)._checked(values, promised)
        ends = np.cumsum(np.bincount(codes, minlength=len(labels)))
        rows_of = np.split(np.argsort(codes, kind="stable"), ends)[: len(labels)]
        # In the order of their first rows, which does not depend on how the rows were split into updates.
        names = [label.item() if hasattr(label, "item") else label for label in labels]
        present = sorted(
            (rows[0], name, rows) for name, rows in zip(names, rows_of, strict=True) if rows.size
        )
        self._open([name for _, name, _ in present])
        for _, name, rows in present:
            self._update_group(name, x[rows], None if t is None else t[rows], rows)
        self.n_rows_ += values.size
        self.alarms_ = dict(sorted(self.alarms_.items(), key=lambda item: item[1]))
        if self.merged_at_ is None and self.e_value_ >= self._threshold():
            self.merged_at_ = self.n_rows_ - 1
        return self

    def _update_group(self, name: Any, x: np.ndarray, t: np.ndarray | None, rows: np.ndarray) -> None:
        monitor = self.monitors_[name]
        before = monitor.n_rows_
        monitor._betting.update(x, t)
        if name not in self.alarms_ and monitor.alarm_at_ is not None:
            self.alarms_[name] = self.n_rows_ + int(rows[monitor.alarm_at_ - before])

    def _open(self, names: Sequence[Any]) -> None:
        """Monitors for groups that are new."""
        strange = [name for name in names if self.groups is not None and name not in self.groups]
        if strange and self.groups is not None:
            known = ", ".join(map(str, self.groups[:8]))
            raise InputError(f"group {strange[0]!r} is not among the groups of the monitor: {known}.")
        for name in names:
            if name in self.monitors_:
                continue
            k = len(self.monitors_) + 1
            weight = 1.0 / (k * (k + 1)) if self.groups is None else 1.0 / len(self.groups)
            self._weights[name], self.monitors_[name] = weight, self._made(weight)

    def _made(self, weight: float) -> PromiseMonitor | RiskMonitor:
        kind = RiskMonitor if "bound" in self.options else PromiseMonitor
        return kind(false_alarm_rate=self.false_alarm_rate * weight, **self.options)

    def _threshold(self) -> float:
        # With n_calibration half of the rate is spent on the coverage of the predictor itself.
        spent = 2.0 if self.options.get("n_calibration") is not None else 1.0
        return spent / self.false_alarm_rate

    @property
    def e_value_(self) -> float:
        """Weighted mean of the groups' e-values; what no group has got yet stays 1."""
        opened = sum(self._weights.values())
        weighed = (self._weights[name] * monitor.e_value_ for name, monitor in self.monitors_.items())
        return float(sum(weighed) + max(0.0, 1.0 - opened))

    @property
    def alarm_(self) -> bool:
        """Whether any group has alarmed, or all together have; it stays."""
        return bool(self.alarms_) or self.merged_at_ is not None

    @property
    def alarm_at_(self) -> int | None:
        """0-based row of the first alarm, or None."""
        rows = [*self.alarms_.values(), *([] if self.merged_at_ is None else [self.merged_at_])]
        return min(rows) if rows else None

    def result(self) -> EstimateTable:
        """Group -> what `PromiseMonitor.result` says about it, at the group's own part of the rate."""
        return EstimateTable({str(name): monitor.result() for name, monitor in self.monitors_.items()})

    def to_dict(self) -> dict[str, Any]:
        """The whole state as plain values that JSON can hold."""
        return {
            "kind": "GroupMonitor",
            "schema": SCHEMA,
            "options": self.options | {"groups": self.groups, "false_alarm_rate": self.false_alarm_rate},
            "rows": self.n_rows_,
            "merged_at": self.merged_at_,
            "alarms": [[name, row] for name, row in self.alarms_.items()],
            "monitors": [[name, monitor.to_dict()] for name, monitor in self.monitors_.items()],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The monitor that `to_dict` stored; it goes on as if it had never stopped."""
        refuse_other_monitors(stored, cls.__name__)
        try:
            monitor = cls(**stored["options"])
            for name, state in stored["monitors"]:
                monitor._open([name])
                monitor.monitors_[name] = type(monitor.monitors_[name]).from_dict(state)
            monitor.alarms_ = dict(stored["alarms"])
            monitor.n_rows_, monitor.merged_at_ = stored["rows"], stored["merged_at"]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the stored {cls.__name__} is damaged ({error}).") from None
        return monitor

    def __repr__(self) -> str:
        return f"GroupMonitor({self})"

    def __str__(self) -> str:
        rate = f"(false-alarm rate {self.false_alarm_rate:g})"
        tail = f"{self.n_rows_} rows in {len(self.monitors_)} groups {rate}"
        told = [f"{name} at row {row}" for name, row in self.alarms_.items()]
        if told:
            return f"alarm in {', '.join(told)}; {tail}"
        if self.merged_at_ is not None:
            return f"alarm in all groups together by row {self.merged_at_}; {tail}"
        return f"no alarm in {tail}"
