"""``calipers monitor SOURCE``: whether the promise is still kept, as rows arrive."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calipers.cli.options import COLUMN_OPTIONS, FURTHER, JsonOption, takes_settings

if TYPE_CHECKING:
    import polars as pl

    from calipers.cli.settings import Settings
    from calipers.inputs.files import ColumnChoice
    from calipers.performance import GroupMonitor, PromiseMonitor, RiskMonitor

    Monitor = PromiseMonitor | RiskMonitor | GroupMonitor


# The columns that a monitor reads, beside that of the groups.
READ = {
    name: COLUMN_OPTIONS[name] for name in ("y", "proba", "lower", "upper", "covered", "promised", "loss")
}


@takes_settings(options=READ)
def command(
    source: Annotated[str, typer.Argument(help="Growing csv or json-lines file, folder of them, or - .")],
    settings: Settings,
    alpha: Annotated[
        float | None, typer.Option("--alpha", help="Allowed miscoverage; 0.1 promises 90 %.")
    ] = None,
    bound: Annotated[float | None, typer.Option("--bound", help="Promised mean of the column loss.")] = None,
    loss_range: Annotated[str, typer.Option("--loss-range", help="Smallest and largest loss.")] = "0,1",
    side: Annotated[str | None, typer.Option("--side", help="under, over or both.")] = None,
    rate: Annotated[
        float, typer.Option("--false-alarm-rate", help="Probability that a kept promise ever alarms.")
    ] = 0.05,
    n_calibration: Annotated[
        int | None, typer.Option("--n-calibration", help=FURTHER["n_calibration"][1])
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="File that keeps the monitor between runs.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", help="Column of groups: each is monitored, with one false-alarm rate for all."
        ),
    ] = None,
    prometheus: Annotated[
        Path | None, typer.Option("--prometheus", help="File for metrics in the text format of Prometheus.")
    ] = None,
    follow: Annotated[
        float | None, typer.Option("--follow", help="Look for new rows every so many seconds, until stopped.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Watch coverage, stated probabilities or a mean loss; the alarm stays valid however often one looks.

    Rows have the columns covered [and promised], or y_true with lower and upper, or y_true with p_<class>, or
    loss (with --bound); other names are given by options. With --state only rows that came since the last
    run are counted, none twice, none lost, also when the program was killed. Exit code 1 when the alarm has
    been raised, now or before.
    """
    from calipers.cli.monitor_metrics import prometheus_text
    from calipers.cli.monitor_source import Places
    from calipers.cli.monitor_state import load_state, save_state
    from calipers.cli.terminal import say
    from calipers.results import write_atomically

    stored = None if state is None else load_state(state)
    options = _options(alpha, bound, loss_range, side, rate, n_calibration)
    monitor = _monitor(options, stored, grouped=group is not None)
    places: Places = {} if stored is None else stored["places"]

    def after(new_alarm: bool) -> None:
        if state is not None:
            save_state(state, monitor.to_dict(), places)
        if prometheus is not None:
            write_atomically(prometheus, prometheus_text(monitor))
        _tell(monitor, new_alarm=new_alarm, as_json=as_json)

    with contextlib.suppress(KeyboardInterrupt):  # stopped by hand: what was read is stored
        _watch(source, monitor, places, choice=settings.columns(), group=group, follow=follow, after=after)
    if prometheus is not None:  # also when nothing has come
        write_atomically(prometheus, prometheus_text(monitor))
    if not as_json:
        say(monitor)
    return int(monitor.alarm_)


