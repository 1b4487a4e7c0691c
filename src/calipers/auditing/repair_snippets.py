"""The repair of every fault, as code that runs as it is printed: ``found`` is the audit that it stands in."""

from __future__ import annotations

_SNIPPET = """# {why}
repair = found.repair()  # found is this audit
print(repair)
repair.save("repair.json")

from calipers.auditing import load_repair

new = load_repair("repair.json").apply(found.data.given)  # or the same columns of new rows"""

_THRESHOLDS = (
    "Thresholds for {noun} at alpha={alpha:g} {how}: candidates are compared on selection rows,\n"
    "# the winner is conformalised on others and tried on untouched ones."
)


def reconformalise(task: str, alpha: float) -> str:
    """Conformalise again."""
    return _fill(task, alpha, "from fresh rows")


def by_group(task: str, alpha: float) -> str:
    """A threshold per group or region, or conditional on several of them."""
    return _fill(task, alpha, "per group, region or level of predicted coverage")


def by_difficulty(task: str, alpha: float) -> str:
    """A threshold per part along difficulty, or a score that knows it."""
    return _fill(task, alpha, "along difficulty")


def narrower(task: str, alpha: float) -> str:
    """Sets by the score that makes them smallest on average; intervals as wide as the features ask."""
    return _fill(
        task, alpha, "as wide as the features ask" if task == "regression" else "with the smallest sets"
    )


def calibrate() -> str:
    """A map of the probabilities."""
    why = (
        "Maps of the probabilities are compared on rows that did not fit them, and the simplest of the best\n"
        "# is tried on untouched rows."
    )
    return _SNIPPET.format(why=why)


def without_code(advice: str) -> str:
    """What to do by hand, where there is no automatic repair: a comment and no code."""
    return f"# There is no automatic repair: {advice}"


def _fill(task: str, alpha: float, how: str) -> str:
    """Empty for outcomes that were found elsewhere: there is no score to put a threshold on."""
    if task == "outcomes":
        return ""
    noun = "intervals" if task == "regression" else "sets"
    return _SNIPPET.format(why=_THRESHOLDS.format(noun=noun, alpha=alpha, how=how))
