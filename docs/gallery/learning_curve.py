"""Would more training rows help, and would we notice?

For every training size the error that the next case will have, with probability 80 %, after training on that
many rows nobody has seen yet. The median falls and flattens; the band says how much of a single error is luck
that no amount of training removes.
"""

from sklearn.datasets import make_friedman1
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from calipers.performance import forecast_learning_curves
from calipers.plots import plot_learning_curves

X, y = make_friedman1(n_samples=20_500, noise=1.0, random_state=0)
models = {"ridge": Ridge(), "5 neighbours": KNeighborsRegressor(5)}
curves = forecast_learning_curves(
    models, X, y, loss="absolute", train_sizes=[10, 20, 40, 80], n_points=250, alpha=0.2, random_state=0
)
for name, curve in curves.items():
    print(name, curve.y.round(2))
plot_learning_curves(curves)
