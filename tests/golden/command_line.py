"""The commands with their options, asked from the program itself, and the rule of what counts as a loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from typer.core import TyperGroup

from calipers.cli import main

LEFT_OUT = {"study"}
# Settings of [audit] in calipers.toml with a value each that is good for every file with the columns below.
SETTINGS = {
    "y": "what", "proba": "chance_*", "set": "in_*", "p_value": "pv_*", "lower": "from", "upper": "to",
    "features": ["age"], "group": "region", "ease": "easy", "time": "when", "alpha": [0.1], "n_calibration": 500,
    "max_rows": 1000, "seed": 3, "fail_on": "never", "mute": ["CAL601"],
}  # fmt: skip


def program() -> Any:
    """The ``calipers`` program as one group of commands, whichever module makes it."""
    found: list[Any] = []

    def taken(group: Any, *_: Any, **__: Any) -> int:
        found.append(group)
        return 0

    with patch.object(TyperGroup, "main", taken):
        main(["--help"])
    return found[0]


def collect() -> dict[str, Any]:
    """Commands -> options and arguments, with the options of the program itself under an empty name."""
    group = program()
    commands = {name: group.get_command(None, name) for name in group.list_commands(None)}
    return {
        name: {written: entry for parameter in command.params for written, entry in _entries(parameter)}
        for name, command in {"": group, **commands}.items()
        if name not in LEFT_OUT
    }


def _entries(parameter: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each spelling of an option; every argument of today is a file, or several."""
    common = {
        "default": None if parameter.required else _plain(parameter.default),
        "required": parameter.required,
    }
    if parameter.param_type_name == "argument":
        yield "(file)", {"required": parameter.required, "many": parameter.nargs == -1}
        return
    for spelling in (*parameter.opts, *parameter.secondary_opts):
        yield spelling, common | {"flag": bool(parameter.is_flag), "many": bool(parameter.multiple)}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def lost(stored: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """What one command took and takes no longer, in words."""
    for written, entry in stored.items():
        found = now.get(written)
        if found is None:
            yield f"{written} is gone"
            continue
        if found["required"] and not entry["required"]:
            yield f"{written} is now required"
        if entry["many"] and not found["many"]:
            yield f"{written} can no longer be repeated"
        # Without a stated default the program decides later; to state the same one is not a loss.
        kept = [key for key in ("flag", "default") if entry.get(key) is not None]
        changed = [key for key in kept if found[key] != entry[key]]
        yield from (f"{written} has {key} {found[key]!r}, must keep {entry[key]!r}" for key in changed)
    yield from (
        f"{w} is new and required" for w, entry in now.items() if w not in stored and entry["required"]
    )
