# %% [markdown]
# # A regressor, end to end
#
# We predict the price of flats and owe every buyer an interval: "between 212 and 268 thousand, nine times out of ten".
# The data are made up, so that the truth is known: prices scatter more for large flats.

# %%
import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor

import calipers
from calipers.conformal import ConformalRegressor

rng = np.random.default_rng(0)
n = 4000
flats = pl.DataFrame(
    {
        "area": rng.gamma(6, 13, n).round(1),
        "age": rng.integers(0, 90, n),
        "distance": rng.exponential(4, n).round(2),
    }
)
area, age, distance = (flats[name].to_numpy() for name in flats.columns)
price = 3.2 * area - 0.5 * age - 4 * np.sqrt(distance) + 0.25 * area * rng.normal(size=n)
X = flats.to_numpy()
train, calibration, test = slice(0, 1500), slice(1500, 2500), slice(2500, None)

# %% [markdown]
# ## Intervals in two lines
#
# `fit` trains the model, `conformalize` looks at its errors on rows it has not seen and takes the width from them.

# %%
model = HistGradientBoostingRegressor(max_iter=80, random_state=0)
plain = ConformalRegressor(model).fit(X[train], price[train])
plain.conformalize(X[calibration], price[calibration])
intervals = plain.predict_interval(X[test], alpha=0.1)
print(intervals[:3].round(0))

# %% [markdown]
# ## Do they hold? And everywhere?
#
# Give the audit the features under their own names and it can answer *where*.

# %%
found = calipers.audit(
    price[test], intervals=intervals, X=flats[test], alpha=0.1, n_calibration=1000, random_state=0
)
print(found.estimates["coverage"])
for fault in found.faults:
    print(fault)

# %% [markdown]
# Nine in ten overall, as promised. But the buyers of large flats are covered far less often than nine times in ten, and pay for
# the small flats, whose intervals are wider than they need to be. The picture of the audit:

# %%
from calipers.plots import plot_picture

pictures = {picture["name"]: picture for picture in found.to_dict()["pictures"]}
print(list(pictures))
plot_picture(next(p for p in pictures.values() if p["question"] == "everywhere"))

# %% [markdown]
# ## A score that knows about the spread
#
# `nonconformity="quantile"` learns a lower and an upper quantile of the price and moves both by what the calibration rows
# demand. Same promise, other shape.

# %%
shaped = ConformalRegressor(
    HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=80, random_state=0),
    nonconformity="quantile",
    alpha=0.1,
)
shaped.fit(X[train], price[train]).conformalize(X[calibration], price[calibration])
better = shaped.predict_interval(X[test])
again = calipers.audit(
    price[test], intervals=better, X=flats[test], alpha=0.1, n_calibration=1000, random_state=0
)
print(again.estimates["coverage"])
print([str(fault) for fault in again.faults] or "no fault found")

# %% [markdown]
# ## Which one to ship
#
# `compare` pairs the two row by row. The interval score charges for width and for misses; smaller is better. A winner
# is named only where the difference is more than luck.

# %%
print(calipers.compare({"one width": found, "quantile": again}))

# %%
import matplotlib.pyplot as plt

width = {"one width": np.diff(intervals)[:, 0], "quantile": np.diff(better)[:, 0]}
for name, values in width.items():
    plt.plot(area[test], values, ".", markersize=2, label=name)
plt.xlabel("area of the flat")
plt.ylabel("width of the interval")
plt.legend()

# %% [markdown]
# ## When a promise on average is not enough
#
# The promise so far is about the average over calibration sets. `guarantee="pac"` promises it for the set at hand, with
# probability 95 %, and pays with a little width; see [small data](../howto/small-data.md).

# %%
sure = ConformalRegressor(model, guarantee="pac", delta=0.05).fit(X[train], price[train])
sure.conformalize(X[calibration], price[calibration])
print("width, on average over calibration sets:", round(float(np.diff(intervals).mean()), 1))
print(
    "width, for this calibration set:        ",
    round(float(np.diff(sure.predict_interval(X[test])).mean()), 1),
)
