"""Kernels by Triton for tables on a CUDA device; `calipers.arrays.device_rows` decides when they are used."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

FLOATS = (torch.float32, torch.float64)


@triton.jit
def _summarise(p, codes, floors, out, n, width, row_step, floor_step, BLOCK: tl.constexpr):
    """One program per row: the row is read once and stays in registers."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < width
    x = tl.load(p + row * row_step + column, mask=there, other=-1.0)
    largest = tl.max(x, axis=0)
    is_largest = x == largest
    others = tl.maximum(tl.max(tl.where(is_largest, -1.0, x), axis=0), 0.0)
    second = tl.where(tl.sum(is_largest.to(tl.int32), axis=0) > 1, largest, others)
    floor = tl.load(floors + column * floor_step, mask=there, other=2.0)
    size = tl.sum(((x > floor) & there).to(tl.int32), axis=0)
    total = tl.sum(tl.where(there, x, 0.0).to(tl.float64), axis=0)
    code = tl.load(codes + row)
    own = tl.load(p + row * row_step + code)
    inside = (own > tl.load(floors + code * floor_step)).to(tl.int32)
    false_one = tl.where(own == largest, second, largest)
    largest, own = largest.to(tl.float64), own.to(tl.float64)
    # The ten criteria in their order, and the two keys that break ties.
    tl.store(out + row, total)
    tl.store(out + n + row, size.to(tl.float64))
    tl.store(out + 2 * n + row, second.to(tl.float64))
    tl.store(out + 3 * n + row, total - largest)
    tl.store(out + 4 * n + row, (size > 1).to(tl.float64))
    tl.store(out + 5 * n + row, tl.maximum(size - 1, 0).to(tl.float64))
    tl.store(out + 6 * n + row, false_one.to(tl.float64))
    tl.store(out + 7 * n + row, total - own)
    tl.store(out + 8 * n + row, (size > inside).to(tl.float64))
    tl.store(out + 9 * n + row, (size - inside).to(tl.float64))
    tl.store(out + 10 * n + row, largest)
    tl.store(out + 11 * n + row, (size == 0).to(tl.float64))


def summarise_rows(p: torch.Tensor, codes: torch.Tensor, floors: torch.Tensor) -> torch.Tensor:
    """What every row of p-values adds to the ten criteria and the two keys that break ties, (12, n)."""
    n, width = p.shape
    out = torch.empty((12, n), dtype=torch.float64, device=p.device)
    with torch.cuda.device(p.device):
        _summarise[(n,)](
            p, codes, floors, out, n, width, p.stride(0), int(floors.shape[0] > 1),
            BLOCK=triton.next_power_of_2(width), num_warps=4,
        )  # fmt: skip
    return out


@triton.jit
def _running_mass(x, out, width, row_step, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < width
    mass = tl.load(x + row * row_step + column, mask=there, other=0.0).to(tl.float64)
    # Multiples of 2^-52: their sums below 2 are exact, whatever the order in which they are added.
    steps = (mass + 1.0) - 1.0
    through = tl.minimum(tl.cumsum(steps, axis=0), 1.0)
    # The last label completes the row.
    tl.store(out + row * width + column, tl.where(column == width - 1, 1.0, through), mask=there)


def running_mass(x: torch.Tensor) -> torch.Tensor:
    """Cumulative sums of every row of probabilities, rounded to multiples of 2^-52; at most 1, at last 1."""
    n, width = x.shape
    out = torch.empty((n, width), dtype=torch.float64, device=x.device)
    with torch.cuda.device(x.device):
        _running_mass[(n,)](x, out, width, x.stride(0), BLOCK=triton.next_power_of_2(width), num_warps=4)
    return out


@triton.jit
def _scatter(values, order, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, BLOCK)
    there = column < width
    place = tl.load(order + row + column, mask=there, other=0)
    value = tl.load(values + row + column, mask=there, other=0.0)
    tl.store(out + row + place, value, mask=there)


def scatter_rows(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """The value at place r of each row in column ``order[r]``."""
    n, width = values.shape
    out = torch.empty_like(values)
    with torch.cuda.device(values.device):
        _scatter[(n,)](values, order, out, width, BLOCK=triton.next_power_of_2(width), num_warps=4)
    return out
