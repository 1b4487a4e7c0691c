"""``calipers forecast --unlabelled NEW``: what the model scores on rows whose labels have not come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import polars as pl

    from calipers.engines import FileSource
    from calipers.results import Estimate

# The column of point predictions in a file of a regression.
PREDICTION = "y_pred"
# The loss that is estimated when none is named: beside probabilities, and beside point predictions.
CLASS_LOSS, NUMBER_LOSS = "zero_one", "absolute"


class Statements(NamedTuple):
    """What a file states: probabilities or point predictions, the features, outcomes where known."""

    stated: Any
    features: Any
    outcomes: Any = None
    classes: list[Any] | None = None


def estimates(
    data: Path,
    new: str,
    *,
    target: str,
    losses: list[Any] | None,
    alpha: float,
    seed: int,
    proba: str | None = None,
) -> dict[str, Estimate]:
    """One estimate per loss, from a labelled reference file and files without labels, which are streamed."""
    from calipers.engines import estimate_without_labels
    from calipers.exceptions import InputError
    from calipers.inputs.files import read_table
    from calipers.performance import LabelFreePerformance

    reference, own, features = labelled(read_table(data), target, str(data), proba)
    regression = own == [PREDICTION]
    models: dict[str, LabelFreePerformance] = {}
    for loss in losses or [NUMBER_LOSS if regression else CLASS_LOSS]:
        model = LabelFreePerformance(
            loss=loss,
            confidence=1.0 - alpha,
            random_state=seed,
            task="regression" if regression else "classification",
            classes=reference.classes,
        )
        try:
            models[str(loss)] = model.fit(reference.stated, reference.outcomes, reference.features)
        except InputError as error:
            raise InputError(f"{data}: {error}") from None
    found = estimate_without_labels(models, unlabelled(new, own, features))
    return {estimate.name: estimate for estimate in found.values()}


def labelled(
    table: pl.DataFrame, target: str, place: str, proba: str | None = None
) -> tuple[Statements, list[str], list[str]]:
    """What the reference states, and the columns that new rows must have: statements, and features."""
    from calipers.inputs.files import ColumnChoice
    from calipers.inputs.files.column_roles import assign_roles
    from calipers.inputs.files.columns_to_arrays import arguments_of_frame, identifiers

    choice = ColumnChoice(y=target) if proba is None else ColumnChoice(y=target, proba=proba)
    roles = assign_roles(table.columns, choice, place=place)
    features = [name for name in roles.columns.get("X", {}).values() if name != PREDICTION]
    features = [name for name in features if name not in identifiers(table.select(features))]
    X = table.select(features) if features else None
    probabilities = list(roles.columns.get("probabilities", {}).values())
    if PREDICTION in table.columns and not probabilities:
        numbers = [_numbers(table[name], place) for name in (PREDICTION, target)]
        return Statements(numbers[0], X, numbers[1]), [PREDICTION], features
    if not probabilities:
        raise _nothing_stated(place)
    given = arguments_of_frame(table.select([target, *probabilities]), choice, place=place)
    classes = given.get("classes") or _two_classes(roles.labels("probabilities"), given["y_true"], place)
    stated = Statements(given["probabilities"], X, given["y_true"], classes)
    return stated, probabilities, features


def unlabelled(new: str, own: list[str], features: list[str]) -> FileSource:
    """The new rows, by the columns of the reference."""
    from calipers.engines import FileSource
    from calipers.exceptions import InputError
    from calipers.inputs.files import ColumnChoice

    choice = ColumnChoice(
        y=(),
        X=features,
        probabilities=[] if PREDICTION in own else own,
        **({"y_pred": PREDICTION} if PREDICTION in own else {}),
    )
    source = FileSource(new, choice, features=bool(features))
    there = next(source.opened()).roles.names()
    missing = [name for name in (*own, *features) if name not in there]
    if missing:
        raise InputError(f"{new} has no column {missing[0]!r}, which the labelled file has.")
    return source


def _numbers(column: pl.Series, place: str) -> Any:
    from calipers.exceptions import InputError

    if not column.dtype.is_numeric() or column.null_count():
        raise InputError(f"column {column.name!r} of {place} must hold numbers without gaps.")
    return column.to_numpy().astype(float)


def _two_classes(named: list[str], labels: Any, place: str) -> list[Any]:
    """The labels of two classes, the one that the only column is named after last."""
    import numpy as np

    from calipers.exceptions import InputError

    present = np.unique(labels).tolist()
    # As in a column name, 1.0 is 1.
    own = [label for label in present if named and str(label).removesuffix(".0") == named[0]]
    if len(present) != 2:
        raise InputError(f"one column of probabilities needs two labels, {place} has {len(present)}.")
    positive = own[0] if own else present[1]
    return [label for label in present if label != positive] + [positive]


def _nothing_stated(place: str) -> Exception:
    from calipers.exceptions import InputError

    return InputError(
        f"{place} states nothing that labels can be expected from: give p_<class> columns, or others with "
        f"--proba; or {PREDICTION} for a regression."
    )


def parse_losses(words: str | None) -> list[Any] | None:
    """Losses from words such as ``zero_one,auroc,1:9``; a pair of costs is false positive : false negative.

    Examples
    --------
    >>> from calipers.cli.forecast_unlabelled import parse_losses
    >>> parse_losses("brier, 1:9")
    ['brier', (1.0, 9.0)]
    """
    from calipers.exceptions import InputError

    if words is None:
        return None
    losses: list[Any] = []
    for word in (part.strip() for part in words.split(",")):
        if ":" not in word:
            losses.append(word)
            continue
        try:
            false_positive, false_negative = (float(cost) for cost in word.split(":"))
        except ValueError:
            raise InputError(f"--loss must be names or costs such as 1:9, got {word!r}.") from None
        losses.append((false_positive, false_negative))
    return losses


def sentences(found: dict[str, Estimate]) -> str:
    """The estimates, what they rest on, and what they cannot know."""
    from calipers.results.formatting import p_in_words

    first = next(iter(found.values()))
    shift = first.details["shift"]
    told = f"a shift of {shift['tested']}" if shift["found"] else f"no shift of {shift['tested']}"
    lines = [_line(estimate) for estimate in found.values()]
    lines.append(
        f"{told} was found ({p_in_words(shift['p_value'])}); the {first.details['reference_rows']} labelled "
        f"rows are worth {first.details['effective_rows']:.0f}"
    )
    if first.details["unsupported_rows"]:
        lines.append(f"{first.details['unsupported_rows']} new rows have no like among the labelled ones")
    lines.append("No estimate without labels can see that outcomes given the inputs have changed.")
    return "\n".join(lines)


def _line(estimate: Estimate) -> str:
    from calipers.results.formatting import format_end, format_percent

    if estimate.low is None or estimate.high is None or estimate.confidence is None:
        return f"{estimate.name}: {estimate.reason}"
    low = format_end(estimate.low, side="low", digits=4)
    high = format_end(estimate.high, side="high", digits=4)
    known = estimate.details["reference_loss"]
    before = "" if known is None else f"; on the labelled rows {known:.4g}"
    level = format_percent(estimate.confidence)
    return f"{estimate.name} {estimate.value:.4g} [{low}, {high}] at {level}{before}"
