"""CAL604: the share of the surest rows that can be answered with a smaller error, certified."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks.probabilities import end_in_words
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.inputs.rows import Rows
from calipers.metrics.selective import selective_risk, selective_threshold
from calipers.results import Estimate
from calipers.results.formatting import format_share

QUESTION = "forecast"
# Risks that are tried; each has its part of the allowed error, so that any of them may be told.
RISKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
DELTA = 0.05
FEWEST_ROWS = 100


def surest_rows(m: Measurements, promise: None) -> CheckResult:
    """The share that can be answered at half the error of all rows, or at the smallest that is certified."""
    base = CheckResult(
        code="CAL604", title="what abstaining would bring", question=QUESTION, details={"descriptive": True}
    )
    if (rows := m.counted_rows()) is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    if "cluster" in m.design.have:
        return replace(base, not_applicable="Rows of one cluster depend on each other: no certificate.")
    name, loss, certainty, stated = _losses(rows)
    if rows.n < FEWEST_ROWS:
        reason = f"A certificate needs at least {FEWEST_ROWS} rows, got {rows.n}."
        return replace(base, not_applicable=reason)
    if stated.reversed and np.ptp(certainty) == 0:
        reason = f"All rows have the same {stated.name}: it does not tell which are sure."
        return replace(base, not_applicable=reason)
    shares = {r: selective_threshold(loss, certainty, risk=r, delta=DELTA / len(RISKS)) for r in RISKS}
    overall = float(loss.mean())
    chosen = chosen_risk({risk: float(share) for risk, share in shares.items()}, overall)
    curve = replace(selective_risk(loss, certainty, confidence=m.confidence), y_label=name, details={})
    picture = Picture(
        name="CAL604_selective_risk", question=QUESTION, title=f"{name} of the rows kept".capitalize(),
        kind="line",
        caption="Rows are kept in order of certainty, the most certain first; the band holds for all shares "
        "simultaneously.",
        curves=(curve,),
    )  # fmt: skip
    if chosen is None:
        clean = (
            f"No share of the surest rows is certified to have a smaller {name} than the "
            f"{format_share(overall)} of all rows."
        )
        return replace(base, clean=clean, pictures=(picture,))
    share = replace(shares[chosen], name=f"share answered at {name} {100 * chosen:g} %")
    return replace(
        base, evidence=share, clean=_sentence(share, name, stated, chosen, overall), estimates=(share,),
        pictures=(picture,),
    )  # fmt: skip


class Stated(NamedTuple):
    """The column that says how sure a row is: its name, and whether small values are the sure ones."""

    name: str
    reversed: bool = False


def _losses(rows: Rows) -> tuple[str, np.ndarray, np.ndarray, Stated]:
    """Name, losses, how sure the model says it is, and what says so.

    The top label's probability, or what was promised; for intervals their width; for outcomes of any other
    kind the ease or the size that stand beside them.
    """
    probability = Stated("stated probability")
    if rows.get("probabilities") is not None:
        return "error rate", (~rows["top_is_right"]).astype(float), rows["top_probability"], probability
    name, missed = "share of misses", (~rows["covered"]).astype(float)
    if len(rows.alphas) > 1:
        name += f" at alpha = {float(rows.alpha):g}"
    if "promised" in rows.given:
        return name, missed, rows["promised"], probability
    if "intervals" not in rows.given and rows.get("ease") is not None:
        return name, missed, rows["ease"], Stated("ease")
    # Infinite widths are the least sure ones.
    size = np.minimum(rows["size"].astype(float), np.finfo(float).max)
    return name, missed, -size, Stated("width" if "intervals" in rows.given else "size", reversed=True)


def chosen_risk(shares: dict[float, float], overall: float) -> float | None:
    """The risk to tell: the largest up to half the mean loss at which rows can be kept, else the smallest.

    Examples
    --------
    >>> from calipers.auditing.checks.abstention import chosen_risk
    >>> chosen_risk({0.01: 0.0, 0.02: 0.4, 0.05: 0.7, 0.1: 1.0}, 0.08)
    0.02
    >>> chosen_risk({0.01: 0.0, 0.02: 0.0, 0.05: 0.7, 0.1: 1.0}, 0.08)
    0.05
    >>> chosen_risk({0.01: 0.0, 0.02: 0.0}, 0.08) is None
    True
    """
    certified = [risk for risk, share in shares.items() if share > 0 and (risk < overall or share == 1.0)]
    halved = [risk for risk in certified if risk <= overall / 2]
    return max(halved) if halved else min(certified, default=None)


def _sentence(share: Estimate, name: str, stated: Stated, risk: float, overall: float) -> str:
    limit, here = f"at {100 * risk:g} % or less (certified at 95 %)", f"it is {format_share(overall)} here"
    if float(share) == 1.0:
        return f"Answering every row keeps the {name} {limit}; {here}."
    kept = math.floor(1000 * float(share)) / 10
    lowest = share.details["lowest_kept"]
    which = f"{-lowest:.3g} or less" if stated.reversed else f"{lowest:.3g} or more"
    if "probability" in stated.name:
        which = _from(lowest)
    return (
        f"Answering only the surest {kept:g} % of the rows keeps the {name} {limit}; of all rows {here}. "
        f"They are those with {'an' if stated.name == 'ease' else 'a'} {stated.name} of {which}."
    )


def _from(lowest: float) -> str:
    """The smallest probability that is kept, in words; never "1 or more"."""
    if lowest > 1 - 1e-6:
        return "1" if lowest >= 1 else "1, up to a millionth"
    return f"{end_in_words(lowest)} or more"


CHECKS = (
    Check(
        code="CAL604",
        title="error of the surest rows",
        question=QUESTION,
        needs=("certainty",),
        add="Add probabilities, intervals, or promised, ease or size with covered.",
        once=True,
        read=surest_rows,
        on_sample=True,
    ),
)
