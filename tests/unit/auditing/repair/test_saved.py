"""A saved repair: the same bits in a fresh process, refused when tampered with or newer."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.auditing import Repair, load_repair
from calipers.auditing.repair.candidates import candidates, learn_design
from calipers.auditing.repair.recalibration import recalibrations
from calipers.auditing.repair.repair_result import SavedRepair
from calipers.auditing.repair.rule import REPAIRABLE, RepairRule
from calipers.exceptions import InputError
from calipers.inputs.rows import Rows


def columns(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    spread = 0.3 + 2 * (X[:, 0] > 0.7)
    low = X[:, 1] - 1.5
    return {
        "y_true": X[:, 1] + spread * rng.normal(size=n),
        "intervals": np.column_stack([low, low + 3.0]),
        "X": X,
        "groups": rng.choice(["a", "b"], n),
    }


@pytest.fixture(scope="module")
def repaired() -> Repair:
    found = calipers.audit(**columns(2500, 0), random_state=0).repair()
    assert found.steps
    return found


@pytest.fixture(scope="module")
def new() -> dict[str, np.ndarray]:
    given = columns(300, 1)
    del given["y_true"]
    return given


FRESH = """
import sys
from pathlib import Path
import numpy as np
from calipers.auditing import load_repair
folder = Path(sys.argv[1])
with np.load(folder / "new.npz") as stored:
    given = {name: stored[name] for name in stored.files}
for path in folder.glob("*.json"):
    np.savez(path.with_suffix(".npz"), **load_repair(path).apply(given))
