"""Requests to the local page that no browser of its user would send: an answer below 500, whatever is asked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.fuzz.calls import Tally

TOKEN, PORT = "secret-token", 8765
ORIGIN = f"http://127.0.0.1:{PORT}"
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")
PLACES = ("", "columns/{}", "run", "jobs/{}", "reports/{}", "runs", "example", "compare", "upload", "{}")
NAMES = (
    "0",
    "-1",
    "1e3",
    "9" * 30,
    "..",
    "%2e%2e%2fetc%2fpasswd",
    "%00",
    "a" * 3000,
    "é",
    "1.csv",
    "0.exe",
    "0.html",
)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1e308, 10**400, "", "x", "\x00", "../../etc/passwd", "a" * 60_000, [], {}, [[1]],
    {"a": {"b": []}}, "\ud800", "<script>alert(1)</script>", "nan", "0", "0.1,,0.2", "=cmd",
)  # fmt: skip
KEYS = ("file", "files", "choices", "alpha", "seed", "y", "group", "name", "before", "after", "")
RAW = (
    b"[" * 20_000,
    b'{"a":' * 5_000,
    b"\xff\xfe\x00",
    b"1e999999",
    b"9" * 5_000,
    b"",
    b"null",
    b'"',
    b"\x1f\x8b\x08",
)


@contextlib.contextmanager
def local_page(folder: Path) -> Iterator[Any]:
    """A client of a page with one file of rows; errors of the server are answers, not exceptions."""
    from starlette.testclient import TestClient

    from calipers.cli.options import Settings
    from calipers.cli.serve_app import make_app
    from calipers.cli.serve_jobs import Workshop

    y, uploads = np.random.default_rng(0).normal(size=60), folder / "uploads"
    uploads.mkdir(exist_ok=True)
    pl.DataFrame({"y_true": y, "lower": y * 0 - 1, "upper": y * 0 + 1}).write_csv(folder / "page.csv")
    page = Workshop([folder / "page.csv"], Settings())
    app = make_app(page, token=TOKEN, port=PORT, upload_limit=50_000, folder=uploads)
    with TestClient(app, base_url=ORIGIN, raise_server_exceptions=False) as client:
        yield client


def request_of(seed: int) -> dict[str, Any]:
    """One request, the same for the same seed."""
    rng = np.random.default_rng([seed, 9])

    def one(choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    body = one(RAW)
    if rng.random() < 0.7:
        asked = one(VALUES) if rng.random() < 0.3 else {"file": "0", one(KEYS): one(VALUES)}
        if rng.random() < 0.2:
            asked = {"file": one(["7", "-1", ""]), "choices": {one(KEYS): one(VALUES)}}
        body = json.dumps(asked).encode()
    headers = {"origin": ORIGIN}
    if rng.random() < 0.2:
        headers[str(one(["origin", "host", "content-type", "content-length", "range"]))] = str(
            one(NAMES)[:200]
        )
    place = str(one(PLACES)).format(one(NAMES))
    query = {"name": str(one(NAMES))} if place == "upload" else {}
    encoded = {name: value.encode("utf-8", "replace") for name, value in headers.items()}
    return {
        "method": one(METHODS), "url": f"/{TOKEN}/{place}", "content": body, "headers": encoded, "params": query,
    }  # fmt: skip


def fuzz_request(client: Any, seed: int, tally: Tally) -> None:
    """One request into the tally."""
    import httpx

    asked = request_of(seed)
    try:
        code = client.request(**asked).status_code
    except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError):
        tally.outcomes["not sent"] += 1
        return
    tally.outcomes["foreign" if code >= 500 else f"{code // 100}xx"] += 1
    if code >= 500:
        what = f"{asked['method']} {asked['url'][:60]}"
        tally.failures.setdefault((what, str(code)), f"seed {seed}: {code} {str(asked['content'])[:120]}")
