"""Every trap, in one sentence: what is asked, and why somebody gets it wrong.

The keys are the names of the tasks in this folder; a test holds the two lists together.
"""

CATALOGUE = {
    # Thresholds: the rank is an integer.
    "rank: n = 99, alpha = 0.1": (
        "threshold of 99 scores at alpha 0.1: the 90th, which rounding turns into the 91st"
    ),
    "rank: n = 9, alpha = 0.1": (
        "nine scores are just enough at alpha 0.1: the 9th, neither infinite nor refused"
    ),
    "rank: n = 19, alpha = 0.05": "nineteen scores are just enough at alpha 0.05",
    "rank: n = 8, alpha = 0.1": "eight scores are too few at alpha 0.1: infinite, not the largest score",
    "rank: n = 149, alpha = 0.18": "150 x 0.82 is the whole number 123; floats make it 124",
    "rank: a table of sizes and levels": (
        "thresholds at alpha 0.10 to 0.90 for 99, 149, 199 and 299 scores: how many are off"
    ),
    "rank: label-conditional at alpha = 0.4": (
        "the threshold of 49 scores of one label at alpha 0.4: the 30th; single precision makes it the 31st"
    ),
    "rank: infinite intervals cover": "an infinite interval covers; a metric must be able to say so",
    "rank: a group never calibrated": "interval for a group without calibration rows: infinite, never [0, 0]",
    "rank: no calibration rows": "a threshold of no scores is refused",
    "rank: rows a PAC threshold needs": (
        "rows needed for a finite threshold at delta 1e-5, alpha 0.2, 0.3, 0.4"
    ),
    # p-values.
    "p-value: exactly alpha = 0.1": "a label with p = alpha = 0.1 is dropped (p > alpha keeps)",
    "p-value: exactly alpha = 0.05": "a label with p = alpha = 0.05 is dropped",
    "p-value: one draw per object": "two labels of one object with equal scores get equal smoothed p-values",
    "p-value: label-conditional": "label-conditional p-values exist and equal the counts",
    "p-value: a label never calibrated": "p = 1 for a label without calibration rows",
    "p-value: the last of eleven": "p = 1/11 for a row stranger than ten others",
    "p-value: the last of eleven in a group": "the same inside a group",
    "p-value: full conformal": "full conformal p-values lie in (0, 1] and repeat",
    "p-value: memory of one call": "1500 x 1500 x 10 p-values need at most three times their own size",
    # Prediction sets.
    "set: coverage of deterministic SAPS": "coverage of deterministic SAPS at alpha 0.1",
    "set: deterministic SAPS of a nearly perfect model": "a model right in 99.95 % gets no empty sets",
    "set: coverage of APS as it comes": "coverage of APS with default options at alpha 0.1",
    "set: coverage of APS without its last label": "coverage of APS with the last label taken off",
    "set: coverage of deterministic RAPS": "coverage of deterministic RAPS at alpha 0.1",
    "set: a threshold within 1e-8 of 1": "saturated softmax: one label kept, not all fifty",
    "set: APS in batches of two rows": "sets do not depend on how many rows are asked at once",
    "set: a single test row": "one row can be predicted",
    "set: a class with four calibration rows": (
        "a class too rare for a threshold is in every set, and nothing fails"
    ),
    "set: draws of calibration and test rows": "randomised sets draw anew for test rows",
    "set: rows kept for tuning": "one fifth of the rows is kept aside when one fifth is asked for",
    "set: a score leaves its input alone": "scoring does not write into the probabilities it was given",
    "set: mean number of labels": "mean set size of LAC by integer comparison",
    "set: a predictor can be cloned": "scikit-learn's clone works",
    # Coverage given x.
    "conditional: integer features": (
        "excess risk with integer features: probabilities are not cut to integers"
    ),
    "conditional: tensors": "the KL risk of a real failure is positive for tensors too",
    "conditional: every row covered": "risk 0.1 when every row is covered at alpha 0.1",
    "conditional: one miss in 600 rows": "folds without a miss are no failure",
    "conditional: alpha by row with an index": "an alpha per row is taken by position, whatever its index",
    "conditional: NaN among the alphas": "NaN among the alphas is refused",
    "conditional: a classifier without probabilities": (
        "hard labels are refused, or at least find the failure"
    ),
    "conditional: the rows the classifier has seen": (
        "perfect sets read 0 also on the rows the classifier was fitted on"
    ),
    "conditional: coverage as booleans": "covered may be booleans, for every loss",
    "conditional: a column of text": "a column of text is a feature",
    "conditional: groups named by text": "groups may be text",
    "slab: coverage is 0.9 everywhere": "worst slab of a predictor without fault: 0.9",
    "slab: a column in other units": "a slab at 0.5 is found although another column has large units",
    "slab: rows that cannot be told apart": "constant features have one slab: all rows",
    "slab: sets that fail in a region": (
        "sets that cover 0.5 in a region: the slab minimises coverage, not labels"
    ),
    "slab: a class that does not occur": "labels that do not occur are no reason to refuse",
    "strata: twelve sizes of sets": "size-stratified coverage of twelve integer sizes",
    "strata: a size that is NaN": "an unknown size is refused, not pooled",
    "strata: the same call four times": "the same call gives the same answer",
    # Calibration.
    "calibration: a calibrated constant": "c_emp of f = 0.5 with half positives listed first: 0",
    "calibration: scores of one decimal": "c_emp of rounded scores does not depend on the order of the rows",
    "calibration: an isotonic fit on its own rows": "c_emp of an isotonic fit on its own rows: 0",
    "calibration: the walk starts at 0": "c_emp includes the walk's start",
    "calibration: certain and right": "scores 0 and 1 that are right: exactly 0",
    "calibration: one class only": "labels of one class have a calibration error",
    "calibration: test of four levels sorted by label": (
        "5 % test of a calibrated model with four levels: rejections of 200"
    ),
    "calibration: a p-value far out": "P(range of Brownian motion > 10), as a power of ten",
    "calibration: a score that is NaN": "a NaN score is refused",
    "calibration: a score above 1": "a score above 1 is refused",
    "isotonic: tied scores": "equal scores get equal values",
    "isotonic: beyond the fitted scores": "a prediction beyond the fitted scores is a number",
    "calibration: a calibrated model is left alone": "recalibrating a calibrated model only adds noise",
    # Habits.
    "habit: importing leaves warnings alone": (
        "importing the library does not change the caller's warning filters"
    ),
    "habit: every module imports": "every module of the installed library can be imported",
    "online: the first row of a cold start": "online p-value of the first row, nothing seen before: 1",
    "predictive distribution: CRPS in other units": "CRPS is ten times as large in units ten times as small",
    "conditional: alpha in single precision": "alpha may be a single-precision number",
    "strata: twelve integer outcomes": "coverage by outcome of twelve integer outcomes",
    "metric: coverage of rows with NaN": "coverage of rows with NaN is refused",
    "metric: labels that are text": "labels may be text",
    "metric: ends of an interval belong to it": "intervals are closed",
    "metric: labels that do not occur": "labels that do not occur do not count as uncovered",
    "metric: sets of more than 1000 labels": "size-stratified violation of sets with 1200 labels",
    "metric: criterion E counts what is superfluous": (
        "criterion E of three and of one label kept: 2 and 0, smaller is better"
    ),
    "metric: the global random state": "a seeded call leaves numpy's global state alone",
    "metric: sizes in other units": "dependence of size and coverage does not change with the unit of size",
    "adaptivity: the noise floor of T-CV": (
        "T-CV comes with its null band: 95 % point 0.050 for 20 000 rows, 50 bins"
    ),
    "adaptivity: T-SS of a model that is always right": "T-SS is NaN with a reason when one side is constant",
    "adaptivity: sizes that fall with difficulty": (
        "concordance is below one half when sizes fall with difficulty (Property 1 as printed is always true)"
    ),
}