def _options(
    alpha: float | None,
    bound: float | None,
    loss_range: str,
    side: str | None,
    rate: float,
    n_calibration: int | None,
) -> dict[str, Any]:
    """The arguments of the monitor; which one it is follows from them."""
    from calipers.exceptions import InputError

    if bound is None:
        chosen = {"alpha": alpha, "n_calibration": n_calibration, "side": side or "under"}
        return chosen | {"false_alarm_rate": rate}
    if alpha is not None or n_calibration is not None:
        raise InputError("--bound is about a mean loss; leave out --alpha and --n-calibration.")
    try:
        low, high = (float(word) for word in loss_range.split(","))
    except ValueError:
        raise InputError(f"--loss-range must be two numbers such as 0,1, got {loss_range!r}.") from None
    return {"bound": bound, "loss_range": [low, high], "side": side or "over", "false_alarm_rate": rate}


def _monitor(options: dict[str, Any], stored: dict[str, Any] | None, *, grouped: bool) -> Monitor:
    from calipers.exceptions import InputError
    from calipers.performance import GroupMonitor, PromiseMonitor, RiskMonitor

    kind = GroupMonitor if grouped else RiskMonitor if "bound" in options else PromiseMonitor
    made: Monitor = kind(**options)
    if stored is None:
        return made
    before = stored["monitor"]
    if before.get("kind") != type(made).__name__ or before.get("options") != made.to_dict()["options"]:
        raise InputError(
            f"--state holds a {before.get('kind')} with {before.get('options')}, not with the options given. "
            "Give the same options, or another --state."
        )
    return type(made).from_dict(before)


def _watch(
    source: str,
    monitor: Monitor,
    places: dict[str, dict[str, Any]],
    *,
    choice: ColumnChoice,
    group: str | None,
    follow: float | None,
    after: Callable[[bool], None],
) -> None:
    """Take in what has come, store, tell; once, or again and again."""
    import time

    from calipers.cli.monitor_columns import named_columns
    from calipers.cli.monitor_source import read_rows
    from calipers.exceptions import InputError

    while True:
        for arrived in read_rows(source, places):
            quiet = not monitor.alarm_
            try:
                _take(monitor, named_columns(arrived.table, choice, beside=group), group)
            except InputError as error:
                raise type(error)(f"{arrived.name}, row 0 being line {arrived.line}: {error}") from None
            after(quiet and monitor.alarm_)
        if follow is None or source == "-":
            return
        time.sleep(follow)


def _take(monitor: Monitor, table: pl.DataFrame, group: str | None) -> None:
    from calipers.cli.monitor_columns import groups_of, losses_of, outcomes_of
    from calipers.exceptions import InputError
    from calipers.performance import GroupMonitor, RiskMonitor

    options = monitor.options if isinstance(monitor, GroupMonitor) else {}
    if isinstance(monitor, RiskMonitor) or "bound" in options:
        outcomes, promised = losses_of(table), None
    else:
        outcomes, promised = outcomes_of(table)
        # The option wins: with --alpha the rows' own statements are not the promise.
        alpha = options.get("alpha") if isinstance(monitor, GroupMonitor) else monitor.alpha
        promised = promised if alpha is None else None
        if alpha is None and promised is None:
            raise InputError(
                "the promise is missing: give --alpha (0.1 promises 90 %), or a column promised."
            )
    if isinstance(monitor, GroupMonitor):
        monitor.update(outcomes, groups_of(table, str(group)), promised)
    elif isinstance(monitor, RiskMonitor):
        monitor.update(outcomes)
    else:
        monitor.update(outcomes, promised)


def _tell(monitor: Monitor, *, new_alarm: bool, as_json: bool) -> None:
    import json

    from calipers.cli.monitor_metrics import samples
    from calipers.cli.terminal import say
    from calipers.performance import GroupMonitor
    from calipers.results.serialization import encode

    if as_json:
        (_, document), *groups = samples(monitor)
        if groups:
            document |= {"groups": {labels["group"]: fields for labels, fields in groups}}
        print(json.dumps(encode(document), allow_nan=False), flush=True)
    elif new_alarm and isinstance(monitor, GroupMonitor):
        say(f"ALARM: {monitor}")
    elif new_alarm and not isinstance(monitor, GroupMonitor):
        since = monitor.result().details["changed_at"]
        say(f"ALARM: {monitor}; since about row {since}")
