"""Worlds with known truth: what a measure should read is computed, not guessed."""

from calipers.datasets.worlds.classes import ClassSample, MixtureWorld
from calipers.datasets.worlds.coverage import CoverageSample, RegressionSample, true_ert
from calipers.datasets.worlds.groups import GroupWorld, InteractionWorld
from calipers.datasets.worlds.heteroscedastic import HeteroscedasticWorld
from calipers.datasets.worlds.losses import HeavyTailedWorld
from calipers.datasets.worlds.scores import BetaScores, LevelScores, ScoreSample, ScoreWorld

__all__ = [
    "BetaScores",
    "ClassSample",
    "CoverageSample",
    "GroupWorld",
    "HeavyTailedWorld",
    "HeteroscedasticWorld",
    "InteractionWorld",
    "LevelScores",
    "MixtureWorld",
    "RegressionSample",
    "ScoreSample",
    "ScoreWorld",
    "true_ert",
]


def __dir__() -> list[str]:
    return sorted(__all__)
