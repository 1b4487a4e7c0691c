"""Kernels by Triton for tables on a CUDA device; `calipers.arrays.device_rows` decides when they are used."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

FLOATS = (torch.float32, torch.float64)
# Programs that share a long column: enough for the largest device to be busy.
_PROGRAMS = 2048


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
    label = tl.load(codes + row).to(tl.int64)
    is_column = (label >= 0) & (label < width)
    code = tl.where(is_column, label, 0)
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
    # NaN fails both comparisons.
    is_outside = there & (((x >= 0.0) & (x <= 1.0)) == 0)
    unfit = tl.sum(is_outside.to(tl.int32), axis=0) + (is_column == 0).to(tl.int32)
    tl.store(out + 12 * n + row, unfit.to(tl.float64))
    tl.store(out + 13 * n + row, (label == 0).to(tl.float64))


def summarise_rows(p: torch.Tensor, codes: torch.Tensor, floors: torch.Tensor) -> torch.Tensor:
    """What every row of p-values adds to the ten criteria and the two keys that break ties, (14, n).

    The last two: entries outside of [0, 1] and labels that are no column, and whether the label is 0.
    """
    n, width = p.shape
    out = torch.empty((14, n), dtype=torch.float64, device=p.device)
    block = triton.next_power_of_2(width)
    with torch.cuda.device(p.device):
        _summarise[(n,)](
            p, codes, floors, out, n, width, p.stride(0), int(floors.shape[0] > 1),
            # One warp adds up without waiting for others.
            BLOCK=block, num_warps=max(1, min(block // 1024, 8)),
        )  # fmt: skip
    return out


@triton.jit
def _running_mass(x, order, out, width, row_step, BACK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < width
    mass = tl.load(x + row * row_step + column, mask=there, other=0.0).to(tl.float64)
    # Multiples of 2^-52: their sums below 2 are exact, whatever the order in which they are added.
    steps = (mass + 1.0) - 1.0
    through = tl.minimum(tl.cumsum(steps, axis=0), 1.0)
    place = column
    if BACK:
        place = tl.load(order + row * width + column, mask=there, other=0)
    # The last label completes the row.
    tl.store(out + row * width + place, tl.where(column == width - 1, 1.0, through), mask=there)


def running_mass(x: torch.Tensor, order: torch.Tensor | None = None) -> torch.Tensor:
    """Cumulative sums of every row of probabilities, rounded to multiples of 2^-52; at most 1, at last 1.

    With an order, the sum at place r stands in column ``order[r]``.
    """
    n, width = x.shape
    out = torch.empty((n, width), dtype=torch.float64, device=x.device)
    with torch.cuda.device(x.device):
        _running_mass[(n,)](
            x, x if order is None else order, out, width, x.stride(0), BACK=order is not None,
            BLOCK=triton.next_power_of_2(width), num_warps=4,
        )  # fmt: skip
    return out


@triton.jit
def _first_labels(p, ordered, scores, limits, out, width, p_step, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < width
    score = tl.load(scores + row * width + column, mask=there, other=0.0)
    size = tl.sum(((score <= tl.load(limits + row)) & there).to(tl.int32), axis=0)
    cut = tl.load(ordered + row * width + tl.maximum(size - 1, 0))
    x = tl.load(p + row * p_step + column, mask=there, other=-1.0)
    above = (x > cut) & there
    equal = (x == cut) & there
    # Of labels equal to the last one, the first in column order.
    room = size - tl.sum(above.to(tl.int32), axis=0)
    is_first = tl.cumsum(equal.to(tl.int32), axis=0) <= room
    kept = (above | (equal & is_first)) & (size > 0)
    tl.store(out + row * width + column, kept.to(tl.int8), mask=there)


def first_labels(
    p: torch.Tensor, ordered: torch.Tensor, scores: torch.Tensor, limits: torch.Tensor
) -> torch.Tensor:
    """As many of the most probable labels of every row as have a score, by rank, of at most its limit."""
    n, width = p.shape
    out = torch.empty((n, width), dtype=torch.bool, device=p.device)
    with torch.cuda.device(p.device):
        _first_labels[(n,)](
            p, ordered, scores, limits, out.view(torch.int8), width, p.stride(0),
            BLOCK=triton.next_power_of_2(width), num_warps=4,
        )  # fmt: skip
    return out


@triton.jit
def _row_moments(table, out, n, BLOCK: tl.constexpr):
    """One program per row: its mean, then its squares around that."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    low = tl.full((BLOCK,), float("inf"), dtype=tl.float64)
    high = tl.full((BLOCK,), float("-inf"), dtype=tl.float64)
    for start in range(0, n, BLOCK):
        there = start + place < n
        x = tl.load(table + row * n + start + place, mask=there, other=0.0)
        total += x
        low = tl.minimum(low, tl.where(there, x, float("inf")))
        high = tl.maximum(high, tl.where(there, x, float("-inf")))
    count = tl.sum(tl.zeros((BLOCK,), dtype=tl.float64), axis=0) + n
    mean = tl.sum(total, axis=0) / count
    shift = tl.zeros((BLOCK,), dtype=tl.float64)
    squares = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, n, BLOCK):
        there = start + place < n
        x = tl.load(table + row * n + start + place, mask=there, other=0.0)
        deviation = tl.where(there, x - mean, 0.0)
        shift += deviation
        squares += deviation * deviation
    moved = tl.sum(shift, axis=0) / count
    square = tl.maximum(tl.sum(squares, axis=0) - count * moved * moved, 0.0)
    lowest = tl.min(low, axis=0)
    is_constant = lowest == tl.max(high, axis=0)
    tl.store(out + 2 * row, tl.where(is_constant, lowest, mean + moved))
    tl.store(out + 2 * row + 1, tl.where(is_constant, 0.0, square))


