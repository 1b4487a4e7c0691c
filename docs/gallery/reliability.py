"""When it says 0.7, does it happen in 70 % of cases?

The curve is the observed frequency for every stated probability; no bins were chosen. The band is what a
calibrated model reads on this many rows: outside it is a fault, inside it is noise. Isotonic calibration on
other rows brings the curve back into its band.
"""

import matplotlib.pyplot as plt

from calipers.calibration import IsotonicCalibrator
from calipers.datasets import ScoreWorld
from calipers.metrics import calibration_error, reliability_curve

p, y = ScoreWorld("uniform", "square").sample(4000, random_state=0)
after = IsotonicCalibrator().fit(p[:2000], y[:2000]).predict(p[2000:])

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.9), sharey=True)
for ax, title, stated in ((axes[0], "as the model states them", p[2000:]), (axes[1], "calibrated", after)):
    curve = reliability_curve(y[2000:], stated, random_state=0)
    read = calibration_error(y[2000:], stated, random_state=0)
    print(f"{title}: {read}")
    band = {"color": "0.85", "label": "calibrated models"}
    ax.fill_between(curve.x, curve.null_low, curve.null_high, step="post", **band)
    ax.step(curve.x, curve.y, where="post", label="observed")
    ax.plot([0, 1], [0, 1], color="black", linestyle="--", linewidth=1)
    ax.set_title(f"{title}\nerror {read.value:.3f}, p = {read.p_value:.3f}", fontsize=10)
    ax.set_xlabel("stated probability")
axes[0].set_ylabel("observed frequency")
axes[0].legend(loc="upper left")
