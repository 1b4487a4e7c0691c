"""Which of five methods are really better, over twelve data sets?

Every method is ranked on every data set by the size of its sets at 90 % coverage. A red bar joins methods
that cannot be told apart; anything else would be a winner by luck.
"""

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calipers.conformal import ConformalClassifier
from calipers.datasets import MixtureWorld
from calipers.inference import compare_ranks
from calipers.plots import plot_critical_difference

names = ["lac", "aps", "saps", "margin", "top_k"]
sizes = []
for seed in range(12):
    X, y = MixtureWorld(n_classes=4 + seed, n_features=3).sample(2000, random_state=seed)
    model = FrozenEstimator(LogisticRegression(max_iter=500).fit(X[:600], y[:600]))
    predictors = [ConformalClassifier(model, nonconformity=name) for name in names]
    fitted = [p.conformalize(X[600:1200], y[600:1200]) for p in predictors]
    sizes.append([p.predict_set(X[1200:], alpha=0.1).sum(axis=1).mean() for p in fitted])
comparison = compare_ranks(np.array(sizes), [name.upper() for name in names], post_hoc="nemenyi")
print(comparison)
plot_critical_difference(comparison, title="mean set size at 90 %: average rank over 12 data sets, 1 is best")
