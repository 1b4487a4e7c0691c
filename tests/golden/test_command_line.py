"""Every command still takes its options, and calipers.toml its settings."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from calipers.cli import main
from tests.golden import command_line
from tests.golden.storage import load

STORED = load("command_line")


@pytest.fixture(scope="module")
def now():
    return command_line.collect()


@pytest.mark.parametrize("command", STORED, ids=[name or "calipers" for name in STORED])
def test_a_command_keeps_its_options(command, now):
    assert command in now
    assert list(command_line.lost(STORED[command], now[command])) == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"--new": {"required": False}}, ["--seed is gone"]),
        ({"--seed": {"default": 0, "required": False, "flag": False, "many": True}}, []),
        (
            {"--seed": {"default": 1, "required": True, "flag": False, "many": False}},
            [
                "--seed is now required",
                "--seed can no longer be repeated",
                "--seed has default 1, must keep 0",
            ],
        ),
        ({"--new": {"required": True}}, ["--seed is gone", "--new is new and required"]),
    ],
)
def test_the_rule_allows_additions_and_sees_losses(now, said):
    stored = {"--seed": {"default": 0, "required": False, "flag": False, "many": True}}
    assert list(command_line.lost(stored, now)) == said


def predicted_classes(n):
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, n)
    columns = {"what": np.where(rng.random(n) < p, "yes", "no"), "chance_yes": p, "chance_no": 1 - p}
    columns |= {"in_yes": p > 0.08, "in_no": p < 0.92, "pv_yes": rng.random(n), "pv_no": rng.random(n)}
    about = {"region": rng.choice(["n", "s"], n), "easy": np.abs(p - 0.5), "when": np.arange(n), "age": p}
    return pl.DataFrame(columns | about | {"unused": p})


def predicted_intervals(n):
    y = np.random.default_rng(4).normal(size=n)
    return pl.DataFrame(
        {"what": y, "from": y - 1, "to": y + 1, "region": np.where(y > 0, "n", "s"), "age": y}
    )


@pytest.mark.parametrize(
    ("frame", "given"),
    [
        (predicted_classes, ["X", "difficulty", "ease", "groups", "p_values", "prediction", "probabilities"]),
        (predicted_intervals, ["X", "groups", "prediction"]),
    ],
    ids=["classes", "intervals"],
)
def test_every_setting_of_a_settings_file_is_taken(frame, given, tmp_path, monkeypatch, capsys):
    table = frame(300)
    table.write_csv(tmp_path / "rows.csv")
    absent = {"y", "proba", "set", "p_value", "lower", "upper", "group", "ease", "time"}
    held = {
        key: value
        for key, value in command_line.SETTINGS.items()
        if key not in absent or _holds(table, value)
    }
    (tmp_path / "calipers.toml").write_text(
        "[audit]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in held.items()),
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "rows.csv", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)["about"]
    assert set(given) <= set(about["given"])
    assert (about["alphas"], about["n_calibration"]) == ([0.1], 500)


def _holds(table, pattern):
    return any(name.startswith(pattern.rstrip("*")) for name in table.columns)


def test_the_two_files_together_use_every_setting():
    tables = [predicted_classes(5), predicted_intervals(5)]
    named = ("y", "proba", "set", "p_value", "lower", "upper", "group", "ease", "time")
    assert all(any(_holds(table, command_line.SETTINGS[key]) for table in tables) for key in named)
