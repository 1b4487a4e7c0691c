"""``calipers forecast``: what a model will lose on the next case, retrained, or on rows without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calipers.cli.forecast_cases import case_forecast, case_sentences, check_forms
from calipers.cli.forecast_rows import fitted_forecast, read_rows, require_column
from calipers.cli.forecast_unlabelled import CLASS_LOSS, NUMBER_LOSS
from calipers.cli.options import JsonOption

if TYPE_CHECKING:
    from calipers.performance import LossForecast

DataOption = Annotated[Path, typer.Option("--data", help="Rows: csv, parquet, arrow, json-lines, npz.")]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", help="module:name of an estimator, its class, or a function that makes one."),
]
TargetOption = Annotated[str, typer.Option("--target", help="Column to predict.")]
NEXT_LOSS = "squared"
LossOption = Annotated[
    str | None,
    typer.Option(
        "--loss",
        help="squared, absolute, log, zero_one, hinge, ... or a scorer's name. With --unlabelled: "
        "one or several of zero_one, log, brier, accuracy, precision, recall, f1, auroc, costs such as 1:9 "
        "(false positive : false negative), squared, absolute. "
        f"(default: {NEXT_LOSS}; with --unlabelled {CLASS_LOSS}, or {NUMBER_LOSS} beside y_pred)",
    ),
]
UnlabelledOption = Annotated[
    str | None,
    typer.Option(
        "--unlabelled",
        help="Rows whose labels have not come, a file, a folder or a pattern of any size: estimate the mean "
        "loss on them. --data is then a labelled file of the same columns: y_true, p_<class> or y_pred, "
        "features.",
    ),
]
ProbaOption = Annotated[
    str | None,
    typer.Option(
        "--proba", help="With --unlabelled: columns of probabilities, * for the class. (default: p_*)"
    ),
]
LossesOption = Annotated[
    str | None,
    typer.Option("--losses", help="Column of losses observed already; then no model is needed."),
]
LevelOption = Annotated[float, typer.Option("--alpha", help="Allowed miscoverage; 0.1 asks for 90 %.")]
AlgorithmOption = Annotated[
    bool, typer.Option("--algorithm", help="Forecast the retrained algorithm, not one model.")
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
ModulationOption = Annotated[
    str | None,
    typer.Option(
        "--modulation",
        help="regression (one width) or quantile (a width per case): intervals of the loss of the retrained "
        "algorithm that follow the --cases.",
    ),
]
OutcomeOption = Annotated[
    str | None,
    typer.Option(
        "--outcome",
        help="confusion, correctness or prediction: the outcomes the retrained algorithm may have on the "
        "--cases.",
    ),
]
CasesOption = Annotated[
    Path | None, typer.Option("--cases", help="Cases to forecast for, with the columns of --data.")
]
SplitSeedOption = Annotated[int, typer.Option("--seed", help="Seed of the splits and fits.")]


def command(
    data: DataOption,
    model: ModelOption = None,
    target: TargetOption = "y_true",
    loss: LossOption = None,
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
    proba: ProbaOption = None,
    modulation: ModulationOption = None,
    outcome: OutcomeOption = None,
    cases: CasesOption = None,
    seed: SplitSeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Forecast the next loss of a model, or of an algorithm once it is trained anew.

    Every column but the target is a feature. The interval holds the next loss with probability 1 - alpha,
    exactly so much, under the conditions it prints.

    With --cases: what the algorithm, trained anew, will lose on each of them (--modulation), or which
    outcome it may have (--outcome).

    With --unlabelled: the mean loss that rows without labels will turn out to have, from the predictions of
    the model for them and for labelled rows it was not trained on.
    """
    from calipers.cli.terminal import say

    if unlabelled is not None:
        return _without_labels(data, unlabelled, target, loss, alpha, seed, proba=proba, as_json=as_json)
    if proba is not None:
        from calipers.exceptions import InputError

        raise InputError("--proba goes with --unlabelled.")
    loss = loss or NEXT_LOSS
    check_forms(modulation=modulation, outcome=outcome, cases=cases)
    options: dict[str, Any] = {"loss": loss, "alpha": alpha, "points_per_loss": batch, "random_state": seed}
    fits: dict[str, Any] = {"n_points": points, "train_size": train_size, "n_jobs": jobs, "cache": cache}
    fits |= {"on_failure": on_failure, "progress": True}
    if cases is not None:
        document = case_forecast(
            data, cases, model, target, options | fits, modulation=modulation, outcome=outcome
        )
        _print_json(document) if as_json else say(case_sentences(document))
        return 0
    if losses is not None:
        forecast = _from_losses(data, losses, alpha)
    else:
        more = fits if algorithm else {}
        forecast = _from_model(data, model, target, options | more, algorithm=algorithm)
    if plot is not None:
        _draw(forecast, "losses" if losses else str(model), losses or loss, plot)
    if as_json:
        _print_json(_document(forecast))
    else:
        say(_sentences(forecast))
    return 0


def _without_labels(
    data: Path, new: str, target: str, loss: str | None, alpha: float, seed: int, *,
    proba: str | None, as_json: bool,
) -> int:  # fmt: skip
    from calipers.cli.forecast_unlabelled import estimates, parse_losses, sentences
    from calipers.cli.terminal import say
    from calipers.inputs import check_alpha

    level, losses = check_alpha(alpha), parse_losses(loss)
    found = estimates(data, new, target=target, losses=losses, alpha=level, seed=seed, proba=proba)
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

    table = read_rows(data)
    require_column(column, table, "--losses")
    return forecast_losses(table[column], alpha)


def _from_model(
    data: Path, model: str | None, target: str, options: dict[str, Any], *, algorithm: bool
) -> LossForecast:
    from calipers.performance import AlgorithmPerformance, CandidatePerformance

    kind = AlgorithmPerformance if algorithm else CandidatePerformance
    forecast: LossForecast = fitted_forecast(kind, data, model, target, options).forecast_
    return forecast


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
