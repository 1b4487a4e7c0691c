"""Sizes of the study, in full and as a quick check."""

from __future__ import annotations

from dataclasses import dataclass

SEED = 0
N_VALIDATION = 2000  # as in the paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How large every part is.

    Parameters
    ----------
    lda_runs, lda_documents, lda_topics, lda_words : int
        Table 1: repetitions, documents for training (and half as many held out), topics, dictionary.
    n_train, n_test : int
        Largest number of rows used of each table.
    n_trees : int
        Trees of the forest and rounds of boosting.
    convergence_sizes, convergence_runs
        Claim 6: sample sizes and repetitions.
    certificate_sizes : tuple of int
        Rows at which the certificates are compared.
    link_runs : pairs of size and repetitions
        Link families by likelihood and by minimum error.
    n_draws : int
        Draws of the exact tests.
    isotron_rounds : int
        Rounds of Isotron and SLIsotron.
    joint_rows, joint_seeds : int
        Rows and repetitions of the comparison with the joint minimum.
    prover_runs : int
        Samples of every prover of Theorem 1.
    decide : bool
        Whether the sizes are large enough for verdicts on the paper's claims.
    """

    lda_runs: int = 5
    lda_documents: int = 20_000
    lda_topics: int = 20
    lda_words: int = 1000
    n_train: int = 40_000
    n_test: int = 100_000
    n_trees: int = 200
    convergence_sizes: tuple[int, ...] = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
    convergence_runs: int = 40
    certificate_sizes: tuple[int, ...] = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
    link_runs: tuple[tuple[int, int], ...] = ((2000, 20), (20_000, 6))
    n_draws: int = 999
    isotron_rounds: int = 100
    joint_rows: int = 1000
    joint_seeds: int = 10
    prover_runs: int = 5000
    decide: bool = True


FULL = Settings()
QUICK = Settings(
    lda_runs=1,
    lda_documents=800,
    lda_topics=6,
    lda_words=120,
    n_train=1500,
    n_test=3000,
    n_trees=5,
    convergence_sizes=(100, 1000),
    convergence_runs=4,
    certificate_sizes=(100, 1000),
    link_runs=((400, 2),),
    n_draws=49,
    isotron_rounds=10,
    joint_rows=200,
    joint_seeds=2,
    prover_runs=300,
    decide=False,
)
