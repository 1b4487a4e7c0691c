"""A certificate: how wrong the probabilities can be on all future cases.

The error measured on n rows is itself uncertain. The upper line is guaranteed at 95 % for every model and
every law of the data, the one below it holds for large samples; the dashed line is the true error, known
because the world is made up. More rows bring the bounds down; they do not change the model.
"""

import matplotlib.pyplot as plt
import numpy as np

from calipers.datasets import ScoreWorld
from calipers.metrics import calibration_error

world = ScoreWorld("uniform", "shift", 0.2)
sizes = np.array([100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000])
p, y = world.sample(50_000, random_state=1)
read = [calibration_error(y[:n], p[:n], random_state=0) for n in sizes]
print(read[3].details["sentence"])

plt.plot(sizes, [e.high for e in read], "o-", label="guaranteed upper bound")
plt.plot(sizes, [e.details["asymptotic_high"] for e in read], "o-", label="bound for large samples")
plt.plot(sizes, [e.value for e in read], "o-", label="measured error")
plt.axhline(world.calibration_error(), color="black", linestyle="--", linewidth=1, label="true error")
plt.xscale("log")
plt.ylim(0, None)
plt.xlabel("rows")
plt.ylabel("sup-interval calibration error")
plt.legend()
