"""``calipers calibrate FILE``: calibrated probabilities, and the audit before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from calipers.cli.options import (
    SETTING_OPTIONS,
    FileArgument,
    JsonOption,
    QuietOption,
    takes_settings,
)
from calipers.cli.output_files import ForceOption, Outputs

if TYPE_CHECKING:
    import numpy as np

    from calipers.auditing import Audit
    from calipers.cli.settings import Settings
    from calipers.engines import ArraySource, FileSource
    from calipers.results import EstimateTable
    from calipers.results.writing import Content

SUMMARY_NAME, PAGE_NAMES = "calibration.json", ("report_before.html", "report_after.html")
METHODS = ("auto", "isotonic", "platt", "temperature", "beta", "spline", "venn-abers")
# Settings that matter here; all rows are calibrated, whatever calipers.toml says about samples.
OPTIONS = {name: SETTING_OPTIONS[name] for name in ("y", "proba", "weight", "sep", "seed")}


@takes_settings(options=OPTIONS)
def command(
    file: FileArgument,
    settings: Settings,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help=f"One of {', '.join(METHODS)}; auto tests first and leaves a calibrated model alone.",
        ),
    ] = "auto",
    folds: Annotated[int, typer.Option("--folds", help="Parts; each is calibrated by the others.")] = 5,
    apply: Annotated[
        Path | None,
        typer.Option("--apply", help="Also calibrate this file, with a calibrator fitted on all of FILE."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for calibrated.*, calibration.json and the two reports.")
    ] = Path("calipers-calibrated"),
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on", help="Exit with 1 when the calibrated rows still have: issue, warning, ..."
        ),
    ] = "never",
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> int:
    """Calibrate the probabilities of a file and audit them before and after.

    Every row is calibrated by a map that did not see it, so the audit of the result is honest. The file
    itself is never changed. Columns are found by name: y_true, p_<class>.
    """
    from calipers.cli.options import exit_code, source_from
    from calipers.cli.terminal import say_json

    exit_code((), fail_on)
    outputs = planned(out, file, apply, force=force)
    result = calibrate(file, settings, method=method, folds=folds)
    contents = files_of(result, source_from([file], settings), out)
    if apply is not None:
        contents |= other_file(result, file, source_from([apply], settings), out)
    failure = outputs.write(contents)
    if as_json:
        say_json(str(contents[out / SUMMARY_NAME]))
    elif not quiet or failure is not None:
        show(result, [] if failure is not None else list(contents))
    if failure is not None:
        raise failure
    return exit_code(result.after.findings, fail_on)


class Calibrated(NamedTuple):
    """What was read, what became of it, and why."""

    predictions: ArraySource
    probabilities: np.ndarray
    calibrator: Any
    verdict: str
    before: Audit
    after: Audit
    readings: dict[str, EstimateTable]


def calibrate(file: Path, settings: Settings, *, method: str, folds: int) -> Calibrated:
    """Cross-fitted probabilities of a file with their audits."""
    import numpy as np

    from calipers.calibration.conditional import cross_fit
    from calipers.cli.options import source_from
    from calipers.exceptions import InputError
    from calipers.inputs import check_count

    check_count(folds, name="--folds", minimum=2)
    if method not in METHODS:
        raise InputError(f"--method must be one of {', '.join(METHODS)}, got {method!r}.")
    predictions = source_from([file], settings).load()
    stated, weights = (predictions.given.get(name) for name in ("probabilities", "sample_weight"))
    if stated is None:
        raise InputError(
            f"{file} has no probabilities; name their columns p_<class> or choose them with --proba."
        )
    rng = np.random.default_rng(settings.seed or 0)
    labels = positive_labels(predictions)
    calibrator, verdict, preview = choose(method, stated, labels, predictions, rng, folds)
    calibrated = stated if preview is None else like(preview, stated)
    if calibrator is not None and preview is None:
        parts = rng.permutation(len(labels)) % folds
        base = stated[:, 1] if stated.ndim == 2 and stated.shape[1] == 2 else stated
        found = cross_fit(calibrator, base, labels, weights, parts)
        calibrated = like(found, stated)
        calibrator.fit(base, labels, weights)
    seed = settings.seed or 0
    audits = [audit_of(p, predictions, seed, file) for p in (stated, calibrated)]
    readings = {
        name: read_calibration(p, predictions, seed)
        for name, p in (("before", stated), ("after", calibrated))
    }
    return Calibrated(predictions, calibrated, calibrator, verdict, audits[0], audits[1], readings)


def positive_labels(predictions: ArraySource) -> Any:
    """True for the positive class of two, or the column of the label of each row."""
    from calipers.inputs import check_binary, encode_labels

    y, stated = predictions.given["y_true"], predictions.given["probabilities"]
    if stated.ndim == 1:
        return check_binary(y)
    codes = encode_labels(y, stated.shape[1], classes=predictions.classes)
    return codes == 1 if stated.shape[1] == 2 else codes


def choose(
    method: str, stated: Any, labels: Any, predictions: ArraySource, rng: np.random.Generator, folds: int
) -> tuple[Any, str, Any]:
    """The calibrator of a method, None to leave everything alone, a sentence, and what it was chosen by.

    That are the cross-fitted probabilities of the choice, where there was one: they are written and audited,
    so that the sentence and the numbers below it are about the same.
    """
    from calipers.calibration import (
        IsotonicCalibrator,
        LinkCalibrator,
        OneVsRestCalibrator,
        TemperatureCalibrator,
        VennAbersCalibrator,
        calibrate_if_needed,
    )

    several = stated.ndim == 2 and stated.shape[1] > 2
    columns = range(stated.shape[1]) if several else None
    if several and method in {"auto", "temperature"}:
        return TemperatureCalibrator(classes=columns), "Calibrated by one softmax temperature.", None
    if method == "auto":
        base = stated[:, 1] if stated.ndim == 2 else stated
        weights = predictions.given.get("sample_weight")
        chosen = calibrate_if_needed(base, labels, sample_weight=weights, n_folds=folds, random_state=rng)
        return chosen.calibrator_, chosen.verdict_, chosen.preview_
    special = {"isotonic": IsotonicCalibrator, "venn-abers": VennAbersCalibrator}
    one = special[method]() if method in special else LinkCalibrator(method)
    made = OneVsRestCalibrator(one, classes=columns) if several else one
    said = f"Calibrated by {method}{', one class against the rest' if several else ''}, as asked."
    return made, said, None


def like(calibrated: Any, stated: Any) -> Any:
    """The calibrated probabilities in the shape of the stated ones."""
    import numpy as np

    if stated.ndim == 2 and calibrated.ndim == 1:
        return np.stack([1 - calibrated, calibrated], axis=1)
    return calibrated


def audit_of(probabilities: Any, predictions: ArraySource, seed: int, file: Path) -> Audit:
    """The audit of probabilities alone."""
    from calipers.auditing import audit

    return audit(
        predictions.given["y_true"],
        probabilities=probabilities,
        classes=predictions.classes,
        sample_weight=predictions.given.get("sample_weight"),
        random_state=seed,
        name=file.stem,
    )


def read_calibration(probabilities: Any, predictions: ArraySource, seed: int) -> EstimateTable:
    """Calibration error and the verdict of all tests, Brier score and log loss."""
    from dataclasses import replace

    from calipers.metrics import calibration_error, calibration_tests
    from calipers.metrics.probability_scores import scores_of_rows
    from calipers.results import EstimateTable

    y, weights = predictions.given["y_true"], predictions.given.get("sample_weight")
    options: dict[str, Any] = {"classes": predictions.classes, "sample_weight": weights, "random_state": seed}
    scores = scores_of_rows(predictions.rows().replace(probabilities=probabilities))
    found = [
        calibration_error(y, probabilities, **options),
        calibration_tests(y, probabilities, **options)["verdict"],
        replace(scores["brier_score"], name="Brier score"),
        replace(scores["log_loss"], name="log loss"),
    ]
    return EstimateTable(found, title="Calibration")


def planned(out: Path, file: Path, apply: Path | None, *, force: bool) -> Outputs:
    """The files that will be written, found to be writable."""
    from calipers.inputs.files.formats import ending_of

    names = [SUMMARY_NAME, *PAGE_NAMES]
    rows = [f"calibrated{ending_of(str(file))}"]
    rows += [] if apply is None else [f"{calibrated_stem(apply)}{ending_of(str(apply))}"]
    # Rows that an earlier run calibrated do not say that Calipers wrote them; a folder of ours does.
    earlier = (out / SUMMARY_NAME).is_file()
    return Outputs(out, tuple(names if earlier else names + rows), force=force).check()


def files_of(result: Calibrated, source: FileSource, out: Path) -> dict[Path, Content]:
    """The calibrated file, two reports, and both audits as one JSON."""
    import json

    from calipers.results import to_json

    document = {
        "calipers": result.before.to_dict()["calipers"],
        "verdict": result.verdict,
        "calibrator": repr(result.calibrator),
        "calibration": {name: json.loads(to_json(table)) for name, table in result.readings.items()},
        "before": json.loads(result.before.to_json()),
        "after": json.loads(result.after.to_json()),
    }
    pages = zip(PAGE_NAMES, (result.before, result.after), strict=True)
    return {
        **calibrated_rows(source, result.probabilities, out, "calibrated"),
        **{out / name: found.to_html() for name, found in pages},
        out / SUMMARY_NAME: json.dumps(document, indent=2, ensure_ascii=False),
    }


def calibrated_stem(file: Path) -> str:
    """How the calibrated rows of another file are called."""
    return f"{file.name.split('.')[0]}_calibrated"


def other_file(result: Calibrated, fitted: Path, source: FileSource, out: Path) -> dict[Path, Content]:
    """Another file with the same columns, through the calibrator fitted on all rows."""
    import numpy as np

    file, predictions = Path(source.files()[0]), source.load()
    calibrated = stated = np.asarray(predictions.given["probabilities"])
    if result.calibrator is not None:
        columns = same_columns(result.predictions.classes, predictions.classes, fitted, file)
        ours = stated if columns is None else stated[:, columns]
        base = ours[:, 1] if ours.ndim == 2 and ours.shape[1] == 2 else ours
        found = like(np.asarray(result.calibrator.predict(base)), ours)
        calibrated = found if columns is None else found[:, np.argsort(columns)]
    return calibrated_rows(source, calibrated, out, calibrated_stem(file))


def same_columns(fitted: Any, other: Any, first: Path, second: Path) -> list[int] | None:
    """Where the second file has each class of the first one; None when neither names its classes."""
    from calipers.exceptions import InputError

    if fitted is None or other is None:
        return None
    if set(fitted) != set(other):
        raise InputError(
            f"{second} must have the classes of {first} ({', '.join(map(str, fitted))}), "
            f"got {', '.join(map(str, other))}."
        )
    return [list(other).index(label) for label in fitted]


def calibrated_rows(source: FileSource, probabilities: Any, folder: Path, stem: str) -> dict[Path, Content]:
    """All columns of a file with its probabilities replaced, in the same format."""
    import polars as pl

    from calipers.inputs.files import read_table
    from calipers.inputs.files.formats import ending_of, table_writer

    file = next(source.opened())
    place = folder / f"{stem}{ending_of(file.path)}"
    names = list(file.roles.columns["probabilities"].values())
    whole = file.roles.array("probabilities") is not None or probabilities.ndim == 1
    columns = [probabilities] if whole else list(probabilities.T)
    table = read_table(file.path, separator=source.separator)
    table = table.with_columns(pl.Series(name, column) for name, column in zip(names, columns, strict=True))
    return {place: table_writer(table, str(place), stated=file.stated, separator=source.separator)}


def show(result: Calibrated, places: list[Path]) -> None:
    """The sentence, both answers about probabilities, and the files."""
    from calipers.cli.terminal import say

    say(result.verdict)
    for name, table in result.readings.items():
        for estimate in table.values():
            say(f"{name}: {estimate}")
    for place in places:
        say(place)
