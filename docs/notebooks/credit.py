# %% [markdown]
# # Credit: calibrated for all, not for each
#
# A lender raises the limit of a card when an applicant probably earns more than 50 000 dollars. The score is a
# probability, and on average it is right. This study asks whether it is right for women and for men, what the
# difference costs whom, and what a repair brings.
#
# The rows are real: 16 281 adults of the 1994 census of the United States (UCI Adult). The applicant's sex is not
# given to the model, as the law demands of lenders in many countries.

# %%
import numpy as np
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import calipers

people = pl.read_csv("data/adult.csv.gz")
y = (people["income"] == ">50K").to_numpy().astype(int)
sex = people["sex"].to_numpy()
words, numbers = ["workclass", "occupation"], ["age", "education_num", "hours_per_week"]
X = people.select(words + numbers)
train, held_out, test = np.split(np.random.default_rng(0).permutation(len(y)), [5000, 10_000])
columns = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers)
)
model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(X[train], y[train])
p = model.predict_proba(X[test])[:, 1]
print(f"{len(test)} test rows: {p.mean():.3f} stated on average, {y[test].mean():.3f} happened")

# %% [markdown]
# ## The average hides two errors
#
# The average is right. Say which groups matter, and the audit asks for each.

# %%
found = calipers.audit(y[test], probabilities=p, groups=sex[test], X=X[test].select(numbers), random_state=0)
for fault in found.faults:
    if fault.severity != "note":
        print(fault)

# %% [markdown]
# Women are promised seven points more than they earn. The model has never seen the column: what it knows about work
# and hours means another chance for women than for men in these data, and one score for both splits the
# difference. Men pay the other half, spread over twice as many rows.

# %%
from calipers.metrics import calibration_error

for name in ("Female", "Male"):
    mine = sex[test] == name
    stated, happened = p[mine].mean(), y[test][mine].mean()
    print(f"{name}: {mine.sum()} rows, {stated:.3f} stated, {happened:.3f} happened")
    print("  ", calibration_error(y[test][mine], p[mine], random_state=0))

# %% [markdown]
# ## What does it cost?
#
# A limit that is too high costs 1, a good customer lost costs 2 (any unit). The cheapest rule then says yes from
# 1 / (1 + 2) on, *if the score is a probability*. A wrong score decides wrongly, and the bill can be counted on
# the test rows.

# %%
from calipers.calibration import bayes_decision

costs = {"false_positive_cost": 1.0, "false_negative_cost": 2.0}


def bill(stated, rows):
    """Mean cost of the decisions for some of the test rows."""
    yes = bayes_decision(stated[rows], **costs)
    return np.mean(yes * (1 - y[test][rows]) * 1.0 + ~yes * y[test][rows] * 2.0)


for name in ("Female", "Male"):
    mine = sex[test] == name
    yes = bayes_decision(p[mine], **costs)
    print(
        f"{name}: yes to {yes.mean():.1%}, of whom {y[test][mine][yes].mean():.1%} earn it; cost {bill(p, mine):.3f}"
    )

# %% [markdown]
# The rule says yes where at least one in three should earn it. Of all the women it says yes to, not even one in
# three does. The curves show why: that of women reaches one in three near a score of 0.58, that of men near 0.25.

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6.4, 3.8))
edges = np.quantile(p, np.linspace(0, 1, 11))
for name in ("Female", "Male"):
    mine = sex[test] == name
    tenth = np.digitize(p[mine], edges[1:-1])
    shown = [k for k in range(10) if np.sum(tenth == k) >= 30]
    axes.plot(
        [p[mine][tenth == k].mean() for k in shown],
        [y[test][mine][tenth == k].mean() for k in shown],
        marker="o",
        label=name,
    )
axes.axline((0, 0), slope=1, color="#999999", linewidth=1)
axes.axhline(1 / 3, color="#999999", linewidth=1, linestyle=":")
axes.set(xlabel="stated", ylabel="happened", xlim=(0, 1), ylim=(0, 1))
axes.legend()

# %% [markdown]
# ## Repair: one map does nothing, one per group does
#
# A monotone map that is learnt from all held-out rows cannot help: the average was right already. One per group can.
# `loss_ratio` is the bill after over the bill before, with its interval.

# %%
from calipers.calibration import IsotonicCalibrator, loss_ratio

p_held_out = model.predict_proba(X[held_out])[:, 1]
one_map = IsotonicCalibrator().fit(p_held_out, y[held_out]).predict(p)
per_group = np.empty_like(p)
for name in ("Female", "Male"):
    learn, use = sex[held_out] == name, sex[test] == name
    per_group[use] = IsotonicCalibrator().fit(p_held_out[learn], y[held_out][learn]).predict(p[use])
for name in ("Female", "Male"):
    mine = sex[test] == name
    for way, after in {"one map": one_map, "a map per group": per_group}.items():
        print(f"{name}, {way}:", loss_ratio(y[test][mine], p[mine], after[mine], **costs))

# %% [markdown]
# The bill for women falls by about a seventh, that for men does not rise. Is the new score right in each group?

# %%
again = calipers.audit(
    y[test], probabilities=per_group, groups=sex[test], X=X[test].select(numbers), random_state=0
)
for fault in again.faults:
    if fault.severity != "note":
        print(fault)

# %% [markdown]
# Of the groups no fault worth more than a note is left. What remains is about age: the young are promised too much,
# which a model that is linear in age cannot see. `found.repair()` compares maps per group with a multicalibrated one over groups
# and features at once; see [repair](../howto/repair.md).
#
# ## What has to be decided by people
#
# The map per group uses a column that the model was not allowed to see. Probabilities that are right in each group
# and decisions that ignore the group cannot both be had from these data: the numbers above are the price of
# either. Which one to pay is not a question for a library; that it is paid knowingly is.