def row_moments(table: torch.Tensor) -> torch.Tensor:
    """Mean and summed squares of deviations of every row of a (k, n) table of doubles, (k, 2)."""
    k, n = table.shape
    out = torch.empty((k, 2), dtype=torch.float64, device=table.device)
    with torch.cuda.device(table.device):
        _row_moments[(k,)](table, out, n, BLOCK=4096, num_warps=32)
    return out


@triton.jit
def _cell(value, low, high, CELLS: tl.constexpr):
    """The cell of equal width that holds a value: never decreasing in it; 0 without a finite range."""
    cells = tl.zeros_like(value) + CELLS
    scale = cells / (high - low)
    is_finite = (scale > 0.0) & (scale < float("inf"))
    place = tl.where(is_finite, (value - low) * tl.where(is_finite, scale, 0.0), 0.0)
    return tl.minimum(tl.maximum(place, 0.0), cells - 1.0).to(tl.int32)


@triton.jit
def _starts(ordered, out, n, steps, CELLS: tl.constexpr, BLOCK: tl.constexpr):
    """Entries in lower cells, for every cell and for the end of the last; then, whether one is NaN."""
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    low, high = tl.load(ordered), tl.load(ordered + n - 1)
    first = tl.zeros_like(cell)
    last = first + n
    for _ in range(steps):
        middle = (first + last) // 2
        is_open = first < last
        value = tl.load(ordered + middle, mask=is_open, other=0.0)
        below = _cell(value, low, high, CELLS) < cell
        first = tl.where(is_open & below, middle + 1, first)
        last = tl.where(is_open & (below == 0), middle, last)
    # NaN is sorted to the end.
    found = tl.where(cell > CELLS, (high != high).to(tl.int32), first)
    tl.store(out + cell, found, mask=cell <= CELLS + 1)


