"""``calipers audit``: exit codes, files, settings and one line for whatever is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.cli import main
from calipers.cli.options import exit_code
from calipers.inputs.files.formats import write_table


def write_rows(path: Path, half_width: float = 1.645, n: int = 2000) -> Path:
    y = np.random.default_rng(0).normal(size=n)
    frame = pl.DataFrame({"y_true": y, "lower": np.full(n, -half_width), "upper": np.full(n, half_width)})
    frame.write_csv(path)
    return path


@pytest.fixture
def clean(tmp_path: Path) -> str:
    return str(write_rows(tmp_path / "clean.csv"))


@pytest.fixture
def faulty(tmp_path: Path) -> str:
    return str(write_rows(tmp_path / "faulty.csv", half_width=1.2))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_clean_file_exits_with_0(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", clean]) == 0
    assert "No fault found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [("issue", 1), ("warning", 1), ("note", 1), ("never", 0), ("CAL101", 1), ("CAL201,CAL502", 0)],
)
def test_fail_on_decides_the_exit_code(fail_on: str, code: int, faulty: str) -> None:
    assert main(["audit", faulty, "--quiet", "--fail-on", fail_on]) == code


def test_every_code_of_the_catalogue_can_be_a_threshold() -> None:
    page = Path(__file__).parents[2] / "docs" / "findings.md"
    codes = re.findall(r"^## (CAL\d{3}) ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(codes) > 10
    assert exit_code((), ",".join(codes)) == 0


def test_quiet_prints_nothing(faulty: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", faulty, "--quiet"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_json_is_the_only_thing_on_standard_output(faulty: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", faulty, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["findings"][0]["code"] == "CAL101"
    assert document["about"]["source"] == faulty


def test_out_writes_the_three_forms(faulty: str, tmp_path: Path) -> None:
    main(["audit", faulty, "--quiet", "--out", "deep/folder"])
    assert {path.name for path in (tmp_path / "deep/folder").iterdir()} == {
        "report.html",
        "audit.json",
        "summary.md",
    }


def test_settings_come_from_the_file_and_the_command_line_wins(faulty: str, tmp_path: Path) -> None:
    # With the byte-order mark that editors of Windows write.
    (tmp_path / "calipers.toml").write_text('[audit]\nfail_on = "never"\nalpha = 0.3\n', encoding="utf-8-sig")
    assert main(["audit", faulty, "--quiet"]) == 0
    assert main(["audit", faulty, "--quiet", "--fail-on", "issue", "--alpha", "0.1"]) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[audit]\nalhpa = 0.1\n", "alhpa"),
        ("[audit\n", "is not valid TOML"),
        ("[audit]\nseed = 'x'\n", "unable to parse string as an integer, got 'x'"),
        ("[audit]\nalpha = [0.1, 'a']\n", "[audit] alpha of calipers.toml: "),
        ("[audit]\nalpha = [0.1, 'a']\n", ", got [0.1, 'a']"),
        ("alpha = 0.2\n", "has no place for 'alpha'; settings belong in the section [audit]"),
        ("[audti]\nalpha = 0.2\n", "has no place for 'audti'"),
        ("[audit]\n[measure]\nalpha = 0.2\n", "has no place for 'measure'"),
        ("audit = 3\n", "must be a section [audit], got 3"),
    ],
)
def test_a_bad_settings_file_is_one_line(
    content: str, expected: str, clean: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "calipers.toml").write_text(content, encoding="utf-8")
    assert main(["audit", clean]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert expected in shown


BAD_INPUT = {
    "no such file": (["none.csv"], "none.csv does not exist"),
    "unknown threshold": (["clean.csv", "--fail-on", "bad"], "--fail-on must be issue, warning, note, never"),
    "alpha in words": (["clean.csv", "--alpha", "ten"], "--alpha must be numbers"),
    "alpha in percent": (["clean.csv", "--alpha", "90"], "alpha must lie strictly between 0 and 1"),
    "two alphas for one level": (["clean.csv", "--alpha", "0.1,0.2"], "intervals holds 1 level"),
    "a code that no check has": (
        ["clean.csv", "--fail-on", "CAL999999"],
        "got 'CAL999999'; the codes are CAL101",
    ),
    "a mistyped code among others": (["clean.csv", "--fail-on", "CAL101,CAL02"], "got 'CAL02'"),
    "fewer rows than none": (
        ["clean.csv", "--max-rows", "-5"],
        "max_rows must be a whole number of at least 1",
    ),
    "a long separator": (["clean.csv", "--sep", "::"], "--sep must be one character"),
    "a column that is not there": (["clean.csv", "--y", "nope"], "has no column 'nope'"),
    "a settings file that is not there": (["clean.csv", "--config", "no.toml"], "which does not exist"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line_and_exit_code_2(
    case: str, clean: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, expected = BAD_INPUT[case]
    assert main(["audit", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert expected in shown.err


def test_the_plan_lists_roles_and_what_to_add(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", clean, "--plan"]) == 0
    shown = capsys.readouterr().out
    assert "y_true: outcome" in shown
    assert "Add groups" in shown


def test_github_gets_annotations_and_a_summary(
    faulty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    main(["audit", faulty, "--quiet", "--github"])
    assert capsys.readouterr().out.startswith("::error title=CAL101 under-coverage::The intervals cover")
    assert (tmp_path / "summary").read_text(encoding="utf-8").startswith("## Calipers audit")


def test_the_shell_can_complete_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--html", "nowhere/report.html"], "the folder nowhere does not exist"),
        (["--config", "wrong.toml"], "has no setting 'alhpa'; it takes y, proba, set"),
    ],
)
def test_a_wrong_place_and_a_wrong_setting_are_named(
    words: list[str], says: str, clean: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong.toml").write_text("[audit]\nalhpa = 0.2\n", encoding="utf-8")
    assert main(["audit", clean, *words]) == 2
    assert says in capsys.readouterr().err


def test_sets_of_words_are_told_what_sets_hold(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"y_true": ["a", "b"], "set_a": ["yes", "no"], "set_b": ["no", "yes"]}).write_csv("sets.csv")
    assert main(["audit", "sets.csv"]) == 2
    assert "must hold true and false, or 1 and 0, got 'yes' at row 0" in capsys.readouterr().err


def test_a_damaged_archive_is_not_advised_to_be_unpickled(capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.npz").write_bytes(b"\x80\x04not an archive")
    assert main(["audit", "rows.npz"]) == 2
    shown = capsys.readouterr().err
    assert "it is not an archive of plain arrays" in shown
    assert "pickle" not in shown


def test_the_time_column_is_read_and_is_no_feature(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    n = 1000
    day = np.datetime64("2024-01-01") + np.arange(n)
    y = rng.normal(size=n) * np.linspace(0.5, 1.5, n)
    order = rng.permutation(n)
    frame = pl.DataFrame({"y_true": y, "lower": np.full(n, -1.7), "upper": np.full(n, 1.7), "day": day})
    frame[order].write_csv("days.csv")
    main(["audit", "days.csv", "--time", "day", "--json"])
    document = json.loads(capsys.readouterr().out)
    drift = next(f for f in document["findings"] if f["code"] == "CAL601")
    assert (drift["severity"], drift["title"]) == ("issue", "losses drift with time")
    assert "X" not in document["about"]["given"]


def test_the_levels_of_the_columns_are_used_in_the_order_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In memory and streamed, a file that states 0.05 and 0.2 is judged at these, whatever their order."""
    y = np.random.default_rng(0).normal(size=1000)
    columns = {
        f"{side}@{a}": np.full(1000, s * w) for a, w in ((0.05, 1.96), (0.2, 1.28)) for side, s in ENDS
    }
    pl.DataFrame({"y_true": y} | columns).write_parquet("rows.parquet")
    expected = {f"coverage at alpha={a}": np.mean(np.abs(y) <= w) for a, w in (("0.05", 1.96), ("0.2", 1.28))}
    for words in ([], ["--alpha", "0.2,0.05"], ["--alpha", "0.05,0.2"]):
        for engine in ([], ["--engine", "local"]):
            assert main(["audit", "rows.parquet", "--mute", "CAL601", "--json", *words, *engine]) == 0
            estimates = json.loads(capsys.readouterr().out)["estimates"]
            assert {name: estimates[name]["value"] for name in expected} == expected
    for engine in ([], ["--engine", "local"]):
        assert main(["audit", "rows.parquet", "--mute", "CAL601", "--json", "--alpha", "0.2", *engine]) == 0
        estimates = json.loads(capsys.readouterr().out)["estimates"]
        assert estimates["coverage"]["value"] == expected["coverage at alpha=0.2"]
        assert main(["audit", "rows.parquet", "--alpha", "0.1", *engine]) == 2
        assert "states predictions at alpha = 0.05, 0.2; 0.1 is none" in capsys.readouterr().err


