"""Full conformal prediction by its definition: add the object, recompute every score, rank.

Nothing here is shared with the library: plain loops over one bag at a time.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np


def ratio_score(i, distances, labels, k):
    others = [j for j in range(len(labels)) if j != i]
    same = sorted(distances[i, j] for j in others if labels[j] == labels[i])[:k]
    different = sorted(distances[i, j] for j in others if labels[j] != labels[i])[:k]
    if not same and not different:
        return 1
    if not same:
        return 0
    if not different:
        return np.inf
    near, far = sum(same), sum(different)
    if near == 0:
        return 1 if far == 0 else np.inf
    # Exact for fractions; equal ratios of square roots in 28 digits agree in 20.
    ratio = far * len(same) / (near * len(different))
    return round(ratio, 20) if isinstance(ratio, Decimal) else ratio


def probability_score(i, distances, labels, k):
    others = sorted((j for j in range(len(labels)) if j != i), key=lambda j: distances[i, j])
    if len(others) <= k:
        return sum(labels[j] == labels[i] for j in others)
    last = distances[i, others[k - 1]]
    closer = [j for j in others if distances[i, j] < last]
    tied = [j for j in others if distances[i, j] == last]
    tied.sort(key=lambda j: labels[j] != labels[i])  # those with the object's own label first
    return sum(labels[j] == labels[i] for j in closer + tied[: k - len(closer)])


def predictability_score(i, distances, labels, k, priority, vote):
    others = sorted((j for j in range(len(labels)) if j != i), key=lambda j: (distances[i, j], priority[j]))[
        :k
    ]
    names = sorted(set(labels))
    votes = {name: sum(labels[j] == name for j in others) for name in names}
    largest = max(votes.values())
    leaders = [name for name in names if votes[name] == largest]
    winner = leaders[int(vote[i] * len(leaders))]
    return largest if winner == labels[i] else -largest


def p_values(train, labels, test, k, measure, *, label_conditional=False, tau=None, draws=None):
    """p-values (m, C) by definition; ``draws``: priority and vote of training, then of test objects."""
    names = sorted(set(labels.tolist()))
    m, n = test.shape
    result = np.empty((m, len(names)))
    for t in range(m):
        bag = np.zeros((n + 1, n + 1), dtype=train.dtype)
        bag[:n, :n], bag[n, :n], bag[:n, n] = train, test[t], test[t]
        for column, name in enumerate(names):
            y = np.append(labels, name)
            if measure == "predictability":
                priority = np.append(draws[0].priority, draws[1].priority[t])
                vote = np.append(draws[0].vote, draws[1].vote[t])
                scores = [predictability_score(i, bag, y, k, priority, vote) for i in range(n + 1)]
            else:
                score = ratio_score if measure == "ratio" else probability_score
                scores = [score(i, bag, y, k) for i in range(n + 1)]
            compared = [
                s for s, label in zip(scores, y, strict=True) if not label_conditional or label == name
            ]
            below = sum(s < scores[-1] for s in compared)
            equal = sum(s == scores[-1] for s in compared)
            result[t, column] = (below + (1.0 if tau is None else tau[t]) * equal) / len(compared)
    return result
