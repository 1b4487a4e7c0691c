"""Options that several commands share, and the calipers.toml that can fill them in.

Options that choose columns are made from the table of fields (`calipers.fields`).
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calipers.exceptions import InputError
from calipers.fields import FIELDS, Field

if TYPE_CHECKING:
    from calipers.cli.settings import Settings
    from calipers.engines import FileSource

CONFIG_NAME = "calipers.toml"
SECTION = "audit"
TOO_FEW_ROWS = 3
SEVERITY_WORDS = ("issue", "warning", "note", "never")

FileArgument = Annotated[
    Path,
    typer.Argument(
        help="csv, tsv, parquet, arrow, json-lines or npz; text also .gz or .zst; never modified."
    ),
]
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        help="A file (csv, parquet, arrow, json-lines, npz), or 'logs/*.parquet', a folder, s3://..."
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="Settings file. (default: calipers.toml in this folder, if there is one)"),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; use the exit code.")]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        help="Option of remote storage, such as endpoint_url=http://127.0.0.1:9000; may be repeated. "
        "Put keys into the environment (AWS_ACCESS_KEY_ID, ...), where other users cannot see them.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Folder for report.html, audit.json and summary.md.")
]

# Setting beside the columns -> what calipers.toml may hold, and the help of its option.
FURTHER: dict[str, tuple[Any, str]] = {
    "sep": (str, "What separates the cells of text: ';', tab, ... (default: the comma, tab for .tsv)"),
    "alpha": (
        float | list[float] | str,
        "Allowed miscoverage, one or several: 0.1 or 0.05,0.1. (default: what the file states, else 0.1)",
    ),
    "n_calibration": (int, "Rows the predictor was conformalised on."),
    "label_conditional": (bool, "Coverage was promised for every true class, so it is tested."),
    "bound": (
        float,
        "Promised bound of the mean loss, beside a column loss. (default: what the file states)",
    ),
    "loss_range": (
        list[float] | str,
        "Smallest and largest loss there can be: 0,1. (default: what the file states, else 0,1)",
    ),
    "min_rows": (
        int,
        "Fewest rows with which no fault is called none. (default: by the interval of each check)",
    ),
    "max_rows": (int, "Stream the file and keep a random sample of so many rows."),
    "seed": (int, "Seed of splits and simulations. (default: 0)"),
    "mute": (list[str], "Codes of checks to leave out."),
    "fail_on": (str, "Exit with 1 at: issue, warning, note, never, or codes. (default: issue)"),
}


def _help(field: Field) -> str:
    kind = {"per class": "Columns, * for the class", "rest": "Columns, such as 'age,x_*'"}
    return (
        f"{kind.get(field.layout, 'Column')}. {field.means} (default: {field.column or 'all other columns'})"
    )


def _option(name: str, kind: Any, text: str) -> Any:
    taken = kind if kind in (int, float, bool) else str
    return Annotated[taken | None, typer.Option(f"--{name.replace('_', '-')}", help=text)]


# Setting -> the option that fills it in, in the order of the help page.
COLUMN_OPTIONS = {field.option: _option(field.option, str, _help(field)) for field in FIELDS}
SETTING_OPTIONS = COLUMN_OPTIONS | {name: _option(name, *further) for name, further in FURTHER.items()}
_OF_AN_AUDIT = {"mute", "fail_on", "bound", "loss_range", "min_rows", "label_conditional"}
READ_OPTIONS = {name: option for name, option in SETTING_OPTIONS.items() if name not in _OF_AN_AUDIT}


def __getattr__(name: str) -> Any:
    # Settings are checked by pydantic, which takes longer to load than a page of help to print.
    if name != "Settings":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from calipers.cli.settings import Settings

    return Settings


def takes_settings(
    command: Callable[..., int] | None = None, *, options: Mapping[str, Any] = SETTING_OPTIONS
) -> Callable[..., Any]:
    """The command with an option for every setting and ``--config`` in place of its argument ``settings``."""
    if command is None:
        return lambda function: takes_settings(function, options=options)

    def with_options(**given: Any) -> int:
        chosen = {name: given.pop(name) for name in options}
        if chosen.get("mute") is not None:
            chosen["mute"] = [code.strip() for code in chosen["mute"].split(",")]
        settings = settings_from(given.pop("config")).over(chosen)
        exit_code((), settings.fail_on)  # a bad threshold is refused before the work
        return command(settings=settings, **given)

    # The type of the settings is not loaded here: it is not an option.
    own = inspect.signature(command, eval_str=True, globals=command.__globals__, locals={"Settings": None})
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in {**options, "config": ConfigOption}.items()
    ]
    file, *others = (parameter for name, parameter in own.parameters.items() if name != "settings")
    others = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in others]
    signature = inspect.Signature([file, *shared, *others], return_annotation=int)
    # The program reads options off the signature, so it is made to say what is taken.
    with_options.__signature__ = signature  # type: ignore[attr-defined]
    with_options.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    with_options.__doc__ = command.__doc__
    return with_options


def settings_from(config: Path | None) -> Settings:
    """The settings of a file: the one named, else calipers.toml here, else none."""
    from pydantic import ValidationError

    from calipers.cli.settings import Settings

    place = config or Path(CONFIG_NAME)
    try:
        is_there = place.exists()
    except OSError as error:
        shown, reason = str(place)[:60], error.strerror
        raise InputError(f"--config names {shown}, which cannot be read: {reason}.") from None
    if not is_there:
        if config is not None:
            raise InputError(f"--config names {config}, which does not exist.")
        return Settings()
    try:
        content = tomllib.loads(place.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"{place} cannot be read: {error.strerror}. Settings are read from a file."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{place} is not valid TOML ({error}).") from None
    unknown = next((key for key in content if key != SECTION), None)
    if unknown is not None:
        raise InputError(f"{place} has no place for {unknown!r}; settings belong in the section [{SECTION}].")
    section = content.get(SECTION, {})
    if not isinstance(section, dict):
        raise InputError(f"{SECTION} of {place} must be a section [{SECTION}], got {section!r}.")
    try:
        return Settings(**section)
    except ValidationError as error:
        first = error.errors()[0]
        key = first["loc"][0]
        if first["type"] == "extra_forbidden":
            known = ", ".join(Settings.model_fields)
            raise InputError(f"[{SECTION}] of {place} has no setting {key!r}; it takes {known}.") from None
        raise InputError(f"[{SECTION}] {key} of {place}: {first['msg']}, got {section[key]!r}.") from None


# The default of a setting; left out where it follows from the file.
_WITHOUT = {"seed": 0, "fail_on": "issue"}


def words_of(settings: Settings) -> list[str]:
    """The options that give another command here these settings: what calipers.toml does not say itself."""
    kept = settings_from(None)
    words: list[str] = []
    for name in SETTING_OPTIONS:
        value = getattr(settings, name)
        before = getattr(kept, name)
        if value in (None, [], _WITHOUT.get(name) if before is None else before):
            continue
        values = value if isinstance(value, list) else [value]
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, ",".join(map(str, values))]
    return words


def storage_of(words: Sequence[str] | None) -> dict[str, str]:
    """Options of remote storage from words such as ``endpoint_url=http://127.0.0.1:9000``."""
    found = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise InputError(f"--storage must be name=value, got {word!r}.")
        found[name.strip()] = value
    return found


