"""The same work on a Dask cluster: pieces go out, states are merged where they are, one comes back."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from calipers.arrays import import_optional
from calipers.engines.running import MergeTree, Progress, States, absorb_piece, merged
from calipers.engines.sources import Piece

# Pieces under way per thread of the cluster: no thread waits, and few states do.
_PER_THREAD = 3
# Times a piece is read again when its storage fails; the loss of a worker is not a failure.
_RETRIES = 2
_LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"


class DaskEngine:
    """Runs on a Dask client: the one given, else the current one, else a local cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        An existing cluster; ``Client("tcp://scheduler:8786")`` joins one, and so does the environment
        variable DASK_SCHEDULER_ADDRESS where no client is at hand.

    Notes
    -----
    Neighbouring states are merged on the workers, in a tree whose shape depends on the number of pieces only;
    one state per pass reaches this process. What a lost worker was reading, or had merged, is made again by
    another, so the answer does not change.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client if client is not None else _current_client()

    def reduce(self, pieces: Sequence[Piece], states: States, progress: Progress) -> States:
        """Absorb the pieces and merge their states on the workers."""
        distributed = import_optional("distributed", purpose="Dask engines", install="calipers[cluster]")
        work = _Work(self.client, states)
        width = max(8, _PER_THREAD * sum(self.client.nthreads().values()))
        tree, waiting = MergeTree(work.merge), deque[Any]()
        for number, piece in enumerate(pieces, start=1):
            leaf = work.absorb(number, piece)
            tree.add(leaf)
            waiting.append(leaf)
            while waiting and (len(waiting) >= width or number == len(pieces)):
                _await(distributed, waiting.popleft())
                progress(number - len(waiting), len(pieces))
        found: States = tree.root().result()
        return found


class _Work:
    """The tasks of one pass. The tuples of a key make them one group, which Dask spreads over the workers."""

    def __init__(self, client: Any, states: States) -> None:
        import dask

        self.client, self.name = client, uuid4().hex
        with dask.config.set({_LARGE_GRAPH: "1 GiB"}):
            # A task, not scattered data: it can be run again when all workers that hold its result are lost.
            self.states = client.submit(_as_they_are, states, key=f"calipers-states-{self.name}")
        self.merges = 0

    def absorb(self, number: int, piece: Piece) -> Any:
        """The states of one piece; earlier pieces first, so that groups become complete."""
        key = (f"calipers-absorb-{self.name}", number)
        return self.client.submit(
            absorb_piece, piece, self.states, key=key, retries=_RETRIES, priority=-number
        )

    def merge(self, group: list[Any]) -> Any:
        """The merged states of neighbours; before any further piece, so that states do not pile up."""
        self.merges += 1
        key = (f"calipers-merge-{self.name}", self.merges)
        return self.client.submit(merged_copies, group, key=key, retries=_RETRIES, priority=1)


def _as_they_are(states: States) -> States:
    return states


def merged_copies(parts: Sequence[States]) -> States:
    """The merged states; a worker may need what it was given again, so that is left as it is."""
    total: States = copy.deepcopy(parts[0])
    for part in parts[1:]:
        total = merged([total, copy.deepcopy(part)])
    return total


def _await(distributed: Any, leaf: Any) -> None:
    """Wait for a piece, without fetching its states; raise what it raised."""
    distributed.wait(leaf)
    if leaf.status == "error":
        leaf.result()


def _current_client() -> Any:
    """The client in use; else that of the scheduler Dask is configured with; else one of a local cluster."""
    distributed = import_optional("distributed", purpose="Dask engines", install="calipers[cluster]")
    import dask

    try:
        return distributed.get_client()
    except ValueError:
        pass
    if dask.config.get("scheduler-address", None):  # DASK_SCHEDULER_ADDRESS
        return distributed.Client()
    return distributed.Client(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None)
