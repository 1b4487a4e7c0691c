"""Four scores, one promise: how large are the sets?

LAC, APS, RAPS and SAPS turn the same probabilities into sets that cover 90 %. They spend the labels
differently: LAC keeps the average small and may return nothing, APS collects the tail of small probabilities,
RAPS and SAPS penalise it.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calipers.conformal import ConformalClassifier, raps
from calipers.datasets import MixtureWorld
from calipers.metrics import coverage

X, y = MixtureWorld(n_classes=20, separation=0.7).sample(5000, random_state=0)
model = FrozenEstimator(LogisticRegression(max_iter=500).fit(X[:2000], y[:2000]))
rules = {"LAC": "lac", "APS": "aps", "RAPS": partial(raps, penalty=0.05, k_reg=3), "SAPS": "saps"}
for place, (name, rule) in enumerate(rules.items()):
    predictor = ConformalClassifier(model, nonconformity=rule).conformalize(X[2000:3500], y[2000:3500])
    sets = predictor.predict_set(X[3500:], alpha=0.1)
    share = np.bincount(sets.sum(axis=1), minlength=21) / len(sets)
    read = coverage(y[3500:], sets, alpha=0.1, n_calibration=1500)
    words = f"{name}: mean size {sets.sum(axis=1).mean():.1f}, covers {100 * read.value:.0f} %"
    foot = 1.0 * (3 - place)
    (line,) = plt.step(np.arange(21), share + foot, where="mid")
    plt.text(20, foot + 0.12, words, ha="right", color=line.get_color())
    plt.axhline(foot, color="0.35", linewidth=0.5)
plt.yticks([])
plt.xticks(range(0, 21, 2))
plt.xlabel("labels in the set")
plt.ylabel("share of rows")
