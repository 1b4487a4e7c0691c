"""The readings of an audit whose numbers come from all rows of a lake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.auditing.checks import adaptive, coverage, everywhere, features, narrow, probabilities
from calipers.auditing.material import Level, Material
from calipers.auditing.reading import Check, Reading
from calipers.auditing.running import merge_levels
from calipers.inference import clopper_pearson, mean_estimate
from calipers.metrics import deficit, excess, sscv
from calipers.metrics.marginal import coverage_of_rows
from calipers.results import Estimate

EVALUATED = (
    "share of covered rows in the fifth that coverage ensembles, fitted to a sample, expect to fare worst, "
    "among all rows outside the sample; hypergeometric test"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lake:
    """What is known about all rows, and the sample as a material of its own.

    Parameters
    ----------
    material : Material
        The sample.
    n : int
        Rows in all.
    found : dict
        Finished states by name; those of a level as ``name@number``.
    """

    material: Material
    n: int
    found: dict[str, Any]

    def at(self, name: str, number: int) -> Any:
        """What a state found at a level; None when it was not asked."""
        return self.found.get(f"{name}@{number}")


LevelReading = Callable[[Lake, Level, int], Reading]


def _per_level(read: LevelReading) -> Callable[[Check, Lake], list[Reading]]:
    def readings(check: Check, lake: Lake) -> list[Reading]:
        found = [read(lake, level, number) for number, level in enumerate(lake.material.levels)]
        return found if len(found) == 1 else merge_levels(found, len(found))

    return readings


def marginal(lake: Lake, level: Level, number: int) -> Reading:
    """CAL101 and CAL102: coverage of all rows."""
    covered, counts = lake.at("counts", number)[0], lake.at("counts", number)[-1]
    estimate = coverage_of_rows(
        covered, alpha=level.alpha, n_calibration=lake.material.n_calibration, weights=counts,
        confidence=lake.material.confidence, name=f"coverage{level.tag}",
    )  # fmt: skip
    return coverage.marginal_reading(lake.material, level, estimate)


def groups(lake: Lake, level: Level, number: int) -> Reading:
    """CAL201: coverage of every group, over all rows."""
    covered, group, counts = lake.at("groups", number)
    labels, codes = np.unique(group, return_inverse=True)
    hits, rows = everywhere.group_counts(covered, codes.reshape(-1), len(labels), counts)
    names = tuple(str(label) for label in labels)
    return everywhere.group_reading(lake.material, level, hits, rows, names)


def along_features(lake: Lake, level: Level, number: int) -> Reading:
    """CAL202: coverage of the rows that models fitted to the sample expect to fare worst."""
    evaluated, table = lake.at("evaluated", number), lake.at("excess_risk", number)
    if evaluated is None:
        reason = f"The sample has too few misses to learn from ({2 * everywhere.FEWEST_MISSES} are needed)."
        return Reading(
            code=features.CODE, title=features.TITLE, question=everywhere.QUESTION, not_applicable=reason
        )
    hits, rows = evaluated.picked[:, 0], evaluated.picked[:, 1]
    p_value = None
    if rows.all():
        p = everywhere.flat_p_values(hits, rows)[0]
        p_value = None if np.isnan(p) else float(p)
    rows = np.maximum(rows, 1.0)
    high = float(clopper_pearson(hits[0], rows[0], confidence=lake.material.confidence)[1])
    stated = evaluated.stated / rows[0]
    foreseen = lake.material.probabilities is not None and lake.material.task == "classification"
    foreseen = foreseen and stated <= high + coverage.tolerance_at(level.alpha)
    reading = features.risk_reading(
        lake.material, level, hits, rows, p_value, foreseen=foreseen, method=EVALUATED
    )
    numbers = [replace(found, name=f"ert {key}{level.tag}") for key, found in table.items()]
    filled = evaluated.tenths[1] > 0
    covered, mass, expected = evaluated.tenths[:, filled]
    picture = features.expectation_picture(expected / mass, covered, mass, level, lake.material.confidence)
    placed = features.with_place(lake.material, level, reading)
    return replace(placed, estimates=(*placed.estimates, *numbers), pictures=(picture,))


def silent(lake: Lake, level: Level, number: int) -> Reading:
    """CAL301: predictions that say nothing, and the sizes of all."""
    material = lake.material
    if material.task == "regression":
        widths = lake.at("widths", number)
        words = "Every interval is infinite."
        numbers: list[Estimate] = []
        if widths.width.n:
            spread = float(np.sqrt(widths.outcome.squares / widths.outcome.n))
            words = narrow.size_words(material, widths.width.mean, {}, spread)
            numbers = [mean_estimate(widths.width, name=f"mean width{level.tag}")]
        return narrow.silent_reading(material, level, widths.infinite, widths.n, (words, ""), numbers)
    _, size, counts = lake.at("counts", number)
    total = float(counts.sum())
    nothing = int(counts[(size == len(material.classes)) | (size == 0)].sum())
    mean = mean_estimate(size.astype(float), weights=counts, name=f"mean size{level.tag}")
    empty = mean_estimate((size == 0).astype(float), weights=counts, name=f"empty sets{level.tag}")
    numbers = [mean, empty]
    if (table := lake.at("efficiency", number)) is not None:
        numbers += [replace(found, name=f"efficiency {key}{level.tag}") for key, found in table.items()]
    shares = {k: float(counts[size == k].sum()) / total for k in (0, 1)}
    words = narrow.size_words(material, float(mean), shares, 0.0)
    advice = narrow.empty_advice(shares[0], float(mean))
    return narrow.silent_reading(material, level, nothing, int(total), (words, advice), numbers)


def smaller_exist(lake: Lake, level: Level, number: int) -> Reading:
    """CAL302: sets by a threshold found on the sample, compared on all other rows."""
    saved, error, rows = lake.at("rival", number)
    return narrow.saving_reading(lake.material, level, saved, error, rows)


def along_difficulty(lake: Lake, level: Level, number: int) -> Reading:
    """CAL401: coverage of parts along the ease, T-CV and SSCV, over all rows."""
    hits, rows, empty = lake.at("parts", number)
    labels = adaptive.part_names(len(rows))
    parts = everywhere.Parts(hits=hits, rows=rows, labels=labels, kind="difficulty", foremost=0)
    numbers = [replace(lake.at("t_cv", number), name=f"t_cv{level.tag}")]
    if lake.material.task == "classification":
        covered, size, counts = lake.at("counts", number)
        by_size = sscv(covered, size, alpha=level.alpha, sample_weight=counts)
        numbers.append(replace(by_size, name=f"sscv{level.tag}"))
    return adaptive.difficulty_reading(
        lake.material, level, parts, empty, given=lake.material.ease is not None, numbers=tuple(numbers)
    )


def size_along_difficulty(lake: Lake, level: Level, number: int) -> Reading:
    """CAL402: rank correlations on the sample; T-SS, Deficit and Excess over all rows."""
    reading = adaptive.size_along_difficulty(lake.material, level)
    if lake.at("t_ss", number) is None or reading.not_applicable:
        return reading
    ranks, size, counts = lake.at("ranks", number)
    own = {f"t_ss{level.tag}": replace(lake.at("t_ss", number), name=f"t_ss{level.tag}")}
    for measure in (deficit, excess):
        value = measure(ranks, size, sample_weight=counts, confidence=lake.material.confidence)
        own[f"{measure.__name__}{level.tag}"] = replace(value, name=f"{measure.__name__}{level.tag}")
    estimates = tuple(own.get(found.name, found) for found in reading.estimates)
    details = dict(reading.details) | {"sample_rows": lake.material.n}
    return replace(reading, estimates=estimates, details=details)


def top_label(check: Check, lake: Lake) -> list[Reading]:
    """CAL501 and CAL502: the most probable label of all rows; pictures from the sample."""
    right, counts = lake.found["right"]
    total, hits = float(counts.sum()), float(counts[right].sum())
    share = hits / total
    accuracy = Estimate(
        name="accuracy of the top label", value=share, n=int(total), method="share of rows",
        std_error=float(np.sqrt(share * (1 - share) / total)),
    )  # fmt: skip
    estimate = replace(lake.found["top"], name="calibration error of the top label")
    drawn = probabilities.top_label(lake.material).pictures
    return [probabilities.top_label_reading(lake.material, estimate, accuracy, drawn)]


def single_classes(check: Check, lake: Lake) -> list[Reading]:
    """CAL503: the worst class, over all rows."""
    estimate, material = lake.found["classes"], lake.material
    name = "calibration error of the worst class"
    if len(material.classes) == 2:
        name = f"calibration error of class {material.classes[1]}"
    else:
        # The sentences of an audit count classes by column.
        number = list(material.classes).index(estimate.details["class"])
        estimate = replace(estimate, details=dict(estimate.details) | {"class": number})
    return [probabilities.class_reading(material, replace(estimate, name=name))]


# Code of a check -> its readings from all rows; every other check looks at the sample.
FROM_ALL_ROWS: dict[str, Callable[[Check, Lake], list[Reading]]] = {
    "CAL101": _per_level(marginal),
    "CAL201": _per_level(groups),
    "CAL202": _per_level(along_features),
    "CAL301": _per_level(silent),
    "CAL302": _per_level(smaller_exist),
    "CAL401": _per_level(along_difficulty),
    "CAL402": _per_level(size_along_difficulty),
    "CAL501": top_label,
    "CAL503": single_classes,
}
