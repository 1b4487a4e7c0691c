"""Coverage at every level, with the luck of the calibration rows.

The line shows how often the intervals of one predictor cover, less what they promise; the band is what a
sound predictor with 200 calibration rows reads on 1000 test rows. One threshold serves all test rows, so the
line runs smoothly and may stay on one side: that is luck, and the band allows for it.
"""

import matplotlib.pyplot as plt
import numpy as np

from calipers.conformal import ConformalRegressor
from calipers.datasets import HeteroscedasticWorld
from calipers.metrics import coverage

X, y = HeteroscedasticWorld(n_features=2).sample(1700, random_state=1)
predictor = ConformalRegressor().fit(X[:500], y[:500]).conformalize(X[500:700], y[500:700])
alphas = np.round(np.arange(0.02, 0.5, 0.02), 2)
intervals = predictor.predict_interval(X[700:], alpha=list(alphas))
read = [coverage(y[700:], intervals[:, :, i], alpha=a, n_calibration=200) for i, a in enumerate(alphas)]

promised = 1 - alphas
plt.fill_between(
    promised,
    [e.null_low - p for e, p in zip(read, promised, strict=True)],
    [e.null_high - p for e, p in zip(read, promised, strict=True)],
    color="0.85",
    label="95 % of sound predictors",
)
plt.plot(promised, [e.value - p for e, p in zip(read, promised, strict=True)], "o-", label="this predictor")
plt.axhline(0, color="black", linestyle="--", linewidth=1)
plt.xlabel("promised coverage")
plt.ylabel("measured minus promised")
plt.legend()
