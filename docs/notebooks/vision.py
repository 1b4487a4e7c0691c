# %% [markdown]
# # Vision: a hundred classes, sets and difficulty
#
# A wide residual network has sorted 4000 photographs of the CIFAR-100 test set into a hundred classes, and three of
# four times it is right. What should a person see who has to act on the fourth? This study goes from its softmax
# to sets of labels that keep a promise, and asks whether they keep it for the hard photographs too.
#
# The network and its outputs are published (WRN-16-4, from the records of the netcal project); nothing is trained
# here.

# %%
import numpy as np

import calipers

stored = np.load("data/cifar100.npz")
P = np.exp(stored["steps"] / -16)  # log-probabilities were stored in sixteenths
P /= P.sum(axis=1, keepdims=True)
y = stored["label"].astype(int)
held_out, test = slice(0, 1500), slice(1500, 4000)
print(f"accuracy {np.mean(P[test].argmax(axis=1) == y[test]):.3f}, stated {P[test].max(axis=1).mean():.3f}")

# %% [markdown]
# ## Can the softmax be read as probabilities?
#
# With a hundred classes there are a hundred questions. The audit asks about the top label, about each class with a
# correction for their number, and about the sets that the probabilities imply.

# %%
found = calipers.audit(y[test], probabilities=P[test], random_state=0)
for fault in found.faults:
    print(fault)

# %% [markdown]
# Over-confident, as most networks are. One temperature, learnt on held-out photographs, softens all probabilities
# and keeps the order of the labels.

# %%
from calipers.calibration import TemperatureCalibrator
from calipers.metrics import calibration_error

soft = TemperatureCalibrator().fit(P[held_out], y[held_out]).predict(P)
for name, stated in {"as stated": P, "softened": soft}.items():
    error = calibration_error(y[test], stated[test], multiclass="top_label", random_state=0)
    print(f"{name}: {error}")

# %% [markdown]
# More than a third of the error is gone; the rest has a shape that one number cannot bend. It is small enough to go on
# with, because sets do not rest on it: their guarantee comes from the held-out photographs.
#
# ## Sets: the choice of the score decides
#
# A conformal p-value per label, from 1500 held-out photographs; a set holds the labels above alpha. Three scores,
# one guarantee.

# %%
from functools import partial

from calipers.conformal import aps, conformal_p_values, lac, raps

rules = {"lac": lac, "aps": aps, "raps": partial(raps, penalty=0.02, k_reg=3)}
p_values = {}
print("      coverage  mean size  largest  empty")
for name, rule in rules.items():
    known = rule(soft[held_out])[np.arange(1500), y[held_out]]
    p_values[name] = conformal_p_values(known, rule(soft[test]))
    sets = p_values[name] > 0.1
    size, covered = sets.sum(axis=1), sets[np.arange(2500), y[test]]
    print(f"{name:5}{covered.mean():9.3f}{size.mean():11.1f}{size.max():9d}{np.mean(size == 0):7.1%}")

# %% [markdown]
# All three cover nine in ten, and there the likeness ends. APS adds up probabilities until the true label is in. With
# a hundred classes the tail is long, so that the threshold ends up next to 1: the sets of doubtful photographs hold
# most labels, and the clearest photographs, whose first label alone exceeds the threshold, get none. The penalty of
# RAPS shortens the tail and leaves the empty sets. The audit says so in words.

# %%
for name in rules:
    audited = calipers.audit(
        y[test],
        p_values=p_values[name],
        probabilities=soft[test],
        alpha=0.1,
        n_calibration=1500,
        random_state=0,
    )
    print(name)
    for fault in audited.faults:
        if fault.question in ("coverage", "narrow", "adaptive"):
            print("  ", fault)
    if name == "lac":
        smallest = audited

# %% [markdown]
# ## Does the promise hold for hard photographs?
#
# LAC has the smallest sets, and one fault: difficulty. Where the network is least sure the sets grow, but not enough.

# %%
import matplotlib.pyplot as plt

sets = p_values["lac"] > 0.1
covered, size = sets[np.arange(2500), y[test]], sets.sum(axis=1)
fifth = np.argsort(np.argsort(soft[test].max(axis=1), kind="stable")) * 5 // 2500
figure, axes = plt.subplots(figsize=(6.4, 3.8))
shares = [covered[fifth == k].mean() for k in range(5)]
axes.plot(range(5), shares, marker="o", linestyle="none")
for k in range(5):
    axes.annotate(
        f"{size[fifth == k].mean():.1f} labels",
        (k, shares[k]),
        xytext=(0, -16),
        textcoords="offset points",
        ha="center",
    )
axes.axhline(0.9, color="#999999", linewidth=1)
axes.set(
    xlim=(-0.5, 4.5), ylim=(0.75, 1.01), ylabel="covered", xlabel="fifths of photographs, the hardest first"
)
axes.set_xticks(range(5), ["hardest", "2", "3", "4", "easiest"])

# %% [markdown]
# ## Repair, and its price
#
# The repair tries thresholds along difficulty and others, keeps half of the rows untouched, and shows both sides
# of the bargain there.

# %%
repair = smallest.repair()
print(repair)

# %% [markdown]
# The hard photographs are now covered as promised, at 3.6 labels per set instead of 2.2. Whether that is worth it
# depends on what the sets are for; the audit says what is bought, and for how much.
#
# ## Who looks at which photograph?
#
# Sets sort the work: one label is acted on, several go to a person.

# %%
mine = sets.sum(axis=1) == 1
print(f"{mine.mean():.0%} of the photographs have one label, right in {covered[mine].mean():.1%}")
print(
    f"the others hold {size[~mine].mean():.1f} labels on average and the true one in {covered[~mine].mean():.1%}"
)
