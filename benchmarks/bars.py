"""Every promise of the project, with the figure of a stored run and whether it is kept.

A bar that is about speed, memory or accuracy is read off the measurements. One that is about error rates over
many simulated data sets is held by a test, which the test suite runs: the table names it. A bar that a run
did not measure says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import store
from benchmarks.environments import ROOT
from benchmarks.league import not_right
from benchmarks.store import Run
from benchmarks.summary import number, of_limit, ratio, seconds, shown

GPU = store.HISTORY / "gpu.json"


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure, and whether it keeps the promise; None where the run has no figure."""

    figure: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise: the room it belongs to, its words, and how it is read off a run."""

    room: str
    promise: str
    read: Callable[[Run], Reading]


NOT_MEASURED = Reading("not measured in this run", None)


# --- ways to read a bar -------------------------------------------------------------------------------


def times_faster(task: str, library: str, least: float, size: int | None = None) -> Callable[[Run], Reading]:
    """A peer takes at least so many times our CPU seconds."""

    def read(run: Run) -> Reading:
        ours, theirs = run.of(task, "ours", size), run.of(task, library, size)
        if ours is None or theirs is None:
            return NOT_MEASURED
        if theirs["problem"]:
            return Reading(f"{library}: {theirs['problem'][:60]}", None)
        found = ratio(theirs["cpu"], ours["cpu"])
        return Reading(
            f"{found:.3g}x ({seconds(theirs['cpu'])} against {seconds(ours['cpu'])})", found >= least
        )

    return read


def within_limit(task: str, most: float, size: int | None = None) -> Callable[[Run], Reading]:
    """We take at most so many times the bare work."""

    def read(run: Run) -> Reading:
        found = of_limit(run, task, size)
        return NOT_MEASURED if math.isnan(found) else Reading(f"{found:.2f}x the bare work", found <= most)

    return read


def clock_within_limit(task: str, most: float) -> Callable[[Run], Reading]:
    """The same by the clock, for work that other processes do: their CPU seconds are not ours to read."""

    def read(run: Run) -> Reading:
        ours, limit = run.of(task), run.of(task, "limit")
        if ours is None or limit is None:
            return NOT_MEASURED
        found = ratio(ours["wall"], limit["wall"])
        return Reading(f"{found:.3f}x the bare fits, by the clock", found <= most)

    return read


def memory_below(task: str, most_mb: float, size: int | None = None) -> Callable[[Run], Reading]:
    """Extra memory of our call."""

    def read(run: Run) -> Reading:
        ours = run.of(task, "ours", size)
        if ours is None or math.isnan(number(ours["peak_mb"])):
            return NOT_MEASURED
        return Reading(f"{number(ours['peak_mb']):.0f} MiB", number(ours["peak_mb"]) < most_mb)

    return read


def bytes_per_row(tasks: list[str], most: float) -> Callable[[Run], Reading]:
    """The largest extra memory per row over some tasks."""

    def read(run: Run) -> Reading:
        found = [m for m in map(run.of, tasks) if m is not None]
        if not found:
            return NOT_MEASURED
        worst = max(number(m["peak_mb"]) * 2**20 / m["size"] for m in found)
        return Reading(f"{worst:.0f} bytes per row at most ({len(found)} tasks)", worst <= most)

    return read


def cpu_below(task: str, most: float, size: int, field: str = "wall") -> Callable[[Run], Reading]:
    """Seconds of our call, by the clock unless said otherwise."""

    def read(run: Run) -> Reading:
        ours = run.of(task, "ours", size)
        if ours is None:
            return NOT_MEASURED
        text = f"{number(ours['wall']):.1f} s by the clock, {number(ours['cpu']):.1f} CPU s"
        return Reading(text, number(ours[field]) < most)

    return read


def answers_right(task: str) -> Callable[[Run], Reading]:
    """Our answers are the exact ones at every size."""

    def read(run: Run) -> Reading:
        found = [m["agrees"] for m in run.measurements if m["task"] == task and m["library"] == "ours"]
        return Reading(", ".join(found), set(found) == {"right"}) if found else NOT_MEASURED

    return read


def same_as(task: str, library: str) -> Callable[[Run], Reading]:
    """The peer's answers are judged as ours are, at every size."""

    def read(run: Run) -> Reading:
        pairs = [
            (run.of(task, "ours", m["size"]), m)
            for m in run.measurements
            if m["task"] == task and m["library"] == library
        ]
        if not pairs:
            return NOT_MEASURED
        fine = all(ours and ours["agrees"] == m["agrees"] in {"right", "same"} for ours, m in pairs)
        return Reading("identical" if fine else "not identical", fine)

    return read


