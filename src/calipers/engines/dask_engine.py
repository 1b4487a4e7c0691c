"""The same work on a Dask cluster: pieces go out, states come back, lost ones are read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calipers.arrays import import_optional
from calipers.engines.running import Progress, States, absorb_piece, in_window, merge_in_order
from calipers.engines.sources import Piece

# Pieces under way per thread of the cluster: no thread waits, and few states do.
_PER_THREAD = 3


class DaskEngine:
    """Runs on a Dask client: the one given, else the current one, else a local cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        An existing cluster; ``Client("tcp://scheduler:8786")`` joins one.

    Notes
    -----
    A piece that a lost worker was reading is read again by another; states are merged in the order of the
    pieces, so the answer does not change.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client if client is not None else _current_client()

    def reduce(self, pieces: Sequence[Piece], states: States, progress: Progress) -> States:
        """Absorb the pieces on the workers, merge here as they come, in order."""
        width = max(8, _PER_THREAD * sum(self.client.nthreads().values()))

        def submit(piece: Piece) -> Any:
            # The states go with every piece: scattered ones would be lost with the workers that hold them.
            return self.client.submit(absorb_piece, piece, states, pure=False, retries=5)

        return merge_in_order(in_window(submit, pieces, width), len(pieces), progress)


def _current_client() -> Any:
    distributed = import_optional("distributed", purpose="Dask engines", install="calipers[cluster]")
    try:
        return distributed.get_client()
    except ValueError:
        return distributed.Client(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None)
