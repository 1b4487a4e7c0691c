# %% [markdown]
# # A classifier, end to end
#
# A model reads handwritten digits. It states a probability for every digit. Before anybody acts on those
# probabilities we ask whether they can be read as probabilities, repair them, turn them into sets that keep a
# promise, look where that promise breaks, and forecast what the model will cost next month.
#
# Nothing is downloaded; the whole notebook takes a few seconds.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import calipers

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order] / 16, y[order]
train, held_out, test = slice(0, 500), slice(500, 1000), slice(1000, None)
model = GaussianNB(var_smoothing=1e-3).fit(X[train], y[train])
print(f"accuracy {model.score(X[test], y[test]):.3f} on {len(y[test])} rows")

# %% [markdown]
# Three parts of the rows, three jobs: `train` teaches the model, `held_out` sets thresholds and repairs, `test` is
# only ever used to measure. Rows that do two jobs flatter the result.
#
# ## Can its probabilities be read as probabilities?

# %%
found = calipers.audit(y[test], probabilities=model.predict_proba(X[test]), random_state=0)
for fault in found.faults:
    print(fault)
    print("   ", fault.evidence)

# %% [markdown]
# The model is right nine times in ten and says that it is nearly always certain. That is what naive Bayes does: it
# takes every pixel for independent evidence. The picture of the audit shows it. The curve is what happened, the grey
# band is where the curve of an honest model would lie on this many rows.

# %%
from calipers.plots import plot_picture

pictures = {picture["name"]: picture for picture in found.to_dict()["pictures"]}
plot_picture(pictures["reliability"])

# %% [markdown]
# ## Repair, on other rows
#
# One number, the temperature, softens all probabilities at once and keeps the order of the labels. It is learnt on
# the held-out rows; the audit of the test rows tells whether that was enough.

# %%
from calipers.calibration import TemperatureCalibrator

repair = TemperatureCalibrator().fit(model.predict_proba(X[held_out]), y[held_out])
softened = repair.predict(model.predict_proba(X[test]))
again = calipers.audit(y[test], probabilities=softened, random_state=0)
print(again.estimates["calibration error of the top label"])
for fault in again.faults:
    print(fault)

# %% [markdown]
# Much better and not perfect: one number cannot bend the curve of ten classes. What is left is said with its size, and a
# warning is not an issue. With more held-out rows a correction per class (`OneVsRestCalibrator`) would go further.

# %% [markdown]
# ## Sets that keep a promise
#
# A probability of 0.6 for "3" still leaves the reader alone. A conformal predictor answers with a *set*: all digits that
# cannot be excluded, made so that nine sets of ten hold the true one, whatever the model is worth.

# %%
from sklearn.frozen import FrozenEstimator

from calipers.conformal import ConformalClassifier

predictor = ConformalClassifier(FrozenEstimator(model)).fit(X[held_out], y[held_out])
predictor.conformalize(X[held_out], y[held_out])
sets = predictor.predict_set(X[test], alpha=0.05)
print("sizes:", np.bincount(sets.sum(axis=1), minlength=4))
print("the first five:", predictor.predict_labels(X[test][:5], alpha=0.05))

# %% [markdown]
# ## Does the promise hold everywhere?
#
# On average it does; that is guaranteed. The audit also asks about the parts: here by how much ink an image holds. `n_calibration` says how many rows set the threshold, so that their luck is not
# mistaken for a fault.

# %%
ink = X[test].sum(axis=1)
audited = calipers.audit(
    y[test],
    sets=sets,
    probabilities=model.predict_proba(X[test]),
    groups=np.where(ink > np.quantile(ink, 0.75), "heavy", "light"),
    X=np.column_stack([ink, X[test][:, 28]]),
    alpha=0.05,
    n_calibration=500,
    random_state=0,
)
print(audited.estimates["coverage"])
for finding in audited.findings:
    if finding.question in ("coverage", "everywhere", "adaptive"):
        print(finding.code, finding.outcome, "-", finding.sentence)

# %% [markdown]
# ## What will it cost next time?
#
# An interval for the error rate of the next twenty images, valid for any model as long as the next images are like
# these.

# %%
from calipers.performance import forecast_losses

wrong = (model.predict(X[held_out]) != y[held_out]).astype(float)
batches = wrong.reshape(-1, 20).mean(axis=1)
low, high = forecast_losses(batches, alpha=0.2).interval()
print(f"error rate of the next 20 images: {low:.0%} to {high:.0%}, with probability 80 %")

# %% [markdown]
# ## Keep the evidence
#
# One self-contained page for people, one JSON file for programs. `calipers audit` with exit codes does the same for a
# file in a build; see [audit in CI](../howto/ci.md).

# %%
from pathlib import Path

found.to_html("report.html")
found.to_json("audit.json")
print(sorted(path.name for path in Path().glob("*.*")))