def beyond(task: str, most: float) -> Callable[[Run], Reading]:
    """CPU seconds of one start beyond those of the limit."""

    def read(run: Run) -> Reading:
        ours, limit = run.of(task, "ours", 1), run.of(task, "limit", 1)
        if ours is None or limit is None:
            return NOT_MEASURED
        found = number(ours["cpu"]) - number(limit["cpu"])
        return Reading(f"{found:+.2f} CPU s", found <= most)

    return read


def held_by(path: str, *names: str) -> Callable[[Run], Reading]:
    """Simulations that the test suite runs; the test must exist."""

    def read(_: Run) -> Reading:
        file = ROOT / "tests" / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        missing = [name for name in names if f"def {name}(" not in text]
        if not text or missing:
            return Reading(f"no such test: {path} {' '.join(missing)}", met=False)
        return Reading(f"test `{path}`", met=True)

    return read


def league_clean(run: Run) -> Reading:
    """No trap on which we are wrong."""
    rows = run.content["league"]
    if not rows:
        return NOT_MEASURED
    asked = [row for row in rows if row["found"]["ours"]["verdict"] != "has no such feature"]
    wrong = not_right(rows)
    return Reading(f"right in {len(asked) - len(wrong)} of {len(asked)} traps", not wrong)


# --- readings of one bar only -------------------------------------------------------------------------


def p_value_memory(run: Run) -> Reading:
    """Extra memory over the bytes of the p-values, 10 000 x 10 doubles."""
    ours = run.of("p-values, smoothed", "ours", 10_000)
    if ours is None:
        return NOT_MEASURED
    found = number(ours["peak_mb"]) * 2**20 / (10_000 * 10 * 8)
    return Reading(f"{found:.1f}x the output", found < 3)


def accuracy(run: Run) -> Reading:
    """Our share of the three risks against the peer's at 500 and 2000 rows, and the spread."""
    lines, fine = [], True
    for size in (500, 2000):
        ours = run.of("accuracy of the excess risk", "ours", size)
        theirs = run.of("accuracy of the excess risk", "covmetrics", size)
        if not ours or not theirs or not ours["answers"] or not theirs["answers"]:
            return NOT_MEASURED
        a, b = ours["answers"], theirs["answers"]
        keys = ("l1", "l2", "kl")
        fine &= all(a[k] >= b[k] for k in keys)
        fine &= all(x <= y for x, y in zip(a["spread"], b["spread"], strict=True))
        lines.append(f"n = {size}: " + ", ".join(f"{k} {a[k]:.4f} against {b[k]:.4f}" for k in keys))
    return Reading("; ".join(lines), fine)


def risk_time(run: Run) -> Reading:
    """CPU of the excess risk over the peer's, at three sizes."""
    ratios = []
    for size in (1_000, 10_000, 100_000):
        ours, theirs = run.of("excess risk", "ours", size), run.of("excess risk", "covmetrics", size)
        if not ours or not theirs or math.isnan(ratio(theirs["cpu"], ours["cpu"])):
            return NOT_MEASURED
        ratios.append(ratio(theirs["cpu"], ours["cpu"]))
    return Reading(" / ".join(f"{r:.1f}x" for r in ratios) + " at 1k / 10k / 100k", min(ratios) >= 5)


