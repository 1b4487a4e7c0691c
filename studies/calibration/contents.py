"""Items of Gao, Parameswaran and Peng (2017), Interpretability of conditional probability estimates."""

from __future__ import annotations

from studies.contents import PaperItem

NUMBERED = {
    "Definition": range(1, 3),
    "Theorem": range(1, 4),
    "Claim": range(1, 7),
    "Lemma": range(1, 3),
    "Example": range(1, 3),
    "Algorithm": range(1, 2),
    "Table": range(1, 2),
    "Figure": range(1, 4),
    "eq.": range(1, 2),
}

_STATEMENTS = "tests/unit/studies/test_calibration_statements.py"
_ISOTONIC = "tests/triangulate/test_isotonic_claims.py"
_CODE = "studies.calibration.statements"

ITEMS = (
    PaperItem(
        kind="Definition",
        numbers=(1, 2),
        says="fuzzy classifier calibrated, eps-calibrated; c and c_emp",
        objects=("calipers.metrics.calibration_error",),
        agrees="yes; read at the end of a block of equal scores",
    ),
    PaperItem(
        kind="Theorem",
        numbers=(1,),
        says="no prover of a small l1 error",
        objects=(f"{_CODE}.prover_gap",),
        tests=(f"{_STATEMENTS}::test_no_prover_tells_the_truth_from_certain_labels",),
        agrees="yes",
    ),
    PaperItem(
        kind="Example",
        numbers=(1,),
        says="documents of a topic model",
        objects=("studies.calibration.documents.run_once",),
        outputs=("table1.csv",),
        agrees="yes",
    ),
    PaperItem(
        kind="Figure",
        numbers=(1,),
        says="the sigmoid follows the probability given w(X)",
        objects=("studies.calibration.documents.topic_curve",),
        outputs=("figure1.png",),
        agrees="yes",
    ),
    PaperItem(
        kind="Claim",
        numbers=(1,),
        says="decide at a / (a + b)",
        objects=("calipers.calibration.bayes_decision", f"{_CODE}.decision_losses"),
        tests=(f"{_STATEMENTS}::test_the_plain_threshold_is_best_for_calibrated_levels_only",),
        agrees="yes",
    ),
    PaperItem(
        kind="Theorem",
        numbers=(2,),
        says="uniform convergence of c_emp",
        objects=("calipers.metrics.reliability.uniform_convergence_width",),
        outputs=("certificates.csv", "certificates.png"),
        agrees="no: a factor 2 was lost in front of the complexity; yes with it",
    ),
    PaperItem(
        kind="Claim",
        numbers=(2,),
        says="complexity 1/2 with n < d",
        objects=(
            "calipers.metrics.reliability.warn_if_unverifiable_in_sample",
            f"{_CODE}.shattered_complexity",
        ),
        tests=(f"{_STATEMENTS}::test_fewer_rows_than_features_are_shattered",),
        agrees="yes",
    ),
    PaperItem(
        kind="Section 3.2.2",
        says="min L(f) subject to c_emp(f) = 0; Isotron",
        objects=(
            "calipers.calibration.CalibrationConstrainedClassifier",
            "calipers.calibration.IsotronClassifier",
            "studies.calibration.joint_learners.joint_gaps",
        ),
        outputs=("joint_learners.csv", "joint_minimum.csv"),
        tests=("tests/unit/studies/test_calibration.py::test_two_steps_stay_close_to_the_joint_minimum",),
        agrees="Isotron yes; SLIsotron does not give c_emp = 0 (slip 3)",
    ),
    PaperItem(
        kind="Section 3.2.3",
        says="minimum calibration error over links",
        objects=("calipers.calibration.LinkCalibrator",),
        outputs=("links.csv",),
        agrees="yes; likelihood generalises better for flexible families",
    ),
    PaperItem(
        kind="Claim",
        numbers=(3,),
        says="isotonic regression minimises the objective",
        objects=("calipers.calibration.IsotonicCalibrator",),
        tests=(f"{_ISOTONIC}::test_claim_3_isotonic_regression_reaches_the_minimum_of_the_linear_program",),
        agrees="yes",
    ),
    PaperItem(
        kind="Figure",
        numbers=(2,),
        says="c_emp of five learners",
        objects=("studies.calibration.figures.draw_errors",),
        outputs=("figure2.png", "learners.csv"),
        agrees='order yes; "calibrated" is rejected for three of four',
    ),
    PaperItem(
        kind="Figure",
        numbers=(3,),
        says="loss ratios after isotonic regression",
        objects=("calipers.calibration.loss_ratio_curve", "studies.calibration.figures.draw_ratios"),
        outputs=("figure3.png", "loss_ratios.csv"),
        agrees="SVM, forest, logistic regression yes; boosting and naive Bayes gain more",
    ),
    PaperItem(
        kind="Table",
        numbers=(1,),
        says="l1 error and empirical calibration",
        objects=("studies.calibration.documents.run_once",),
        outputs=("table1.csv",),
        agrees="yes, in sample; held out 0.023",
    ),
    PaperItem(
        kind="Lemma",
        numbers=(1,),
        says="a world of certain labels that passes any verifier",
        objects=(f"{_CODE}.prover_gap",),
        tests=(f"{_STATEMENTS}::test_no_prover_tells_the_truth_from_certain_labels",),
        agrees="yes",
    ),
    PaperItem(
        kind="Theorem",
        numbers=(3,),
        says="the bound of Shalev-Shwartz and Ben-David behind Theorem 2",
        objects=("calipers.metrics.reliability.uniform_convergence_width",),
        agrees="yes",
    ),
    PaperItem(
        kind="eq.",
        numbers=(1,),
        says="its inequality",
        objects=("calipers.metrics.reliability.uniform_convergence_width",),
        agrees="yes",
    ),
    PaperItem(
        kind="Lemma",
        numbers=(2,),
        says="labels and scores add nothing to the complexity",
        objects=(f"{_CODE}.subset_complexity",),
        tests=("tests/unit/studies/test_contents.py::test_labels_and_scores_do_not_add_complexity",),
        agrees="yes",
    ),
    PaperItem(
        kind="Algorithm",
        numbers=(1,),
        says="PAV by the convex hull",
        objects=("calipers.calibration.IsotonicCalibrator",),
        agrees="yes; ties pooled first",
    ),
    PaperItem(
        kind="Example",
        numbers=(2,),
        says="VC dimension 2 at fixed thresholds, n at free ones",
        objects=(f"{_CODE}.subset_classifiers",),
        tests=(
            f"{_STATEMENTS}::test_the_class_of_example_2_has_dimension_2_at_fixed_thresholds_and_n_at_free_ones",
        ),
        agrees="yes",
    ),
    PaperItem(
        kind="Claim",
        numbers=(4,),
        says="bound for finitely many scores",
        objects=("calipers.metrics.reliability.finite_scores_rademacher", f"{_CODE}.finite_scores"),
        tests=(f"{_STATEMENTS}::test_the_bound_of_claim_4_holds_for_random_classes",),
        agrees="yes",
    ),
    PaperItem(
        kind="Claim",
        numbers=(5,),
        says="isotonic: c_emp = 0 and no threshold loses, on its rows",
        objects=("calipers.calibration.IsotonicCalibrator",),
        tests=(
            f"{_ISOTONIC}::test_claim_5_part_1_own_rows_are_calibrated",
            f"{_ISOTONIC}::test_claim_5_part_2_no_threshold_loses_on_its_own_rows",
        ),
        agrees="yes",
    ),
    PaperItem(
        kind="Claim",
        numbers=(6,),
        says="isotonic regression converges to the convex minorant",
        objects=("studies.calibration.theory.convergence",),
        outputs=("convergence.csv", "convergence.png"),
        agrees="yes, at 5 % of the bound or less",
    ),
)
