"""Items of Braun, Holzmüller, Jordan and Bach, Conditional coverage diagnostics: the poster's sections."""

from __future__ import annotations

from studies.contents import PaperItem

NUMBERED = {"Section": range(1, 11)}

_EXCESS = "calipers.metrics.ert"
_PROMISES = "tests/statistical/test_ert_promises.py"

ITEMS = (
    PaperItem(
        kind="Section",
        numbers=(1,),
        says="the goal: mean distance of conditional coverage from 1 - alpha",
        objects=(_EXCESS,),
        agrees="yes",
    ),
    PaperItem(
        kind="Section",
        numbers=(2,),
        says="coverage as probabilistic classification",
        objects=("calipers.metrics.conditional.CoverageClassifier",),
        agrees="yes",
    ),
    PaperItem(
        kind="Section",
        numbers=(3,),
        says="excess risk of the target; lower bound by cross-validation",
        objects=(_EXCESS,),
        tests=(f"{_PROMISES}::test_the_interval_holds_the_mean_excess_risk_of_the_fitted_classifiers",),
        outputs=("humans.csv",),
        agrees="yes; stratified folds break the bound",
    ),
    PaperItem(
        kind="Section",
        numbers=(4,),
        says="L1, L2, KL and any convex distance",
        objects=("calipers.metrics.ert_table", "calipers.metrics.conditional.convex_distance"),
        agrees="yes",
    ),
    PaperItem(
        kind="Section",
        numbers=(5,),
        says="figure: one dimension",
        objects=("studies.conditional.figures.draw_curve",),
        outputs=("one_dimension.csv", "one_dimension.png"),
        agrees="yes",
    ),
    PaperItem(
        kind="Section",
        numbers=(6,),
        says="figure: sample efficiency against WSC and CovGap",
        objects=("studies.conditional.figures.draw_efficiency", "calipers.metrics.worst_slab_coverage"),
        outputs=("sample_efficiency.csv", "sample_efficiency.png"),
        agrees="yes",
    ),
    PaperItem(
        kind="Section",
        numbers=(7,),
        says="over- and under-coverage",
        objects=(_EXCESS, "calipers.metrics.ert_table"),
        agrees="yes",
    ),
    PaperItem(
        kind="Section",
        numbers=(8,),
        says="table of classifiers",
        objects=("studies.conditional.benchmark",),
        outputs=("classifiers.csv", "recovered.csv", "classifiers.png"),
        agrees="order yes; TabICL and TabPFN only where their weights are given by path, not so here",
    ),
    PaperItem(
        kind="Section",
        numbers=(9,),
        says="figure: scores, conditional deviation against volume",
        objects=("studies.conditional.figures.draw_scores",),
        outputs=("regression_scores.csv", "set_scores.csv", "two_outputs.csv"),
        agrees="yes",
    ),
    PaperItem(
        kind="Section",
        numbers=(10,),
        says="the reference package",
        tests=("tests/unit/metrics/conditional/test_silent_wrong_answers.py",),
        agrees="its silent wrong answers are tests here",
    ),
)
