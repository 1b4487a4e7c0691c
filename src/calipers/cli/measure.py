"""``calipers measure FILES``: exact numbers over any number of rows, streamed or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from calipers.cli.options import (
    READ_OPTIONS,
    FilesArgument,
    JsonOption,
    QuietOption,
    StorageOption,
    storage_of,
    takes_settings,
)

if TYPE_CHECKING:
    from calipers.cli.settings import Settings
    from calipers.engines import FileSource

DEFAULT_METRICS = "coverage"
# In place of names: say which there are.
LIST = "list"


@takes_settings(options=READ_OPTIONS)
def command(
    files: FilesArgument,
    settings: Settings,
    metrics: Annotated[
        str,
        typer.Option("--metrics", help=f"Names separated by commas; {LIST} shows those of these files."),
    ] = DEFAULT_METRICS,
    engine: Annotated[str, typer.Option("--engine", help="local, dask or spark.")] = "local",
    storage: StorageOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Measure coverage, sizes, the ten criteria, T-CV and calibration over files of any size.

    Rows are read piece by piece and never held; the numbers are those of one machine with enough memory.
    Columns are found by name, by the options and by calipers.toml, as in `calipers audit`.
    """
    import json

    from calipers.cli.options import source_from
    from calipers.cli.progress import check_progress
    from calipers.cli.terminal import say, say_json
    from calipers.engines import measure
    from calipers.exceptions import InputError
    from calipers.results import EstimateTable, to_json

    found: dict[str, Any]
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if not names:
        raise InputError("--metrics must name at least one metric, got none.")
    if names == [LIST]:
        found = _known(source_from(files, settings, storage_of(storage)))
        say_json(json.dumps(found, indent=2)) if as_json else say(_lines(found))
        return 0
    source: Any = source_from(files, settings, storage_of(storage), features=_need_features(names))
    alphas, options = source.alpha, _options(names, settings.seed or 0, source.n_calibration)
    found = {}
    with check_progress(quiet=quiet, title="Reading") as bar:
        moved = None if bar is None else lambda done, total: bar(f"piece {done}", done, total)
        if settings.max_rows is not None:
            source = source.load(settings.max_rows, settings.seed or 0)
        for alpha in alphas:
            table = measure(
                source.at(alpha), names, alpha=alpha, engine=engine, options=options, progress=moved
            )
            tag = f" at alpha={alpha:g}" if len(alphas) > 1 else ""
            found |= {f"{name}{tag}": estimate for name, estimate in table.items()}
    table = EstimateTable(found)
    say_json(to_json(table, indent=2)) if as_json else say(table)
    return 0


def _known(source: FileSource) -> dict[str, str]:
    """The metrics that these files have the columns for, and what each one is."""
    from calipers.metrics.registry import metrics_of

    entries = metrics_of(source.pieces()[0].head())
    return {entry.name: str(entry.function.__doc__).split("\n")[0] for entry in entries}


def _lines(found: dict[str, str]) -> str:
    return "\n".join(f"{name}: {meaning}" for name, meaning in found.items())


def _need_features(names: list[str]) -> bool:
    """Whether some metric looks at features; files whose features differ can be measured without."""
    from calipers.metrics import metric_entries

    return any("X" in entry.inputs for entry in metric_entries() if entry.name in names)


def _options(names: list[str], seed: int, n_calibration: int | None) -> dict[str, dict[str, Any]]:
    """The seed for every metric that draws, the calibration rows for every one that takes them.

    As in an audit of these rows, the bins of T-CV and T-SS follow from the number of rows, and only an excess
    of small p-values counts: a file does not say whether they were smoothed.
    """
    import inspect

    from calipers.auditing.checks.adaptive import T_CV_BINS, T_SS_BINS
    from calipers.metrics import metric_entries

    entries = {entry.name: entry for entry in metric_entries() if entry.name in names}
    as_in_audit: dict[str, dict[str, Any]] = {
        "t_cv": {"n_bins": T_CV_BINS},
        "t_ss": {"n_bins": T_SS_BINS},
        "p_value_uniformity": {"smoothed": False},
    }
    options = {name: dict(as_in_audit.get(name, {})) for name in names}
    for name, entry in entries.items():
        if entry.randomized:
            options[name]["random_state"] = seed
        if n_calibration is not None and "n_calibration" in inspect.signature(entry.function).parameters:
            options[name]["n_calibration"] = n_calibration
    return options
