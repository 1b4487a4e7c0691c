"""What a model says about a pool of rows, and how easily it changes its mind: computed once, kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, import_optional
from calipers.difficulty import ease
from calipers.exceptions import InputError
from calipers.metrics import true_rank

# Transformation -> scale; severities at which most predictions stay put.
TRANSFORMS: Mapping[str, float] = {"gaussian": 0.1, "shift": 0.05, "blur": 0.08}
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm")


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Probabilities (n, K), labels (n,), and the ease (n,) under each transformation."""

    name: str
    probabilities: np.ndarray
    labels: np.ndarray
    ease: Mapping[str, np.ndarray]

    @property
    def accuracy(self) -> float:
        """Share of rows whose most likely label is right."""
        return float(np.mean(self.probabilities.argmax(axis=1) == self.labels))

    @property
    def ranks(self) -> np.ndarray:
        """1-based rank of the true label of each row."""
        return np.asarray(true_rank(self.labels, self.probabilities))

    def table(self) -> np.ndarray:
        """Rows as the study's predictors take them: probabilities, then ease under each transformation."""
        return np.column_stack([self.probabilities, *self.ease.values()])


def compute_outputs(
    name: str,
    predict: Callable[[Any], Any],
    images: Any,
    labels: np.ndarray,
    *,
    image_shape: tuple[int, ...] | None = None,
    transforms: Mapping[str, float] = TRANSFORMS,
    n_transforms: int = 10,
    batch_size: int | None = None,
    random_state: int = 0,
) -> Outputs:
    """Clean answers and ease of every row; `predict` is any model, a torchvision-style one included."""
    values = {
        kind: ease(
            predict,
            images,
            transform=kind,
            scale=scale,
            n_transforms=n_transforms,
            image_shape=image_shape,
            batch_size=batch_size,
            random_state=random_state,
        )
        for kind, scale in transforms.items()
    }
    return Outputs(name, as_numpy(predict(images)).astype(np.float64), np.asarray(labels), values)


def read_image_folder(
    folder: Path, *, size: tuple[int, int], classes: Sequence[str] | None = None, batch_size: int = 256
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of images (b, 3, h, w) in [0, 1] and labels from ``folder/<class>/<picture>``, as in ImageNet.

    Classes are the sub-folders in sorted order unless given. Pictures are scaled so that they cover
    ``size``, and the centre is cut out.
    """
    names = list(classes) if classes is not None else sorted(p.name for p in folder.iterdir() if p.is_dir())
    files = [
        (path, label)
        for label, name in enumerate(names)
        for path in sorted((folder / name).iterdir())
        if path.suffix.lower() in _PICTURES
    ]
    if not files:
        raise InputError(f"{folder} must hold one folder of pictures per class, found no picture.")
    reader = import_optional("PIL.Image", purpose="folders of pictures", install="pillow")
    for start in range(0, len(files), batch_size):
        part = files[start : start + batch_size]
        images = np.stack([_read(reader, path, size) for path, _ in part])
        yield images, np.array([label for _, label in part])


def outputs_from_folder(
    name: str,
    folder: Path,
    predict: Callable[[Any], Any],
    *,
    size: tuple[int, int],
    batch_size: int = 256,
    place: Callable[[np.ndarray], Any] = np.asarray,
    **options: Any,
) -> Outputs:
    """`compute_outputs` for a folder of pictures, batch by batch: what a person with ImageNet runs.

    ``place`` puts a batch where the model is, for example on a GPU: it is then changed there, too.
    """
    parts = [
        compute_outputs(name, predict, place(images), labels, **options)
        for images, labels in read_image_folder(folder, size=size, batch_size=batch_size)
    ]
    kinds = parts[0].ease
    return Outputs(
        name,
        np.concatenate([p.probabilities for p in parts]),
        np.concatenate([p.labels for p in parts]),
        {kind: np.concatenate([p.ease[kind] for p in parts]) for kind in kinds},
    )


def _read(reader: Any, path: Path, size: tuple[int, int]) -> np.ndarray:
    with reader.open(path) as picture:
        rgb = picture.convert("RGB")
        factor = max(size[0] / rgb.height, size[1] / rgb.width)
        width, height = (
            max(side, round(old * factor)) for side, old in zip(size[::-1], rgb.size, strict=True)
        )
        scaled = rgb.resize((width, height))
    top, left = (scaled.height - size[0]) // 2, (scaled.width - size[1]) // 2
    cut = np.asarray(scaled, dtype=np.float32)[top : top + size[0], left : left + size[1]]
    return np.ascontiguousarray(cut.transpose(2, 0, 1)) / 255.0
