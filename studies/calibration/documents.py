"""Table 1: logistic regression on documents of a topic model, where P(Y = 1 | X) is known.

Settings the paper leaves open, and how they were settled: words follow rank^-0.94 in every topic (the
exponent was chosen to meet the printed l1, so only c_emp is a check), lengths are Poisson(200), features
are counts, the penalty is scikit-learn's default C = 1, everything is averaged over all topics, and errors
are read in-sample: held out, the same models have a calibration error of about 0.02, which no default
setting brings down to the printed 0.0083.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit

from calipers.metrics import calibration_error
from studies.calibration.settings import SEED, Settings

EXPONENT = 0.94
MEAN_LENGTH = 200
N_DRAWN_TOPICS = 10
C = 1.0


class Corpus(NamedTuple):
    """Word counts, true probabilities of every topic label, and the labels."""

    counts: np.ndarray
    truth: np.ndarray
    labels: np.ndarray


class TableOne(NamedTuple):
    """One run: the four numbers of Table 1, and the calibration error on held-out documents."""

    l1: float
    c_emp: float
    trivial_l1: float
    frequency: float
    held_out_c_emp: float


def exact_frequency(n_topics: int) -> float:
    """P(a topic is among 10 draws), its share Beta(1, n - 1): 10 / (n + 9), 10/29 for 20 topics."""
    return N_DRAWN_TOPICS / (n_topics + N_DRAWN_TOPICS - 1)


def exact_trivial_l1(n_topics: int) -> float:
    """E|P(Y = 1 | X) - frequency|, 0.20233 for 20 topics.

    With q = (1 - theta)^10 and theta ~ Beta(1, m), q has distribution function q^(m/10) on (0, 1), so
    E|q - E q| = 2 integral of F below the mean = 2 mean^(m/10 + 1) / (m/10 + 1).
    """
    power = (n_topics - 1) / N_DRAWN_TOPICS + 1
    mean = 1 - exact_frequency(n_topics)
    return float(2 * mean**power / power)


def make_topics(settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """(topics, words): a power law over a random order of the words, one per topic."""
    law = np.arange(1, settings.lda_words + 1) ** -EXPONENT
    orders = [rng.permutation(settings.lda_words) for _ in range(settings.lda_topics)]
    return np.stack([(law / law.sum())[order] for order in orders])


def draw_corpus(n: int, topics: np.ndarray, rng: np.random.Generator) -> Corpus:
    """n documents: Dirichlet(1) shares, a Poisson number of words, ten topic labels with replacement."""
    shares = rng.dirichlet(np.ones(len(topics)), size=n)
    # A Poisson number of multinomial words is independent Poisson counts.
    counts = rng.poisson(MEAN_LENGTH * shares @ topics).astype(np.float64)
    labels = rng.multinomial(N_DRAWN_TOPICS, shares) > 0
    return Corpus(counts, 1 - (1 - shares) ** N_DRAWN_TOPICS, labels)


def fit_logistic(counts: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ridge logistic regression of every label at once: weights (words, topics) and intercepts.

    All problems share the features, so they share a preconditioner: the Cholesky factor of the curvature at
    typical probabilities.
    """
    n, d = counts.shape
    design = np.hstack([counts, np.ones((n, 1))])
    penalty = np.append(np.full(d, 1 / C), 0.0)  # the intercept is free
    curvature = 0.2 * design.T @ design + np.diag(penalty + 1e-8)
    root = cholesky(curvature)
    whitened = solve_triangular(root, design.T, trans="T", overwrite_b=False).T
    y = labels.astype(np.float64)

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        v = flat.reshape(d + 1, -1)
        w = solve_triangular(root, v)
        odds = whitened @ v
        value = float(np.sum(np.logaddexp(0, odds) - y * odds) + 0.5 * np.sum(penalty[:, None] * w**2))
        gradient = whitened.T @ (expit(odds) - y)
        gradient += solve_triangular(root, penalty[:, None] * w, trans="T")
        return value, gradient.ravel()

    start = np.zeros((d + 1) * y.shape[1])
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 300, "maxcor": 20, "ftol": 1e-11, "gtol": 1e-3},
    )
    w = solve_triangular(root, found.x.reshape(d + 1, -1))
    return np.asarray(w[:-1]), np.asarray(w[-1])


def run_once(settings: Settings, repetition: int) -> TableOne:
    """One repetition of the experiment, with a seed of its own."""
    rng = np.random.default_rng([SEED, repetition])
    topics = make_topics(settings, rng)
    train = draw_corpus(settings.lda_documents, topics, rng)
    weights, intercepts = fit_logistic(train.counts, train.labels)
    fitted = expit(train.counts @ weights + intercepts)
    held_out = draw_corpus(settings.lda_documents // 2, topics, rng)
    stated = expit(held_out.counts @ weights + intercepts)
    frequency = float(train.truth.mean())
    return TableOne(
        l1=float(np.abs(fitted - train.truth).mean()),
        c_emp=mean_error(train.labels, fitted),
        trivial_l1=float(np.abs(frequency - train.truth).mean()),
        frequency=frequency,
        held_out_c_emp=mean_error(held_out.labels, stated),
    )


class TopicCurve(NamedTuple):
    """Figure 1: P(Y = 1 | w(X)) in bins of w(X) for one topic, and the sigmoid of largest likelihood."""

    score: np.ndarray
    truth: np.ndarray
    stated: np.ndarray
    rows: np.ndarray


def topic_curve(settings: Settings, n_bins: int = 40) -> TopicCurve:
    """Fix the word weights of one topic, search a and b, and set the sigmoid beside the truth (2.3).

    The weights come from documents of their own: they are fixed before a and b are searched.
    """
    rng = np.random.default_rng([SEED, 101])
    topics = make_topics(settings, rng)
    own, corpus = (draw_corpus(settings.lda_documents, topics, rng) for _ in range(2))
    weights, _ = fit_logistic(own.counts, own.labels[:, :1])
    score = (corpus.counts @ weights)[:, 0]
    fit = fit_logistic(score[:, None], corpus.labels[:, :1])
    slope, intercept = (float(np.ravel(part)[0]) for part in fit)
    places = np.array_split(np.argsort(score), n_bins)
    columns = (score, corpus.truth[:, 0], expit(slope * score + intercept))
    means = [np.array([column[rows].mean() for rows in places]) for column in columns]
    return TopicCurve(means[0], means[1], means[2], np.array([len(rows) for rows in places]))


def mean_error(labels: np.ndarray, stated: np.ndarray) -> float:
    """Calibration error averaged over topics; no test is needed here, so one draw."""
    columns = range(labels.shape[1])
    errors = [calibration_error(labels[:, k], stated[:, k], n_draws=1, random_state=0) for k in columns]
    return float(np.mean([float(e) for e in errors]))
