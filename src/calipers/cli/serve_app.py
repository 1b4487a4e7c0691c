"""The local page: who may ask, what is answered.

Everything lives below a random token. A request must be addressed to the loopback name it was started
with (a foreign name that resolves to this machine is refused), a request from another origin is refused,
files are known by number and never by path, and uploads are counted while they arrive.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool as in_thread
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from calipers.cli.serve_example import EXAMPLE_NAME, write_example
from calipers.cli.serve_jobs import Workshop
from calipers.cli.serve_runs import DOWNLOADS, download_name
from calipers.exceptions import CalipersError, InputError
from calipers.fields import FIELDS
from calipers.inputs.files.formats import ending_of
from calipers.report.page import asset, template
from calipers.results.terminal_safe import one_line

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
# A report is a page of its own in the browser, but of no origin: its script cannot ask this server anything.
REPORT_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
}
PATIENCE = 30  # seconds without a byte
LARGEST_JSON = 1 << 16
Next = Callable[[Request], Awaitable[Response]]


class Guard(BaseHTTPMiddleware):
    """Refuses what does not come from the page itself."""

    def __init__(self, app: Any, *, token: str, port: int) -> None:
        super().__init__(app)
        self.token = token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def dispatch(self, request: Request, call_next: Next) -> Response:
        """The answer of the page, or a refusal that says as little as possible."""
        refusal = self.refuse(request)
        if refusal is not None:
            return PlainTextResponse(refusal, status_code=403, headers=HEADERS)
        response = await call_next(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def refuse(self, request: Request) -> str | None:
        """Why the request is refused; None when it is not."""
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return "wrong host"
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{name}" for name in self.hosts}:
            return "wrong origin"
        if request.method != "GET" and origin is None:
            return "no origin"
        given = request.url.path.split("/")[1]
        # Bytes, because text with other letters than ASCII cannot be compared in constant time.
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "wrong token"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """What is answered at each address.

    Parameters
    ----------
    workshop : Workshop
        Files and audits.
    upload_limit : int
        Largest upload, in bytes.
    folder : Path
        Where uploads are kept while the page runs.
    """

    workshop: Workshop
    upload_limit: int
    folder: Path

    async def page(self, request: Request) -> Response:
        """The page itself."""
        html = template("serve.html").render(
            files=self.workshop.names,
            fields=FIELDS,
            style=asset("report.css") + asset("serve.css"),
            script=asset("serve.js"),
            kept=self.workshop.store.folder is not None,
        )
        return HTMLResponse(html)

    async def columns(self, request: Request) -> Response:
        """Columns of a file and their roles."""
        choices = dict(request.query_params)
        return JSONResponse(await in_thread(self.workshop.columns, request.path_params["number"], choices))

    async def start(self, request: Request) -> Response:
        """Begin an audit."""
        asked = await small_json(request)
        if not isinstance(asked, dict) or not isinstance(asked.get("choices", {}), dict):
            raise InputError("the request must be a dictionary with file and choices.")
        return JSONResponse({"job": self.workshop.start(str(asked.get("file")), asked.get("choices", {}))})

    async def state(self, request: Request) -> Response:
        """Where an audit stands."""
        job = self.workshop.jobs.get(request.path_params["identity"])
        return JSONResponse(job.state()) if job else JSONResponse({"error": "no such audit"}, status_code=404)

    async def stop(self, request: Request) -> Response:
        """End an audit."""
        self.workshop.stop(request.path_params["identity"])
        return JSONResponse({})

    async def remove(self, request: Request) -> Response:
        """Forget a finished audit."""
        self.workshop.store.remove(request.path_params["identity"])
        return JSONResponse({})

    async def report(self, request: Request) -> Response:
        """The report of a finished audit, as a page or in one of its forms to keep."""
        identity, _, ending = request.path_params["identity"].partition(".")
        run = self.workshop.store.runs.get(identity)
        if run is None or (ending and ending not in DOWNLOADS):
            return PlainTextResponse("no such report", status_code=404)
        if not ending:
            return HTMLResponse(await in_thread(run.download, "html"), headers=REPORT_HEADERS)
        named = f'attachment; filename="{download_name(run.name, ending)}"'
        headers = REPORT_HEADERS | {"Content-Disposition": named}
        return Response(await in_thread(run.download, ending), media_type=DOWNLOADS[ending], headers=headers)

    async def runs(self, request: Request) -> Response:
        """All audits, for a page that was loaded again."""
        return JSONResponse(self.workshop.runs())

    async def example(self, request: Request) -> Response:
        """Rows to try the page with."""
        place = self.folder / EXAMPLE_NAME
        known = next((number for number, path in self.workshop.files.items() if path == place), None)
        if known is None:
            known = self.workshop.add(write_example(self.folder), EXAMPLE_NAME)
        return JSONResponse({"file": known, "name": EXAMPLE_NAME})

    async def compared(self, request: Request) -> Response:
        """The comparison of finished audits."""
        compared = await in_thread(self.workshop.compare, request.query_params.getlist("job"))
        return HTMLResponse(compared, headers=REPORT_HEADERS)

    async def upload(self, request: Request) -> Response:
        """Take a file in."""
        name = shown_name(request.query_params.get("name", ""))
        self.workshop.require_room()
        place = await receive(request, name, self.folder, self.upload_limit)
        return JSONResponse({"file": self.workshop.add(place, name), "name": name})


def make_app(workshop: Workshop, *, token: str, port: int, upload_limit: int, folder: Path) -> Starlette:
    """The application; ``folder`` holds uploads and belongs to this run alone."""
    pages, base = Pages(workshop=workshop, upload_limit=upload_limit, folder=folder), f"/{token}"
    routes = [
        Route(f"{base}/", pages.page),
        Route(f"{base}/columns/{{number}}", pages.columns),
        Route(f"{base}/run", pages.start, methods=["POST"]),
        Route(f"{base}/jobs/{{identity}}", pages.state),
        Route(f"{base}/jobs/{{identity}}/stop", pages.stop, methods=["POST"]),
        Route(f"{base}/reports/{{identity}}", pages.report),
        Route(f"{base}/reports/{{identity}}/remove", pages.remove, methods=["POST"]),
        Route(f"{base}/runs", pages.runs),
        Route(f"{base}/example", pages.example, methods=["POST"]),
        Route(f"{base}/compare", pages.compared),
        Route(f"{base}/upload", pages.upload, methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=token, port=port)],
        exception_handlers={CalipersError: complain, ValueError: complain},
    )


async def complain(request: Request, error: Exception) -> Response:
    """Bad input is one sentence here too."""
    return JSONResponse({"error": " ".join(str(error).split())}, status_code=400)


async def receive(request: Request, name: str, folder: Path, limit: int) -> Path:
    """The body of a request as a file of its own; refused as soon as it grows past the limit."""
    suffix = ending_of(name)  # a name that cannot be read is refused before a byte is kept
    stated = request.headers.get("content-length", "0")
    if stated.isdigit() and int(stated) > limit:
        raise InputError(f"{name} is larger than {limit // 2**20} MB; start 'calipers serve' with the file.")
    with tempfile.NamedTemporaryFile(dir=folder, suffix=suffix, delete=False) as file:
        place = Path(file.name)
        try:
            size = 0
            async for block in patient_blocks(request):
                size += len(block)
                if size > limit:
                    raise InputError(
                        f"{name} is larger than {limit // 2**20} MB; start 'calipers serve' with the file."
                    )
                file.write(block)
        except BaseException:  # too large, too slow, or the other side has left: nothing stays
            place.unlink()
            raise
    return place


async def patient_blocks(request: Request) -> AsyncIterator[bytes]:
    """The blocks of a body; a sender that pauses for too long is given up."""
    blocks = request.stream().__aiter__()
    while True:
        try:
            async with asyncio.timeout(PATIENCE):
                block = await anext(blocks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise InputError(f"the request stopped arriving for {PATIENCE} seconds; send it again.") from None
        yield block


async def small_json(request: Request) -> Any:
    """The body of a request as JSON, of a size that choices on a page can have."""
    body = b""
    async for block in patient_blocks(request):
        body += block
        if len(body) > LARGEST_JSON:
            raise InputError(f"the request must have at most {LARGEST_JSON} bytes.")
    try:
        return json.loads(body)
    except RecursionError:
        raise InputError("the request is nested too deeply; it must be a dictionary of texts.") from None


def shown_name(given: str) -> str:
    """The name of an uploaded file without folders, control characters and excess length."""
    return one_line(PurePosixPath(given.replace("\\", "/")).name)[-120:]
