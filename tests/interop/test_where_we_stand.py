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
