"""ERT in one dimension: can anything predict where the intervals miss?

Dashed is the true coverage of constant-width intervals at every x, known because the world is made up. The
line is what a classifier learns about it from 3000 rows. ERT is the mean distance between the line and the
promise, judged on rows that the classifier has not seen; here the truth is known too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from calipers.datasets import HeteroscedasticWorld
from calipers.metrics import ert, is_covered

world = HeteroscedasticWorld(n_features=1)
X, y = world.sample(3000, random_state=0)
covered = is_covered(y, world.constant_intervals(X, alpha=0.1))
classifier = make_pipeline(SplineTransformer(n_knots=6), LogisticRegression())
read = ert(X, covered, alpha=0.1, classifier=classifier, random_state=0)
truth = world.ert(alpha=0.1)["l1"]
print(f"{read}; the truth is {truth:.3f}")

grid = np.linspace(X.min(), X.max(), 300)[:, None]
learnt = classifier.fit(X, covered).predict_proba(grid)[:, 1]
true = world.coverage_at(grid, world.constant_intervals(grid, alpha=0.1))
plt.plot(grid, learnt, label="learnt from covered and missed rows")
plt.plot(grid, true, "--", label="true coverage at x")
plt.fill_between(grid[:, 0], learnt, 0.9, alpha=0.2, label=f"ERT {read.value:.3f} (truth {truth:.3f})")
plt.axhline(0.9, color="black", linewidth=1)
plt.xlabel("x")
plt.ylabel("coverage")
plt.ylim(0.5, None)
plt.legend(loc="lower center")
