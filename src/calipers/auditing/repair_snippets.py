"""The repair of every fault, as code that runs as it is printed: ``found`` is the audit that it stands in."""

from __future__ import annotations

_SNIPPET = """# {why}
repair = found.repair()  # found is this audit
print(repair)
repair.save("repair.json")

from calipers.auditing import load_repair

new = load_repair("repair.json").apply(found.data.given)  # or the same columns of new rows"""

# What to do, in one sentence; the report puts the name of the file into the command.
_DO = "{what}: run calipers repair FILE, or the code of the repair."


def reconformalise(task: str, alpha: float) -> str:
    """Conformalise again."""
    return _fill(task, alpha, "Set the level of the {noun} anew (alpha={alpha:g})")


def by_group(task: str, alpha: float) -> str:
    """A threshold per group or region, or conditional on several of them."""
    return _fill(task, alpha, "Give each group or region {noun} of its own level (alpha={alpha:g})")


def by_difficulty(task: str, alpha: float) -> str:
    """A threshold per part along difficulty, or a score that knows it."""
    return _fill(task, alpha, "Make the {noun} follow difficulty (alpha={alpha:g})")


def narrower(task: str, alpha: float) -> str:
    """Sets by the score that makes them smallest on average; intervals as wide as the features ask."""
    how = (
        "Make the intervals as wide as the features ask" if task == "regression" else "Use the smallest sets"
    )
    return _fill(task, alpha, how + " (alpha={alpha:g})")


def since(task: str, alpha: float, when: str) -> str:
    """Conformalise again with the rows after a change."""
    return _fill(
        task, alpha,
        f"Find out what changed {when} and, once it is clear, set the level of the {{noun}} anew with the "
        "rows since then (alpha={alpha:g}); until then",
    )  # fmt: skip


def calibrate(what: str = "probabilities", where: str = "") -> str:
    """A map of the probabilities, of those of one part where only they are off."""
    return _SNIPPET.format(why=_DO.format(what=f"Recalibrate the {what}{f' of {where}' if where else ''}"))


def without_code(advice: str) -> str:
    """What to do by hand, where there is no automatic repair: a comment and no code."""
    return f"# There is no automatic repair: {advice}"


def _fill(task: str, alpha: float, how: str) -> str:
    """Empty for outcomes that were found elsewhere: there is no score to put a threshold on."""
    if task == "outcomes":
        return ""
    noun = "intervals" if task == "regression" else "sets"
    return _SNIPPET.format(why=_DO.format(what=how.format(noun=noun, alpha=alpha)))
