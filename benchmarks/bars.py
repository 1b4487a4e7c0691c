"""Every promise of the project, with the figure of a stored run and whether it is kept.

A bar that is about speed, memory or accuracy is read off the measurements. One that is about error rates over
many simulated data sets is held by a test, which the test suite runs: the table names it. A bar that a run
did not measure says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.readers import (
    Read,
    Reading,
    accuracy,
    all_kinds,
    answers_right,
    beyond,
    bytes_per_row,
    certificate,
    clock_below,
    clock_within_limit,
    descent,
    faster_than,
    gpu_chain,
    gpu_job,
    held_by,
    large_file_memory,
    large_file_scans,
    league_clean,
    memory_below,
    null_band,
    p_value_memory,
    risk_time,
    same_as,
    small_install,
    study_memory,
    times_faster,
    within_limit,
)
from benchmarks.store import Run


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise: the room it belongs to, its words, and how it is read off a run."""

    room: str
    promise: str
    read: Read


KINDS = ["near 0", "near 0 and 1", "crowded", "three decimals", "one decimal", "constant", "sorted"]
ERROR_TASKS = [f"calibration error of {kind} scores" for kind in ["spread", *KINDS]]
SPREAD = "calibration error of spread scores"
GROUND, PREDICTORS, CONDITIONAL = "ground floor", "conformal predictors", "conditional coverage"
ADAPTIVITY, CALIBRATION, PERFORMANCE = "adaptivity", "calibration", "performance prediction"
AUDIT, SCALE = "audit", "GPU and scale"
LARGE_SUMS = "files of 1e8 rows: single-pass sums within 2x of a bare scan"
LARGE_PASSES = "files of 1e8 rows: metrics of k passes within 2k bare scans"

