"""Section 4.1: linear against RBF support vector machines on the digits, logistic loss.

scikit-learn's own probabilities of an SVC are deprecated. The candidate part wraps the machine in sigmoid
calibration (three-fold); its samples of 673 rows hold every class. The modulated part trains on 12 rows,
too few for that: a softmax of the decision values, and a stated probability for classes that are absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.progress import Progress
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from calipers.performance import AlgorithmPerformance, LogLoss
from studies.performance.trials import ALPHA, SEED, TrialTable, run_trials, summarise

KERNELS = {"SVM-lin": "linear", "SVM-rbf": "rbf"}
SHARE = 0.75
POINTS = 50
# Probability of a digit that the 12 training rows do not hold: a tenth shared by those absent, roughly.
ABSENT = 0.01
# Other choices, to show what depends on it.
FLOORS = (0.1, 0.001)


class SoftmaxSVC(SVC):
    """Support vector machine with probabilities by a softmax of its decision values."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes in training, (n, classes)."""
        decision = self.decision_function(X)
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision]) / 2
        return np.asarray(softmax(decision, axis=1))


def digit_features(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The paper's 14 features: two symmetries, mean, spread of the pixels in [0, 1], and the label one-hot.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from studies.performance.digits import digit_features
    >>> digits = load_digits()
    >>> digit_features(digits.data[:3], digits.target[:3]).shape
    (3, 14)
    """
    images = np.asarray(X, dtype=float).reshape(-1, 8, 8) / 16.0
    vertical = -np.abs(images - images[:, ::-1, :]).mean(axis=(1, 2))
    horizontal = -np.abs(images - images[:, :, ::-1]).mean(axis=(1, 2))
    pixels = images.reshape(len(images), -1)
    label = np.asarray(y)[:, None] == np.arange(10)
    return np.column_stack([vertical, horizontal, pixels.mean(axis=1), pixels.std(axis=1), label])


def candidate_tables(trials: int, folder: Path, progress: Progress) -> list[TrialTable]:
    """Candidate forecasts: one split, one fit per method and trial."""
    X, y = load_digits(return_X_y=True)
    half = int(SHARE * len(y)) // 2
    n_test = len(y) - 2 * half

    def block(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        parts = [_candidate_trial(X, y, half, rng) for _ in range(count)]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    arrays = run_trials(block, trials, 10, name="digits", folder=folder, progress=progress)
    fields = ("low", "high", "mean_loss", "new_covered", "coverage")
    return [
        TrialTable(
            name=name, n_losses=half, n_test=n_test, **{field: arrays[f"{name}_{field}"] for field in fields}
        )
        for name in KERNELS
    ]


def _candidate_trial(
    X: np.ndarray, y: np.ndarray, half: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    order = rng.permutation(len(y))
    train, rest = order[:half], order[half:]
    chosen = rng.integers(rest.size - half, size=1)
    found: dict[str, np.ndarray] = {}
    for name, kernel in KERNELS.items():
        machine = SVC(kernel=kernel, random_state=0)  # draws nothing, but would ask the global generator
        model = CalibratedClassifierCV(machine, cv=3, ensemble=False).fit(X[train], y[train])
        losses = LogLoss()(model, X[rest], y[rest])[None, :]
        summary = summarise(losses[:, :half], losses[:, half:], chosen)
        found |= {f"{name}_{key}": value for key, value in summary.items()}
    return found


@dataclass(frozen=True, eq=False)
class ModulatedTrial:
    """One trial of the variable-width forecast: the test cases, their intervals and realised losses.

    Parameters
    ----------
    images, labels : arrays (t, 8, 8) and (t,)
        Test cases.
    intervals : dict of arrays (t, 2)
        Per method, the forecast of the loss on each case.
    losses : dict of arrays (t,)
        Per method, the loss after training on a fresh sample of the same size from the test rows.
    train_size, points : int
        Rows per fit, calibration points.
    floor : float
        The probability counted for a digit that the training rows do not hold.
    """

    images: np.ndarray
    labels: np.ndarray
    intervals: dict[str, np.ndarray]
    losses: dict[str, np.ndarray]
    train_size: int
    points: int
    floor: float

    @property
    def cap(self) -> float:
        """The loss of an absent digit, -ln of the floor: no loss and no upper end is larger."""
        return float(-np.log(self.floor))


class FloorReading(NamedTuple):
    """What the chosen floor does to the forecasts of one method."""

    floor: float
    method: str
    cap: float
    covered: float
    median_upper: float
    upper_at_cap: float
    losses_at_cap: float


def floor_readings(trial: ModulatedTrial) -> list[FloorReading]:
    """Coverage, and how many upper ends and realised losses sit at the loss of an absent digit."""
    readings = []
    for name, ends in trial.intervals.items():
        losses = trial.losses[name]
        covered = float(np.mean((losses >= ends[:, 0]) & (losses <= ends[:, 1])))
        at_cap = [float(np.mean(values >= trial.cap - 1e-9)) for values in (ends[:, 1], losses)]
        median = float(np.median(ends[:, 1]))
        readings.append(FloorReading(trial.floor, name, trial.cap, covered, median, at_cap[0], at_cap[1]))
    return readings


def modulated_trial(cases: int, folder: Path, progress: Progress, floor: float = ABSENT) -> ModulatedTrial:
    """The single modulated trial of section 4.1, with every method forecast for many test cases."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng([SEED, 41])
    order = rng.permutation(len(y))
    known, test = order[: int(SHARE * len(y))], order[int(SHARE * len(y)) :]
    seed, loss = int(rng.integers(2**31 - 1)), LogLoss(floor=floor)
    shown = test[:cases]
    task = progress.add_task(f"digits, modulated, floor {floor:g}", total=len(KERNELS))
    intervals, losses, train_size = {}, {}, 0
    for name, kernel in KERNELS.items():
        forecast = AlgorithmPerformance(
            SoftmaxSVC(kernel=kernel),
            loss=loss,
            alpha=ALPHA,
            n_points=POINTS,
            modulation="quantile",
            features=digit_features,
            cache=folder,
            random_state=seed,
        ).fit(X[known], y[known])
        train_size = forecast.train_size_
        intervals[name] = forecast.predict_interval(X[shown], y[shown])
        fresh = np.random.default_rng([SEED, 42])
        losses[name] = np.array(
            [
                _fresh_loss(SoftmaxSVC(kernel=kernel, random_state=0), loss, X, y, test, j, train_size, fresh)
                for j in shown
            ]
        )
        progress.advance(task)
    images = X[shown].reshape(-1, 8, 8)
    return ModulatedTrial(images, y[shown], intervals, losses, train_size, POINTS, floor)


def _fresh_loss(
    model: SoftmaxSVC,
    loss: LogLoss,
    X: np.ndarray,
    y: np.ndarray,
    test: np.ndarray,
    case: int,
    train_size: int,
    rng: np.random.Generator,
) -> float:
    """Loss on one test case after training on other test rows."""
    sample = rng.choice(test[test != case], train_size, replace=False)
    model.fit(X[sample], y[sample])
    return float(loss(model, X[[case]], y[[case]])[0])
