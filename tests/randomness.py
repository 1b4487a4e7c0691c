"""For libraries that draw from Python's global generator themselves (distributed, rich)."""

import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restored_python_generator() -> Iterator[None]:
    """Put the state of Python's global generator back afterwards."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)