def null_band(run: Run) -> Reading:
    """Median and 95 % point of T-CV at 20 000 rows."""
    ours = run.of("null band of T-CV", "ours", 20_000)
    if ours is None:
        return NOT_MEASURED
    median, high = ours["answers"]["median"], ours["answers"]["high"]
    return Reading(f"{median:.4f}, {high:.4f}", abs(median - 0.0375) <= 0.001 and abs(high - 0.05) <= 0.002)


def certificate(run: Run) -> Reading:
    """How much tighter the bound is at three sizes."""
    found = [m["answers"] for m in run.measurements if m["task"] == "width of the calibration certificate"]
    if not found:
        return NOT_MEASURED
    massart, exact = ([a[f"{name}_over_ours"] for a in found] for name in ("massart", "rademacher"))
    text = f"{min(massart):.1f}-{max(massart):.1f}x, {min(exact):.1f}-{max(exact):.1f}x"
    return Reading(text, min(massart) >= 10 and min(exact) >= 7)


def study_memory(run: Run) -> Reading:
    """Time and memory of the whole USPS study on images of the same number and size."""
    ours = run.of("usps_study", "ours", 9298)
    if ours is None:
        return NOT_MEASURED
    wall, memory = number(ours["wall"]), number(ours["peak_mb"])
    text = f"{wall / 60:.1f} min by the clock, {number(ours['cpu']):.0f} CPU s, {memory / 1024:.1f} GiB"
    return Reading(text, wall < 900 and memory < 6 * 1024)


def all_kinds(kinds: list[str], most: float) -> Callable[[Run], Reading]:
    """The slowest kind of scores, in units of an argsort."""

    def read(run: Run) -> Reading:
        found = {kind: of_limit(run, f"calibration error of {kind} scores") for kind in kinds}
        if any(math.isnan(value) for value in found.values()):
            return NOT_MEASURED
        worst = max(found, key=lambda kind: found[kind])
        return Reading(f"{found[worst]:.2f}x of an argsort ({worst})", found[worst] <= most)

    return read


def faster_than(task: str, libraries: list[str]) -> Callable[[Run], Reading]:
    """Every one of these peers is slower."""

    def read(run: Run) -> Reading:
        ours = run.of(task)
        theirs = {name: run.of(task, name) for name in libraries}
        if ours is None or any(m is None or m["problem"] for m in theirs.values()):
            return NOT_MEASURED
        ratios = {name: ratio(m["cpu"], ours["cpu"]) for name, m in theirs.items() if m}
        return Reading(", ".join(f"{n} {r:.1f}x" for n, r in ratios.items()), min(ratios.values()) > 1)

    return read


def descent(run: Run) -> Reading:
    """1000 trials of the study from one of them."""
    ours = run.of("performance: GD and SGD of the study, side by side", "ours", 1000)
    if ours is None:
        return NOT_MEASURED
    minutes = 1000 * number(ours["cpu"]) / 60
    return Reading(f"{minutes:.1f} min (1000 times one trial)", minutes < 60)


def gpu_job(word: str, least_times_cpu: float = 50, most_over_bare: float = 2) -> Callable[[Run], Reading]:
    """One line of the stored GPU run."""

    def read(_: Run) -> Reading:
        rows = [row for row in gpu_rows() if word in row["job"]]
        if not rows:
            return Reading("no stored GPU run", None)
        row = rows[0]
        text = f"{row['ours_ms']:.2f} ms, {row['over_bare']:.2f}x bare, {row['times_cpu']:.0f}x two cores"
        met = row["times_cpu"] >= least_times_cpu and row["over_bare"] <= most_over_bare and row["same"]
        return Reading(text, met)

    return read


def gpu_rows() -> list[dict[str, Any]]:
    """The stored GPU run, job by job."""
    return json.loads(GPU.read_text(encoding="utf-8"))["rows"] if GPU.exists() else []


def small_install(run: Run) -> Reading:
    """Size on disk beside the peers."""
    ours = run.of("install size")
    if ours is None or not ours["answers"]:
        return NOT_MEASURED
    return Reading(shown(ours["answers"]), met=True)


