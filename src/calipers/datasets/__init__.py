"""Worlds with known truth, two small real sets for the demo, and loaders of the public sets the studies use.

Nothing is downloaded. Public sets are read from a folder the user names, by the argument ``data_dir``
or by the environment variable CALIPERS_DATA.
"""

from calipers.datasets.cifar import (
    CIFAR10_CLASSES,
    load_cifar10_human,
    load_cifar10_resnet50,
    load_cifar100,
    load_cifar_n,
)
from calipers.datasets.dataset import Dataset, ModelOutputs, NoisyLabels
from calipers.datasets.regression import REGRESSION_SETS, RegressionSet, load_regression
from calipers.datasets.shipped import load_demo_classification, load_demo_regression, plant_fault
from calipers.datasets.tables import load_adult, load_covtype, load_fashion_mnist, load_usps
from calipers.datasets.worlds import (
    BetaScores,
    ClassSample,
    CoverageSample,
    GroupWorld,
    HeavyTailedWorld,
    HeteroscedasticWorld,
    InteractionWorld,
    LevelScores,
    MixtureWorld,
    RegressionSample,
    ScoreSample,
    ScoreWorld,
    true_ert,
)

__all__ = [
    "CIFAR10_CLASSES",
    "REGRESSION_SETS",
    "BetaScores",
    "ClassSample",
    "CoverageSample",
    "Dataset",
    "GroupWorld",
    "HeavyTailedWorld",
    "HeteroscedasticWorld",
    "InteractionWorld",
    "LevelScores",
    "MixtureWorld",
    "ModelOutputs",
    "NoisyLabels",
    "RegressionSample",
    "RegressionSet",
    "ScoreSample",
    "ScoreWorld",
    "load_adult",
    "load_cifar10_human",
    "load_cifar10_resnet50",
    "load_cifar100",
    "load_cifar_n",
    "load_covtype",
    "load_demo_classification",
    "load_demo_regression",
    "load_fashion_mnist",
    "load_regression",
    "load_usps",
    "plant_fault",
    "true_ert",
]


def __dir__() -> list[str]:
    return sorted(__all__)
