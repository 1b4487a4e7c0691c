"""Items of Jang and Lee (2025), Quantifying and improving adaptivity through input transformations.

The appendix (Tables 3 to 11, Figures 5 to 34, Algorithms 1 and 2) is known from what the text says of it.
"""

from __future__ import annotations

from studies.contents import PaperItem

NUMBERED = {
    "eq.": range(1, 6),
    "Property": range(1, 2),
    "Algorithm": range(1, 3),
    "Table": range(1, 12),
    "Figure": range(1, 35),
}

_STUDY = "tests/unit/studies/test_adaptivity_study.py"
_IMAGENET = "not here: ImageNet and its nine models cannot be had"

ITEMS = (
    PaperItem(
        kind="eq.",
        numbers=(1,),
        says="ease of an example",
        objects=("calipers.difficulty.ease", "calipers.difficulty.ease_from_outputs"),
        agrees="yes",
    ),
    PaperItem(
        kind="Figure",
        numbers=(1,),
        says="ease against average rank",
        objects=("studies.adaptivity.classification.figure_1_curve",),
        outputs=("figure_1.png",),
        agrees="yes for smooth models; no for forests at this severity",
    ),
    PaperItem(
        kind="eq.",
        numbers=(2,),
        says="uniform-mass bins of the ease",
        objects=("calipers.difficulty.uniform_mass_bins", "calipers.difficulty.uniform_mass_limits"),
        agrees="yes; ties across an edge are shared by the metrics",
    ),
    PaperItem(
        kind="Algorithm",
        numbers=(1,),
        says="transformation-based binning",
        objects=("calipers.difficulty.DifficultyBins",),
        agrees="yes",
    ),
    PaperItem(
        kind="eq.",
        numbers=(3,),
        says="T-CV",
        objects=("calipers.metrics.t_cv",),
        tests=("tests/unit/metrics/adaptivity/test_from_predictions.py::test_t_cv_takes_sets_with_outcomes",),
        agrees="yes; a perfect predictor reads 0.0375 at the paper's size, not 0",
    ),
    PaperItem(
        kind="eq.",
        numbers=(4,),
        says="T-SS",
        objects=("calipers.metrics.t_ss",),
        tests=(
            "tests/unit/metrics/adaptivity/test_size_and_difficulty.py::test_t_ss_is_the_printed_formula_with_shared_ties",
        ),
        agrees="yes",
    ),
    PaperItem(
        kind="Section 3",
        says="SSCV, ESCV, Deficit, Excess, Rank-CV, Rank-SS",
        objects=(
            "calipers.metrics.sscv",
            "calipers.metrics.escv",
            "calipers.metrics.deficit",
            "calipers.metrics.excess",
            "calipers.metrics.rank_cv",
            "calipers.metrics.rank_ss",
        ),
        agrees="yes",
    ),
    PaperItem(
        kind="Property",
        numbers=(1,),
        says="harder groups have larger sets",
        objects=("calipers.metrics.difficulty_concordance",),
        agrees='no: always true as printed (an "or" of two implications); implemented as concordance',
    ),
    PaperItem(
        kind="Table",
        numbers=(1,),
        says="ranks of five metrics by correlation with Property 1",
        objects=(
            "studies.adaptivity.classification.table_1_rows",
            "studies.adaptivity.classification.rank_frequencies",
        ),
        outputs=("table_1.csv",),
        tests=(f"{_STUDY}::test_an_undefined_correlation_is_not_zero_and_ranks_last",),
        agrees="no: T-SS (2.10) second behind Deficit (1.82) on our classifiers",
    ),
    PaperItem(
        kind="Table",
        numbers=(3,),
        says="the correlations and their p-values",
        objects=("studies.adaptivity.classification.table_1_rows",),
        outputs=("table_3.csv",),
        agrees="significant: yes; values " + _IMAGENET,
    ),
    PaperItem(
        kind="eq.",
        numbers=(5,),
        says="group-conditional coverage",
        objects=("calipers.conformal.ConformalClassifier", "calipers.difficulty.DifficultyBins"),
        agrees="yes, with edges from rows of their own",
    ),
    PaperItem(
        kind="Figure",
        numbers=(2,),
        says="the algorithm in a picture",
        objects=("calipers.difficulty.DifficultyBins",),
        agrees="yes: O-LAC, O-SAPS are `groups=DifficultyBins(...)`",
    ),
    PaperItem(
        kind="Algorithm",
        numbers=(2,),
        says="conformal prediction per bin of difficulty",
        objects=("studies.adaptivity.methods.run_method",),
        tests=(f"{_STUDY}::test_every_method_covers_over_stored_outputs",),
        agrees="yes",
    ),
    PaperItem(
        kind="Section 5",
        says="tuning by T-SS",
        objects=("calipers.conformal.tune_predictor",),
        tests=("tests/unit/conformal/test_tuning.py::test_t_ss_by_name_is_t_ss_of_the_tuning_rows",),
        agrees='yes: `tune="t_ss"`',
    ),
    PaperItem(
        kind="Table",
        numbers=(2,),
        says="T-CV and T-SS of six methods, alpha 0.10 and 0.05",
        objects=("studies.adaptivity.classification.table_2_rows",),
        outputs=("table_2.csv", "table_2_alpha_0.1.png", "table_2_alpha_0.05.png"),
        agrees="public data: T-CV in rank only, T-SS no; invented pictures: both yes (see above)",
    ),
    PaperItem(
        kind="Table",
        numbers=(4,),
        says="coverage and average set size",
        objects=("studies.adaptivity.claims.table_2_claims",),
        outputs=("table_2.csv",),
        agrees="coverage yes; LAC smallest yes, APS largest no",
    ),
    PaperItem(
        kind="Table",
        numbers=(5,),
        says="alpha 0.15 and 0.20",
        objects=("studies.adaptivity.classification.ALPHAS",),
        outputs=("table_2.csv",),
        agrees="less effective: LAC and O-LAC only; values " + _IMAGENET,
    ),
    PaperItem(
        kind="Section 5 (Limitations)",
        says="T-SS falls with the accuracy of the model; Friedman p < 0.001",
        objects=("studies.adaptivity.claims.limitation_claims", "calipers.inference.compare_ranks"),
        agrees="Friedman yes; accuracy in sign only (rank correlation -0.38 over ten cases)",
    ),
    PaperItem(
        kind="Section 5 (scale)",
        says="50 000 images, 1000 classes, torchvision models",
        objects=(
            "studies.adaptivity.pictures.picture_outputs",
            "studies.adaptivity.outputs.outputs_from_folder",
        ),
        tests=(f"{_STUDY}::test_a_model_on_a_device_answers_a_folder_of_invented_pictures",),
        agrees="the path yes, on a GPU over invented pictures; values " + _IMAGENET,
    ),
    PaperItem(
        kind="Table",
        numbers=(6, 7),
        says="SSCV, ESCV, Deficit and Excess of all methods",
        objects=("studies.adaptivity.classification.table_2_rows",),
        outputs=("table_2.csv",),
        tests=(f"{_STUDY}::test_tables_6_and_7_hold_the_public_metrics",),
        agrees="values " + _IMAGENET,
    ),
    PaperItem(
        kind="Table",
        numbers=(8, 9),
        says="100 and 30 bins",
        objects=("studies.adaptivity.classification.BINS",),
        outputs=("table_2.csv",),
        agrees="values " + _IMAGENET,
    ),
    PaperItem(
        kind="Figure",
        numbers=tuple(range(7, 15)),
        says="critical-difference diagrams per model",
        objects=(
            "calipers.inference.compare_ranks",
            "calipers.plots.plot_critical_difference",
            "studies.adaptivity.figures.cd_panels",
        ),
        outputs=("figures_7_to_14_t_cv_alpha_0.1.png",),
        agrees="values " + _IMAGENET,
    ),
    PaperItem(
        kind="Section 6",
        says="CP, CP-A, PAC, SSCP, O-CPA, O-PAC",
        objects=("calipers.conformal.ConformalRegressor", "studies.adaptivity.regression.regression_rows"),
        outputs=("regression.csv",),
        agrees="yes; SSCP with a denoising autoencoder; values not here: fundus images",
    ),
    PaperItem(
        kind="Figure",
        numbers=(3,),
        says="T-CV and T-SS of the regression methods",
        objects=("studies.adaptivity.figures.regression_figure",),
        outputs=("figure_3.png",),
        agrees="no on public tables: O-CPA equals CP-A within a hundredth",
    ),
    PaperItem(
        kind="Figure",
        numbers=(4,),
        says="interval width against error, with R-squared and tau",
        objects=("studies.adaptivity.figures.width_figure", "calipers.metrics.width_against_error"),
        outputs=("figure_4.png",),
        tests=(f"{_STUDY}::test_bins_of_width_give_r_squared_and_tau_of_the_same_points",),
        agrees="no on public tables: equal",
    ),
    PaperItem(
        kind="Table",
        numbers=(10, 11),
        says="full regression results; O-PAC over-covers",
        objects=("studies.adaptivity.claims.regression_claims",),
        outputs=("regression.csv",),
        agrees="over-coverage yes; values not here: fundus images",
    ),
    PaperItem(
        kind="Figure",
        numbers=(31, 32, 33, 34),
        says="regression at other levels and models",
        objects=("studies.adaptivity.regression.ALPHAS",),
        outputs=("regression.csv",),
        agrees="no on public tables: equal at every level; values not here: fundus images",
    ),
    PaperItem(
        kind="Figure",
        numbers=(5, 6, *range(15, 31)),
        says="further figures of the appendix, which the text does not describe",
        agrees="not here: the appendix is not at hand",
    ),
)