KINDS = ["near 0", "near 0 and 1", "crowded", "three decimals", "one decimal", "constant", "sorted"]
ERROR_TASKS = [f"calibration error of {kind} scores" for kind in ["spread", *KINDS]]
SPREAD = "calibration error of spread scores"
GROUND, PREDICTORS, CONDITIONAL = "ground floor", "conformal predictors", "conditional coverage"
ADAPTIVITY, CALIBRATION, PERFORMANCE = "adaptivity", "calibration", "performance prediction"
AUDIT, SCALE = "audit", "GPU and scale"

BARS = [
    Bar(GROUND, "`import calipers` at most 0.2 s beyond numpy", beyond("import", 0.2)),
    Bar(GROUND, "`calipers --help` under 0.5 s beyond interpreter start", beyond("command line help", 0.5)),
    Bar(GROUND, "light install: no deep learning, no boosting library", small_install),
    Bar(
        GROUND,
        "ranks exact for n up to 2000 and every thousandth",
        held_by("unit/conformal/test_ranks.py"),
    ),
    Bar(PREDICTORS, "p-values within 1.5x of sort and search", within_limit("p-values, smoothed", 1.5)),
    Bar(PREDICTORS, "p-values 50x faster than crepes", times_faster("p-values, smoothed", "crepes", 50)),
    Bar(
        PREDICTORS,
        "label-conditional p-values 200x faster than crepes",
        times_faster("p-values, label-conditional", "crepes", 200),
    ),
    Bar(PREDICTORS, "memory of p-values below 3x the output", p_value_memory),
    *(
        Bar(
            PREDICTORS,
            f"{score.upper()} sets, 20 000 x 100, three levels, 5x faster than MAPIE",
            times_faster(f"sets at three levels, {score}", "mapie", 5),
        )
        for score in ("lac", "aps", "raps")
    ),
    *(
        Bar(
            PREDICTORS,
            f"{score.upper()} sets, 20 000 + 20 000 x 1000, 2x faster than TorchCP",
            times_faster(f"sets of 1000 labels, {score}", "torchcp", 2),
        )
        for score in ("aps", "raps", "saps")
    ),
    *(
        Bar(
            PREDICTORS,
            f"full kNN, K = {k}, n = 1000: 100x faster than online-cp",
            times_faster(f"full_knn_k{k}", "online-cp", 100),
        )
        for k in (1, 5)
    ),
    Bar(PREDICTORS, "full kNN: p-values identical to online-cp's", same_as("full_knn_k1", "online-cp")),
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
    Bar(CALIBRATION, "c_emp of 1e7 friendly scores in 0.35 of an argsort", within_limit(SPREAD, 0.35)),
    Bar(CALIBRATION, "c_emp of 1e7 scores of any kind in 1.2 of an argsort", all_kinds(KINDS, 1.2)),
    Bar(CALIBRATION, "at most 30 bytes per row", bytes_per_row(ERROR_TASKS, 30)),
    Bar(
        CALIBRATION,
        "faster than netcal's ECE and the ECCE of MCGrad and probcal",
        faster_than(SPREAD, ["netcal", "mcgrad", "probcal"]),
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
        times_faster("isotonic fit, distinct scores", "scikit-learn", 2),
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
        clock_within_limit("performance: 20 ms fits on two warm workers", 1.05),
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
    Bar(AUDIT, "100 000 x 20 x 10, six questions, under 30 s", cpu_below("audit", 30, 100_000)),
    Bar(AUDIT, "a million rows under 3 minutes", cpu_below("audit", 180, 1_000_000)),
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
    *(
        Bar(SCALE, f"GPU, {job}: 50x two cores and within 2x of the bare primitives", gpu_job(job))
        for job in ("p-values", "APS sets", "RAPS sets", "SAPS sets", "calibration error")
    ),
]


def readings(run: Run) -> list[tuple[Bar, Reading]]:
    """Every bar with its figure."""
    return [(bar, bar.read(run)) for bar in BARS]
