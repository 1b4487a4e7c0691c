"""``calipers forecast``: what a model will lose on the next case, retrained, or on rows without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calipers.cli.options import JsonOption

if TYPE_CHECKING:
    from calipers.performance import LossForecast

_SPLIT = "module:name"


DataOption = Annotated[Path, typer.Option("--data", help="Rows: csv, parquet, arrow, json-lines, npz.")]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="module:name of an estimator, its class, or a function that makes one."),
]
TargetOption = Annotated[str, typer.Option("--target", help="Column to predict.")]
LossOption = Annotated[
    str,
    typer.Option(
        "--loss",
        help="squared (default), absolute, log, zero_one, hinge, ... or a scorer's name. With --unlabelled: "
        "one or several of zero_one, log, brier, accuracy, precision, recall, f1, auroc, costs such as 1:9 "
        "(false positive : false negative), squared, absolute.",
    ),
]
UnlabelledOption = Annotated[
    Path | None,
    typer.Option(
        "--unlabelled",
        help="Rows whose labels have not come: estimate the mean loss on them. --data is then a labelled "
        "file of the same columns: y_true, p_<class> or y_pred, features.",
    ),
]
LossesOption = Annotated[
    str | None,
    typer.Option("--losses", help="Column of losses observed already; then no model is needed."),
]
LevelOption = Annotated[float, typer.Option("--alpha", help="Allowed miscoverage; 0.1 asks for 90 %.")]
AlgorithmOption = Annotated[
    bool, typer.Option("--algorithm", help="Forecast the algorithm trained anew, not one model.")
]
PointsOption = Annotated[
    int | None, typer.Option("--points", help="Training subsets, each with a case of its own.")
]
TrainSizeOption = Annotated[
    int | None, typer.Option("--train-size", help="Rows per training subset, in place of --points.")
]
BatchOption = Annotated[int, typer.Option("--batch", help="Rows per loss: forecast a batch's mean loss.")]
FailureOption = Annotated[
    str, typer.Option("--on-failure", help="raise, or infinite: count a failed fit as infinite loss.")
]
JobsOption = Annotated[int | None, typer.Option("--jobs", help="Workers; -1 for all cores.")]
CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder of finished fits: an interrupted run resumes.")
]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Draw the interval into this file.")]
SplitSeedOption = Annotated[int, typer.Option("--seed", help="Seed of the splits and fits.")]


def command(
    data: DataOption,
    model: ModelOption = None,
    target: TargetOption = "y_true",
    loss: LossOption = "squared",
    losses: LossesOption = None,
    alpha: LevelOption = 0.1,
    algorithm: AlgorithmOption = False,
    points: PointsOption = None,
    train_size: TrainSizeOption = None,
    batch: BatchOption = 1,
    on_failure: FailureOption = "raise",
    jobs: JobsOption = None,
    cache: CacheOption = None,
    plot: PlotOption = None,
    unlabelled: UnlabelledOption = None,
    seed: SplitSeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Forecast the next loss of a model, or of an algorithm once it is trained anew.

    Every column but the target is a feature. The interval holds the next loss with probability 1 - alpha,
    exactly so much, under the conditions it prints.

    With --unlabelled: the mean loss that rows without labels will turn out to have, from the predictions of
    the model for them and for labelled rows it was not trained on.
    """
    from calipers.cli.terminal import say

    if unlabelled is not None:
        return _without_labels(
            data, unlabelled, target, None if loss == "squared" else loss, alpha, seed, as_json=as_json
        )
    if losses is not None:
        forecast = _from_losses(data, losses, alpha)
    else:
        options = {"loss": loss, "alpha": alpha, "points_per_loss": batch, "random_state": seed}
        fits = {"n_points": points, "train_size": train_size, "n_jobs": jobs, "cache": cache}
        more = fits | {"on_failure": on_failure, "progress": True} if algorithm else {}
        forecast = _from_model(data, model, target, options | more, algorithm=algorithm)
    if plot is not None:
        _draw(forecast, "losses" if losses else str(model), losses or loss, plot)
    if as_json:
        _print_json(_document(forecast))
    else:
        say(_sentences(forecast))
    return 0


def _without_labels(
    data: Path, new: Path, target: str, loss: str | None, alpha: float, seed: int, *, as_json: bool
) -> int:
    from calipers.cli.forecast_unlabelled import estimates, parse_losses, sentences
    from calipers.cli.terminal import say
    from calipers.inputs import check_alpha

    level, losses = check_alpha(alpha), parse_losses(loss)
    found = estimates(data, new, target=target, losses=losses, alpha=level, seed=seed)
    if as_json:
        _print_json({name: estimate.to_dict() for name, estimate in found.items()})
    else:
        say(sentences(found))
    return 0


def _print_json(document: dict[str, Any]) -> None:
    import json

    from calipers.cli.terminal import say_json
    from calipers.results.serialization import encode

    say_json(json.dumps(encode(document), indent=2, allow_nan=False))


