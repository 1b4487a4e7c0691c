"""Adaptivity: T-CV and T-SS with their laws, and the whole chain from outputs to readings.

No peer has ease, T-CV or T-SS. For the chain a person would take TorchCP for the scores and write the rest in
torch; that is what the peer function does.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task

ALPHA, PERMUTATIONS = 0.1, 99


def prepare_rows(n: int) -> Inputs:
    rng = np.random.default_rng(0)
    ease = rng.random(n)
    return {
        "ease": ease,
        "ranks": 1 + rng.poisson(4 * (1 - ease)),
        "size": 1 + rng.poisson(6 * (1 - ease)),
        "covered": rng.random(n) < 0.9,
    }


def readings(inputs: Inputs) -> Answers:
    from calipers.metrics import t_cv, t_ss

    violation = t_cv(inputs["covered"], inputs["ease"], alpha=ALPHA)
    slope = t_ss(inputs["ranks"], inputs["size"], inputs["ease"], n_draws=PERMUTATIONS, random_state=0)
    return {"t_cv": float(violation), "t_ss": float(slope)}


def sorts_and_draws(inputs: Inputs) -> Answers:
    """One sort per metric, and the bare draws behind the null law of T-SS: shuffles, or tables of counts."""
    rng, size, n = np.random.default_rng(0), inputs["size"], len(inputs["ease"])
    orders = [np.argsort(inputs["ease"])[:1] for _ in range(2)]
    levels = int(size.max())
    if 50 * levels * 15 < n:
        rng.hypergeometric(np.full(PERMUTATIONS * 50 * levels, n // levels), n - n // levels, n // 50)
    else:
        for _ in range(PERMUTATIONS):
            rng.permutation(size)
    return {"order": orders}


def by_hand(inputs: Inputs) -> Answers:
    """Eq. 2 to 4 as printed, one bin at a time."""
    n, order = len(inputs["ease"]), np.argsort(inputs["ease"])
    limits = [b * n // 50 for b in range(51)]
    bins = [order[a:b] for a, b in pairwise(limits)]
    shares = [inputs["covered"][b].mean() for b in bins]
    rank, size = ([inputs[key][b].mean() for b in bins] for key in ("ranks", "size"))
    correlation = float(np.corrcoef(rank, size)[0, 1])
    return {"t_cv": max(abs(s - (1 - ALPHA)) for s in shares), "t_ss": correlation * abs(correlation)}


def band(inputs: Inputs) -> Answers:
    """Median and 95 % point of T-CV for a predictor without fault."""
    from calipers.inference import CoverageLaw, ViolationLaw

    law = ViolationLaw([CoverageLaw(int(inputs["rows"]) // 50, ALPHA)] * 50, 1 - ALPHA)
    return {"median": law.quantile(0.5), "high": law.quantile(0.95)}


def band_by_enumeration(inputs: Inputs) -> Answers:
    """P(T <= x) at every possible value of one bin, from the masses of the binomial law."""
    from scipy.stats import binom

    n = int(inputs["rows"]) // 50
    counts = np.arange(n + 1)
    mass, gap = binom.pmf(counts, n, 1 - ALPHA), np.round(np.abs(counts / n - (1 - ALPHA)), 12)
    values = np.unique(gap)
    below = np.array([mass[gap <= v].sum() for v in values]) ** 50
    return {name: values[np.argmax(below >= level)] for name, level in (("median", 0.5), ("high", 0.95))}


def prepare_outputs(n: int) -> Inputs:
    rng = np.random.default_rng(1)
    k, hardness = 1000, rng.random(n, dtype=np.float32)
    labels = rng.integers(0, k, n)
    logits = rng.standard_normal((n, k), dtype=np.float32)
    logits[np.arange(n), labels] += 9 * (1 - hardness)
    copies = [
        logits + (0.2 + hardness[:, None]) * rng.standard_normal((n, k), dtype=np.float32) for _ in range(10)
    ]
    return {
        "clean": _softmax(logits),
        "transformed": np.stack([_softmax(c) for c in copies]),
        "labels": labels,
    }


def _softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def chain(inputs: Inputs) -> Answers:
    import warnings

    from sklearn.frozen import FrozenEstimator

    from calipers.conformal import ConformalClassifier
    from calipers.difficulty import ease_from_outputs
    from calipers.metrics import t_cv, t_ss, true_rank
    from studies.adaptivity.methods import StoredProbabilities

    P, y = inputs["clean"], inputs["labels"]
    half = len(y) // 2
    ease = ease_from_outputs(P, inputs["transformed"])[half:]
    ranks = true_rank(y[half:], P[half:], classes=np.arange(P.shape[1]))
    answers: Answers = {}
    for score in ("lac", "aps", "raps", "saps"):
        model = ConformalClassifier(FrozenEstimator(StoredProbabilities(P.shape[1])), nonconformity=score)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sets = model.conformalize(P[:half], y[:half]).predict_set(P[half:], alpha=ALPHA)
        covered = sets[np.arange(len(y) - half), y[half:]]
        answers[f"t_cv_{score}"] = float(t_cv(covered, ease, alpha=ALPHA))
        slope = t_ss(ranks, sets.sum(axis=1), ease, n_draws=1, random_state=0)
        answers[f"t_ss_{score}"] = float(slope)
    return answers


def torchcp_chain(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    predictors, scores, _ = torchcp_rooms()
    P, y = torch.from_numpy(inputs["clean"]), torch.from_numpy(inputs["labels"])
    logits, half = torch.log(P), len(y) // 2
    ease = torch.stack(
        [torch.cosine_similarity(P, torch.from_numpy(t), dim=1) for t in inputs["transformed"]]
    ).mean(dim=0)
    answers: Answers = {}
    rules = {
        "lac": scores.LAC(),
        "aps": scores.APS(randomized=False),
        "raps": scores.RAPS(penalty=0.01, kreg=1, randomized=False),
        "saps": scores.SAPS(randomized=True),
    }
    for name, rule in rules.items():
        predictor = predictors.SplitPredictor(rule)
        predictor.calculate_threshold(logits[:half], y[:half], ALPHA)
        sets = predictor.predict_with_logits(logits[half:]).bool()
        covered = sets[torch.arange(len(y) - half), y[half:]].float()
        order = torch.argsort(ease[half:])
        rank = (P[half:] >= P[half:].gather(1, y[half:, None])).sum(dim=1).float()
        limits = [b * len(order) // 50 for b in range(51)]
        parts = [order[a:b] for a, b in pairwise(limits)]
        shares = torch.stack([covered[p].mean() for p in parts])
        means = [torch.stack([v[p].mean() for p in parts]) for v in (rank, sets.sum(dim=1).float())]
        r = float(torch.corrcoef(torch.stack(means))[0, 1])
        answers[f"t_cv_{name}"] = float((shares - (1 - ALPHA)).abs().max())
        answers[f"t_ss_{name}"] = r * abs(r)
    return answers


def same_deterministic(ours: Answers, theirs: Answers) -> bool:
    """LAC, APS and RAPS agree; the peer's deterministic SAPS is broken, so its random one is not compared."""
    keys = [f"{metric}_{score}" for metric in ("t_cv", "t_ss") for score in ("lac", "aps", "raps")]
    return all(abs(ours[key] - theirs[key]) < 5e-3 for key in keys)


TASKS = [
    Task(
        name="T-CV and T-SS",
        sizes=(2000, 20_000, 200_000),
        prepare=prepare_rows,
        ours=readings,
        limit=sorts_and_draws,
        exact=by_hand,
        bar="within 2x of one sort per metric and the bare draws of 99 permutations",
    ),
    Task(
        name="null band of T-CV",
        sizes=(2_000, 20_000, 200_000),
        prepare=lambda n: {"rows": n},
        ours=band,
        exact=band_by_enumeration,
        bar="20 000 rows, 50 bins, alpha 0.1: median 0.0375 +- 0.001, 95 % point 0.050 +- 0.002",
    ),
    Task(
        name="adaptivity chain",
        sizes=(500, 2000, 8000),
        prepare=prepare_outputs,
        ours=chain,
        peers={"torchcp": torchcp_chain},
        agree=same_deterministic,
        bar="40 000 x 1000 with 10 transformations on a GPU: at least 20 times faster than TorchCP on CPU",
        quick=False,
    ),
]
