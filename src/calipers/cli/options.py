"""Options that several commands share, and the calipers.toml that can fill them in."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from calipers.exceptions import InputError

if TYPE_CHECKING:
    from calipers.inputs.files import ColumnChoice, Predictions

CONFIG_NAME = "calipers.toml"
SEVERITY_WORDS = ("issue", "warning", "note", "never")

FileArgument = Annotated[Path, typer.Argument(help="csv, parquet, arrow, json-lines or npz; never modified.")]
YOption = Annotated[str | None, typer.Option("--y", help="Column of true outcomes. (default: y_true)")]
ProbaOption = Annotated[
    str | None,
    typer.Option("--proba", help="Columns of probabilities; * stands for the class. (default: p_*)"),
]
SetOption = Annotated[
    str | None, typer.Option("--set", help="Columns of sets; * stands for the class. (default: set_*)")
]
PValueOption = Annotated[
    str | None,
    typer.Option("--p-value", help="Columns of p-values; * stands for the class. (default: pvalue_*)"),
]
LowerOption = Annotated[str | None, typer.Option("--lower", help="Column of lower ends. (default: lower)")]
UpperOption = Annotated[str | None, typer.Option("--upper", help="Column of upper ends. (default: upper)")]
FeaturesOption = Annotated[
    str | None,
    typer.Option("--features", help="Columns of features, e.g. 'age,x_*'. (default: all other columns)"),
]
GroupOption = Annotated[str | None, typer.Option("--group", help="Column of groups. (default: group)")]
EaseOption = Annotated[str | None, typer.Option("--ease", help="Column of ease. (default: ease)")]
TimeOption = Annotated[
    str | None, typer.Option("--time", help="Column of times, along which losses may drift. (default: none)")
]
AlphaOption = Annotated[
    str | None,
    typer.Option("--alpha", help="Allowed miscoverage, one or several: 0.1 or 0.05,0.1. (default: 0.1)"),
]
CalibrationOption = Annotated[
    int | None, typer.Option("--n-calibration", help="Rows the predictor was conformalised on.")
]
MuteOption = Annotated[str | None, typer.Option("--mute", help="Codes of checks to leave out.")]
MaxRowsOption = Annotated[
    int | None, typer.Option("--max-rows", help="Stream the file and keep a random sample of so many rows.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Seed of splits and simulations. (default: 0)")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="Settings file. (default: calipers.toml in this folder, if there is one)"),
]
FailOnOption = Annotated[
    str | None,
    typer.Option("--fail-on", help="Exit with 1 at: issue, warning, note, never, or codes. (default: issue)"),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code tells.")]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        help="Option of remote storage, such as endpoint_url=http://127.0.0.1:9000; may be repeated. "
        "Keys belong into the environment (AWS_ACCESS_KEY_ID, ...), where nobody else sees them.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Folder for report.html, audit.json and summary.md.")
]

# Setting -> the option that fills it in, in the order of the help page.
SETTING_OPTIONS: dict[str, Any] = {
    "y": YOption,
    "proba": ProbaOption,
    "set": SetOption,
    "lower": LowerOption,
    "upper": UpperOption,
    "p_value": PValueOption,
    "features": FeaturesOption,
    "group": GroupOption,
    "ease": EaseOption,
    "time": TimeOption,
    "alpha": AlphaOption,
    "n_calibration": CalibrationOption,
    "max_rows": MaxRowsOption,
    "mute": MuteOption,
    "fail_on": FailOnOption,
    "seed": SeedOption,
}


class Settings(BaseModel):
    """What calipers.toml may say under [audit]; the command line wins over it."""

    model_config = ConfigDict(extra="forbid")

    y: str | None = None
    proba: str | None = None
    set: str | None = None
    p_value: str | None = None
    lower: str | None = None
    upper: str | None = None
    features: str | list[str] | None = None
    group: str | None = None
    ease: str | None = None
    time: str | None = None
    alpha: float | list[float] | str | None = None
    n_calibration: int | None = None
    max_rows: int | None = None
    seed: int | None = None
    fail_on: str | None = None
    mute: list[str] = []

    def over(self, chosen: dict[str, Any]) -> Settings:
        """The settings with what the command line chose on top."""
        return self.model_copy(update={key: value for key, value in chosen.items() if value is not None})

    def alphas(self) -> list[float] | None:
        """The levels as numbers; None when nobody said."""
        if self.alpha is None or isinstance(self.alpha, float):
            return None if self.alpha is None else [self.alpha]
        if isinstance(self.alpha, list):
            return self.alpha
        try:
            return [float(word) for word in self.alpha.split(",")]
        except ValueError:
            raise InputError(
                f"--alpha must be numbers such as 0.1 or 0.05,0.1, got {self.alpha!r}."
            ) from None

    def columns(self) -> ColumnChoice:
        """The columns by role."""
        from calipers.inputs.files import ColumnChoice

        features = self.features.split(",") if isinstance(self.features, str) else self.features
        chosen = {
            "y": self.y, "probabilities": _patterns(self.proba), "p_values": _patterns(self.p_value),
            "sets": _patterns(self.set), "lower": self.lower, "upper": self.upper, "group": self.group,
            "ease": self.ease, "time": self.time,
            "features": tuple(word.strip() for word in features) if features else None,
        }  # fmt: skip
        given: dict[str, Any] = {key: value for key, value in chosen.items() if value is not None}
        return ColumnChoice(**given)


def takes_settings(command: Callable[..., int]) -> Callable[..., int]:
    """The command with an option for every setting and ``--config`` in place of its argument ``settings``."""

    def with_options(**given: Any) -> int:
        chosen = {name: given.pop(name) for name in SETTING_OPTIONS}
        if chosen["mute"] is not None:
            chosen["mute"] = [code.strip() for code in chosen["mute"].split(",")]
        settings = settings_from(given.pop("config")).over(chosen)
        exit_code((), settings.fail_on)  # a bad threshold is refused before the work
        return command(settings=settings, **given)

    own = inspect.signature(command, eval_str=True).parameters
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in (SETTING_OPTIONS | {"config": ConfigOption}).items()
    ]
    file, *others = (parameter for name, parameter in own.items() if name != "settings")
    others = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in others]
    signature = inspect.Signature([file, *shared, *others], return_annotation=int)
    # The program reads options off the signature, so it is made to say what is taken.
    with_options.__signature__ = signature  # type: ignore[attr-defined]
    with_options.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    with_options.__doc__ = command.__doc__
    return with_options


def _patterns(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(","))


def settings_from(config: Path | None) -> Settings:
    """The settings of a file: the one named, else calipers.toml here, else none."""
    place = config or Path(CONFIG_NAME)
    if not place.exists():
        if config is not None:
            raise InputError(f"--config names {config}, which does not exist.")
        return Settings()
    try:
        content = tomllib.loads(place.read_text(encoding="utf-8"))
        return Settings(**content.get("audit", {}))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{place} is not valid TOML ({error}).") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(Settings.model_fields)
            raise InputError(f"[audit] of {place} has no setting {key!r}; it takes {known}.") from None
        raise InputError(f"[audit] {key} of {place}: {first['msg']}.") from None


def storage_of(words: Sequence[str] | None) -> dict[str, str]:
    """Options of remote storage from words such as ``endpoint_url=http://127.0.0.1:9000``."""
    found = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise InputError(f"--storage must be name=value, got {word!r}.")
        found[name.strip()] = value
    return found


