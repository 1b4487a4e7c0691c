# %% [markdown]
# # A file from somebody else
#
# You review models that others built. You get no code and no model, only a file with one row per case: what was
# predicted and what happened. This notebook plays both sides: it writes two such files, then reviews them with the
# command line, compares them, and keeps a report that can be filed.

# %%
from pathlib import Path

import numpy as np
import polars as pl

rng = np.random.default_rng(3)
n = 3000
income, age = rng.gamma(4, 10, n).round(1), rng.integers(18, 80, n)
chance = 1 / (1 + np.exp(-(1.5 - 0.06 * income + 0.8 * (age < 30))))
default = rng.random(n) < chance
first = 1 / (1 + np.exp(-(1.5 - 0.06 * income)))  # does not know that the young default more often
second = 1 / (1 + np.exp(-1.7 * np.log(chance / (1 - chance))))  # knows it, and is too sure of itself
for name, p in (("first", first), ("second", second)):
    table = {
        "y_true": np.where(default, "default", "paid"),
        "p_default": p.round(4),
        "p_paid": (1 - p).round(4),
    }
    table |= {"group": np.where(age < 30, "under 30", "30 and over"), "income": income}
    pl.DataFrame(table).write_csv(f"{name}.csv")
print(pl.read_csv("first.csv").head(3))

# %% [markdown]
# ## What can be checked?
#
# Columns are found by name; `--plan` says which questions they answer and what to ask the sender for. In a terminal you
# would type `calipers audit first.csv --plan`; `main` is that same command, and returns its exit code.

# %%
from calipers.cli import main as calipers

code = calipers(["audit", "first.csv", "--plan"])

# %% [markdown]
# ## The review
#
# Exit code 1 means that a fault of the severity `issue` was found, 0 that none was: enough for a script.

# %%
code = calipers(["audit", "second.csv", "--quiet", "--out", "second"])
print("exit code", code)
print(Path("second/summary.md").read_text().split("<details>")[0])

# %% [markdown]
# The second model separates good from bad well and overstates its certainty. The first one is honest on average. Is it
# honest for the young as well? The average over a group is a question of its own; measure it.

# %%
from calipers.metrics import calibration_error

for name in ("first", "second"):
    rows = pl.read_csv(f"{name}.csv")
    for group in ("under 30", "30 and over"):
        part = rows.filter(pl.col("group") == group)
        read = calibration_error(part["y_true"] == "default", part["p_default"], random_state=0)
        print(f"{name}, {group}: {read.details['sentence']} (p = {read.p_value:.3f})")

# %% [markdown]
# ## Which of the two?
#
# Both files are about the same cases in the same order, so they can be compared case by case.

# %%
code = calipers(["compare", "first.csv", "second.csv", "--quiet", "--out", "both"])
print(Path("both/comparison.md").read_text())

# %% [markdown]
# ## Would a repair help?
#
# `calipers calibrate` learns a correction on a part of the rows, applies it to the others, and audits before and after. It never
# changes the file you were sent.

# %%
code = calipers(["calibrate", "second.csv", "--out", "repaired"])

# %% [markdown]
# ## What goes into the file
#
# The report in the folder `second` is one page that needs no network; `audit.json` beside it holds every number. A picture for
# the minutes comes from the same audit in Python:

# %%
from calipers.auditing import audit
from calipers.plots import plot_picture

rows = pl.read_csv("second.csv")
stated = rows.select("p_default", "p_paid")
found = audit(rows["y_true"], probabilities=stated, classes=["default", "paid"], random_state=0)
plot_picture(next(p for p in found.to_dict()["pictures"] if p["name"] == "reliability"))
