"""Coverage that depends on a named group, and coverage that fails where two features meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.datasets.worlds.coverage import CoverageSample, draw_covered, true_ert
from calipers.exceptions import InputError
from calipers.inputs import check_alpha, check_count, check_fraction


@dataclass(frozen=True)
class GroupWorld:
    """k groups with their own coverage; a text column names the group, a number gives it away.

    Columns of X (a polars frame): ``group`` (text), ``position`` (the group's index plus a uniform draw
    on [0, 1), so that thresholds at whole numbers separate the groups) and ``noise_1``, ... (uniform).

    Parameters
    ----------
    coverages : tuple of float
        Coverage of each group, in [0, 1].
    shares : tuple of float, optional
        Probability of each group; equal ones by default. They must sum to 1.
    names : tuple of str, optional
        Names of the groups; "A", "B", ... by default.
    n_noise : int, default=2
        Number of columns that say nothing.

    Examples
    --------
    >>> from calipers.datasets import GroupWorld
    >>> world = GroupWorld((0.95, 0.95, 0.70), (0.4, 0.4, 0.2))
    >>> round(world.marginal_coverage(), 3), round(world.coverage_gap(alpha=0.1), 3)
    (0.9, 0.1)
    >>> X, covered, coverage = world.sample(500, random_state=0)
    >>> X.columns
    ['group', 'position', 'noise_1', 'noise_2']
    """

    coverages: tuple[float, ...] = (0.95, 0.95, 0.70)
    shares: tuple[float, ...] | None = None
    names: tuple[str, ...] | None = None
    n_noise: int = 2

    def __post_init__(self) -> None:
        if not self.coverages or not all(0 <= p <= 1 for p in self.coverages):
            raise InputError(f"coverages must lie in [0, 1] and not be empty, got {self.coverages}.")
        check_count(self.n_noise, name="n_noise", minimum=0)
        for name, given in (("shares", self.shares), ("names", self.names)):
            if given is not None and len(given) != len(self.coverages):
                raise InputError(
                    f"{name} and coverages must have the same length, "
                    f"got {name}: {len(given)}, coverages: {len(self.coverages)}."
                )
        if self.shares is not None and (min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9):
            raise InputError(f"shares must be non-negative and sum to 1, got {self.shares}.")

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the groups, in the order of ``coverages``."""
        return self.names or tuple(_letters(i) for i in range(len(self.coverages)))

    @property
    def group_shares(self) -> np.ndarray:
        """The probability of each group."""
        k = len(self.coverages)
        return np.full(k, 1 / k) if self.shares is None else np.array(self.shares, dtype=float)

    def sample(self, n: int, random_state: RandomState = None) -> CoverageSample:
        """Draw n independent rows (X, covered, coverage)."""
        import polars as pl

        rng = generator(random_state)
        index = rng.choice(len(self.coverages), size=check_count(n, name="n"), p=self.group_shares)
        columns: dict[str, Any] = {
            "group": np.array(self.group_names)[index],
            "position": index + rng.random(n),
        }
        columns |= {f"noise_{j + 1}": rng.random(n) for j in range(self.n_noise)}
        coverage = np.array(self.coverages, dtype=float)[index]
        return CoverageSample(pl.DataFrame(columns), draw_covered(coverage, rng), coverage)

    def coverage_at(self, X: Any) -> np.ndarray:
        """Return the true coverage at each row of X, read off its ``group`` column."""
        level = dict(zip(self.group_names, self.coverages, strict=True))
        return np.array([level[str(name)] for name in X["group"]], dtype=float)

    def marginal_coverage(self) -> float:
        """Coverage over all groups."""
        return float(np.dot(self.group_shares, self.coverages))

    def coverage_gap(self, *, alpha: float, weighted: bool = False) -> float:
        """Mean over groups of |coverage - (1 - alpha)|, each group once or by its share."""
        gaps = np.abs(np.array(self.coverages) - (1 - check_alpha(alpha)))
        return float(np.dot(self.group_shares, gaps)) if weighted else float(gaps.mean())

    def ert(self, *, alpha: float) -> dict[str, float]:
        """Return the true L1, L2 and KL ERT with their parts, keys as in `true_ert`: a finite sum."""
        return true_ert(self.coverages, self.group_shares, alpha=alpha)


