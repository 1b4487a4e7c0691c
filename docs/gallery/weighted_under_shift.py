"""When the cases shift, weights keep the promise.

Calibrated on young cases, used on old ones, where the noise is larger: coverage falls below the promise.
Weighting the calibration rows by how likely they are among the new cases restores it, and the intervals grow
to what the new cases need. Only the features of the new cases are needed, not their outcomes.
"""

import matplotlib.pyplot as plt
import numpy as np

from calipers.conformal import ConformalRegressor, LikelihoodRatio
from calipers.metrics import coverage

rng = np.random.default_rng(0)


def cases(n, centre):
    x = rng.normal(centre, 1.0, size=(n, 1))
    return x, x[:, 0] + np.exp(0.35 * x[:, 0]) * rng.normal(size=n)


X, y = cases(2000, 0.0)
shifts = np.linspace(0, 2, 9)
rows = {"plain": [], "weighted": []}
for shift in shifts:
    X_new, y_new = cases(3000, shift)
    ratio = LikelihoodRatio().fit(X[:500], X_new[:1000])
    for name, weights in (("plain", None), ("weighted", ratio)):
        predictor = ConformalRegressor(likelihood_ratio=weights).fit(X[:500], y[:500])
        predictor.conformalize(X[500:], y[500:])
        intervals = predictor.predict_interval(X_new[1000:], alpha=0.1)
        rows[name].append(coverage(y_new[1000:], intervals).value)
for name, values in rows.items():
    plt.plot(shifts, values, "o-", label=name)
plt.axhline(0.9, color="black", linestyle="--", linewidth=1)
plt.xlabel("shift of the new cases, in standard deviations")
plt.ylabel("coverage of the new cases")
plt.legend(loc="lower left")
