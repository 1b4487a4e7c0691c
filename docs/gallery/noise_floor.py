"""What a perfect predictor reads: the noise floor of T-CV.

T-CV is the largest departure of coverage over bins of difficulty. A maximum is never zero: the more bins, the
larger it reads for a predictor that is right everywhere. The band is the exact law; dots are simulated
perfect predictors; crosses are one that covers 80 % in the hardest tenth. Only what lies above the
band is a fault.
"""

import matplotlib.pyplot as plt
import numpy as np

from calipers.inference import CoverageLaw, ViolationLaw
from calipers.metrics import t_cv

rng = np.random.default_rng(0)
ease = rng.random(5000)
bins = np.array([2, 5, 10, 20, 30, 50, 75, 100])
laws = [ViolationLaw([CoverageLaw(5000 // b, 0.1)] * b, 0.9) for b in bins]
sound = rng.random((4, 5000)) < 0.9
faulty = rng.random(5000) < np.where(ease < 0.1, 0.8, 0.911)

low, high = [law.quantile(0.025) for law in laws], [law.quantile(0.975) for law in laws]
plt.fill_between(bins, low, high, color="0.85", label="95 % of perfect predictors")
for i, covered in enumerate(sound):
    read = [t_cv(covered, ease, alpha=0.1, n_bins=b).value for b in bins]
    plt.plot(bins, read, "o", color="#1a86c7", markersize=4, label="" if i else "perfect, simulated")
read = [t_cv(faulty, ease, alpha=0.1, n_bins=b).value for b in bins]
plt.plot(bins, read, "x-", color="#e07020", label="hardest tenth covered 80 %")
plt.xlabel("bins of difficulty (5000 rows in all)")
plt.ylabel("T-CV")
plt.ylim(0, None)
plt.legend(loc="upper left")
