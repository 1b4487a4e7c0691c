"""Where do the intervals fail? The search draws a fence around it.

Intervals of one width cover 90 % of all cases. Crosses are the cases they missed: most lie where the
noise is large. The shaded strips are the rules that the search found on half of the rows; their coverage is
measured on the other half.
"""

import matplotlib.pyplot as plt
import numpy as np

from calipers.datasets import HeteroscedasticWorld
from calipers.metrics import failing_regions, is_covered

world = HeteroscedasticWorld(n_features=3)
X, y = world.sample(2000, random_state=0)
intervals = world.constant_intervals(X, alpha=0.1)
covered = is_covered(y, intervals)
regions = failing_regions(X, covered, alpha=0.1, max_conditions=1, random_state=0)
for found in regions.values():
    print(found)

shown = np.arange(600)
hit, missed = shown[covered[:600]], shown[~covered[:600]]
plt.scatter(X[hit, 0], y[hit], s=8, alpha=0.5, label="covered")
plt.scatter(X[missed, 0], y[missed], s=22, marker="x", label="missed")
order = np.argsort(X[:, 0])
plt.plot(X[order, 0], intervals[order], color="0.35", linewidth=1)
for rule, found in list(regions.items())[:2]:
    edge = float(rule.split()[-1])
    far = X[:, 0].max() if ">" in rule else X[:, 0].min()
    plt.axvspan(edge, far, color="0.85")
    plt.text((edge + far) / 2, 11.5, f"{rule}\ncovers {100 * found.value:.0f} %", ha="center", fontsize=9)
plt.ylim(-9, 14.5)
plt.xlabel("x0")
plt.ylabel("outcome, and the interval")
plt.legend(loc="lower center", ncols=2)
