"""The table of promises: what a model may state about every row.

To add a promise: write a file with a function that gives it where the rows state it, and name the function
in ``PROMISES``; every slice (`calipers.auditing.checks`) then looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from calipers.arrays import frame_columns
from calipers.auditing.promise import Promise
from calipers.inputs.derived_columns import PIT_LEVELS
from calipers.inputs.rows import Column, Rows

# The smallest set of labels of each row whose stated probabilities reach 1 - alpha together.
IMPLIED_SETS = "coverage of sets implied by the probabilities"
PER_ROW = "promised probability"
EACH_CLASS = "probability of each class"
# With more classes than these the slices are looked at for the top label only.
MOST_CLASSES = 20
# Ten of these reach a value that stays far from significant once it is corrected for three classes or more.
_PART_DRAWS = 99
STATED: dict[str, Column] = {"covered": "stated_covered", "size": "stated_size", "promised": "stated_mass"}
TOP_LABEL: dict[str, Column] = {"covered": "top_is_right", "promised": "top_probability"}
# What the largest probability of every row says, also where there are two classes.
TOP = Promise(alpha=0.5, kind="probability", name="probability of the top label", noun="probabilities",
              reads=TOP_LABEL, per_row=True, two_sided=True, own_key="top")  # fmt: skip
OF_CLASS: dict[str, Column] = {"covered": "is_class", "promised": "class_probability"}
POSITIVE: dict[str, Column] = {"covered": "is_positive", "promised": "positive_probability"}


def promises_of(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> tuple[Promise, ...]:
    """Every promise that rows like these make."""
    return tuple(promise for stated in PROMISES for promise in stated(head, alphas, classes))


def coverage_of_predictions(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> Iterator[Promise]:
    """Sets, intervals and p-values at every level, or what was covered elsewhere."""
    if "covered" in head.given:
        per_row = "promised" in head.given
        name = PER_ROW if per_row else "coverage"
        yield Promise(alpha=alphas[0], name=name, noun="predictions", per_row=per_row)
    elif head.get("covered") is not None:
        noun = "intervals" if head.task == "regression" else "sets"
        for number, (alpha, tag) in enumerate(_tagged(alphas)):
            yield Promise(number=number, alpha=alpha, name=f"coverage of the {noun}{tag}", noun=noun, tag=tag)


def implied_sets(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> Iterator[Promise]:
    """Sets that plain probabilities imply, where nothing else was predicted."""
    if "probabilities" in head.given and "covered" not in head.given and head.get("covered") is None:
        for number, (alpha, tag) in enumerate(_tagged(alphas)):
            yield Promise(
                number=number, alpha=alpha, kind="stated", name=f"{IMPLIED_SETS}{tag}",
                noun="sets implied by the probabilities", tag=tag, reads=STATED, per_row=True,
            )  # fmt: skip


def _tagged(alphas: Sequence[float]) -> list[tuple[float, str]]:
    return [(alpha, f" at alpha={alpha:g}" if len(alphas) > 1 else "") for alpha in alphas]


def stated_probability(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> Iterator[Promise]:
    """The probability of the positive class of two, or of the top label of several."""
    if "probabilities" in head.given:
        name, reads = "probability of the top label", TOP_LABEL
        if len(classes) == 2:
            name, reads = f"probability of class {classes[1]}", POSITIVE
        yield Promise(
            alpha=0.5, kind="probability", name=name, noun="probabilities", reads=reads, per_row=True,
            two_sided=True,
        )  # fmt: skip


def class_probabilities(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> Iterator[Promise]:
    """The probability of each of several classes."""
    if "probabilities" in head.given and 2 < len(classes) <= MOST_CLASSES:
        every = Promise(alpha=0.5, kind="classes", name=EACH_CLASS, noun="probabilities", per_row=True,
                        two_sided=True)  # fmt: skip
        parts = (
            replace(every, kind="probability", number=k, name=f"probability of class {label}", reads=OF_CLASS,
                    tag=f" (class {label})", own_key=f"class{k}", n_draws=_PART_DRAWS)
            for k, label in enumerate(classes)
        )  # fmt: skip
        yield replace(every, parts=tuple(parts))


def stated_quantiles(head: Rows, alphas: Sequence[float], classes: Sequence[Any]) -> Iterator[Promise]:
    """Stated quantiles, or those that PIT values tell about."""
    given = head.given
    if "quantiles" in given and "y_true" in given:
        names, noun = [str(level) for level in frame_columns(given["quantiles"])], "quantiles"
    elif "pit" in given and "quantiles" not in given:
        names, noun = [f"{level:g}" for level in PIT_LEVELS], "predictive distributions"
    else:
        return
    for number, level in enumerate(names):
        yield Promise(
            number=number, alpha=1.0 - float(level), kind="quantile", name=f"quantile {level}", noun=noun,
            tag=f" at quantile {level}", reads={"covered": "below_quantile"}, two_sided=True,
        )  # fmt: skip


Stated: TypeAlias = Callable[[Rows, Sequence[float], Sequence[Any]], Iterator[Promise]]
PROMISES: tuple[Stated, ...] = (
    coverage_of_predictions,
    implied_sets,
    stated_probability,
    class_probabilities,
    stated_quantiles,
)