ENDS = (("lower", -1), ("upper", 1))


def test_other_separators_are_read(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("german.csv").write_text(Path(clean).read_text(encoding="utf-8").replace(",", ";"), encoding="utf-8")
    assert main(["audit", "german.csv"]) == 2
    assert "separated by ';': use --sep" in capsys.readouterr().err
    assert main(["audit", "german.csv", "--sep", ";"]) == 0
    Path("calipers.toml").write_text('[audit]\nsep = ";"\n', encoding="utf-8")
    assert main(["audit", "german.csv"]) == 0


@pytest.mark.parametrize("ending", [".tsv", ".csv.gz", ".jsonl", ".jsonl.gz", ".arrow", ".npz"])
def test_every_format_is_audited_in_memory_and_streamed(
    ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    y = np.random.default_rng(0).normal(size=600)
    frame = pl.DataFrame({"y_true": y, "lower": np.full(600, -1.3), "upper": np.full(600, 1.3)})
    write_table(frame, f"rows{ending}", stated={"n_calibration": 300} if ending == ".npz" else {})
    found = []
    for engine in ([], ["--engine", "local"]):
        words = [] if ending == ".npz" else ["--n-calibration", "300"]
        assert main(["audit", f"rows{ending}", "--mute", "CAL601", "--json", *engine, *words]) == 1
        found.append(json.loads(capsys.readouterr().out)["estimates"]["coverage"])
    assert found[0]["value"] == found[1]["value"] == np.mean(np.abs(y) <= 1.3)
    assert found[0]["p_value"] == pytest.approx(found[1]["p_value"])
    assert found[0]["null_low"] == pytest.approx(found[1]["null_low"])


@pytest.mark.parametrize("columns", ["y_true,lower,upper", "covered", "loss", "y_true,p_a,p_b"])
def test_a_file_of_one_row_says_nothing_and_exits_with_3(
    columns: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = {"y_true": "a" if "p_a" in columns else "1", "lower": "0", "upper": "2", "covered": "1",
             "loss": "0.1", "p_a": "0.75", "p_b": "0.25"}  # fmt: skip
    Path("one.csv").write_text(f"{columns}\n{','.join(cells[name] for name in columns.split(','))}\n")
    assert main(["audit", "one.csv"]) == 3
    shown = capsys.readouterr().out
    assert "nothing can be said" in shown
    assert "No fault found" not in shown
    assert main(["audit", "one.csv", "--quiet", "--fail-on", "never"]) == 0


def test_min_rows_decides_how_many_rows_are_enough(tmp_path: Path) -> None:
    few = str(write_rows(tmp_path / "few.csv", n=100))
    assert main(["audit", few, "--quiet"]) == 3
    assert main(["audit", few, "--quiet", "--min-rows", "50"]) == 0
    assert main(["audit", few, "--quiet", "--min-rows", "500"]) == 3


def test_a_bound_makes_losses_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    loss = 10 * np.random.default_rng(0).beta(2, 3, 800)
    pl.DataFrame({"loss": loss, "group": ["a", "b"] * 400}).write_csv("losses.csv")
    assert main(["audit", "losses.csv", "--bound", "3", "--loss-range", "0,10", "--json"]) == 1
    found = {f["code"]: f["outcome"] for f in json.loads(capsys.readouterr().out)["findings"]}
    # Both groups exceed the bound alike: a fault of all rows is told once.
    assert (found["CAL602"], found["CAL603"]) == ("fault", "clean")
    assert main(["audit", "losses.csv", "--bound", "3", "--loss-range", "0"]) == 2
    assert "--loss-range must be two numbers" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--engine", "local"]])
def test_the_bound_that_a_file_states_is_used(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    loss = 10 * np.random.default_rng(0).beta(2, 3, 800)
    np.savez("losses.npz", loss=loss, bound=3.0, loss_range=[0.0, 10.0])
    assert main(["audit", "losses.npz", "--json", *more]) == 1
    found = {f["code"]: f["outcome"] for f in json.loads(capsys.readouterr().out)["findings"]}
    assert found["CAL602"] == "fault"


def test_what_was_taken_for_what_is_said_before_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    n, rng = 1000, np.random.default_rng(0)
    frame = pl.DataFrame({"y_true": rng.normal(size=n), "lower": [-1.645] * n, "upper": [1.645] * n,
                          "y_pred": [0.0] * n, "age": rng.normal(size=n), "height": rng.normal(size=n)})  # fmt: skip
    frame.write_csv("rows.csv")
    main(["audit", "rows.csv", "--html", "page.html", "--markdown", "page.md", "--seed", "5"])
    terminal = capsys.readouterr().out
    page, markdown = (Path(name).read_text(encoding="utf-8") for name in ("page.html", "page.md"))
    # On the page the verdict stands first, and the columns before the six answers.
    for shown, results in (
        (terminal, "questions answered"),
        (page, 'class="answers"'),
        (markdown, "questions answered"),
    ):
        said = " ".join(shown.replace("\u00a0", " ").partition(results)[0].split())
        for words in (
            "features: age, height",
            "y_pred",
            "promised: coverage of the intervals: 90 %",
            "seed 5",
        ):
            assert words in said


def test_a_doubtful_level_is_asked_about_in_one_line(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", clean, "--alpha", "0.9"])
    assert capsys.readouterr().err.splitlines()[-1] == (
        "calipers: alpha=0.9 promises that 10 % are covered. If 90 % was meant, give alpha=0.1: alpha is the "
        "allowed miscoverage."
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_rows_behind_every_fault_are_written(ending: str, faulty: str) -> None:
    assert main(["audit", faulty, "--quiet", "--rows", "rows", "--rows-format", ending]) == 1
    place = Path("rows", f"CAL101_rows.{ending}")
    rows = pl.read_csv(place) if ending == "csv" else pl.read_parquet(place)
    missed = pl.read_csv(faulty).with_row_index("row").filter(pl.col("y_true").abs() > 1.2)
    assert rows["row"].to_list() == missed["row"].to_list()
    assert np.allclose(rows["y_true"], missed["y_true"])
    assert main(["audit", faulty, "--quiet", "--rows", "rows", "--rows-format", ending]) == 1  # again


def test_rows_of_an_unknown_format_or_place_are_refused(
    faulty: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", faulty, "--rows", "rows", "--rows-format", "xls"]) == 2
    assert "--rows-format must be csv or parquet, got 'xls'" in capsys.readouterr().err
    assert main(["audit", faulty, "--rows", faulty]) == 2
    assert "--rows must be a folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["p", "prob", "y_score"])
def test_a_single_column_of_probabilities_goes_by_common_names(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    p = np.random.default_rng(0).random(400)
    y = np.random.default_rng(1).random(400) < p
    pl.DataFrame({"y_true": y.astype(int), name: p}).write_csv("rows.csv")
    assert main(["audit", "rows.csv", "--json"]) == 0
    promises = json.loads(capsys.readouterr().out)["promises"]
    assert any(cell["promise"] == "probability of class 1" for cell in promises)
    # Beside another statement it is a feature like any other.
    pl.DataFrame({"y_true": y.astype(int), name: p, "p_0": 1 - p, "p_1": p}).write_csv("rows.csv")
    assert main(["audit", "rows.csv"]) == 0
    assert f"feature: {name}" in capsys.readouterr().out


def test_a_column_of_bounds_is_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"loss": [0.0, 1.0] * 50, "bound": [0.6] * 100}).write_csv("rows.csv")
    assert main(["audit", "rows.csv"]) == 2
    assert "state it with --bound" in capsys.readouterr().err


def test_point_predictions_alone_are_forecast_in_memory_and_from_a_file() -> None:
    rng = np.random.default_rng(0)
    y, y_pred = rng.normal(size=3000), rng.normal(size=3000)
    pl.DataFrame({"y_true": y, "y_pred": y_pred}).write_csv("rows.csv")
    for found in (
        calipers.audit(y, y_pred=y_pred, random_state=0),
        calipers.audit(source="rows.csv", random_state=0),
    ):
        (finding,) = (f for f in found.findings if f.code == "CAL601")
        assert f"it is {np.abs(y - y_pred).mean():.3f} here" in finding.sentence


def test_a_remedy_is_told_once_and_labels_keep_their_distance(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    pl.DataFrame({"loss": (rng.random(900) < 0.4).astype(float)}).write_csv("rows.csv")
    assert main(["audit", "rows.csv", "--bound", "0.2"]) == 1
    said = capsys.readouterr().out
    assert said.count("Add sets, p_values or intervals") == 1
    assert "worse than promised What will it score next time?" in said
