"""The table of commands and the group that loads them on first use.

To add a command: write ``cli/<module>.py`` with a function ``command`` (its docstring is the help,
heavy imports go inside it, it returns the exit code) and add one line to ``COMMANDS``.
"""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# Name on the command line -> module in calipers.cli, in the order of the help page.
COMMANDS = {
    "demo": "demo",
    "audit": "audit",
    "measure": "measure",
    "compare": "compare",
    "repair": "repair",
    "serve": "serve",
    "forecast": "forecast",
    "calibrate": "calibrate",
    "plan": "plan",
    "monitor": "monitor",
    "history": "history",
}


class LazyGroup(TyperGroup):
    """A group that imports a command's file when the command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, loaded now if it was not; None when there is none."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = load(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command, or an error that proposes one with a similar name."""
        if args and args[0] not in COMMANDS:
            self.commands.update((name, load(name)) for name in COMMANDS)
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    """The command object of one line of the table."""
    module = importlib.import_module(f"calipers.cli.{COMMANDS[name]}")
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name=name)(module.command)
    return typer.main.get_command(app)


def show_version(wanted: bool) -> None:
    """Print the version and stop, when asked."""
    if wanted:
        from calipers.version import __version__

        print(f"calipers {__version__}")
        raise typer.Exit


def overview(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Measure how far a model's uncertainty can be trusted.

    Exit code 0: clean. 1: findings at or above --fail-on. 2: bad input, or files that cannot be written.
    3: too few rows to tell. 70: a fault in Calipers. 130: stopped by hand. 141: the output was closed early.
    """


def root() -> Any:
    """The ``calipers`` program as one command object."""
    app = typer.Typer(cls=LazyGroup, rich_markup_mode="rich")
    app.callback()(overview)
    return typer.main.get_command(app)
