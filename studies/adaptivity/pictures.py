"""A folder of 50 000 invented pictures in 1000 classes, a torchvision model, and everything of Section 5.

ImageNet cannot be had, so its path is run over pictures that are made here: files are written, read back and
scaled, changed on the device, answered by a ResNet-18 that was trained on further pictures of the same kind,
and the six methods of Table 2 are measured at the paper's number of rows and classes. What this shows is that
the path works at that size, and what it costs. What the paper's models do on photographs it cannot show:
the values are those of invented pictures. Needs torch, torchvision and pillow; a GPU for the full size::

    python -m studies.adaptivity.pictures --device cuda --out pictures
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from calipers.arrays import generator, import_optional
from calipers.metrics import t_cv, t_ss
from calipers.results import write_atomically
from studies.adaptivity.cases import splits
from studies.adaptivity.methods import METHODS, Prediction, main_ease, run_method
from studies.adaptivity.outputs import Outputs, outputs_from_folder
from studies.outcome import write_table

ALPHAS = (0.1, 0.05)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PictureWorld:
    """Classes are smooth patterns; a hard picture shows its own pattern weakly, another one, and noise.

    Parameters
    ----------
    n_classes, side : int
        Patterns, and pixels of a side.
    seed : int
        Seed of the patterns.
    """

    n_classes: int = 1000
    side: int = 32
    seed: int = 0

    def patterns(self) -> np.ndarray:
        """One pattern (3, side, side) per class, of 4 x 4 cells with smooth transitions."""
        from scipy import ndimage

        cells = generator(self.seed).standard_normal((self.n_classes, 3, 4, 4), dtype=np.float32)
        factor = self.side / 4
        return np.asarray(
            ndimage.zoom(cells, (1, 1, factor, factor), order=1, mode="nearest", grid_mode=True)
        )

    @staticmethod
    def mix(own: Any, other: Any, hardness: Any, noise: Any) -> Any:
        """Pictures in [0, 1] from patterns, hardness in [0, 1] and standard normal noise: numpy or torch."""
        signal = 0.25 * (1 - hardness) * own + 0.12 * hardness * other
        return (0.5 + signal + 0.4 * noise).clip(0, 1)


def write_pictures(world: PictureWorld, n: int, folder: Path, *, jobs: int = 1) -> None:
    """Files ``folder/<class>/<number>.png``, equally many per class; hardness is Beta(1.5, 1.5)."""
    labels = np.arange(n) % world.n_classes
    sources = generator(world.seed + 1).spawn(world.n_classes)
    patterns = world.patterns()
    Parallel(n_jobs=jobs)(
        delayed(_write_class)(patterns, label, int(np.sum(labels == label)), folder / f"{label:04d}", source)
        for label, source in enumerate(sources)
    )


def _write_class(
    patterns: np.ndarray, label: int, count: int, folder: Path, rng: np.random.Generator
) -> None:
    images = import_optional("PIL.Image", purpose="pictures", install="pillow")
    folder.mkdir(parents=True, exist_ok=True)
    hardness = rng.beta(1.5, 1.5, (count, 1, 1, 1)).astype(np.float32)
    noise = rng.standard_normal((count, *patterns.shape[1:]), dtype=np.float32)
    other = patterns[rng.integers(0, len(patterns), count)]
    pictures = PictureWorld.mix(patterns[label], other, hardness, noise)
    for i, picture in enumerate(np.round(255 * pictures).astype(np.uint8)):
        image = images.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0)))
        write_atomically(folder / f"{i:04d}.png", partial(image.save, format="PNG"))


def residual_network(n_classes: int, seed: int = 0) -> Any:
    """A torchvision ResNet-18 that knows nothing yet."""
    torch = import_optional("torch", purpose="the vision model", install="calipers[torch]")
    vision = import_optional("torchvision", purpose="the vision model", install="torchvision")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return vision.models.resnet18(num_classes=n_classes)


def train_model(model: Any, world: PictureWorld, device: str, *, steps: int, batch: int = 1024) -> Any:
    """Train on fresh pictures of the world, none of which is in a folder."""
    torch = import_optional("torch", purpose="the vision model", install="calipers[torch]")
    with torch.random.fork_rng(devices=[device] if device.startswith("cuda") else []):
        torch.manual_seed(world.seed)
        model = model.to(device).train()
        patterns = torch.from_numpy(world.patterns()).to(device)
        optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps)
        law = torch.distributions.Beta(torch.tensor(1.5, device=device), torch.tensor(1.5, device=device))
        for _ in range(steps):
            labels, others = torch.randint(world.n_classes, (2, batch), device=device)
            noise = torch.randn((batch, *patterns.shape[1:]), device=device)
            pictures = PictureWorld.mix(
                patterns[labels], patterns[others], law.sample((batch, 1, 1, 1)), noise
            )
            with torch.autocast(device.partition(":")[0], dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(pictures), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


def answers_of(model: Any, *, batch: int = 8192) -> Callable[[Any], Any]:
    """The model's probabilities of a batch of pictures, on the device where the pictures are."""
    torch = import_optional("torch", purpose="the vision model", install="calipers[torch]")

    def answers(pictures: Any) -> Any:
        with torch.inference_mode():
            parts = [torch.softmax(model(part).float(), dim=1) for part in pictures.split(batch)]
            return torch.cat(parts)

    return answers


