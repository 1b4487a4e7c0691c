"""One file through every command: what two of them call by one name is one number, with one error bar."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.cli import main
from calipers.conformal import conformal_p_values, lac
from calipers.engines import FileSource
from calipers.metrics import metric_entries

Numbers = dict[str, dict[str, Any]]

FIELDS = ("value", "std_error", "low", "high", "confidence", "n")
LABELS = ["no", "yes", "maybe"]
# Too dear for one file each, and named otherwise by the audit.
DEAR = {"ert", "ert_table", "worst_slab_coverage", "failing_regions", "difficulty_concordance"}
# What at least must be shared, so that a name that is lost is seen.
SHARED = {
    "two classes": {
        "coverage", "mean size", "brier score", "log loss", "calibration error", "verdict",
        "calibration error of the top label", "t cv", "t ss", "sscv", "deficit", "excess",
    },
    "p-values": {
        "coverage", "mean size", "brier score", "log loss", "calibration error", "verdict", "t cv", "t ss",
        "calibration error of the top label", "p value uniformity", "efficiency s", "efficiency of",
    },
    "intervals": {"coverage", "t cv", "interval score", "mean width"},
}  # fmt: skip


def classified(rng: np.random.Generator, k: int, n: int = 500) -> dict[str, Any]:
    """A model that is too sure of itself: with two classes and sets, or with three and p-values."""
    X = rng.normal(size=(n + 200, 3))
    P = np.exp(X @ rng.normal(size=(3, k)))
    P /= P.sum(axis=1, keepdims=True)
    y = (rng.random((n + 200, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    Q = P**1.5 / (P**1.5).sum(axis=1, keepdims=True)
    p_values = conformal_p_values(lac(Q[:200])[np.arange(200), y[:200]], lac(Q[200:]))
    beside = {"set": Q[200:] > 0.1} if k == 2 else {"pvalue": p_values}
    stated = {f"p_{label}": Q[200:, j] for j, label in enumerate(LABELS[:k])}
    stated |= {f"{kind}_{label}": M[:, j] for kind, M in beside.items() for j, label in enumerate(LABELS[:k])}
    return {"y_true": np.array(LABELS)[y[200:]], "ease": -np.abs(X[200:, 0])} | stated


def measured(rng: np.random.Generator, n: int = 500) -> dict[str, Any]:
    """Intervals that are too wide on average and too narrow where the noise is large."""
    x, z = rng.normal(size=(2, n))
    half = 1.3 + np.exp(z / 3)
    y = x + rng.normal(size=n) * np.exp(z / 2)
    return {"y_true": y, "lower": x - half, "upper": x + half, "ease": -z, "x": x}


WORLDS: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "two classes": lambda rng: classified(rng, 2),
    "p-values": lambda rng: classified(rng, 3),
    "intervals": measured,
}


def plain(name: str) -> str:
    """A name in one spelling: brier_score and Brier score, efficiency.S and efficiency S."""
    return name.lower().replace("_", " ").replace("-", " ").replace(".", " ")


def of_audit(file: Path, capsys: pytest.CaptureFixture[str]) -> Numbers:
    assert main(["audit", str(file), "--json", "--quiet", "--fail-on", "never"]) == 0
    return json.loads(capsys.readouterr().out)["estimates"]


def of_measure(file: Path, capsys: pytest.CaptureFixture[str]) -> Numbers:
    """Every metric that the file has the columns for, tables under their own names and those of their rows."""
    found: Numbers = {}
    for entry in metric_entries():
        if entry.name in DEAR or main(["measure", str(file), "--metrics", entry.name, "--json", "--quiet"]):
            capsys.readouterr()
            continue
        table = json.loads(capsys.readouterr().out)["result"]["estimates"]
        found |= table | {name.split(".", 1)[1]: e for name, e in table.items() if "." in name}
    return found


def of_compare(file: Path, capsys: pytest.CaptureFixture[str]) -> Numbers:
    assert main(["compare", f"one={file}", f"two={file}", "--quiet", "--json"]) == 0
    return {line["measure"]: line["values"]["one"] for line in json.loads(capsys.readouterr().out)["lines"]}


def of_calibrate(file: Path, capsys: pytest.CaptureFixture[str]) -> Numbers:
    if "p_yes" not in pl.read_csv(file).columns:
        return {}
    assert main(["calibrate", str(file), "--out", str(file.parent / "calibrated"), "--quiet"]) == 0
    document = json.loads((file.parent / "calibrated" / "calibration.json").read_text(encoding="utf-8"))
    return document["calibration"]["before"]["result"]["estimates"]


def of_repair(file: Path, capsys: pytest.CaptureFixture[str]) -> Numbers:
    """What a repair of all these rows reads before it changes anything, by the measures it compares."""
    from calipers.auditing.repair.changes import coverage_changes, probability_changes

    rows = FileSource(str(file), features=True).load().rows()
    changes = coverage_changes(rows, rows, [], 0.95)
    changes += [] if rows.get("probabilities") is None else probability_changes(rows, rows, 0.95)
    return {change.measure: change.before.to_dict() for change in changes}


COMMANDS = (of_audit, of_measure, of_compare, of_calibrate, of_repair)


def first_differences(found: dict[str, Numbers]) -> list[str]:
    """Where two commands give other numbers under one name."""
    said = []
    for name, by_command in found.items():
        for field in FIELDS:
            known = {c: e[field] for c, e in by_command.items() if e.get(field) is not None}
            if len(known) > 1 and max(known.values()) - min(known.values()) > 1e-12 * abs(
                max(known.values())
            ):
                said.append(f"{field} of {name}: {known}")
    return said


@pytest.mark.parametrize("world", WORLDS)
def test_commands_agree_on_every_name_that_they_share(world, tmp_path, capsys):
    file = tmp_path / "rows.csv"
    pl.DataFrame(WORLDS[world](np.random.default_rng(5))).write_csv(file)
    found: dict[str, Numbers] = {}
    for command in COMMANDS:
        for name, estimate in command(file, capsys).items():
            found.setdefault(plain(name), {})[command.__name__.removeprefix("of_")] = estimate
    shared = {name: by_command for name, by_command in found.items() if len(by_command) > 1}
    assert SHARED[world] <= set(shared)
    assert first_differences(shared) == []


def test_a_repair_reads_what_an_audit_of_its_untouched_rows_reads():
    """The rows that a repair leaves untouched are other rows than those of the file: audited, they agree."""
    given = classified(np.random.default_rng(6), 2, n=1200)
    P = np.column_stack([given["p_no"], given["p_yes"]])
    sets = np.column_stack([given["set_no"], given["set_yes"]])
    repair = calipers.audit(
        given["y_true"], probabilities=P, sets=sets, classes=LABELS[:2], random_state=0
    ).repair()
    found = {change.measure: change.before for change in repair.changes}
    assert found.keys() & set(repair.before.estimates) >= {"coverage", "mean size"}
    for name in found.keys() & set(repair.before.estimates):
        for field in FIELDS:
            assert getattr(found[name], field) == pytest.approx(
                getattr(repair.before.estimates[name], field), rel=1e-12
            )
