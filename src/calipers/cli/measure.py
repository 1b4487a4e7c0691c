"""``calipers measure FILES``: exact numbers over any number of rows, streamed or on a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from calipers.cli.options import (
    AlphaOption,
    EaseOption,
    GroupOption,
    JsonOption,
    LowerOption,
    ProbaOption,
    PValueOption,
    QuietOption,
    SeedOption,
    SetOption,
    StorageOption,
    UpperOption,
    YOption,
    settings_from,
    storage_of,
)

DEFAULT_METRICS = "coverage"


def command(
    files: Annotated[list[str], typer.Argument(help="Files or patterns: 'logs/*.parquet'.")],
    metrics: Annotated[
        str, typer.Option("--metrics", help="Names separated by commas; see calipers.engines.merge_rules().")
    ] = DEFAULT_METRICS,
    engine: Annotated[str, typer.Option("--engine", help="local, dask or spark.")] = "local",
    y: YOption = None,
    proba: ProbaOption = None,
    set_: SetOption = None,
    p_value: PValueOption = None,
    lower: LowerOption = None,
    upper: UpperOption = None,
    group: GroupOption = None,
    ease: EaseOption = None,
    alpha: AlphaOption = None,
    seed: SeedOption = None,
    storage: StorageOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Measure coverage, sizes, the ten criteria, T-CV and calibration over files of any size.

    Rows are read piece by piece and never held; the numbers are those of one machine with enough memory.
    Columns are found by name, by the options and by calipers.toml, as in `calipers audit`.
    """
    from calipers.cli.progress import check_progress
    from calipers.engines import FileSource, measure
    from calipers.exceptions import InputError
    from calipers.results import to_json

    level = 0.1 if alpha is None else _one_level(alpha)
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    if not names:
        raise InputError("--metrics must name at least one metric, got none.")
    chosen = {"y": y, "proba": proba, "set": set_, "p_value": p_value, "lower": lower, "upper": upper}
    settings = settings_from(None).over(chosen | {"group": group, "ease": ease})
    with check_progress(quiet=quiet, title="Reading") as bar:
        moved = None if bar is None else lambda done, total: bar(f"piece {done}", done, total)
        source = FileSource(files, settings.columns(), alpha=level, storage=storage_of(storage))
        table = measure(
            source, names, alpha=level, engine=engine, options=_seeded(names, seed), progress=moved
        )
    print(to_json(table, indent=2) if as_json else table)
    return 0


def _seeded(names: list[str], seed: int | None) -> dict[str, dict[str, int]]:
    """The seed for every metric that draws."""
    from calipers.metrics import metric_entries

    draw = {entry.name for entry in metric_entries() if entry.randomized}
    return {} if seed is None else {name: {"random_state": seed} for name in names if name in draw}


def _one_level(alpha: str) -> float:
    from calipers.exceptions import InputError
    from calipers.inputs import check_alpha

    try:
        return check_alpha(float(alpha))
    except ValueError as error:
        raise InputError(f"--alpha must be one level such as 0.1, got {alpha!r} ({error}).") from None
