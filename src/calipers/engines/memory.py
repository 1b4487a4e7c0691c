"""Memory that is freed and asked for again, block after block, without going back to the system."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

# The largest block whose release raises the allocator's thresholds (glibc: 32 MiB), less its bookkeeping.
_LARGEST_BLOCK = (32 << 20) - (64 << 10)


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the C library keep what a block frees for the next one; once per process, a hint and no more.

    glibc returns freed memory to the system when more lies at hand than twice the largest block released so
    far, and every page of it then has to be fetched, and zeroed, anew. The arrays of a block of rows are
    released one by one and are larger together than that: the ten criteria spent half of their time so. To
    release one large block, which nothing has touched, costs nothing and raises the threshold for good.
    Other C libraries behave otherwise and take no notice.
    """
    np.empty(_LARGEST_BLOCK, dtype=np.uint8)