@dataclass(frozen=True)
class InteractionWorld:
    """Coverage fails only where two features meet; X is uniform on [-1, 1]^d.

    Parameters
    ----------
    kind : {"corner", "xor"}, default="corner"
        "corner": fails where x_1 > cut[0] and x_2 > cut[1]. "xor": fails where exactly one of x_1 > 0,
        x_2 > 0 holds; then coverage given any single feature is the same everywhere, so no search one
        feature at a time can find it.
    n_features : int, default=4
        Number of features d, at least 2.
    inside : float, default=0.8
        Coverage where it fails.
    marginal : float, default=0.9
        Coverage over all x; what is needed elsewhere follows.
    cut : tuple of two floats, default=(0.0, 0.0)
        Where the corner starts; "xor" needs (0, 0).

    Examples
    --------
    >>> from calipers.datasets import InteractionWorld
    >>> world = InteractionWorld("corner", inside=0.6, cut=(0.2, 0.0))
    >>> round(world.region_mass, 3), round(world.outside, 3)
    (0.2, 0.975)
    >>> round(world.ert(alpha=0.1)["l1_under"], 3)
    0.06
    """

    kind: str = "corner"
    n_features: int = 4
    inside: float = 0.8
    marginal: float = 0.9
    cut: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if self.kind not in {"corner", "xor"}:
            raise InputError(f'kind must be "corner" or "xor", got {self.kind!r}.')
        check_count(self.n_features, name="n_features", minimum=2)
        check_fraction(self.marginal, name="marginal", meaning="It is a coverage")
        if not all(-1 < c < 1 for c in self.cut) or (self.kind == "xor" and any(self.cut)):
            rule = "be (0, 0) for xor" if self.kind == "xor" else "lie strictly between -1 and 1"
            raise InputError(f"cut must {rule}, got {self.cut}.")
        if not (0 <= self.inside <= 1 and 0 <= self.outside <= 1):
            raise InputError(
                f"inside must leave a coverage in [0, 1] elsewhere, got inside {self.inside}, "
                f"which asks for {self.outside:.3f} outside; change inside, marginal or cut."
            )

    @property
    def region_mass(self) -> float:
        """Probability of the failing region."""
        if self.kind == "xor":
            return 0.5
        return (1 - self.cut[0]) / 2 * (1 - self.cut[1]) / 2

    @property
    def outside(self) -> float:
        """Coverage outside the failing region."""
        return (self.marginal - self.region_mass * self.inside) / (1 - self.region_mass)

    def in_region(self, X: Any) -> np.ndarray:
        """Whether each row lies where coverage fails."""
        array = np.asarray(X, dtype=float)
        first, second = array[:, 0] > self.cut[0], array[:, 1] > self.cut[1]
        return first & second if self.kind == "corner" else first ^ second

    def coverage_at(self, X: Any) -> np.ndarray:
        """Return the true coverage at each row of X."""
        return np.where(self.in_region(X), self.inside, self.outside)

    def sample(self, n: int, random_state: RandomState = None) -> CoverageSample:
        """Draw n independent rows (X, covered, coverage)."""
        rng = generator(random_state)
        X = rng.uniform(-1, 1, size=(check_count(n, name="n"), self.n_features))
        coverage = self.coverage_at(X)
        return CoverageSample(X, draw_covered(coverage, rng), coverage)

    def marginal_coverage(self) -> float:
        """Coverage over all x."""
        return self.marginal

    def coverage_given(self, feature: int, above: bool) -> float:
        """Coverage given that one feature lies above its cut, or that it does not.

        Features from the third on never matter; for "xor" the first two do not either, taken singly.
        """
        if feature >= 2 or self.kind == "xor":
            return self.marginal
        if not above:
            return self.outside
        share = (1 - self.cut[1 - feature]) / 2
        return share * self.inside + (1 - share) * self.outside

    def ert(self, *, alpha: float) -> dict[str, float]:
        """Return the true L1, L2 and KL ERT with their parts, keys as in `true_ert`: a finite sum."""
        mass = self.region_mass
        return true_ert((self.inside, self.outside), (mass, 1 - mass), alpha=alpha)


def _letters(index: int) -> str:
    """Return A, B, ..., Z, AA, AB, ... ."""
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = chr(ord("A") + rest) + name
    return name
