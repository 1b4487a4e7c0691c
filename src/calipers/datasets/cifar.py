"""Loaders of what models and people said about CIFAR-10 and CIFAR-100."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from calipers.datasets.dataset import ModelOutputs, NoisyLabels, check_names
from calipers.datasets.folder import data_file, read_arrays
from calipers.exceptions import InputError

Folder = str | os.PathLike[str] | None

CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
_HUMAN_MODELS = (
    "densenet_bc_190_40",
    "resnet110",
    "preresnet110",
    "cnn_unnamed",
    "wrn_16_4",
    "lenet5",
    "vgg16",
    "cleanlab_cv",
)
_CIFAR100_MODELS = ("densenet_bc_100", "wrn_16_4", "lenet5")
_NOISE_KINDS = {
    "cifar10": ("c10", ("aggre_label", "worse_label", "random_label1", "random_label2", "random_label3")),
    "cifar100": ("c100", ("noisy_label",)),
}


def load_cifar10_human(data_dir: Folder = None, *, models: Sequence[str] | None = None) -> ModelOutputs:
    """CIFAR-10 test images: eight models' probabilities, one model's logits, and 47 to 63 human answers each.

    The human counts are draws from the conditional label distribution: the nearest thing to a known
    P(y | x) that real data have.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``cifar10_test_human_models.npz``; by default the one named by CALIPERS_DATA.
    models : sequence of str, optional
        Which to read, all by default: densenet_bc_190_40, resnet110, preresnet110, cnn_unnamed, wrn_16_4,
        lenet5, vgg16, cleanlab_cv (probabilities) and resnet50 (logits).

    Returns
    -------
    ModelOutputs
        10000 rows in the original order. cleanlab_cv was cross-validated on the test set itself: out of
        sample, but not one fixed model.

    Raises
    ------
    InputError
        When the folder or the file is missing, or a model is unknown.

    Examples
    --------
    >>> from calipers.datasets import load_cifar10_human
    >>> load_cifar10_human("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds
    cifar10_test_human_models.npz, got 'no/such/folder'.
    """
    chosen = check_names(models, (*_HUMAN_MODELS, "resnet50"), name="models")
    origin = "CIFAR-10H (github.com/jcpeterson/cifar-10h) and the published outputs of the named models"
    path = data_file("cifar10_test_human_models.npz", data_dir, origin=origin)
    stated = [model for model in chosen if model != "resnet50"]
    logits = ["logits_resnet50"] if "resnet50" in chosen else []
    keys = ("labels", "human_counts", *(f"probs_{model}" for model in stated), *logits)
    arrays = read_arrays(path, keys)
    return ModelOutputs(
        name="cifar10_human",
        labels=arrays["labels"].astype(np.int64),
        probabilities={model: arrays[f"probs_{model}"].astype(np.float64) for model in stated},
        logits={"resnet50": arrays["logits_resnet50"].astype(np.float64)} if logits else {},
        human_counts=arrays["human_counts"].astype(np.int64),
        class_names=CIFAR10_CLASSES,
        description="A row is a CIFAR-10 test image, original order; values as published.",
        source=origin,
        licence="CIFAR-10H: CC BY-NC-SA 4.0; models: Apache-2.0, MIT, or none stated",
    )


def load_cifar10_resnet50(data_dir: Folder = None, *, part: str = "test") -> ModelOutputs:
    """Logits of one ResNet-50 on CIFAR-10, on separate validation and test images.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``cifar10_resnet50_val_test.npz``; by default the one named by CALIPERS_DATA.
    part : {"test", "val"}, default="test"
        10000 test images (accuracy 0.9502) or 5000 validation images (0.9508).

    Returns
    -------
    ModelOutputs
        With ``logits["resnet50"]``.

    Raises
    ------
    InputError
        When the folder or the file is missing, or the part is unknown.

    Examples
    --------
    >>> from calipers.datasets import load_cifar10_resnet50
    >>> load_cifar10_resnet50("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds
    cifar10_resnet50_val_test.npz, got 'no/such/folder'.
    """
    if part not in {"val", "test"}:
        raise InputError(f'part must be "val" or "test", got {part!r}.')
    origin = "data/cifar10_resnet50 of github.com/AIgen/df-posthoc-calibration"
    path = data_file("cifar10_resnet50_val_test.npz", data_dir, origin=origin)
    arrays = read_arrays(path, (f"{part}_logits", f"{part}_labels"))
    return ModelOutputs(
        name=f"cifar10_resnet50_{part}",
        labels=arrays[f"{part}_labels"].astype(np.int64),
        logits={"resnet50": arrays[f"{part}_logits"].astype(np.float64)},
        class_names=CIFAR10_CLASSES,
        description=f"A row is a CIFAR-10 image of the {part} part; logits as published.",
        source=origin,
        licence="MIT",
    )


def load_cifar100(data_dir: Folder = None, *, models: Sequence[str] | None = None) -> ModelOutputs:
    """CIFAR-100 test images: three models' probabilities over 100 classes.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``cifar100_test_models.npz``; by default the one named by CALIPERS_DATA.
    models : sequence of str, optional
        Which to read, all by default: densenet_bc_100, wrn_16_4, lenet5 (accuracies 0.7541, 0.7543, 0.1246).

    Returns
    -------
    ModelOutputs
        10000 rows in the original order.

    Raises
    ------
    InputError
        When the folder or the file is missing, or a model is unknown.

    Examples
    --------
    >>> from calipers.datasets import load_cifar100
    >>> load_cifar100("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds
    cifar100_test_models.npz, got 'no/such/folder'.
    """
    chosen = check_names(models, _CIFAR100_MODELS, name="models")
    origin = "examples/classification/records/cifar100 of github.com/EFS-OpenSource/calibration-framework"
    path = data_file("cifar100_test_models.npz", data_dir, origin=origin)
    arrays = read_arrays(path, ("labels", *(f"probs_{model}" for model in chosen)))
    return ModelOutputs(
        name="cifar100",
        labels=arrays["labels"].astype(np.int64),
        probabilities={model: arrays[f"probs_{model}"].astype(np.float64) for model in chosen},
        class_names=tuple(str(k) for k in range(100)),
        description="A row is a CIFAR-100 test image, original order; softmax values as published.",
        source=origin,
        licence="Apache-2.0",
    )


def load_cifar_n(data_dir: Folder = None, *, dataset: str = "cifar10") -> NoisyLabels:
    """Human labels of the 50000 CIFAR training images, beside the clean ones.

    Parameters
    ----------
    data_dir : path, optional
        Folder that holds ``cifar_n_train_labels.npz``; by default the one named by CALIPERS_DATA.
    dataset : {"cifar10", "cifar100"}, default="cifar10"
        Which images. CIFAR-10 has the kinds aggre, worse, random1, random2, random3; CIFAR-100 has noisy.

    Returns
    -------
    NoisyLabels
        Rows in the order of the Python version of the data.

    Raises
    ------
    InputError
        When the folder or the file is missing, or the data set is unknown.

    Examples
    --------
    >>> from calipers.datasets import load_cifar_n
    >>> load_cifar_n("no/such/folder")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: data_dir must name an existing folder that holds
    cifar_n_train_labels.npz, got 'no/such/folder'.
    """
    if dataset not in _NOISE_KINDS:
        raise InputError(f'dataset must be "cifar10" or "cifar100", got {dataset!r}.')
    prefix, kinds = _NOISE_KINDS[dataset]
    origin = "CIFAR-10_human.pt and CIFAR-100_human.pt of github.com/UCSC-REAL/cifar-10-100n"
    path = data_file("cifar_n_train_labels.npz", data_dir, origin=origin)
    arrays = read_arrays(path, (f"{prefix}_clean_label", *(f"{prefix}_{kind}" for kind in kinds)))
    return NoisyLabels(
        name=f"{dataset}_n",
        clean=arrays[f"{prefix}_clean_label"].astype(np.int64),
        noisy={kind.replace("_label", ""): arrays[f"{prefix}_{kind}"].astype(np.int64) for kind in kinds},
        description="A row is a CIFAR training image; labels as published.",
        source=origin,
        licence="CC BY-NC 4.0",
    )
