"""Every item of the five papers has its row, and every row leads to something that is there."""

from __future__ import annotations

import importlib
import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from calipers.conformal.idealised import conformity, criterion_value, is_optimal, prediction_sets, refines
from calipers.conformal.idealised.search import weak_orders
from studies import STUDIES
from studies.calibration.statements import all_slabs
from studies.contents import PAGES, ROOT, items_of, main, missing_items, section, with_section


def locate(name: str) -> object:
    """The module, or the attribute of the longest module the name begins with."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def test_every_study_has_a_page() -> None:
    assert set(PAGES) == set(STUDIES)
    assert all((ROOT / page).is_file() for page in PAGES.values())


@pytest.mark.parametrize("study", PAGES)
def test_no_item_of_the_paper_is_missing(study: str) -> None:
    assert missing_items(study) == []


@pytest.mark.parametrize("study", PAGES)
def test_every_name_of_an_item_exists(study: str) -> None:
    files = [path for path in (ROOT / "studies" / study).glob("*.py") if path.name != "contents.py"]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for item in items_of(study):
        for name in item.objects:
            assert locate(name) is not None, name
        for place in item.tests:
            path, _, function = place.partition("::")
            assert (ROOT / path).is_file(), place
            assert f"def {function}" in (ROOT / path).read_text(encoding="utf-8"), place
        for output in item.outputs:
            # names with a level or a dimension in them are written by a pattern
            stem = output.split("_alpha_")[0].split("-d")[0].removesuffix(Path(output).suffix)
            stem = "figures_7_to_14" if stem.startswith("figures_7_to_14") else stem
            assert stem in source, output


@pytest.mark.parametrize("study", PAGES)
def test_every_row_leads_somewhere_and_answers(study: str) -> None:
    for item in items_of(study):
        assert item.agrees
        assert "|" not in item.agrees + item.says
        if not (item.objects or item.outputs or item.tests):
            assert item.agrees.startswith("not here: "), item.title


@pytest.mark.parametrize("study", PAGES)
def test_the_page_ends_with_the_list_of_its_paper(study: str) -> None:
    page = (ROOT / PAGES[study]).read_text(encoding="utf-8")
    assert page.endswith(section(study)), "run python -m studies.contents"


def test_pages_that_would_change_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("studies.contents.ROOT", tmp_path)
    for page in PAGES.values():
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text("# A page\n", encoding="utf-8")
    assert main(["--check"]) == 1
    assert capsys.readouterr().out.split() == list(PAGES.values())
    assert main([]) == 0
    assert main(["--check"]) == 0
    first = next(iter(PAGES))
    assert (tmp_path / PAGES[first]).read_text(encoding="utf-8") == with_section("# A page\n", first)


# What the lists claim and no other test shows.


def random_table(rng: np.random.Generator, shape: tuple[int, int]) -> list[list[Fraction]]:
    counts = rng.integers(1, 6, shape)
    return [[Fraction(int(c), int(counts.sum())) for c in row] for row in counts]


def test_idealised_sets_are_right_continuous() -> None:
    """Lemma 1 (a): a level raised by a little leaves every set as it is."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        Q, A = random_table(rng, (3, 3)), rng.integers(0, 4, (3, 3))
        for k in range(1, 12):
            alpha, tau = Fraction(k, 12), Fraction(int(rng.integers(0, 7)), 6)
            near = prediction_sets(Q, A, alpha=alpha + Fraction(1, 10**9), tau=tau)
            np.testing.assert_array_equal(near, prediction_sets(Q, A, alpha=alpha, tau=tau))


@pytest.mark.parametrize("name", ["N", "M", "empty", "E", "OM"])
def test_idealised_criteria_are_right_continuous(name: str) -> None:
    """Lemma 1 (b) and Corollary 3: values just above a level approach the value at it."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        Q, A = random_table(rng, (3, 3)), rng.integers(0, 4, (3, 3))
        for k in range(1, 12):
            alpha = Fraction(k, 12)
            gap = criterion_value(Q, A, name, alpha=alpha + Fraction(1, 10**9)) - criterion_value(
                Q, A, name, alpha=alpha
            )
            assert abs(gap) < Fraction(1, 10**6)


@pytest.mark.parametrize("name", ["S", "N", "U", "M", "F", "E", "OU", "OM", "OF", "OE"])
def test_with_two_labels_a_refinement_of_cp_is_optimal(name: str) -> None:
    """Corollary 1, by trying every weak order of two objects with two labels."""
    rng = np.random.default_rng(2)
    orders = [np.reshape(order, (2, 2)) for order in weak_orders(4)]
    for _ in range(10):
        Q = random_table(rng, (2, 2))
        assert any(refines(Q, A, "CP") and is_optimal(Q, A, name) for A in orders)
    assert is_optimal([[0.3, 0.7]], conformity([[0.3, 0.7]], "CP"), name)


def test_labels_and_scores_do_not_add_complexity() -> None:
    """Lemma 2: R(H1) <= R(H) and R(H2) <= R(H), over all signs and all slabs of random classes."""
    rng = np.random.default_rng(3)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    for _ in range(20):
        classifiers, y = rng.integers(1, 5, (5, 6)) / 5, rng.random(6) < 0.5
        slabs = all_slabs(classifiers).astype(float)
        plain = (signs @ slabs.T).max(axis=1).mean()
        labelled = (signs @ (slabs * y).T).max(axis=1).mean()
        ends = [-np.inf, *np.unique(classifiers)]
        scored = np.concatenate(
            [
                classifiers * ((classifiers > a) & (classifiers <= b))
                for a, b in itertools.combinations(ends, 2)
            ]
        )
        assert labelled <= plain + 1e-12
        assert np.maximum((signs @ scored.T).max(axis=1), 0).mean() <= plain + 1e-12
