"""``calipers audit --model m.skops data.csv``: a saved model is asked about the rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calipers.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

    from calipers.auditing import Audit
    from calipers.cli.settings import Settings

# Column that may be chosen -> the argument of an audit that it fills.
BESIDE = {
    "group": "groups",
    "cluster": "cluster",
    "time": "time",
    "weight": "sample_weight",
    "row_id": "row_id",
}


def run_model(
    model_file: Path,
    files: Sequence[str],
    settings: Settings,
    *,
    target: str | None,
    trust: str | None,
    quiet: bool,
) -> Audit:
    """The audit of what a saved model states about the rows of one file."""
    from calipers.auditing import audit_model
    from calipers.auditing.saved_models import load_model
    from calipers.cli.progress import check_progress
    from calipers.inputs.files import read_table

    if len(files) != 1:
        raise InputError(f"--model needs one file of rows, got {len(files)}.")
    model = load_model(
        model_file, trusted=[word.strip() for word in (trust or "").split(",") if word.strip()]
    )
    table = read_table(files[0], separator=settings.separator())
    outcome = target or settings.y or "y_true"
    _require(table, [outcome])
    beside = _columns_beside(table, settings)
    features = _features(model, table, settings, {outcome, *(column.name for column in beside.values())})
    options: dict[str, Any] = {"n_calibration": settings.n_calibration} if settings.n_calibration else {}
    with check_progress(quiet=quiet, title=f"Auditing {model_file.stem}") as progress:
        return audit_model(
            model, features, table[outcome].to_numpy(), alpha=_one_alpha(settings), mute=settings.mute,
            name=model_file.stem, random_state=settings.seed or 0, progress=progress, **beside, **options,
        )  # fmt: skip


def _columns_beside(table: pl.DataFrame, settings: Settings) -> dict[str, Any]:
    """Groups, clusters, times and weights that were chosen; a name alone takes no feature away."""
    chosen = {argument: getattr(settings, option) for option, argument in BESIDE.items()}
    named = {argument: name for argument, name in chosen.items() if name is not None}
    _require(table, list(named.values()))
    return {argument: table[name] for argument, name in named.items()}


def _features(model: Any, table: pl.DataFrame, settings: Settings, taken: set[str]) -> Any:
    """The columns that the model was fitted on by name, else those chosen, else all that are not taken."""
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        _require(table, list(map(str, known)))
        return table.select(list(map(str, known)))
    if settings.features:
        chosen = settings.features
        names = chosen if isinstance(chosen, list) else [name.strip() for name in chosen.split(",")]
        _require(table, names)
        return table.select(names).to_numpy()
    rest = [name for name in table.columns if name not in taken]
    text = [name for name in rest if not table[name].dtype.is_numeric()]
    if text:
        raise InputError(
            f"the model was fitted without names of columns, and {text[0]!r} holds no numbers. "
            "Name the columns it was fitted on, in their order: --features a,b,c."
        )
    return table.select(rest).to_numpy()


def _require(table: pl.DataFrame, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        there = ", ".join(table.columns[:8])
        raise InputError(
            f"there is no column {missing[0]!r}; there are {there}. Name that of the outcomes with --target."
        )


def _one_alpha(settings: Settings) -> float:
    alphas = settings.alphas() or [0.1]
    if len(alphas) != 1:
        raise InputError("--model takes one --alpha.")
    return alphas[0]
