"""Where we are slower than a peer, or more than twice the bare limit, and what the profile says.

The table of such tasks is computed from the run; the words are written by hand after profiling and are shown
beside the figures, so a task that appears without words needs a profile.
"""

from __future__ import annotations

from benchmarks.store import Run
from benchmarks.summary import Cells, ratio, times

FAR = 2.0

PROFILES = {
    "coverage": (
        "the gather is the limit; beside it one read of the labels to check their range, and 0.6 ms at any "
        "size for the exact interval, the test and its null band, which the peers do not give"
    ),
    "import of every room": (
        "scikit-learn takes 1.4 s of it, and it imports pandas and pyarrow where they are installed, as for "
        "the tests here; probcal uses numpy alone"
    ),
    "command line help": "typer, rich and pydantic; numpy is not loaded",
    "first p-value in a new interpreter": "the room of predictors imports scikit-learn's base classes",
    "t_cv and t_ss": (
        "three sorts of the ease (25 ms at 200 000), and 99 random tables of 50 bins by the distinct sizes "
        "for the null law of T-SS (60 ms at any number of rows)"
    ),
    "full_knn_k1": (
        "distances 7 ms of 28; the neighbour lists of the training rows 16: one masked copy of the matrix "
        "and one partition per kind of neighbour"
    ),
    "full_knn_k5": "as with one neighbour: distances 7 ms of 28, neighbour lists 16",
    "isotonic fit and prediction": "the prediction is a search of a million scores among the blocks, 60 ms",
    "worst slab": (
        "argsort 0.13 s of 0.45, where the limit sorts without the order; taking coverage in that order and "
        "two running sums 0.15; the best run from them 0.12"
    ),
    "performance: 1 ms fits on two warm workers": "no promise: a task costs its worker about 0.3 ms",
    "tangent_distances": (
        "a 7 x 7 elimination for every pair in 1680 passes over blocks: 0.13 s of 0.42, matrix products and "
        "their assembly 0.19"
    ),
}


def far_tasks(run: Run) -> dict[str, tuple[int, float, str, float]]:
    """Task -> size, times the limit, fastest peer and its cost over ours; only where either is bad."""
    found = {}
    for task in dict.fromkeys(m["task"] for m in run.measurements):
        ours = run.of(task)
        if ours is None or task == "install size":
            continue
        size = ours["size"]
        others = {m["library"]: m for m in run.measurements if m["task"] == task and m["size"] == size}
        limit = ratio(ours["cpu"], others["limit"]["cpu"]) if "limit" in others else float("nan")
        peers = {
            name: ratio(m["cpu"], ours["cpu"])
            for name, m in others.items()
            if name not in {"ours", "limit"} and m["agrees"] in {"right", "same", "another number", ""}
        }
        peers = {name: value for name, value in peers.items() if value == value}
        fastest = min(peers, key=lambda name: peers[name], default="")
        if limit > FAR or (fastest and peers[fastest] < 1):
            found[task] = (size, limit, fastest, peers.get(fastest, float("nan")))
    return found


def far_cells(run: Run) -> Cells:
    """The table, with what the profile says."""
    head = ["task", "size", "times the limit", "fastest peer, times our CPU", "profile"]
    body = [
        [
            task,
            f"{size:,}",
            times(limit),
            f"{peer} {times(value)}" if peer else "",
            PROFILES.get(task, "no profile yet"),
        ]
        for task, (size, limit, peer, value) in far_tasks(run).items()
    ]
    return [head, *body]
