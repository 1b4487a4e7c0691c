"""Made expected_losses.json with covmetrics 0.1.2 (numpy inputs): python make_covmetrics_losses.py."""

import json
from pathlib import Path

import numpy as np


def main():
    from covmetrics import losses
    from covmetrics.ERT import evaluate_with_predictions

    rng = np.random.default_rng(2024)
    h = np.round(rng.uniform(0.55, 0.995, size=40), 4)
    covered = (rng.random(40) < h).astype(float)
    alpha = 0.15
    names = {"l1": "L1_miscoverage", "l2": "brier_score", "kl": "logloss"}
    values = {
        key + suffix: float(evaluate_with_predictions(h, covered, alpha, getattr(losses, name + suffix)))
        for key, name in names.items()
        for suffix in ("", "_over", "_under")
    }
    out = {"alpha": alpha, "h": h.tolist(), "covered": covered.tolist(), "values": values}
    Path(__file__).with_name("expected_losses.json").write_text(json.dumps(out))


if __name__ == "__main__":
    main()