@triton.jit
def _p_values(ordered, before, values, out, n, m, CELLS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < m
    low, high = tl.load(ordered), tl.load(ordered + n - 1)
    # What is read and written once leaves the room near the processors to the table.
    value = tl.load(values + at, mask=there, other=0.0, eviction_policy="evict_first")
    if tl.max((value != value).to(tl.int32), axis=0) > 0:
        tl.store(before + CELLS + 1, 1)
    cell = _cell(value, low, high, CELLS)
    # All entries of lower cells lie below the value, all of higher cells above it.
    first = tl.load(before + cell)
    last = tl.load(before + cell + 1)
    while tl.max(last - first, axis=0) > 0:
        middle = (first + last) // 2
        is_open = first < last
        below = tl.load(ordered + middle, mask=is_open, other=0.0) < value
        first = tl.where(is_open & below, middle + 1, first)
        last = tl.where(is_open & (below == 0), middle, last)
    # A number of 1 is a constant of the kernel: the zeros make it an entry like the others.
    whole = (tl.zeros_like(first) + n + 1).to(tl.float64)
    found = (whole - first.to(tl.float64)) / whole
    tl.store(out + at, found, mask=there, eviction_policy="evict_first")


def p_values(column: torch.Tensor, values: torch.Tensor, is_sorted: bool) -> torch.Tensor | None:
    """(#{column >= value} + 1) / (n + 1) for a flat column of values, by cells of equal width.

    None where an entry or a value is NaN.
    """
    ordered = column if is_sorted else torch.sort(column).values
    n, m = ordered.shape[0], values.shape[0]
    # As many cells as stay near the processors together with the column.
    number = min(max(triton.next_power_of_2(n + 1) // 2, 2), 1 << 20)
    before = torch.empty(number + 2, dtype=torch.int32, device=ordered.device)
    out = torch.empty(m, dtype=torch.float64, device=ordered.device)
    with torch.cuda.device(ordered.device):
        grid = (triton.cdiv(number + 2, 256),)
        _starts[grid](ordered, before, n, n.bit_length(), CELLS=number, BLOCK=256)
        # One warp asks nobody else whether it has found its places.
        _p_values[(triton.cdiv(m, 128),)](
            ordered, before, values, out, n, m, CELLS=number, BLOCK=128, num_warps=1
        )
    return None if before[number + 1].item() else out


@triton.jit
def _pack(scores, outcomes, keys, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < n
    # A float32 softmax may exceed 1 by rounding; adding 0 turns -0, whose bits are not those of 0, into 0.
    score = tl.minimum(tl.load(scores + at, mask=there, other=0.0).to(tl.float64), 1.0) + 0.0
    event = tl.load(outcomes + at, mask=there, other=0).to(tl.int64)
    tl.store(keys + at, (score.to(tl.int64, bitcast=True) << 1) | event, mask=there)


@triton.jit
def _steps(keys, counts, out, n, COUNTED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < n
    key = tl.load(keys + at, mask=there, other=0)
    step = (key & 1).to(tl.float64) - (key >> 1).to(tl.float64, bitcast=True)
    if COUNTED:
        step = step * tl.load(counts + at, mask=there, other=0).to(tl.float64)
    tl.store(out + at, step, mask=there)


@triton.jit
def _is_end(keys, at, n):
    """Whether the row is the last of its score."""
    own = tl.load(keys + at, mask=at < n, other=0) >> 1
    following = tl.load(keys + at + 1, mask=at + 1 < n, other=-2) >> 1
    return (at < n) & (own != following)


@triton.jit
def _reach(keys, walk, out, n, blocks, BLOCK: tl.constexpr):
    """Highest and lowest reading of a block, its start at 0 included."""
    block = tl.program_id(0).to(tl.int64)
    at = block * BLOCK + tl.arange(0, BLOCK)
    reading = tl.where(_is_end(keys, at, n), tl.load(walk + at, mask=at < n, other=0.0), 0.0)
    tl.store(out + block, tl.max(reading, axis=0))
    tl.store(out + blocks + block, tl.max(-reading, axis=0))


@triton.jit
def _places(keys, walk, reach, limits, out, n, blocks, BLOCK: tl.constexpr):
    """First and last row of a block that reads at least the first limit, and at most the second."""
    block = tl.program_id(0).to(tl.int64)
    highest, lowest = tl.load(limits), tl.load(limits + 1)
    # Few blocks reach so far: the others are not read again.
    if (tl.load(reach + block) >= highest) | (-tl.load(reach + blocks + block) <= lowest):
        at = block * BLOCK + tl.arange(0, BLOCK)
        is_end = _is_end(keys, at, n)
        reading = tl.load(walk + at, mask=at < n, other=0.0)
        above = is_end & (reading >= highest)
        below = is_end & (reading <= lowest)
        tl.store(out + block, tl.max(tl.where(above, n - at, 0), axis=0))
        tl.store(out + blocks + block, tl.max(tl.where(above, at + 1, 0), axis=0))
        tl.store(out + 2 * blocks + block, tl.max(tl.where(below, n - at, 0), axis=0))
        tl.store(out + 3 * blocks + block, tl.max(tl.where(below, at + 1, 0), axis=0))


def walk_ends(
    scores: torch.Tensor, outcomes: torch.Tensor, tie: float
) -> list[tuple[float, float | None, float | None]]:
    """Highest reading of the walk of y - f over sorted scores, and the first and last score that reads it.

    For the walk and for its mirror image. Scores and outcomes are sorted as one key, without an order.
    """
    n, device = scores.shape[0], scores.device
    keys = torch.empty(n, dtype=torch.int64, device=device)
    with torch.cuda.device(device):
        _pack[(triton.cdiv(n, 1024),)](scores, outcomes.view(torch.uint8), keys, n, BLOCK=1024)
        # The one sort of torch that carries no positions along; rows of one score and outcome become one.
        ordered, counts = torch.unique(keys, return_counts=True)
        is_counted, n = ordered.shape[0] < n, ordered.shape[0]
        steps = torch.empty(n, dtype=torch.float64, device=device)
        _steps[(triton.cdiv(n, 1024),)](ordered, counts, steps, n, COUNTED=is_counted, BLOCK=1024)
        walk = torch.cumsum(steps, dim=0)
        blocks = triton.cdiv(n, 4096)
        reach = torch.empty((2, blocks), dtype=torch.float64, device=device)
        _reach[(blocks,)](ordered, walk, reach, n, blocks, BLOCK=4096)
        levels = torch.clamp(torch.amax(reach, dim=1), min=0.0).tolist()
        limits = torch.tensor([levels[0] - tie, tie - levels[1]], dtype=torch.float64, device=device)
        places = torch.zeros((4, blocks), dtype=torch.int64, device=device)
        _places[(blocks,)](ordered, walk, reach, limits, places, n, blocks, BLOCK=4096)
        found = torch.amax(places, dim=1)
        at = torch.stack([n - found[::2], found[1::2] - 1], dim=1)
        values = (ordered[at.clamp(0, n - 1).reshape(-1)] >> 1).view(torch.float64)
        far, ends = found[::2].tolist(), values.reshape(2, 2).tolist()
    return [
        (level, *(pair if reached else (None, None)))
        for level, pair, reached in zip(levels, ends, far, strict=True)
    ]


@triton.jit
def _score_sums(scores, outcomes, limits, out, n, programs, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    low, high = tl.load(limits), tl.load(limits + 1)
    squares = tl.zeros((BLOCK,), dtype=tl.float64)
    spreads = tl.zeros((BLOCK,), dtype=tl.float64)
    stated = tl.zeros((BLOCK,), dtype=tl.float64)
    inner = tl.zeros((BLOCK,), dtype=tl.float64)
    inside = tl.zeros((BLOCK,), dtype=tl.int64)
    happened = tl.zeros((BLOCK,), dtype=tl.int64)
    impossible = tl.zeros((BLOCK,), dtype=tl.int64)
    for start in range(program * BLOCK, n, programs * BLOCK):
        at = start + tl.arange(0, BLOCK)
        there = at < n
        f = tl.minimum(tl.load(scores + at, mask=there, other=0.0).to(tl.float64), 1.0)
        event = tl.load(outcomes + at, mask=there, other=0)
        # NaN ends (no interval) compare false: nothing is inside.
        is_inside = there & (f > low) & (f <= high)
        residual, spread = event.to(tl.float64) - f, f * (1.0 - f)
        square = residual * residual
        squares += square
        spreads += spread
        stated += tl.where(is_inside, f, 0.0)
        inner += tl.where(is_inside, square, 0.0)
        inside += is_inside.to(tl.int64)
        happened += tl.where(is_inside, event, 0).to(tl.int64)
        impossible += (there & (spread == 0.0) & (residual != 0.0)).to(tl.int64)
    tl.store(out + program, tl.sum(squares, axis=0))
    tl.store(out + programs + program, tl.sum(spreads, axis=0))
    tl.store(out + 2 * programs + program, tl.sum(inside, axis=0).to(tl.float64))
    tl.store(out + 3 * programs + program, tl.sum(stated, axis=0))
    tl.store(out + 4 * programs + program, tl.sum(happened, axis=0).to(tl.float64))
    tl.store(out + 5 * programs + program, tl.sum(inner, axis=0))
    tl.store(out + 6 * programs + program, tl.sum(impossible, axis=0).to(tl.float64))


def score_sums(scores: torch.Tensor, outcomes: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Sums of (y - f)^2 and f (1 - f), and inside (low, high] of 1, f, y and (y - f)^2; impossible rows."""
    n = scores.shape[0]
    programs = min(triton.cdiv(n, 1024), _PROGRAMS)
    limits = torch.tensor([low, high], dtype=torch.float64, device=scores.device)
    out = torch.empty((7, programs), dtype=torch.float64, device=scores.device)
    with torch.cuda.device(scores.device):
        _score_sums[(programs,)](
            scores, outcomes.view(torch.uint8), limits, out, n, programs, BLOCK=1024, num_warps=4
        )
    return torch.sum(out, dim=1)


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
