"""Names and parameters that callers rely on: in their places, with their defaults; options may be added."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

# As in a stub, room by room; what is required here may become optional.
CONTRACT = """
# calipers.results
Estimate(
    *, name, value, std_error, low, high, confidence, n, p_value, alternative, null_low, null_high,
    null_level, method, reason, details
)
# calipers.conformal
conformal_rank(n, alpha)
conformal_quantile(scores, alpha)
conformal_interval(values, alpha)
conformal_p_values(
    calibration_scores, test_scores, *, calibration_labels=None, calibration_groups=None,
    test_groups=None, smoothed=False, tau=None, random_state=None
)
lac(P)
aps(P, u=None)
raps(P, u=None, *, penalty=0.01, k_reg=1)
saps(P, u=None, *, weight=0.2)
margin(P)
top_k(P, u=None)
ConformalClassifier(
    estimator=None, *, nonconformity="lac", label_conditional=False, groups=None,
    calibration_size=None, smoothed=False, randomized=False, random_state=None
)
ConformalClassifier.fit(self, X, y)
ConformalClassifier.conformalize(self, X, y, groups=None)
ConformalClassifier.predict(self, X)
ConformalClassifier.predict_p(self, X, groups=None)
ConformalClassifier.predict_set(self, X, alpha=0.1, groups=None)
ConformalClassifier.predict_labels(self, X, alpha=0.1, groups=None)
ConformalClassifier.predict_confidence(self, X, groups=None)
ConformalRegressor(
    estimator=None, *, nonconformity="absolute", alpha=0.1, groups=None, guarantee="marginal",
    delta=0.05, calibration_size=None, random_state=None
)
ConformalRegressor.fit(self, X, y)
ConformalRegressor.conformalize(self, X, y)
ConformalRegressor.predict(self, X)
ConformalRegressor.predict_interval(self, X, alpha=None)
TransductiveKNNClassifier(
    *, measure="ratio", n_neighbors=1, metric="euclidean", label_conditional=False, smoothed=False,
    random_state=None
)
TransductiveKNNClassifier.fit(self, X, y)
TransductiveKNNClassifier.predict(self, X)
TransductiveKNNClassifier.predict_p(self, X)
TransductiveKNNClassifier.predict_set(self, X, alpha=0.1)
# calipers.conformal.idealised
conformity(Q, kind)
criterion_value(Q, A, name, *, alpha=None, label_conditional=False)
is_optimal(Q, A, name, *, label_conditional=False)
# calipers.difficulty
ease(
    predict, X, *, transform="gaussian", scale=0.1, n_transforms=10, similarity="cosine",
    random_state=None
)
DifficultyBins(
    *, n_bins, transform="gaussian", scale=0.1, n_transforms=10, similarity="cosine",
    random_state=None
)
DifficultyBins.fit(self, X, predict)
DifficultyBins.assign(self, X)
# calipers.metrics
coverage(
    y_true, prediction, *, alpha=None, n_calibration=None, sample_weight=None, classes=None,
    confidence=0.95
)
efficiency(y_true, p_values, *, alpha=0.1, classes=None)
ert(
    X, covered, *, alpha, loss="l1", side="both", classifier=None, cv=5, null="target",
    random_state=None, n_calibration=None, sample_weight=None, cluster=None
)
ert_table(
    X, covered, *, alpha, losses=("l1", "l2", "kl"), n_calibration=None, sample_weight=None,
    cluster=None
)
worst_slab_coverage(
    X, covered, *, alpha=None, min_mass=0.1, n_directions=1000, random_state=None,
    n_calibration=None, sample_weight=None, cluster=None
)
coverage_gap(
    covered, groups, *, alpha, weighted=False, n_calibration=None, sample_weight=None, cluster=None
)
failing_regions(X, covered, *, alpha, n_calibration=None, sample_weight=None, cluster=None)
feature_stratified_coverage(
    covered, feature, *, alpha=None, n_calibration=None, sample_weight=None, cluster=None
)
size_stratified_coverage(
    covered, size, *, alpha=None, n_calibration=None, sample_weight=None, cluster=None
)
t_cv(covered, ease, *, alpha, n_bins=50, n_calibration=None, sample_weight=None, cluster=None)
t_ss(ranks, size, ease, *, n_bins=50)
sscv(covered, size, *, alpha, n_calibration=None, sample_weight=None, cluster=None)
escv(covered, size, *, alpha, n_calibration=None, sample_weight=None, cluster=None)
deficit(ranks, size)
excess(ranks, size)
rank_cv(covered, ranks, *, alpha, sample_weight=None)
rank_ss(ranks, size)
difficulty_concordance(ranks, size, *, group_size=100, n_draws=10000, random_state=None)
true_rank(y_true, probabilities, *, classes=None)
calibration_error(
    y_true, probabilities, *, pos_label=None, multiclass="top_label", sample_weight=None,
    confidence=0.95, random_state=None
)
multicalibration_error(
    y_true, probabilities, groups, *, depth=2, pos_label=None, classes=None, sample_weight=None,
    random_state=None
)
change_over_time(covered, time, *, alpha, null="flat", n_calibration=None, random_state=None)
selective_risk(loss, certainty, *, confidence=0.95, loss_range=(0, 1))
selective_threshold(loss, certainty, *, risk, delta=0.05)
pit_uniformity(pit, *, confidence=0.95)
quantile_calibration(y_true, quantiles, *, levels, n_calibration=None)
crps(y_true, quantiles, *, levels, sample_weight=None)
# calipers.calibration
LinkCalibrator(family="platt", objective="likelihood")
bayes_decision(probabilities, *, false_positive_cost, false_negative_cost)
loss_ratio(y_true, before, after, *, false_positive_cost, false_negative_cost)
IsotonicCalibrator()
CalibrationConstrainedClassifier(loss="hinge")
IsotronClassifier()
# calipers.performance
CandidatePerformance(
    estimator, *, loss, alpha=0.1, calibration_size=0.5, points_per_loss=1, random_state=None
)
CandidatePerformance.interval(self, alpha=None)
CandidatePerformance.upper_bound(self, alpha=None)
AlgorithmPerformance(
    estimator, *, loss, alpha=0.1, n_points=None, train_size=None, modulation=None, learner=None,
    features=None, points_per_loss=1, n_jobs=None, random_state=None
)
SymbolicPerformance(estimator, *, outcome, alpha=0.1, n_points=None)
SymbolicPerformance.predict_set(self, X, y)
PromiseMonitor(*, alpha=None, false_alarm_rate=0.05, side="under", n_calibration=None)
PromiseMonitor.update(self, covered, promised=None)
PromiseMonitor.curve(self)
PromiseMonitor.result(self)
LabelFreePerformance(*, loss="zero_one", confidence=0.95, random_state=None)
LabelFreePerformance.fit(self, probabilities, y, X=None)
LabelFreePerformance.estimate(self, probabilities, X=None)
# calipers.auditing
rows_needed(
    *, check="coverage", effect, alpha=0.1, share=1.0, power=0.8, level=0.05, n_calibration=None
)
load_repair(path)
# calipers
audit_model(model, X, y, *, alpha=0.1)
audit(
    y_true=None, *, source=None, engine=None, probabilities=None, p_values=None, sets=None,
    intervals=None, X=None, groups=None, ease=None, covered=None, size=None, promised=None,
    loss=None, bound=None, loss_range=(0, 1), quantiles=None, quantile_levels=None, pit=None,
    time=None, cluster=None, alpha=0.1, n_calibration=None, classes=None, sample_weight=None,
    random_state=None
)
compare(audits)
# calipers.integrations
audit_model(model, X, y)
"""


def promised():
    room = ""
    for line in re.split(r"\n(?=\S)", CONTRACT.replace("(\n    ", "(").replace("\n)", ")").strip()):
        if line.startswith("#"):
            room = line[2:]
        else:
            yield room, *re.fullmatch(r"([\w.]+)\((.*)\)", " ".join(line.split())).groups()


PROMISED = list(promised())


def signature_of(arguments):
    names: dict[str, object] = {}
    exec(f"def stated({arguments}): ...", names)  # noqa: S102 - the text above
    return inspect.signature(names["stated"])


@pytest.mark.parametrize(("room", "name", "arguments"), PROMISED, ids=[f"{r}.{n}" for r, n, _ in PROMISED])
def test_a_public_name_takes_what_was_promised(room, name, arguments):
    found = importlib.import_module(room)
    for part in name.split("."):
        found = getattr(found, part)
    ours, stated = inspect.signature(found).parameters, signature_of(arguments).parameters
    for key, parameter in stated.items():
        assert ours[key].kind == parameter.kind, key
        if parameter.default is not parameter.empty:
            assert ours[key].default == parameter.default, key
    by_place = [[p.name for p in s.values() if p.kind == p.POSITIONAL_OR_KEYWORD] for s in (ours, stated)]
    assert by_place[0][: len(by_place[1])] == by_place[1]
    added = [
        p for key, p in ours.items() if key not in stated and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    assert [p.name for p in added if p.default is p.empty] == []


def test_the_whole_contract_is_read():
    assert len(PROMISED) == len({(room, name) for room, name, _ in PROMISED}) == 88