def source_from(
    files: Sequence[str | Path],
    settings: Settings,
    storage: Mapping[str, str] | None = None,
    *,
    features: bool = True,
) -> FileSource:
    """The rows of files, at the levels asked for, else those the files state, else 0.1."""
    from dataclasses import replace

    from calipers.engines import FileSource

    alphas = settings.alphas()
    source = FileSource(
        [str(file) for file in files],
        settings.columns(),
        alpha=alphas[0] if alphas is not None and len(alphas) == 1 else alphas,
        features=features,
        storage=dict(storage or {}),
        separator=settings.separator(),
    )
    first = next(source.opened())
    stated = first.stated.get("n_calibration") if settings.n_calibration is None else settings.n_calibration
    return replace(source, alpha=list(first.alphas), n_calibration=stated)


def exit_code(findings: Sequence[Any], fail_on: str | None) -> int:
    """1 when a fault reaches the threshold (a severity, or codes), 3 when nothing could be told, else 0."""
    from calipers.results import nothing_told, severity_rank

    words = [word.strip() for word in (fail_on or "issue").split(",")]
    severities = [word for word in words if word in SEVERITY_WORDS]
    codes = [word for word in words if word not in SEVERITY_WORDS]
    if codes:
        _require_codes(codes)
    faults = [finding for finding in findings if finding.outcome == "fault"]
    for finding in faults:
        reached = any(
            word != "never" and severity_rank(finding.severity) >= severity_rank(word) for word in severities
        )
        if reached or finding.code in codes:
            return 1
    return TOO_FEW_ROWS if nothing_told(findings) and words != ["never"] else 0


def _require_codes(codes: Sequence[str]) -> None:
    """Refuse a code that no finding has: such a threshold would never be reached."""
    from calipers.auditing.checks import CHECKS
    from calipers.auditing.repair_loop import COVERAGE_CODES, PROBABILITY_CODES

    # A check that looks at both sides has a code for the other one, which only these tables hold.
    known = sorted({check.code for check in CHECKS} | COVERAGE_CODES | PROBABILITY_CODES)
    for code in codes:
        if code not in known:
            raise InputError(
                f"--fail-on must be {', '.join(SEVERITY_WORDS)} or codes of findings, got {code!r}; "
                f"the codes are {', '.join(known)}."
            )
