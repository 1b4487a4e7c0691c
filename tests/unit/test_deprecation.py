"""What goes away says when, stays for two minor versions, and is gone from the version it named."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import calipers
from calipers.calibration import loss_ratio
from calipers.exceptions import CalipersWarning, DeprecatedNameWarning
from calipers.metrics import efficiency_curve

SOURCE = Path(calipers.__file__).parent
SAYS_WHEN = {"warn_deprecated", "moved_name", "renamed_arguments"}


def version(text):
    return tuple(int(part) for part in text.split(".")[:2])


def stated_versions():
    """(place, version) of every use of the functions of `calipers.deprecation`, outside it."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "deprecation.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", None)
            if name in SAYS_WHEN:
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                words = [part.value for part in given if isinstance(part, ast.Constant)]
                found = [word for word in words if re.fullmatch(r"\d+\.\d+", str(word))]
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", found


def test_every_old_name_says_when_it_is_gone_and_is_gone_then():
    stated = dict(stated_versions())
    assert len(stated) >= 10
    assert [place for place, found in stated.items() if len(found) != 1] == []
    late = [place for place, found in stated.items() if version(found[0]) <= version(calipers.__version__)]
    assert late == [], f"promised to be gone in {calipers.__version__}: remove"


def test_nothing_warns_of_an_old_name_in_another_way():
    others = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r"\bwarn\([^)]*DeprecatedNameWarning", path.read_text(encoding="utf-8"))
    ]
    assert others == ["deprecation.py"]


P = np.linspace(0.01, 0.99, 50)
Y = (P > 0.4).astype(int)
OLD_WAYS = {
    "efficiency_curve(alphas=)": lambda: efficiency_curve(Y, np.column_stack([1 - P, P]), alphas=[0.1, 0.2]),
    "loss_ratio(n_draws=)": lambda: loss_ratio(
        Y, P, P**2, false_positive_cost=1.0, false_negative_cost=2.0, n_draws=10
    ),
    "engines.Block": lambda: calipers.engines.Block,
    "report.write_text": lambda: calipers.report.write_text,
    "Audit.n_rows": lambda: calipers.audit(Y, covered=Y == 1, alpha=0.1, random_state=0).n_rows,
}


@pytest.mark.parametrize("name", OLD_WAYS)
def test_an_old_way_works_and_its_warning_names_the_version_at_the_line_of_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OLD_WAYS[name]()
    (found,) = [item for item in caught if issubclass(item.category, DeprecatedNameWarning)]
    assert re.search(r"; the old way will be gone in \d+\.\d+\.$", str(found.message))
    assert found.filename == __file__


def test_the_warning_is_shown_to_users_and_belongs_to_the_family():
    assert issubclass(DeprecatedNameWarning, FutureWarning)
    assert issubclass(DeprecatedNameWarning, CalipersWarning)


def test_a_moved_name_says_from_where_to_where():
    moved = r"calipers\.engines\.Block is now calipers\.inputs\.rows\.Rows"
    with pytest.warns(DeprecatedNameWarning, match=moved):
        assert calipers.engines.Block is calipers.inputs.rows.Rows
    with pytest.raises(AttributeError, match=r"'calipers\.engines' has no attribute 'Nothing'"):
        _ = calipers.engines.Nothing
