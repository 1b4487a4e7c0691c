"""An S3 server on this machine, for tests that read from addresses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.randomness import restored_python_generator

KEYS = {"key": "somebody", "secret": "hush"}


@contextmanager
def running_s3_server() -> Iterator[str]:
    """The address of a server that lives as long as the block; the test is skipped where there is none."""
    moto = pytest.importorskip(
        "moto.server", reason="S3 was not tested: pip install 'moto[s3]' flask flask-cors"
    )
    pytest.importorskip("s3fs", reason="S3 was not tested: pip install s3fs")
    with pytest.MonkeyPatch.context() as patch, restored_python_generator():
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # nobody else is asked for keys
        running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        running.start()
        host, port = running.get_host_and_port()
        try:
            yield f"http://{host}:{port}"
        finally:
            running.stop()