"""


def stated(kind: str, n: int, seed: int) -> dict[str, np.ndarray]:
    """Intervals, or probabilities of two or three classes with sets or p-values, beside features and groups."""
    given = columns(n, seed)
    if kind == "intervals":
        return given
    K, rng = (2 if kind == "two classes" else 3), np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    y = (P.cumsum(axis=1) > rng.uniform(size=(n, 1))).argmax(axis=1)
    own = {"p_values": P} if kind == "p-values" else {"sets": P > 0.2}
    return {"y_true": y, "probabilities": P, "X": given["X"], "groups": given["groups"], **own}


def every_rule(kind: str) -> dict[str, RepairRule]:
    """A rule for every map of probabilities, or every score with every kind of threshold, weighted ones too."""
    K = {"intervals": 0, "two classes": 2}.get(kind, 3)
    rows = Rows(stated(kind, 900, 0), classes=tuple(range(K)) or None)
    rng = np.random.default_rng(0)
    names = tuple(name for name in REPAIRABLE if name in rows.given)
    base = RepairRule(rows.task, (0.1,), tuple(map(str, range(K))), names)
    maps = {} if kind == "intervals" else recalibrations(rows)
    rules = {name: replace(base, probability_map=fit(rows, rng)) for name, fit in maps.items()}
    moved = Rows({"X": rows.given["X"] + 0.3})
    for own in candidates(learn_design(rows, rng, moved), rows):
        thresholds = own.fit(rows, [own.score.of_outcomes(rows, 0)], rng)
        rules[own.name] = replace(base, score=own.score, thresholds=thresholds)
    return rules


@pytest.mark.parametrize("kind", ["intervals", "two classes", "three classes", "p-values"])
def test_a_fresh_process_gives_the_same_bits_for_every_candidate(kind: str, tmp_path: Path) -> None:
    rules, new = every_rule(kind), stated(kind, 200, 1)
    del new["y_true"]
    np.savez(tmp_path / "new.npz", **new)
    for number, rule in enumerate(rules.values()):
        SavedRepair(rule=rule).save(tmp_path / f"{number}.json")
    subprocess.run([sys.executable, "-c", FRESH, str(tmp_path)], check=True)
    for number, (name, rule) in enumerate(rules.items()):
        here = SavedRepair(rule=rule).apply(new)
        with np.load(tmp_path / f"{number}.npz") as there:
            assert {key: there[key].tobytes() for key in there.files} == {
                key: np.asarray(value).tobytes() for key, value in here.items()
            }, name


def test_outcomes_alone_leave_nothing_to_change_and_say_so(tmp_path: Path) -> None:
    given = columns(600, 0)
    covered = np.abs(given["y_true"] - given["X"][:, 1]) < 1.0
    found = calipers.audit(covered=covered, X=given["X"], random_state=0).repair()
    assert "no fault that can be repaired from covered alone" in str(found)
    assert load_repair(found.save(tmp_path / "repair.json")).apply({"covered": covered}) == {}


def test_the_file_says_what_it_needs_and_guarantees(repaired: Repair, tmp_path: Path) -> None:
    document = json.loads(repaired.save(tmp_path / "repair.json").read_text(encoding="utf-8"))
    assert document["calipers"] == calipers.__version__
    assert document["needs"] == list(repaired.needs)
    assert "1 - alpha" in document["guarantee"]
    assert load_repair(tmp_path).steps == repaired.steps  # a folder is looked into


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d["rule"]["alphas"].append(0.5), "was changed after it was written"),
        (lambda d: d.update(guarantee="everything"), "was changed after it was written"),
        (lambda d: d.update(format=99, calipers="9.0"), "format 99, written by calipers 9.0"),
        (lambda d: d.update(kind="Audit"), "is not a saved repair"),
    ],
)
def test_a_tampered_or_newer_file_is_refused(repaired: Repair, tmp_path: Path, change, sentence: str) -> None:
    path = repaired.save(tmp_path / "repair.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        load_repair(path)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="it is not JSON"):
        load_repair(tmp_path / "x.json")
    with pytest.raises(InputError, match="there is no repair at"):
        load_repair(tmp_path / "y.json")


def test_a_known_checksum_does_not_make_an_unknown_part_known(repaired: Repair, tmp_path: Path) -> None:
    from calipers.auditing.repair.saved_repair import stored_text

    path = tmp_path / "repair.json"
    path.write_text(stored_text({"rule": {"part": "os.system", "command": "true"}}), encoding="utf-8")
    with pytest.raises(InputError, match="names a part that calipers .* does not know"):
        load_repair(path)


def test_apply_takes_a_table_and_gives_its_columns(repaired: Repair, new: dict) -> None:
    frame = pl.DataFrame(
        {"lower": new["intervals"][:, 0], "upper": new["intervals"][:, 1], "group": new["groups"]}
        | {f"x{j}": new["X"][:, j] for j in range(3)}
    )
    for table in (frame, frame.to_pandas()):
        found = repaired.apply(table)
        assert list(found) == ["lower", "upper"]
        ends = repaired.apply(new)["intervals"]
        assert found["lower"].tolist() == ends[:, 0].tolist()
        assert found["upper"].tolist() == ends[:, 1].tolist()


def test_a_missing_column_is_named(repaired: Repair, new: dict) -> None:
    assert "X" in repaired.needs
    with pytest.raises(InputError, match="this repair needs intervals, X.*; X was not given"):
        repaired.apply({"intervals": new["intervals"]})
    with pytest.raises(InputError, match="apply takes a mapping"):
        repaired.apply(new["intervals"])


def test_repaired_probabilities_keep_their_form(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    p = rng.uniform(size=3000)
    y = rng.random(3000) < p
    stated = np.clip(1.6 * (p - 0.5) + 0.5, 0.01, 0.99)  # over-confident
    found = calipers.audit(y, probabilities=stated, random_state=0).repair()
    new = found.apply({"probabilities": stated[:5]})["probabilities"]
    assert new.shape == (5,)
    two = found.apply({"probabilities": np.column_stack([1 - stated[:5], stated[:5]])})["probabilities"]
    assert two[:, 1].tolist() == new.tolist()
    loaded = load_repair(found.save(tmp_path / "repair.json"))
    assert (
        loaded.apply({"probabilities": stated})["probabilities"].tobytes()
        == found.apply({"probabilities": stated})["probabilities"].tobytes()
    )


def test_groups_given_as_a_mapping_are_repaired_as_they_were_audited() -> None:
    rng = np.random.default_rng(4)
    groups = {"sex": rng.choice(["f", "m"], 2000), "site": rng.choice(["a", "b"], 2000)}
    y = np.where(groups["sex"] == "f", 3.0, 1.0) * rng.normal(size=2000)
    intervals = np.tile([-3.0, 3.0], (2000, 1))
    found = calipers.audit(y, intervals=intervals, groups=groups, random_state=0).repair()
    assert "groups" in found.needs
    new = found.apply({"intervals": intervals, "groups": groups})["intervals"]
    table = found.apply({"intervals": intervals, "groups": pl.DataFrame(groups)})["intervals"]
    assert new.tolist() == table.tolist()
    assert new[groups["sex"] == "f", 1].min() > new[groups["sex"] == "m", 1].max()
