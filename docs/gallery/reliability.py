"""When it says 0.7, does it happen in 70 % of cases?

The curve is the observed frequency for every stated probability; no bins were chosen. The band is what a
calibrated model reads on this many rows: outside it is a fault, inside it is noise. Isotonic calibration on
other rows brings the curve back into its band.
"""

import matplotlib.pyplot as plt

from calipers.calibration import IsotonicCalibrator
from calipers.datasets import ScoreWorld
from calipers.displays import ReliabilityDisplay

p, y = ScoreWorld("uniform", "square").sample(4000, random_state=0)
after = IsotonicCalibrator().fit(p[:2000], y[:2000]).predict(p[2000:])

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
for ax, title, stated in ((axes[0], "as the model states them", p[2000:]), (axes[1], "calibrated", after)):
    shown = ReliabilityDisplay.from_predictions(y[2000:], stated, random_state=0, ax=ax)
    print(f"{title}: {shown.estimate}")
    ax.set_title(f"{title}\nerror {shown.estimate.value:.3f}, p = {shown.estimate.p_value:.3f}", fontsize=10)
