"""``calipers forecast --cases``: intervals of the loss, or sets of outcomes, that follow the case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calipers.cli.forecast_rows import features_and_target, fitted_forecast, read_rows

# Cases shown in the terminal; the JSON has all.
_SHOWN = 10


def check_forms(*, modulation: str | None, outcome: str | None, cases: Path | None) -> None:
    """Refuse forms that exclude each other, and a form that follows the case without cases."""
    from calipers.exceptions import InputError

    if modulation is not None and outcome is not None:
        raise InputError("--modulation is about a loss, --outcome about symbols: give one of them.")
    if (modulation is not None or outcome is not None) and cases is None:
        form = "--modulation" if outcome is None else "--outcome"
        raise InputError(f"{form} follows the case: --cases must name a file of cases with the same columns.")
    if cases is not None and modulation is None and outcome is None:
        raise InputError(
            "--cases needs --modulation (intervals of the loss) or --outcome (sets of outcomes); "
            "without them one interval serves every case."
        )


def case_forecast(
    data: Path,
    cases: Path,
    model: str | None,
    target: str,
    options: Mapping[str, Any],
    *,
    modulation: str | None,
    outcome: str | None,
) -> dict[str, Any]:
    """What the algorithm, trained anew, will lose on each case (Algorithm 3), or which outcome it will have.

    ``options`` are those of `AlgorithmPerformance`; a symbolic forecast has no loss and no batches.
    """
    from calipers.performance import AlgorithmPerformance, SymbolicPerformance

    if outcome is not None:
        own = {key: value for key, value in options.items() if key not in ("loss", "points_per_loss")}
        forecast = fitted_forecast(SymbolicPerformance, data, model, target, own | {"outcome": outcome})
    else:
        own = dict(options) | {"modulation": modulation}
        forecast = fitted_forecast(AlgorithmPerformance, data, model, target, own)
    X, y = features_and_target(read_rows(cases), target)
    promise = forecast.guarantee()
    document = {
        "alpha": promise.alpha,
        "n": promise.n,
        "train_size": promise.train_size,
        "coverage": float(promise.coverage),
        "guarantee": str(promise),
        "cases": len(X),
    }
    if outcome is None:
        bounds = forecast.predict_upper_bound(X, y)
        return document | {
            "intervals": forecast.predict_interval(X, y).tolist(),
            "upper_bounds": bounds.tolist(),
        }
    names = forecast.outcomes_.tolist()
    sets = [[names[k] for k in row.nonzero()[0]] for row in forecast.predict_set(X, y)]
    return document | {"outcomes": names, "sets": sets}


def case_sentences(document: Mapping[str, Any]) -> str:
    """The forecast of the first cases, the rest counted, and the promise."""
    from calipers.results.formatting import format_end

    if "sets" in document:
        rows = [", ".join(map(str, kept)) or "(none)" for kept in document["sets"]]
        single = sum(len(kept) == 1 for kept in document["sets"])
        summary = f"{single} of {len(rows)} cases have a single outcome"
    else:
        rows = [
            f"{format_end(low, side='low', digits=6)} to {format_end(high, side='high', digits=6)}"
            for low, high in document["intervals"]
        ]
        widths = sorted(high - low for low, high in document["intervals"])
        summary = f"median width {widths[len(widths) // 2]:.6g} over {len(rows)} cases"
    shown = [f"case {i}: {text}" for i, text in enumerate(rows[:_SHOWN])]
    if len(rows) > _SHOWN:
        shown.append(f"... {len(rows) - _SHOWN} more cases (--json has them all)")
    promise = document["guarantee"]
    return "\n".join(
        [*shown, summary, f"training size {document['train_size']}", promise[0].upper() + promise[1:]]
    )