BARS = [
    Bar(GROUND, "`import calipers` at most 0.2 s beyond numpy", beyond("import", 0.2)),
    Bar(GROUND, "`calipers --help` under 0.5 s beyond interpreter start", beyond("command line help", 0.5)),
    Bar(GROUND, "light install: no deep learning, no boosting library", small_install),
    Bar(
        GROUND,
        "ranks exact for n up to 2000 and every thousandth",
        held_by("unit/conformal/test_ranks.py"),
    ),
    Bar(
        PREDICTORS, "p-values within 1.5x of sort and search", within_limit("p-values, smoothed", 1.5, 10_000)
    ),
    Bar(
        PREDICTORS,
        "p-values 50x faster than crepes",
        times_faster("p-values, smoothed", "crepes", 50, 10_000),
    ),
    Bar(
        PREDICTORS,
        "label-conditional p-values 200x faster than crepes",
        times_faster("p-values, label-conditional", "crepes", 200, 10_000),
    ),
    Bar(PREDICTORS, "memory of p-values below 3x the output", p_value_memory),
    *(
        Bar(
            PREDICTORS,
            f"{score.upper()} sets, 20 000 x 100, three levels, 5x faster than MAPIE",
            times_faster(f"sets at three levels, {score}", "mapie", 5, 20_000),
        )
        for score in ("lac", "aps", "raps")
    ),
    *(
        Bar(
            PREDICTORS,
            f"{score.upper()} sets, 20 000 + 20 000 x 1000, 2x faster than TorchCP",
            times_faster(f"sets of 1000 labels, {score}", "torchcp", 2, 20_000),
        )
        for score in ("aps", "raps", "saps")
    ),
    *(
        Bar(
            PREDICTORS,
            f"full kNN, K = {k}, n = 1000: 100x faster than online-cp",
            times_faster(f"full kNN, K = {k}", "online-cp", 100, 1000),
        )
        for k in (1, 5)
    ),
    Bar(PREDICTORS, "full kNN: p-values identical to online-cp's", same_as("full kNN, K = 1", "online-cp")),
    Bar(PREDICTORS, "USPS study under 15 minutes and 6 GB", study_memory),
    Bar(
        PREDICTORS,
        "coverage follows the beta-binomial law; p-values of true labels uniform",
        held_by(
            "statistical/test_conformal_promises.py",
            "test_marginal_coverage_follows_the_beta_binomial_law",
            "test_smoothed_p_values_of_true_labels_are_uniform_over_calibration_draws",
        ),
    ),
    Bar(CONDITIONAL, "recovers at least what covmetrics does, spread no larger", accuracy),
    Bar(CONDITIONAL, "at most a fifth of covmetrics' CPU time", risk_time),
    Bar(
        CONDITIONAL,
        "interval holds in 93 %, tests reject their null in 7 % at most, power 95 %",
        held_by(
            "statistical/test_ert_promises.py",
            "test_the_interval_holds_the_mean_excess_risk_of_the_fitted_classifiers",
            "test_the_default_keeps_its_level_and_its_power_in_500_runs",
        ),
    ),
    Bar(
        CONDITIONAL,
        "worst slab 100x faster than covmetrics",
        times_faster("worst slab", "covmetrics", 100, 10_000),
    ),
    Bar(CONDITIONAL, "worst slab under 200 MB", memory_below("worst slab", 200, 10_000)),
    Bar("all rooms", "our answers are the exact ones in every task that has them", answers_right),
    Bar("all rooms", "right in every trap of the field", league_clean),
    Bar(ADAPTIVITY, "null band of T-CV: median 0.0375 +- 0.001, 95 % point 0.050 +- 0.002", null_band),
    Bar(
        ADAPTIVITY,
        "T-CV p-values valid, a Mondrian predictor not accused",
        held_by(
            "statistical/test_adaptivity_promises.py",
            "test_t_cv_p_values_are_valid_and_randomised_ones_uniform",
            "test_a_mondrian_predictor_is_not_accused",
        ),
    ),
    Bar(ADAPTIVITY, "chain of 40 000 x 1000 x 10 on a GPU 20x faster than TorchCP on the CPU", gpu_chain),
    Bar(CALIBRATION, "c_emp of 1e7 friendly scores in 0.35 of an argsort", within_limit(SPREAD, 0.35, 10**7)),
    Bar(CALIBRATION, "c_emp of 1e7 scores of any kind in 1.2 of an argsort", all_kinds(KINDS, 1.2, 10**7)),
    Bar(CALIBRATION, "at most 30 bytes per row", bytes_per_row(ERROR_TASKS, 30, 10**7)),
    Bar(
        CALIBRATION,
        "faster than netcal's ECE and the ECCE of MCGrad and probcal",
        faster_than(SPREAD, ["netcal", "mcgrad", "probcal"], 10**7),
    ),
    Bar(CALIBRATION, "bound 10x tighter than Theorem 2 (Massart), 7x (exact complexity)", certificate),
    Bar(
        CALIBRATION,
        "bound covers in 95 %, test size 0.03 to 0.07",
        held_by(
            "statistical/test_reliability_promises.py",
            "test_bounds_hold_as_often_as_they_say",
            "test_the_test_of_calibration_keeps_its_size_with_rows_sorted_by_label",
        ),
    ),
    Bar(
        CALIBRATION,
        "isotonic fit of 1e6 rows 2x faster than scikit-learn",
        times_faster("isotonic fit, distinct scores", "scikit-learn", 2, 10**6),
    ),
    Bar(
        CALIBRATION,
        "isotonic values identical to scikit-learn's",
        same_as("isotonic fit, distinct scores", "scikit-learn"),
    ),
    Bar(
        CALIBRATION,
        "ADULT: logistic regression left alone, SVM and boosting repaired",
        held_by(
            "statistical/test_repair_on_adult.py",
            "test_logistic_regression_on_adult_is_left_alone_and_margin_methods_are_repaired",
        ),
    ),
    Bar(
        PERFORMANCE,
        "1000 fits of 20 ms on two warm workers cost under 1.05 of the bare fits",
        clock_within_limit("performance: 20 ms fits on two warm workers", 1.05, 1000),
    ),
    Bar(PERFORMANCE, "1000 trials x 1000 models in minutes", descent),
    Bar(
        PERFORMANCE,
        "all six forms cover as stated",
        held_by(
            "statistical/test_performance_promises.py",
            "test_candidate_bounds_cover_exactly_their_rank",
            "test_free_algorithm_intervals_cover_a_retrained_model",
            "test_symbolic_sets_cover_the_outcome_of_a_retrained_model",
        ),
    ),
    Bar(AUDIT, "100 000 x 20 x 10, six questions, under 30 s", clock_below("audit", 30, 100_000)),
    Bar(AUDIT, "a million rows under 3 minutes", clock_below("audit", 180, 1_000_000)),
    Bar(AUDIT, "a million rows under 4 GB", memory_below("audit", 4e9 / 2**20, 1_000_000)),
    Bar(
        AUDIT,
        "at most 16 of 200 clean audits raise an issue; planted faults found in 95 %",
        held_by(
            "statistical/test_audit_promises.py",
            "test_at_most_16_of_200_healthy_audits_raise_an_issue",
            "test_a_planted_fault_is_found_in_95_of_100_audits",
        ),
    ),
    Bar(SCALE, LARGE_SUMS, large_file_scans(single=True)),
    Bar(SCALE, LARGE_PASSES, large_file_scans(single=False)),
    Bar(SCALE, "files of 1e8 rows: every metric and the audit under 2 GB", large_file_memory),
    *(
        Bar(SCALE, f"GPU, {job}: 50x two cores and within 2x of the bare primitives", gpu_job(job))
        for job in ("p-values", "APS sets", "RAPS sets", "SAPS sets", "calibration error")
    ),
]


def readings(run: Run) -> list[tuple[Bar, Reading]]:
    """Every bar with its figure."""
    return [(bar, bar.read(run)) for bar in BARS]
