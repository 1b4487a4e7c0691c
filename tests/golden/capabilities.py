"""What a rebuilding easily loses, and the test that would fail without it.

The table is the list of contents; a line may name several tests. Capabilities without a test of their own
elsewhere have one in `test_capabilities`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = "tests/golden/test_capabilities.py"

PINNED_BY: dict[str, tuple[str, ...]] = {
    "scorers in cross-validation and grid search": (
        "tests/unit/scorers/test_scorer_functions.py::test_a_grid_search_chooses_the_narrower_predictor",
        "tests/unit/scorers/test_scorer_functions.py::test_cross_validation_takes_several_at_once",
    ),
    "tsv and every other ending, from every place": (
        "tests/golden/test_endings.py::test_a_file_is_read_wherever_it_lies_or_refused_in_one_sentence",
        "tests/unit/inputs/test_files.py::test_every_format_gives_the_same_rows_in_memory_streamed_and_by_pattern",
    ),
    "addresses through fsspec": (
        "tests/unit/engines/test_sources.py::test_addresses_are_read_through_fsspec",
    ),
    "row ids: draws follow the row, wherever it lies": (
        "tests/unit/engines/test_sources.py::test_smoothed_p_values_do_not_depend_on_the_split",
        f"{HERE}::test_a_column_of_row_ids_is_no_feature",
    ),
    "plan_run": (
        f"{HERE}::test_a_run_over_a_billion_rows_is_planned",
        "tests/unit/engines/test_planning.py::test_the_plan_counts_pieces_passes_and_bytes_of_a_run",
    ),
    "the same answer after a killed worker": (
        "tests/clusters/test_engines.py::test_dask_audits_the_same_after_losing_a_worker",
        "tests/clusters/test_engines.py::test_spark_audits_the_same_after_losing_an_executor",
    ),
    "fits that resume where they were interrupted": (
        "tests/unit/performance/test_fitting.py::test_an_interrupted_run_resumes_where_it_stopped",
    ),
    "fits on Dask and Spark by joblib": (
        "tests/clusters/test_engines.py::test_fits_on_dask_give_the_same_bits",
        "tests/clusters/test_engines.py::test_fits_on_spark_give_the_same_bits",
    ),
    "addresses of running clusters": (
        f"{HERE}::test_a_running_dask_cluster_is_joined_by_its_address",
        f"{HERE}::test_spark_runs_on_the_master_it_was_told",
    ),
    "native forms of MAPIE": (
        "tests/interop/test_outputs_of_peers.py::test_stored_sets_and_intervals_of_mapie",
        f"{HERE}::test_sets_are_audited_as_other_libraries_return_them",
        f"{HERE}::test_intervals_are_audited_as_other_libraries_return_them",
    ),
    "native forms of crepes": (
        "tests/interop/test_outputs_of_peers.py::test_stored_label_lists_p_values_and_intervals_of_crepes",
    ),
    "native forms of puncc": (
        "tests/interop/test_outputs_of_peers.py::test_puncc_tuples_of_sets_and_of_ends",
        f"{HERE}::test_sets_are_audited_as_other_libraries_return_them",
        f"{HERE}::test_intervals_are_audited_as_other_libraries_return_them",
    ),
    "native forms of TorchCP": (
        "tests/interop/test_outputs_of_peers.py::test_torchcp_tensors_of_sets_p_values_and_intervals",
        f"{HERE}::test_intervals_are_audited_as_other_libraries_return_them",
    ),
    "dataframes of any library": (
        "tests/interop/test_frames.py::test_classification_from_every_library_reads_as_from_numpy",
        "tests/interop/test_frames.py::test_regression_from_every_library_reads_as_from_numpy",
    ),
    "mute": (
        "tests/unit/auditing/test_audit.py::test_muted_checks_do_not_run",
        f"{HERE}::test_muted_checks_do_not_run_in_a_stream_nor_by_the_command",
    ),
    "progress": (
        f"{HERE}::test_an_audit_tells_its_progress",
        f"{HERE}::test_a_streamed_audit_tells_its_progress",
        "tests/unit/performance/test_fitting.py::test_progress_is_told_every_fit_and_ends_at_the_total",
        "tests/unit/difficulty/test_easiness.py::test_progress_goes_to_standard_error",
    ),
    "calibrate --apply": (
        "tests/cli/test_calibrate.py::test_another_file_goes_through_the_calibrator_of_all_rows",
        "tests/cli/test_calibrate.py::test_another_file_may_have_its_classes_in_another_order",
    ),
    "ert_curve": (
        "tests/unit/metrics/conditional/test_excess_risk.py::test_the_curve_over_levels_holds_the_single_estimates",
    ),
    "convex distances as losses of ert": (
        f"{HERE}::test_a_convex_distance_given_as_a_function_is_the_loss_it_describes",
    ),
    "n_models of calibration_error": (
        "tests/unit/metrics/reliability/test_calibration_error.py::test_several_models_on_the_same_rows_share_the_allowed_error",
    ),
    "S_phi": ("tests/unit/metrics/test_criteria.py::test_s_phi_sums_transformed_p_values",),
    "the tight two-sided rank": (
        "tests/unit/conformal/test_ranks.py::test_interval_follows_the_printed_ranks",
        "tests/unit/conformal/test_ranks.py::test_interval_ranks_leave_at_most_half_of_alpha_on_each_side",
        "tests/unit/performance/test_forecast.py::test_hand_computed_ranks",
    ),
    "GPU arrays stay on the device": (
        "tests/contract/test_kernels.py::test_scores_of_all_labels_and_of_one_are_those_of_numpy",
        "tests/contract/test_kernels.py::test_p_values_are_those_of_numpy_bit_for_bit",
        "tests/contract/test_kernels.py::test_criteria_count_alike_and_add_alike",
        "tests/contract/test_kernels.py::test_coverage_and_ranks_of_labels_count_alike",
        "tests/contract/test_kernels.py::test_ease_is_the_same_number",
    ),
    "loaders of public data sets": (
        f"{HERE}::test_the_loaders_of_public_data_sets_are_pinned",
        "tests/unit/datasets/test_loaders.py::test_a_missing_file_is_named_with_its_folder_and_origin",
    ),
}


@cache
def tests_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file of this repository; none where there is no such file."""
    place = ROOT / path
    if not place.is_file():
        return frozenset()
    tree = ast.parse(place.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def is_a_test(identity: str) -> bool:
    """Whether ``path::name`` is a test of this repository."""
    path, _, name = identity.partition("::")
    return name in tests_of(path)
