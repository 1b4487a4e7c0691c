"""Statements without an experiment in the paper, beside what their executable forms compute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calipers.metrics import calibration_error
from studies.calibration.joint_learners import JointGap, JointReading
from studies.calibration.settings import SEED, Settings
from studies.calibration.statements import (
    Prover,
    decision_losses,
    finite_scores,
    largest_decision_regret,
    prover_gap,
    shattered_complexity,
    subset_classifiers,
)
from studies.outcome import Claim


def statement_claims(settings: Settings) -> list[Claim]:
    """Theorem 1, Claims 1, 2 and 4, Example 2, and the decision reading of c."""
    return [
        theorem_1(settings),
        claim_1(),
        claim_2(),
        *claim_4(),
        decision_regret(),
    ]


def _in_the_large(x: np.ndarray, stated: np.ndarray, y: np.ndarray) -> bool:
    return bool(abs(np.sum(y - stated)) < 2 * np.sqrt(np.sum(stated * (1 - stated))))


def _brier(x: np.ndarray, stated: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.mean((y - stated) ** 2) < 0.22)


def _neighbours(x: np.ndarray, stated: np.ndarray, y: np.ndarray) -> bool:
    labels = y[np.argsort(x)]
    return bool(np.mean(labels[1:] == labels[:-1]) < 0.6)


PROVERS: dict[str, Prover] = {"in the large": _in_the_large, "Brier": _brier, "neighbours": _neighbours}


def theorem_1(settings: Settings) -> Claim:
    """No prover of a small l1 error."""
    n = 30
    stated = np.random.default_rng(SEED).uniform(0.2, 0.8, 10 * n * n + 1)
    gaps = {name: prover_gap(p, stated, n, settings.prover_runs, SEED) for name, p in PROVERS.items()}
    read = ", ".join(f"{k} {g.accepts_truth:.2f} and {g.accepts_certain:.2f}" for k, g in gaps.items())
    first = next(iter(gaps.values()))
    return Claim(
        claim="Theorem 1: no prover accepts the truth and refuses certain labels, whose l1 error is B_f",
        paper="never both above 2/3 and below 1/3",
        ours=f"accepted truth and certain labels: {read}; objects repeat in {first.repeats:.3f} of samples",
        agrees=all(abs(g.accepts_truth - g.accepts_certain) <= g.repeats for g in gaps.values()),
    )


def claim_1() -> Claim:
    """The plain threshold is best for a calibrated f."""
    rng = np.random.default_rng(SEED)
    worst = 0.0
    for _ in range(20):
        levels, mass = np.sort(rng.random(8)), rng.dirichlet(np.ones(8))
        a, b = rng.uniform(0.1, 5, 2)
        found = decision_losses(levels, mass, levels, false_positive=a, false_negative=b)
        worst = max(worst, found.plain - found.best)
    return Claim(
        claim="Claim 1: for a calibrated f no decision rule of f beats f >= a / (a + b)",
        paper="optimal",
        ours=f"256 rules in 20 worlds: largest loss above the best {worst:.1e}",
        agrees=worst < 1e-12,
    )


def claim_2() -> Claim:
    """Rademacher complexity 1/2 with fewer rows than features."""
    rng = np.random.default_rng(SEED)
    found = [shattered_complexity(rng.normal(size=(n, n + 2))) for n in (2, 5, 8)]
    return Claim(
        claim="Claim 2: with n < d independent rows the slabs of sigmoids have Rademacher complexity 1/2",
        paper="1/2",
        ours="n = 2, 5, 8: " + ", ".join(f"{value:g}" for value in found),
        agrees=all(value == 0.5 for value in found),
    )


def claim_4() -> list[Claim]:
    """The bound for finitely many scores, and Example 2."""
    rng = np.random.default_rng(SEED)
    random = [finite_scores(rng.integers(0, 4, (6, 7)) / 4) for _ in range(20)]
    ratio = max(found.complexity / found.bound for found in random)
    example = finite_scores(subset_classifiers(5))
    return [
        Claim(
            claim="Claim 4: Rademacher complexity of the slabs of classifiers with finitely many scores",
            paper="at most sqrt((2 d (ln(n/d) + 1) + 4 ln(|P*| + 1)) / n)",
            ours=f"20 random classes, all slabs enumerated: at most {ratio:.2f} of the bound",
            agrees=ratio <= 1,
        ),
        Claim(
            claim="Example 2: VC dimension at fixed thresholds against free ones, n = 5",
            paper="at most 2 against n",
            ours=f"{example.fixed_dimension} against {example.free_dimension}",
            agrees=example.fixed_dimension <= 2 and example.free_dimension == 5,
        ),
    ]


def decision_regret() -> Claim:
    """c bounds what threshold decisions lose (Rossellini et al., 2025)."""
    rng = np.random.default_rng(SEED)
    ratios = []
    for _ in range(40):
        stated = rng.random(80)
        y = (rng.random(80) < stated ** rng.uniform(0.3, 3)).astype(float)
        error = float(calibration_error(y == 1, stated, n_draws=1, random_state=SEED))
        ratios.append(largest_decision_regret(y, stated) / error)
    return Claim(
        claim="Cutoff Calibration Error is c: threshold decisions lose at most c",
        paper="not in the paper (Rossellini et al., 2025)",
        ours=f"40 samples, every threshold: regret {min(ratios):.2f} to {max(ratios):.2f} of c_emp",
        agrees=max(ratios) <= 1 + 1e-9,
    )


def learner_claims(readings: Sequence[JointReading], gaps: Sequence[JointGap]) -> list[Claim]:
    """Section 3.2.2: empirically calibrated learners generalise, and two steps are close to one."""
    exact = [r for r in readings if r.learner == "Isotron" or r.learner.startswith("constrained")]
    worst = max(exact, key=lambda r: r.test_error)
    share = [(g.constrained - g.joint) / (g.unconstrained - g.joint) for g in gaps]
    isotron = [(g.isotron - g.joint) / (g.unconstrained - g.joint) for g in gaps]
    return [
        Claim(
            claim="Section 3.2.2: learners with c_emp = 0 on their rows are calibrated on new rows too",
            paper="ensured by Theorem 2",
            ours=f"c_emp on own rows at most {max(r.own_error for r in exact):.1e}; on test rows at most "
            f"{worst.test_error:.4f} ({worst.dataset}, {worst.learner})",
            agrees=max(r.own_error for r in exact) < 1e-12 and worst.test_error < 0.02,
        ),
        Claim(
            claim="Section 3.2.2: loss first, isotonic regression second, against min L(f) s.t. c_emp(f) = 0",
            paper="a joint minimisation",
            ours=f"squared error above the joint minimum, as a share of what can be explained: two steps "
            f"{np.mean(share):.3f} (at most {max(share):.3f}), Isotron {np.mean(isotron):.3f}",
            agrees=float(np.mean(share)) < 0.05,
        ),
    ]
