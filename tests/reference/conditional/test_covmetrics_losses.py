"""Our contributions against the losses of covmetrics 0.1.2 on the same predictions."""

import json
from pathlib import Path

import numpy as np
import pytest

from calipers.metrics.conditional.losses import DISTANCES, clip_to_side

STORED = json.loads(Path(__file__).with_name("expected_losses.json").read_text())


@pytest.mark.parametrize("key", sorted(STORED["values"]))
def test_every_loss_and_side_agrees_with_covmetrics(key):
    loss, _, side = key.partition("_")
    h, covered = np.array(STORED["h"]), np.array(STORED["covered"])
    target = np.full(len(h), 1 - STORED["alpha"])
    ours = DISTANCES[loss].contributions(clip_to_side(h, target, side or "both"), covered, target).mean()
    assert ours == pytest.approx(STORED["values"][key], rel=1e-9)
