"""``calipers plan``: how many rows it takes to find an effect of a given size."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from calipers.cli.options import JsonOption


def command(
    effect: Annotated[
        float, typer.Option("--effect", help="Promised minus true coverage; negative: covers more.")
    ],
    alpha: Annotated[float, typer.Option("--alpha", help="Allowed miscoverage; 0.1 promises 90 %.")] = 0.1,
    power: Annotated[float, typer.Option("--power", help="Probability to find the effect.")] = 0.8,
    level: Annotated[float, typer.Option("--level", help="Level of the test.")] = 0.05,
    share: Annotated[float, typer.Option("--share", help="Share of all rows that have the effect.")] = 1.0,
    n_calibration: Annotated[
        int | None, typer.Option("--n-calibration", help="Rows the predictor was conformalised on.")
    ] = None,
    check: Annotated[
        str,
        typer.Option(
            "--check", help="coverage, group, calibration, quantile, pit, loss, time, difficulty or features."
        ),
    ] = "coverage",
    groups: Annotated[
        int, typer.Option("--groups", help="Groups tested together (--check group, loss).")
    ] = 1,
    correction: Annotated[
        str, typer.Option("--correction", help="How groups share the level: holm or sidak.")
    ] = "holm",
    tests: Annotated[
        int, typer.Option("--tests", help="Tests of the audit, which share the level; 1: a test alone.")
    ] = 1,
    spread: Annotated[
        float | None,
        typer.Option(
            "--spread", help="Standard deviation of the loss, as a share of its range (--check loss)."
        ),
    ] = None,
    n_features: Annotated[
        int, typer.Option("--n-features", help="Features to look for a region in (--check features).")
    ] = 4,
    seed: Annotated[int, typer.Option("--seed", help="Of simulated checks: time, difficulty, features.")] = 0,
    as_json: JsonOption = False,
) -> int:
    """Tell how many rows a check needs to find an effect with a given probability.

    The number is the smallest from which the power stays high enough: the exact power of a test of counts is
    not a smooth function of the rows. With --n-calibration small effects may be out of reach; the attainable
    power is then printed.
    """
    import json

    from calipers.auditing import rows_needed

    question: dict[str, Any] = {
        "check": check,
        "effect": effect,
        "alpha": alpha,
        "share": share,
        "power": power,
        "level": level,
        "n_calibration": n_calibration,
        "n_groups": groups,
        "correction": correction,
        "n_tests": tests,
        "spread": spread,
        "n_features": n_features,
        "random_state": seed,
    }
    rows = rows_needed(**question)
    print(json.dumps({"rows": rows} | question, indent=2) if as_json else sentence(rows, question))
    return 0


# Where the effect is, for checks that look for it.
_SLICES = {
    "time": " since the last {share} share of the rows",
    "difficulty": " in the hardest {share} share of the rows",
    "features": " in a region with a {share} share of the rows",
}


def sentence(rows: int, question: dict[str, Any]) -> str:
    """The answer in words."""
    effect, alpha, share = question["effect"], question["alpha"], question["share"]
    side = "below" if effect > 0 else "above"
    promised = f"the promised {1 - alpha:g}"
    what = f"coverage {abs(effect):g} {side} {promised}"
    if question["check"] == "calibration":
        what = f"stated probabilities {abs(effect):g} too {'high' if effect > 0 else 'low'}"
    if question["check"] == "quantile":
        what = f"a share {abs(effect):g} {side} the {1 - alpha:g} that the quantile states"
    if question["check"] == "pit":
        what = f"a share {abs(effect):g} {side} the {1 - alpha:g} of PIT values up to {1 - alpha:g}"
    if question["check"] == "loss":
        what = f"a mean loss {effect:g} of its range above the bound of {alpha:g}"
    where = "" if share == 1 else f" in a {share:.3g} share of the rows"
    if question["check"] == "group" or question["n_groups"] > 1:
        groups = question["n_groups"]
        part = 1 / groups if share == 1 else share
        where = f" in one of {groups} groups, which has a {part:.3g} share of the rows,"
    where = _SLICES.get(question["check"], where).format(share=f"{share:.3g}")
    tests = f", one of {question['n_tests']} in an audit" if question["n_tests"] > 1 else ""
    return (
        f"{rows} rows: {what}{where} is found with probability {question['power']:g} "
        f"by a test at level {question['level']:g}{tests}."
    )
