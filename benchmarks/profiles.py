"""Where we are slower than a peer, or more than twice the bare limit, and what the profile says.

The table of such tasks is computed from the run; the words are written by hand after profiling and are shown
beside the figures, so a task that appears without words needs a profile.
"""

from __future__ import annotations

from benchmarks.store import Run
from benchmarks.summary import NOT_TIMED, Cells, ratio, right_peers, times

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
    "first p-value in a new interpreter": "scipy.special and the dataframe readers; no scikit-learn",
    "T-CV and T-SS": (
        "one sort each, then the tables of the null law by halves (15 ms at 200 000); five sums over bins"
    ),
    "full kNN, K = 1": "distances 6 ms of 14, the masks of other labels 3, the lists of the new objects 1",
    "full kNN, K = 5": "distances 6 ms of 17, selection of the five nearest 3, masks 3",
    "isotonic fit and prediction": "the fit 40 ms of 67, the look-up of a million scores 25",
    "worst slab": "the sort 0.06 s of 0.13; the running sum and the best run from it 0.05",
    "performance: 1 ms fits on two warm workers": "no promise: a task costs its worker about 0.3 ms",
    "tangent distances": (
        "a 7 x 7 elimination for every pair in 1680 passes over blocks: a third of the time, matrix products "
        "and their assembly a half"
    ),
}


def far_tasks(run: Run) -> dict[str, tuple[int, float, str, float]]:
    """Task -> size, times the limit, fastest peer and its cost over ours; only where either is bad."""
    found = {}
    for task in dict.fromkeys(m["task"] for m in run.measurements):
        ours = run.of(task)
        if ours is None or task in NOT_TIMED:
            continue
        size = ours["size"]
        others = {m["library"]: m for m in run.measurements if m["task"] == task and m["size"] == size}
        limit = ratio(ours["cpu"], others["limit"]["cpu"]) if "limit" in others else float("nan")
        peers = right_peers(run, task, size)
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