@dataclass
class Seconds:
    """Seconds by the clock of every step."""

    steps: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Count what happens inside."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.steps[step] = time.perf_counter() - start


def picture_outputs(
    model: Any, world: PictureWorld, n: int, folder: Path, *, device: str, steps: int, jobs: int = 1
) -> tuple[Outputs, dict[str, float]]:
    """Answers and ease of a folder of pictures that is made first, and the seconds of each step."""
    torch = import_optional("torch", purpose="the vision model", install="calipers[torch]")
    seconds = Seconds()
    with seconds.of("writing the pictures"):
        write_pictures(world, n, folder, jobs=jobs)
    with seconds.of("training"):
        trained = train_model(model, world, device, steps=steps)
    with seconds.of("reading, changing and answering"):
        outputs = outputs_from_folder(
            "pictures",
            folder,
            answers_of(trained),
            size=(world.side, world.side),
            batch_size=2048,
            place=lambda batch: torch.from_numpy(batch).to(device),
        )
    return outputs, seconds.steps


def picture_rows(outputs: Outputs, *, jobs: int = 1) -> list[Row]:
    """Table 2 over these outputs, one split: coverage, size, T-CV with its null band, T-SS."""
    validation, test = next(splits(len(outputs.labels), 1))
    found = Parallel(n_jobs=jobs)(
        delayed(run_method)(method, outputs, validation, test, ALPHAS, 0) for method in METHODS
    )
    return [
        _row(outputs, test, method, alpha, predictions[alpha])
        for alpha in ALPHAS
        for method, predictions in zip(METHODS, found, strict=True)
    ]


def _row(outputs: Outputs, test: np.ndarray, method: str, alpha: float, found: Prediction) -> Row:
    ease = main_ease(outputs)[test]
    violation = t_cv(found.covered, ease, alpha=alpha)
    slope = t_ss(outputs.ranks[test], found.size, ease, n_draws=99, random_state=0)
    return {
        "alpha": alpha, "method": method, "chosen": found.chosen, "rows": len(test),
        "classes": outputs.probabilities.shape[1], "accuracy": outputs.accuracy,
        "coverage": float(found.covered.mean()), "size": float(found.size.mean()),
        "T-CV": float(violation), "T-CV null": violation.null_high, "T-SS": float(slope),
    }  # fmt: skip


def write_pictures_table(rows: list[Row], seconds: Mapping[str, float], out: Path) -> list[Path]:
    """The rows and the seconds as tables."""
    return [
        write_table(out / "pictures.csv", list(rows[0]), [list(row.values()) for row in rows]),
        write_table(out / "pictures_seconds.csv", ("step", "seconds"), list(seconds.items())),
    ]


def main() -> None:
    """Run at the size that the options say."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--device", default="cpu")
    options.add_argument("--rows", type=int, default=50_000)
    options.add_argument("--classes", type=int, default=1000)
    options.add_argument("--steps", type=int, default=3000, help="training steps of 1024 pictures")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--out", type=Path, default=Path("calipers-pictures"))
    given = options.parse_args()
    world = PictureWorld(n_classes=given.classes)
    outputs, seconds = picture_outputs(
        residual_network(given.classes),
        world,
        given.rows,
        given.out / "pictures",
        device=given.device,
        steps=given.steps,
        jobs=given.jobs,
    )
    stored: dict[str, Any] = {"labels": outputs.labels, "ranks": outputs.ranks, **outputs.ease}
    write_atomically(given.out / "pictures.npz", lambda file: np.savez_compressed(file, **stored))
    print(f"accuracy {outputs.accuracy:.3f}", seconds, flush=True)
    start = time.perf_counter()
    rows = picture_rows(outputs, jobs=given.jobs)
    seconds["six methods, tuned"] = time.perf_counter() - start
    for path in write_pictures_table(rows, seconds, given.out):
        print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
