"""Small tasks for the tests of the runner: sums, with peers that are right, wrong, failing and dying."""

import os

import numpy as np
from benchmarks.protocol import Task


def total(inputs):
    return {"total": float(inputs["x"].sum())}


def off_by_one(inputs):
    return {"total": float(inputs["x"].sum()) + 1}


def fails(inputs):
    raise RuntimeError(f"cannot add {len(inputs['x'])} numbers")


def dies(inputs):
    os._exit(3)


def another(inputs):
    return {"mean": float(inputs["x"].mean())}


TASKS = [
    Task(
        name="sum",
        sizes=(10, 100, 1000),
        prepare=lambda n: {"x": np.arange(float(n)), "word": "a"},
        ours=total,
        peers={"wrong": off_by_one, "failing": fails, "dying": dies, "other": another, "absent": total},
        limit=lambda inputs: inputs["x"].sum(),
        exact=lambda inputs: {"total": len(inputs["x"]) * (len(inputs["x"]) - 1) / 2},
        bar="adds",
    ),
    Task(
        name="sum without truth",
        sizes=(5,),
        prepare=lambda n: {"x": np.ones(n)},
        ours=total,
        peers={"wrong": off_by_one},
    ),
]
