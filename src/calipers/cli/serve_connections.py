"""Connections of the local page: bounded in number, and closed when nothing comes."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64
SECONDS_FOR_A_REQUEST = 10.0  # from the first byte to the end of its header
SECONDS_BETWEEN_REQUESTS = 5


class TimedProtocol(H11Protocol):
    """Closes a connection on which no whole request header arrives in time.

    The server itself waits for ever, so that half-open connections would pile up.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.close()
            return
        self._timer = self.loop.call_later(SECONDS_FOR_A_REQUEST, self._close_if_waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _close_if_waiting(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:  # a request is being answered; the next one has its own time
            self._timer = self.loop.call_later(SECONDS_FOR_A_REQUEST, self._close_if_waiting)


def server_settings(app: Any) -> uvicorn.Config:
    """The settings of the server behind the page."""
    return uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=SECONDS_BETWEEN_REQUESTS,
        timeout_graceful_shutdown=3,
        server_header=False,
    )
