"""A saved repair: the same bits in a fresh process, refused when tampered with or newer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.auditing import Repair, load_repair
from calipers.exceptions import InputError


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
import numpy as np
from calipers.auditing import load_repair
with np.load(sys.argv[2]) as stored:
    given = {name: stored[name] for name in stored.files}
np.save(sys.argv[3], load_repair(sys.argv[1]).apply(given)["intervals"])
"""


def test_a_fresh_process_gives_the_same_bits(repaired: Repair, new: dict, tmp_path: Path) -> None:
    path = repaired.save(tmp_path / "repair.json")
    np.savez(tmp_path / "new.npz", **new)
    words = [str(path), str(tmp_path / "new.npz"), str(tmp_path / "out.npy")]
    subprocess.run([sys.executable, "-c", FRESH, *words], check=True)
    there = np.load(tmp_path / "out.npy")
    assert there.tobytes() == repaired.apply(new)["intervals"].tobytes()


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
