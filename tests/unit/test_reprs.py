"""Every public object says in one short line what it is, however much it holds."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge

import calipers
from calipers import (
    arrays,
    auditing,
    conformal,
    datasets,
    displays,
    engines,
    inference,
    integrations,
    metrics,
    performance,
    results,
)
from calipers.auditing.history import Run
from calipers.inputs import Weights, check_features
from calipers.results import Curve, Estimate, EstimateTable, Finding, RankComparison

LONGEST = 300
RNG = np.random.default_rng(0)
V = RNG.normal(size=400)
WORDS = {"description": "text " * 100, "source": "somewhere", "licence": "CC0"}


@cache
def audit() -> auditing.Audit:
    P = RNG.dirichlet(np.ones(3), size=300)
    return calipers.audit(np.argmax(P, axis=1), probabilities=P, random_state=0)


def history_run() -> Run:
    document = json.loads(audit().to_json())
    return Run(datetime(2026, 1, 1, tzinfo=UTC), "20260101.json", document)


def estimate() -> Estimate:
    return Estimate(name="coverage", value=0.9, low=0.88, high=0.92, details={"rows": np.zeros(1000)})


def ranking() -> RankComparison:
    return inference.compare_ranks(RNG.normal(size=(12, 3)), ["a", "b", "c"])


# Class -> how to make one that is as large as in real work.
CELL = results.PromiseCell(promise="coverage of the sets", slice="groups", answer="broken", value=0.8)


def display(name: str) -> Any:
    """A display of a curve of many points."""
    curve = results.Curve(name="coverage", x=V, y=V)
    return getattr(displays, name)(curve, {"title": "Coverage", "kind": "line"})


EXAMPLES: dict[str, Callable[[], Any]] = {
    "arrays.SortedColumn": lambda: arrays.SortedColumn(np.sort(V)),
    "auditing.Audit": audit,
    "auditing.AuditHistory": lambda: auditing.AuditHistory([history_run()] * 50, {}),
    "auditing.Comparison": lambda: calipers.compare({"a": audit(), "b": audit()}),
    "auditing.Picture": lambda: audit().pictures[0],
    "auditing.QuestionPlan": lambda: audit().plan[0],
    "auditing.Repair": lambda: audit().repair(),
    "auditing.SavedRepair": lambda: auditing.SavedRepair(rule=audit().repair().rule),
    "conformal.TunedPredictor": lambda: conformal.TunedPredictor("lac", Ridge(), {"size": 1.25}),
    "datasets.BetaScores": datasets.BetaScores,
    "datasets.ClassSample": lambda: datasets.MixtureWorld().sample(300, random_state=0),
    "datasets.CoverageSample": lambda: datasets.InteractionWorld().sample(300, random_state=0),
    "datasets.Dataset": datasets.load_demo_classification,
    "datasets.GroupWorld": datasets.GroupWorld,
    "datasets.HeavyTailedWorld": datasets.HeavyTailedWorld,
    "datasets.HeteroscedasticWorld": datasets.HeteroscedasticWorld,
    "datasets.InteractionWorld": datasets.InteractionWorld,
    "datasets.LevelScores": lambda: datasets.LevelScores((0.2, 0.8)),
    "datasets.MixtureWorld": datasets.MixtureWorld,
    "datasets.ModelOutputs": lambda: datasets.ModelOutputs(
        name="cifar10", labels=np.zeros(300, dtype=int), probabilities={"net": np.full((300, 10), 0.1)}, **WORDS
    ),
    "datasets.NoisyLabels": lambda: datasets.NoisyLabels(
        name="noisy", clean=np.zeros(300, dtype=int), noisy={"worst": np.zeros(300, dtype=int)}, **WORDS
    ),
    "datasets.RegressionSample": lambda: datasets.HeteroscedasticWorld().sample(300, random_state=0),
    "datasets.RegressionSet": lambda: datasets.RegressionSet("a.csv", "y", 300, 8, "somewhere", "CC0"),
    "datasets.ScoreSample": lambda: datasets.ScoreWorld().sample(300, random_state=0),
    "datasets.ScoreWorld": datasets.ScoreWorld,
    "displays.CoverageDisplay": lambda: display("CoverageDisplay"),
    "displays.DifficultyDisplay": lambda: display("DifficultyDisplay"),
    "displays.ReliabilityDisplay": lambda: display("ReliabilityDisplay"),
    "displays.TimeDisplay": lambda: display("TimeDisplay"),
    "engines.ArraySource": lambda: engines.ArraySource({"y_true": V, "intervals": np.zeros((400, 2))}),
    "engines.Rows": lambda: engines.Rows({"y_true": V, "intervals": np.zeros((400, 2))}),
    "engines.ConformalScores": lambda: engines.ConformalScores(np.sort(V)),
    "engines.FileSource": lambda: engines.FileSource("rows.parquet"),
    "engines.RunPlan": lambda: engines.plan_run(1e9, row_bytes=40.0, state_bytes=2000.0, passes=3),
    "engines.State": lambda: engines.state_of("coverage"),
    "inference.State": lambda: engines.state_of("coverage"),
    "inference.BootstrapResult": lambda: inference.BootstrapResult(0.5, 0.1, 0.3, 0.7, 0.95, 2000),
    "inference.CalibrationLaw": lambda: inference.CalibrationLaw(99, 90),
    "inference.CoverageLaw": lambda: inference.CoverageLaw(400, 0.1, 99, 90),
    "inference.ExactLaw": lambda: inference.ExactLaw(np.arange(300.0), np.full(300, 1 / 300)),
    "inference.Interval": lambda: inference.Interval(0.1, 0.2),
    "inference.LogisticFit": lambda: inference.fit_logistic(np.ones((400, 1)), (V > 0).astype(float)),
    "inference.Moments": inference.Moments,
    "inference.MonteCarloP": lambda: inference.MonteCarloP(0.03, 999, 29, 0.005, 0.02, 0.04, 0.95),
    "inference.NullLaw": lambda: inference.SimulatedLaw(V),
    "inference.PermutationResult": lambda: inference.PermutationResult(
        0.5, inference.SimulatedLaw(V), "greater"
    ),
    "inference.PoissonBinomialLaw": lambda: inference.PoissonBinomialLaw.of(np.linspace(0, 1, 400)),
    "inference.PoissonSums": lambda: inference.PoissonSums(1.0, 2.0, np.zeros(1000), np.zeros(1000)),
    "inference.RowCorrelation": lambda: inference.RowCorrelation.of(V, V**2),
    "inference.ShareCounts": lambda: inference.ShareCounts(V, V, V, V),
    "inputs.Weights": lambda: Weights.check(V**2, 400),
    "inference.SimulatedLaw": lambda: inference.SimulatedLaw(V),
    "inference.SymmetryTest": lambda: inference.symmetry_test(inference.Moments(9.0, 0.2, 1.5)),
    "inference.ViolationLaw": lambda: inference.ViolationLaw([inference.CoverageLaw(40, 0.1)] * 50, 0.9),
    "engines.ResumableEngine": lambda: engines.ResumableEngine("work"),
    "inputs.Features": lambda: check_features(np.zeros((300, 40))),
    "integrations.CalipersEvaluator": integrations.CalipersEvaluator,
    "integrations.SkoreCheck": lambda: integrations.skore_checks()[0],
    "metrics.MetricEntry": lambda: metrics.metric_entry("coverage"),
    "performance.AlgorithmComparison": lambda: performance.AlgorithmComparison(
        {name: performance.LossForecast(np.abs(V)) for name in "abc"}, train_size=100
    ),
    "performance.ConfusionOutcome": performance.ConfusionOutcome,
    "performance.GroupMonitor": lambda: performance.GroupMonitor(alpha=0.1).update(V < 1.0, np.arange(400) % 9),
    "performance.Guarantee": lambda: performance.LossForecast(np.abs(V)).guarantee(),
    "performance.LogLoss": performance.LogLoss,
    "performance.LossForecast": lambda: performance.LossForecast(np.abs(V)),
    "performance.LossMonitor": lambda: performance.LossMonitor(np.abs(V), random_state=0).update([3.0, 4.0]),
    "performance.PinballLoss": performance.PinballLoss,
    "performance.PromiseMonitor": lambda: performance.PromiseMonitor(alpha=0.1).update(V < 1.0),
    "performance.RiskMonitor": lambda: performance.RiskMonitor(bound=0.1).update(V < -1.0),
    "results.PromiseCell": lambda: CELL,
    "results.PromiseTable": lambda: results.PromiseTable([CELL] * 50),
    "results.Curve": lambda: Curve(name="c", x=np.arange(500.0), y=np.arange(500.0)),
    "results.Estimate": estimate,
    "results.EstimateTable": lambda: EstimateTable([estimate()]),
    "results.Finding": lambda: audit().findings[0],
    "results.RankComparison": ranking,
    "scorers.calibration_scorer": calipers.scorers.calibration_scorer,
    "scorers.coverage_scorer": calipers.scorers.coverage_scorer,
    "scorers.size_scorer": calipers.scorers.size_scorer,
}  # fmt: skip
ARGUMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "performance.AlgorithmPerformance": (LogisticRegression(), {"loss": "zero_one"}),
    "performance.CandidatePerformance": (LogisticRegression(), {"loss": "zero_one"}),
    "performance.SymbolicPerformance": (LogisticRegression(), {"outcome": "correct"}),
    "auditing.RepairedClassifier": (LogisticRegression(), {"repair": None}),
    "auditing.RepairedRegressor": (Ridge(), {"repair": None}),
    "conformal.AdaptiveConformal": (conformal.ConformalRegressor(), {}),
}


def public_classes() -> dict[str, type]:
    found = {}
    for room in (*calipers.__all__, *calipers._INTERNAL):
        module = getattr(calipers, room)
        for name in getattr(module, "__all__", []) if inspect.ismodule(module) else []:
            thing = getattr(module, name)
            ours = inspect.isclass(thing) and thing.__module__.startswith("calipers")
            if ours and not issubclass(thing, BaseException) and not getattr(thing, "_is_protocol", False):
                found[f"{room}.{name}"] = thing
    return found


CLASSES = public_classes()


def made(name: str) -> Any:
    if name in EXAMPLES:
        return EXAMPLES[name]()
    first, options = ARGUMENTS.get(name, (None, {}))
    needs = name in ARGUMENTS or name == "difficulty.DifficultyBins"
    options = {"n_bins": 20} if name == "difficulty.DifficultyBins" else options
    return CLASSES[name](*([first] if first is not None else []), **options) if needs else CLASSES[name]()


def test_every_public_class_has_an_example_here():
    without = {name for name, thing in CLASSES.items() if not issubclass(thing, BaseEstimator)} - set(
        EXAMPLES
    )
    assert not without
    assert set(EXAMPLES) <= set(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_the_repr_is_one_short_line_that_says_what_it_is(name):
    thing = made(name)
    assert isinstance(thing, CLASSES[name])
    text = repr(thing)
    assert "\n" not in text
    assert len(text) <= LONGEST, text
    assert "object at 0x" not in text
    assert "array(" not in text


def test_an_estimate_shows_its_numbers_and_leaves_out_what_it_does_not_have():
    assert repr(estimate()) == "Estimate(name='coverage', value=0.9, low=0.88, high=0.92)"


def test_a_finding_shows_its_code_severity_and_sentence():
    finding = Finding(
        code="CAL101", title="under-coverage", question="coverage", outcome="fault", severity="issue"
    )
    assert repr(finding).startswith("Finding(code='CAL101', title='under-coverage'")
    assert "severity='issue'" in repr(finding)
