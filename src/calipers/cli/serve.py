"""``calipers serve FILE...``: the report as an application, on this machine only."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from calipers.cli.options import ConfigOption

LOOPBACK = "127.0.0.1"
MEGABYTE = 2**20


def command(
    files: Annotated[list[Path] | None, typer.Argument(help="Files of predictions; never modified.")] = None,
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    upload_limit: Annotated[int, typer.Option("--upload-limit", help="Largest upload, in MB.")] = 200,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Folder for finished audits; the next start shows them again."),
    ] = None,
    config: ConfigOption = None,
) -> int:
    """Choose columns, alpha and groups on a local page, run audits, compare files.

    The page listens on 127.0.0.1 only, below a random address that only this terminal shows.
    """
    from calipers.arrays import import_optional
    from calipers.cli.options import settings_from

    uvicorn = import_optional("uvicorn", purpose="the local page", install="calipers[serve]")
    import_optional("starlette", purpose="the local page", install="calipers[serve]")
    from calipers.cli.serve_app import make_app
    from calipers.cli.serve_connections import server_settings
    from calipers.cli.serve_jobs import Workshop
    from calipers.cli.serve_runs import RunStore
    from calipers.cli.serve_uploads import ending_by_signals, upload_folder

    store = RunStore(keep)
    workshop = Workshop(existing(files or []), settings_from(config), store)
    token = secrets.token_urlsafe(24)
    with ending_by_signals(), free_socket(port) as listener, upload_folder() as folder:
        chosen = listener.getsockname()[1]
        app = make_app(
            workshop, token=token, port=chosen, upload_limit=upload_limit * MEGABYTE, folder=folder
        )
        address = f"http://{LOOPBACK}:{chosen}/{token}/"
        print(f"The page is {address} (stop with Ctrl-C)", flush=True)
        if open_browser:
            webbrowser.open(address)
        try:
            uvicorn.Server(server_settings(app)).run(sockets=[listener])
        finally:
            workshop.close()
    return 0


def existing(files: list[Path]) -> list[Path]:
    """The files, all of them there and readable by their ending."""
    from calipers.exceptions import InputError
    from calipers.inputs.files.formats import format_of

    for path in files:
        format_of(str(path))
        if not path.is_file():
            raise InputError(f"{path} does not exist.")
    return files


def free_socket(port: int) -> socket.socket:
    """A socket on the loopback address that takes connections from now on; they wait for the server."""
    from calipers.exceptions import InputError

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"port {port} cannot be used ({error}). Choose another with --port.") from None
    return listener
