"""docs/where-we-stand.md: what it says of packages that are installed here is true of them."""

from __future__ import annotations

import ast
import re
from importlib import metadata
from pathlib import Path

import pytest

from tests.interop.peers import require

PAGE = (Path(__file__).parents[2] / "docs" / "where-we-stand.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", ["MAPIE", "crepes", "TorchCP", "puncc"])
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
