"""The pictures of an audit, drawn from the same dictionary as the report."""

from __future__ import annotations

import numpy as np
import pytest

import calipers
from calipers.exceptions import InputError

matplotlib = pytest.importorskip("matplotlib", reason="plots need calipers[plots]")


@pytest.fixture(scope="module")
def pictures() -> dict[str, dict]:
    matplotlib.use("Agg")
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=600)
    y = (rng.random((600, 1)) > P.cumsum(axis=1)).sum(axis=1)
    p_values = np.clip(P + 0.05, 0, 1)
    groups = np.arange(600) % 3
    found = calipers.audit(
        y, probabilities=P, p_values=p_values, groups=groups, X=rng.normal(size=(600, 2)), random_state=0
    )
    return {picture["name"]: picture for picture in found.to_dict()["pictures"]}


def test_every_picture_of_an_audit_can_be_drawn(pictures: dict[str, dict]) -> None:
    import matplotlib.pyplot as plt

    from calipers.plots import plot_picture

    for picture in pictures.values():
        axes = plot_picture(picture)
        assert axes.get_title() == picture["title"]
        plt.close(axes.figure)
    assert {"coverage_by_alpha", "reliability", "loss_along_the_file"} <= set(pictures)


def test_the_points_are_those_of_the_curve(pictures: dict[str, dict]) -> None:
    import matplotlib.pyplot as plt

    from calipers.plots import plot_picture

    figure, axes = plt.subplots()
    assert plot_picture(pictures["coverage_by_alpha"], ax=axes) is axes
    (line,) = axes.lines
    assert line.get_ydata().tolist() == pictures["coverage_by_alpha"]["curves"][0]["y"].tolist()
    plt.close(figure)


def test_an_unknown_kind_is_refused(pictures: dict[str, dict]) -> None:
    from calipers.plots import plot_picture

    with pytest.raises(InputError, match="kind must be one of line, points, intervals, plane, got 'pie'"):
        plot_picture(pictures["reliability"] | {"kind": "pie"})
