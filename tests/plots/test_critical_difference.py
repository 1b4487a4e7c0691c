import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.inference import compare_ranks
from calipers.plots import plot_along_ease, plot_critical_difference
from calipers.results import Curve

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def comparison():
    values = np.random.default_rng(0).normal([0, 0, 3, 3, 9], 0.5, size=(30, 5))
    return compare_ranks(values, ["O-LAC", "O-SAPS", "APS", "RAPS", "LAC"], post_hoc="nemenyi")


def test_every_method_is_named_with_its_rank_and_every_clique_has_a_bar(comparison):
    ax = plot_critical_difference(comparison)
    texts = [t.get_text() for t in ax.texts]
    for name, rank in zip(comparison.names, comparison.average_ranks, strict=True):
        assert any(name in text and f"{rank:.2f}" in text for text in texts)
    bars = [line for line in ax.lines if line.get_linewidth() == 4]
    assert len(bars) == len(comparison.cliques)
    assert any("critical difference" in text for text in texts)
    pyplot.close(ax.figure)


def test_the_given_axes_are_used(comparison):
    figure, ax = pyplot.subplots()
    assert plot_critical_difference(comparison, ax=ax, title="T-CV") is ax
    assert ax.get_title() == "T-CV"
    pyplot.close(figure)


def test_curves_along_the_ease_keep_their_bands():
    curve = Curve(
        name="rank",
        x=[1, 2],
        y=[2.0, 1.0],
        low=[1.5, 0.9],
        high=[2.5, 1.1],
        x_label="bin",
        y_label="mean rank",
    )
    ax = plot_along_ease({"a": curve, "b": curve})
    assert [line.get_label() for line in ax.lines] == ["a", "b"]
    assert len(ax.collections) == 2
    assert ax.get_ylabel() == "mean rank"
    pyplot.close(ax.figure)


@pytest.mark.parametrize(("post_hoc", "needed"), [("nemenyi", 3), ("holm", 10)])
def test_a_diagram_of_too_few_blocks_is_refused(post_hoc, needed):
    # six methods: the critical difference of two blocks is 5.3, more than the largest difference of ranks, 5;
    # 15 pairs of n signed ranks need 15 * 2 / 2^n <= 0.05
    values = np.random.default_rng(0).random((needed, 6)) + 10 * np.arange(6)
    names = [f"m{i}" for i in range(6)]
    assert plot_critical_difference(compare_ranks(values, names, post_hoc=post_hoc)).texts
    few = compare_ranks(values[:-1], names, post_hoc=post_hoc)
    assert not few.can_differ
    with pytest.raises(InputError, match=f"{needed - 1} blocks cannot tell 6 methods apart"):
        plot_critical_difference(few)