def _from_losses(data: Path, column: str, alpha: float) -> LossForecast:
    from calipers.performance import forecast_losses

    table = _table(data)
    _require(column, table, "--losses")
    return forecast_losses(table[column], alpha)


def _from_model(
    data: Path, model: str | None, target: str, options: dict[str, Any], *, algorithm: bool
) -> LossForecast:
    from calipers.exceptions import CalipersError, InputError
    from calipers.performance import AlgorithmPerformance, CandidatePerformance

    if model is None:
        raise InputError(f"--model must name an estimator as {_SPLIT}, or --losses a column of losses.")
    kind = AlgorithmPerformance if algorithm else CandidatePerformance
    X, y = _features_and_target(_table(data), target)
    performance = kind(load_estimator(model), **options)
    try:
        forecast: LossForecast = performance.fit(X, y).forecast_
    except CalipersError:
        raise
    except (TypeError, ValueError) as error:  # a model that cannot take these columns is no fault of ours
        raise InputError(
            f"{model} cannot be fitted on {data} ({error}). Text needs a pipeline that encodes it."
        ) from None
    return forecast


def _table(data: Path) -> Any:
    from calipers.inputs.files import read_table

    return read_table(data)


def _require(column: str, table: Any, option: str) -> None:
    from calipers.exceptions import InputError

    if column not in table.columns:
        names = ", ".join(table.columns)
        raise InputError(f"{option} must be a column of the file, got {column!r}; it has {names}.")


def _features_and_target(table: Any, target: str) -> tuple[Any, Any]:
    """Features as a matrix when all are numbers, else as a frame for a pipeline; the target as an array."""
    _require(target, table, "--target")
    features = table.drop(target)
    if "X" in features.columns and features["X"].dtype.is_nested():  # the matrix of an npz file
        return features["X"].to_numpy(), table[target].to_numpy()
    numeric = all(dtype.is_numeric() for dtype in features.dtypes)
    return features.to_numpy() if numeric else features, table[target].to_numpy()


def load_estimator(place: str) -> Any:
    """The estimator at ``module:name``: itself, an instance of the class, or what the function makes.

    Modules in the current folder are found, as with ``python -m``.

    Examples
    --------
    >>> from calipers.cli.forecast import load_estimator
    >>> load_estimator("sklearn.linear_model:Ridge")
    Ridge()
    """
    import importlib
    import sys

    from calipers.exceptions import InputError

    module, separator, name = place.partition(":")
    if not separator or not module or not name:
        raise InputError(f"--model must have the form {_SPLIT}, got {place!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise InputError(f"--model names the module {module!r}, which cannot be imported: {error}.") from None
    except AttributeError:
        raise InputError(f"--model names {name!r}, which is not in the module {module!r}.") from None
    finally:
        sys.path.pop(0)
    made = found if hasattr(found, "fit") and not isinstance(found, type) else found()
    if not hasattr(made, "fit"):
        raise InputError(
            f"--model must give an object with a method fit, {place!r} gave {type(made).__name__}."
        )
    return made


def _sentences(forecast: LossForecast) -> str:
    from calipers.results.formatting import format_end

    low, high = forecast.interval()
    promise = forecast.guarantee()
    size = f"training size {promise.train_size} of {promise.n_rows} rows\n" if promise.train_size else ""
    return (
        f"interval {format_end(low, side='low', digits=6)} to {format_end(high, side='high', digits=6)}\n"
        f"upper bound {format_end(forecast.upper_bound(), side='high', digits=6)}\n"
        f"median loss {forecast.to_estimate().value:.6g}\n"
        f"{size}"
        f"{forecast.guarantee_[0].upper()}{forecast.guarantee_[1:]}"
    )


def _document(forecast: LossForecast) -> dict[str, Any]:
    promise = forecast.guarantee()
    low, high = forecast.interval()
    return {
        "interval": [low, high],
        "upper_bound": forecast.upper_bound(),
        "lower_bound": forecast.lower_bound(),
        "alpha": promise.alpha,
        "n": promise.n,
        "train_size": promise.train_size,
        "rows": promise.n_rows,
        "coverage": float(promise.coverage),
        "losses_needed": promise.needed,
        "rows_needed": promise.rows_needed,
        "guarantee": str(promise),
        "losses": forecast.losses_.tolist(),
    }


def _draw(forecast: LossForecast, name: str, loss: str, path: Path) -> None:
    from calipers.exceptions import InputError
    from calipers.plots import plot_forecast_bars
    from calipers.results import write_atomically

    figure = plot_forecast_bars({name: forecast.to_estimate(name)}, loss_name=loss).figure
    kind = path.suffix.removeprefix(".") or "png"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise InputError(f"--plot must end in one of {', '.join(sorted(known))}, got {path.name!r}.")
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=120))
