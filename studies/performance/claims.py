"""The paper's statements beside what the trials read."""

from __future__ import annotations

import numpy as np
from scipy import stats

from calipers.inference import CalibrationLaw, binomial_p_value, clopper_pearson
from studies.outcome import Claim
from studies.performance.digits import FloorReading, ModulatedTrial
from studies.performance.trials import ALPHA, SEED, TrialTable

# A right claim is called wrong by chance at most this often.
_SURE = 0.001


def cover_rate_claim(table: TrialTable, where: str) -> Claim:
    """New loss cover rate against the exact probability, by the exact binomial test."""
    rate, low, high = table.new_loss_rate()
    p = float(binomial_p_value(int(table.new_covered.sum()), table.trials, table.exact))
    return Claim(
        claim=f"{where}, {table.name}: a new loss is covered with probability in [0.9, 0.9 + 2/(n+1)]",
        paper=f"[0.9000, {0.9 + 2 / (table.n_losses + 1):.4f}]",
        ours=f"{rate:.3f} [{low:.3f}, {high:.3f}] in {table.trials} trials, exact {table.exact:.4f}",
        agrees=p > _SURE,
    )


def coverage_law_claim(table: TrialTable, where: str) -> Claim:
    """Test loss coverage over trials against the exact beta-binomial law, by mean and spread."""
    law = table.law
    mean, spread = float(table.coverage.mean()), float(table.coverage.std(ddof=1))
    z = (mean - law.probability) / (law.share_std / np.sqrt(table.trials))
    # Sum of squares over its expectation: chi-squared to the accuracy of a nearly normal law.
    ratio = (table.trials - 1) * (spread / law.share_std) ** 2
    tail = min(stats.chi2.cdf(ratio, table.trials - 1), stats.chi2.sf(ratio, table.trials - 1))
    return Claim(
        claim=f"{where}, {table.name}: the test loss coverage of the trials concentrates at 0.90",
        paper=f"exact law: mean {law.probability:.4f}, sd {law.share_std:.4f}",
        ours=f"mean {mean:.4f}, sd {spread:.4f}",
        agrees=bool(abs(z) < stats.norm.isf(_SURE / 2) and tail > _SURE / 2),
    )


def floor_claim(readings: list[FloorReading]) -> Claim:
    """Coverage does not depend on the probability counted for an absent digit; the upper ends do."""
    read = ", ".join(
        f"floor {r.floor:g} {r.method}: covers {r.covered:.3f}, "
        f"{100 * r.upper_at_cap:.0f} % of upper ends at {r.cap:.2f}"
        for r in readings
    )
    return Claim(
        claim="digits, variable width: the floor of absent digits moves the upper ends, not the coverage",
        paper="not stated; Figure 5",
        ours=read,
        agrees=min(r.covered for r in readings) >= 1 - ALPHA - 0.05,
    )


def bucket_counts(points: int = 19, trials: int = 20_000) -> np.ndarray:
    """How many of the sorted losses lie below a new one, heavy-tailed losses: counts of 0 to ``points``."""
    losses = np.random.default_rng(SEED).standard_t(2.1, (trials, points + 1)) ** 2
    below = np.sum(losses[:, :-1] < losses[:, -1:], axis=1)
    return np.bincount(below, minlength=points + 1)


def bucket_claim(counts: np.ndarray) -> Claim:
    """Figure 3 and Lemma 2: the buckets between sorted losses are equally likely."""
    p = float(stats.chisquare(counts).pvalue)
    shares = counts / counts.sum()
    return Claim(
        claim="a new loss falls into each bucket between the sorted losses equally often (Figure 3, Lemma 2)",
        paper=f"1/(n + 1) = {1 / len(counts):.4f} for n = {len(counts) - 1}",
        ours=f"{shares.min():.4f} to {shares.max():.4f} in {counts.sum()} trials, chi-squared p = {p:.2f}",
        agrees=p > _SURE,
    )


def lower_ends_claim(tables: list[TrialTable]) -> Claim:
    """Section 4.1: "the left sides all tend to be very close to zero"."""
    share = max(float(np.median(t.low) / np.median(t.high)) for t in tables)
    return Claim(
        claim="digits: the lower ends are very close to zero",
        paper="hard to see in Figure 4",
        ours=f"median lower end is at most {100 * share:.1f} % of the median upper end",
        agrees=share < 0.1,
    )


def modulated_claim(trial: ModulatedTrial, name: str) -> Claim:
    """Coverage over the test cases of the single modulated trial, within the band of its Beta law."""
    ends, losses = trial.intervals[name], trial.losses[name]
    hits = int(np.sum((losses >= ends[:, 0]) & (losses <= ends[:, 1])))
    low, high = clopper_pearson(hits, losses.size)
    rank = -(-9 * (trial.points + 1) // 10)
    band_low, _ = CalibrationLaw(trial.points, rank).interval(1 - 2 * _SURE)
    return Claim(
        claim=f"digits, {name}: the variable-width intervals hold the loss after training on "
        f"{trial.train_size} new rows",
        paper=f"at least 0.90 on average; this trial a draw from Beta({rank}, {trial.points + 1 - rank})",
        ours=f"{hits / losses.size:.3f} [{low:.3f}, {high:.3f}] of {losses.size} test cases",
        # Losses tie at the stated probability of absent classes, so only the lower side is promised.
        agrees=bool(high >= band_low),
    )


def train_size_claim(train_size: int) -> Claim:
    """Section 4.2: 75 000 rows and 1000 points leave 74 training rows each."""
    return Claim(
        claim="n = 75 000 with 1000 points trains on 74 rows",
        paper="74",
        ours=str(train_size),
        agrees=train_size == 74,
    )


def naive_claim(name: str, covered: np.ndarray, kind: str) -> Claim:
    """Section 5: naive cross-validation erodes the coverage."""
    hits, n = int(covered.sum()), covered.size
    low, high = clopper_pearson(hits, n)
    return Claim(
        claim=f"{name}: the naive cross-validation interval ({kind}) loses coverage",
        paper="erodes away (no number)",
        ours=f"{hits / n:.3f} [{low:.3f}, {high:.3f}] in {n} trials",
        agrees=bool(high < 1 - ALPHA),
    )
