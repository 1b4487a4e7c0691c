"""``random_state`` outside, a numpy Generator inside, the global state never."""

from __future__ import annotations

import numbers
from typing import TypeAlias

import numpy as np

from calipers.exceptions import InputError, InputTypeError

RandomState: TypeAlias = int | np.random.Generator | np.random.SeedSequence | np.random.RandomState | None


def generator(random_state: RandomState) -> np.random.Generator:
    """A Generator: a new one from None, an int or a SeedSequence, the same one if it is one already.

    A legacy ``RandomState`` is taken as a source of entropy (one draw), so scikit-learn's habit of
    passing one on keeps working.

    Examples
    --------
    >>> from calipers.arrays import generator
    >>> float(generator(0).random()) == float(generator(0).random())
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return np.random.default_rng(random_state)
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(f"random_state must be non-negative, got {random_state}.")
        return np.random.default_rng(int(random_state))
    raise InputTypeError(
        f"random_state must be None, an integer or a numpy Generator, got {type(random_state).__name__}."
    )


def spawn(random_state: RandomState, n: int) -> list[np.random.Generator]:
    """n independent generators, the same ones for the same integer seed, whatever uses them first.

    Examples
    --------
    >>> from calipers.arrays import spawn
    >>> first, second = spawn(0, 2)
    >>> float(first.random()) == float(spawn(0, 2)[0].random())
    True
    """
    return generator(random_state).spawn(n)