def read_file(file: Path, settings: Settings) -> tuple[Predictions, dict[str, Any]]:
    """The predictions of a file and the arguments of their audit."""
    from calipers.inputs.files import read_predictions

    seed = settings.seed or 0
    predictions = read_predictions(file, settings.columns(), max_rows=settings.max_rows, random_state=seed)
    arguments = predictions.arguments()
    if (alphas := settings.alphas()) is not None:
        arguments["alpha"] = alphas if len(alphas) > 1 else alphas[0]
    if settings.n_calibration is not None:
        arguments["n_calibration"] = settings.n_calibration
    return predictions, arguments | {"random_state": seed, "origin": str(file)}


def exit_code(findings: Sequence[Any], fail_on: str | None) -> int:
    """1 when a fault reaches the threshold: a severity, or one of several codes."""
    from calipers.results import severity_rank

    words = [word.strip() for word in (fail_on or "issue").split(",")]
    severities = [word for word in words if word in SEVERITY_WORDS]
    codes = [word for word in words if word not in SEVERITY_WORDS]
    for code in codes:
        if not (code.startswith("CAL") and code[3:].isdigit()):
            raise InputError(
                f"--fail-on must be {', '.join(SEVERITY_WORDS)} or codes such as CAL101, got {code!r}."
            )
    faults = [finding for finding in findings if finding.outcome == "fault"]
    for finding in faults:
        reached = any(
            word != "never" and severity_rank(finding.severity) >= severity_rank(word) for word in severities
        )
        if reached or finding.code in codes:
            return 1
    return 0
