"""What will the next case cost? Forecasts first, outcomes later.

For every model a bar that holds the error on the next patient with probability 90 %, computed before the
20 patients on the right were looked at. Diamonds are their errors. About two in twenty may lie outside.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from calipers.performance import CandidatePerformance
from calipers.plots import plot_forecast_bars

X, y = load_diabetes(return_X_y=True)
order = np.random.default_rng(1).permutation(len(X))
X, y = X[order], y[order]
models = {"the mean": DummyRegressor(), "neighbours": KNeighborsRegressor(10), "ridge": Ridge(0.1)}
forecasts, realised = {}, {}
for name, model in models.items():
    forecast = CandidatePerformance(model, loss="absolute", alpha=0.1, random_state=0).fit(X[:-20], y[:-20])
    forecasts[name] = forecast.forecast_.to_estimate(name)
    realised[name] = np.abs(y[-20:] - forecast.estimator_.predict(X[-20:]))
    print(forecasts[name])
plot_forecast_bars(forecasts, realised=realised, loss_name="absolute error on the next patient")
