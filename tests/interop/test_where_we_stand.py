"""docs/where-we-stand.md: what it says of packages that are installed here is true of them."""

from __future__ import annotations

import ast
import re
from importlib import metadata
from pathlib import Path

import pytest

from tests.interop.peers import require

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "where-we-stand.md").read_text(encoding="utf-8")
NEIGHBOURS = ROOT / ".tools" / "neighbours"  # `python3 dev.py interop` fills it


@pytest.mark.parametrize("package", ["MAPIE", "crepes", "TorchCP", "puncc", "skore"])
def test_the_page_names_the_version_that_is_used_here(package):
    require(package, {"puncc": "deel"}.get(package, package.lower()))
    named = re.search(rf"^\| {package} ([\d.]+) †", PAGE, flags=re.MULTILINE)[1]
    assert metadata.version(package).startswith(f"{named}.")


def test_mapie_has_what_the_page_says_and_its_diagnostics_are_bare_numbers():
    require("mapie")
    import mapie.regression as regression

    for name in ("CrossConformalRegressor", "JackknifeAfterBootstrapRegressor", "TimeSeriesRegressor"):
        assert hasattr(regression, name)
    # Read, not imported: it needs covmetrics, which needs torch.
    source = Path(regression.__file__).parents[1] / "metrics" / "conditional.py"
    functions = {
        node.name: node for node in ast.parse(source.read_text()).body if isinstance(node, ast.FunctionDef)
    }
    for name in ("coverage_gap", "worst_slab_coverage"):
        assert ast.unparse(functions[name].returns) == "float"


def test_crepes_has_what_the_page_says():
    require("crepes")
    import crepes

    assert hasattr(crepes, "ConformalPredictiveSystem")


def folder_of(package: str) -> Path:
    """Where a package lies; it is read, not imported, since some need what nobody here uses."""
    import importlib.util

    return Path(next(iter(importlib.util.find_spec(package).submodule_search_locations)))


def test_torchcp_has_what_the_page_says():
    require("TorchCP", "torchcp")
    folder = folder_of("torchcp")
    for part in ("graph", "llm", "classification/predictor/cluster.py", "classification/predictor/rc3p.py"):
        assert (folder / part).exists(), part
    assert list(folder.rglob("loss")), "training losses"


def test_puncc_has_what_the_page_says():
    require("puncc", "deel")
    folder = folder_of("deel") / "puncc"
    for part in ("object_detection.py", "anomaly_detection.py"):
        assert (folder / part).is_file(), part
    source = (folder / "regression.py").read_text(encoding="utf-8")
    assert {"CVPlus", "EnbPI"} <= set(re.findall(r"^class (\w+)", source, flags=re.MULTILINE))


# What the page says of packages that are read here and not run: files, and words in them.
READ = {
    "covmetrics": {"ERT.py": "class ERT", "slab_metrics.py": "slab", "group_metrics.py": "group"},
    "MCGrad": {"methods.py": "lightgbm"},
    "netcal": {
        "scaling/AbstractLogisticRegression.py": "'variational'",
        "scaling/LogisticCalibrationDependent.py": "detection",
        "regression/IsotonicRegression.py": "class IsotonicRegression",
    },
    "NannyML": {
        "drift/ranker.py": "class",
        "drift/univariate/calculator.py": "class UnivariateDriftCalculator",
        "drift/multivariate/data_reconstruction/calculator.py": "class DataReconstructionDriftCalculator",
        "performance_estimation/confidence_based/cbpe.py": "class CBPE",
    },
    "Evidently": {"llm/__init__.py": "", "ui/service/__init__.py": "", "metrics/data_quality.py": "class"},
}


@pytest.mark.parametrize("package", READ)
def test_packages_that_are_only_read_have_what_the_page_says(package):
    folder = NEIGHBOURS / package.lower()
    if not folder.is_dir():
        require(package, f"{package.lower()}_is_not_among_the_neighbours")
    for file, word in READ[package].items():
        assert word in (folder / file).read_text(encoding="utf-8"), file
    named = re.search(rf"^\| {package} ([\d.]+) \|", PAGE, flags=re.MULTILINE)[1]
    (about,) = NEIGHBOURS.glob(f"{package.lower()}-{named}.*.dist-info/METADATA")
    wants_torch = re.search(r"^Requires-Dist: torch\b", about.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert bool(wants_torch) == (package in ("covmetrics", "MCGrad", "netcal"))


def test_what_the_page_says_that_we_have_is_there_and_what_we_lack_is_not():
    import calipers

    rows = [line.split("|")[1:-1] for line in PAGE.splitlines() if re.match(r"\| \w+.* \|", line)][1:]
    assert len(rows) == 10
    called = {name for row in rows for name in re.findall(r"`(?:report\.checks\.add\()?(\w+)\(", row[4])}
    assert called == {"audit_model", "skore_checks"}
    assert callable(calipers.audit_model)
    from calipers import conformal, integrations

    assert callable(integrations.skore_checks)
    # The page sends people elsewhere for these; should one of them be added, the page must say so.
    ours = " ".join([*calipers.__all__, *conformal.__all__]).lower()
    for lacking in ("jackknife", "crossconformal", "enbpi", "detection", "predictivesystem", "graph"):
        assert lacking not in ours


def test_every_neighbour_has_a_full_row():
    assert "## Where we are the wrong tool" in PAGE
    for package in (
        "MAPIE",
        "crepes",
        "TorchCP",
        "puncc",
        "covmetrics",
        "MCGrad",
        "netcal",
        "NannyML",
        "Evidently",
        "skore",
    ):
        row = re.search(rf"^\| {package}\b.*$", PAGE, flags=re.MULTILINE)[0]
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        assert len(cells) == 5
        assert all(len(cell) > 5 or cell.split(" ")[0] == package for cell in cells), package
