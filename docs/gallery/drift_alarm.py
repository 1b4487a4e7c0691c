"""An alarm that may be watched all day.

The monitor bets against "nothing has changed". While that is true its capital may rise above 100 in at most
one of a hundred streams, however long anybody looks. After row 400 the losses grow by half; the capital
explodes soon after.
"""

import matplotlib.pyplot as plt
import numpy as np

from calipers.performance import LossMonitor

rng = np.random.default_rng(0)
known = rng.exponential(size=600)
quiet = rng.exponential(size=800)
changed = np.concatenate([quiet[:400], 1.5 * quiet[400:]])
for name, losses in (("nothing changes", quiet), ("losses grow by half after row 400", changed)):
    monitor = LossMonitor(known, false_alarm_rate=0.01, random_state=0).update(losses)
    curve = monitor.curve()
    plt.plot(curve.x, curve.y, label=name)
    print(name, monitor.result())
plt.plot(curve.x, curve.null_high, "--", color="black", linewidth=1, label="alarm")
plt.axvline(400, color="0.35", linewidth=0.8)
plt.xlabel(curve.x_label)
plt.ylabel(curve.y_label)
plt.legend(loc="upper left")
