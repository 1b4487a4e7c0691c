"""Is the set larger exactly where the case is harder?

Digits, sorted by how little the model's answer moves when the image is disturbed. The rank of the true label
falls from left to right: the left really is harder. Both predictors give larger sets there; one threshold per
bin of difficulty spends more labels on the hard images and fewer on the easiest.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calipers.conformal import ConformalClassifier
from calipers.difficulty import DifficultyBins, ease
from calipers.metrics import true_rank
from calipers.plots import plot_along_ease
from calipers.results import Curve

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order] / 16, y[order]
model = FrozenEstimator(LogisticRegression(C=0.05, max_iter=500).fit(X[:150], y[:150]))
score = ease(model, X[900:], scale=0.2, random_state=1)
parts = np.array_split(np.argsort(score), 9)


def along_ease(values):
    mean = np.array([values[rows].mean() for rows in parts])
    x = (np.arange(9) + 0.5) / 9
    return Curve(name="", x=x, y=mean, x_label="share of rows, hardest first", y_label="mean over the rows")


curves = {"rank of the true label": along_ease(true_rank(y[900:], model.predict_proba(X[900:])))}
bins = DifficultyBins(n_bins=5, scale=0.2, random_state=0)
groupings = {"set size, LAC": None, "set size, a threshold per bin": bins}
for name, grouping in groupings.items():
    predictor = ConformalClassifier(model, groups=grouping).conformalize(X[150:900], y[150:900])
    curves[name] = along_ease(predictor.predict_set(X[900:], alpha=0.05).sum(axis=1))
plot_along_ease(curves)
