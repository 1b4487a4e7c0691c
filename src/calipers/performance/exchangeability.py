"""Are test rows like calibration rows? Asked before a conformal guarantee is printed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from calipers.arrays import RandomState, as_numpy, generator
from calipers.conformal.p_values import conformal_p_values
from calipers.exceptions import InputError
from calipers.inference import holm
from calipers.inputs import check_features, check_vector
from calipers.performance.covariate_shift import CovariateShift
from calipers.results import Estimate, EstimateTable

# Fewest rows on either side from which anything is said.
FEWEST_ROWS = 8
_REMEDY = (
    "give ConformalClassifier or ConformalRegressor "
    "likelihood_ratio=LikelihoodRatio().fit(calibration features, test features)"
)
_OTHER = "calibrate again on rows like the test rows: weights of features may not mend a change of scores"


def exchangeability_test(
    calibration: Any = None,
    test: Any = None,
    *,
    calibration_scores: Any = None,
    test_scores: Any = None,
    level: float = 0.05,
    classifier: Any = None,
    random_state: RandomState = None,
) -> EstimateTable:
    """Whether test rows could be further draws from where the calibration rows come from.

    A conformal guarantee needs that they are exchangeable. It can be refuted, never proved: no rejection with
    few rows says little, and outcomes that have changed given the features show only in scores of labelled
    rows.

    Parameters
    ----------
    calibration, test : table of features, optional
        Rows the predictor was conformalised on, and rows it is used on. Columns are matched as in
        `estimate_shift_weights`.
    calibration_scores, test_scores : array (n,) and (m,), optional
        One number per row of both, computed by the same rule: nonconformity scores of the true labels where
        the test rows have labels, otherwise anything that the model states, such as the top probability.
    level : float
        Level of the whole table; p-values in ``details`` are corrected for both tests (Holm).
    classifier : scikit-learn classifier with predict_proba, or None
        Tells test rows from calibration rows. None: logistic regression on the features and their squares.
    random_state : RandomState
        The halves of the classifier test.

    Returns
    -------
    EstimateTable
        "features": probability that the classifier ranks a test row above a calibration row, 0.5 when they
        are alike. "scores": largest distance of the share of conformal p-values up to u from u, over all u,
        on either side. Each with a p-value; ``details``: "shifted" (after correction), "adjusted_p_value" and
        "remedy".

    Raises
    ------
    InputError
        When neither features nor scores are given on both sides, or with fewer than 8 rows.

    Notes
    -----
    Features: a classifier two-sample test; each half of the rows is ranked by a model of the other half, so
    that overfitting does not count as a shift (Mann-Whitney, asymptotic; twice the smaller p-value, because
    the halves are dependent). Scores: conformal p-values of test rows are functions of their ranks among the
    calibration scores, and dependent through them; their joint law under exchangeability is that of ranks,
    so the two-sample Kolmogorov-Smirnov test is exact (with ties on the safe side).

    References
    ----------
    Lopez-Paz and Oquab (2017), Revisiting classifier two-sample tests. Vovk, Gammerman and Shafer (2022),
    Algorithmic learning in a random world, section 8.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import exchangeability_test
    >>> rng = np.random.default_rng(0)
    >>> same = exchangeability_test(rng.normal(size=(500, 2)), rng.normal(size=(300, 2)), random_state=0)
    >>> moved = exchangeability_test(rng.normal(size=(500, 2)), rng.normal(0.3, 1, (300, 2)), random_state=0)
    >>> same["features"].details["shifted"], moved["features"].details["shifted"]
    (False, True)
    """
    found: dict[str, Estimate] = {}
    if calibration is not None and test is not None:
        found["features"] = _features(calibration, test, classifier, generator(random_state))
    if calibration_scores is not None and test_scores is not None:
        found["scores"] = _scores(calibration_scores, test_scores)
    if not found:
        raise InputError(
            "give calibration and test features, calibration_scores and test_scores, or all four."
        )
    adjusted = holm(np.array([float(estimate.p_value or 1.0) for estimate in found.values()]))
    return EstimateTable(
        {
            name: _with_conclusion(estimate, float(p), level, name)
            for (name, estimate), p in zip(found.items(), adjusted, strict=True)
        }
    )


def _features(calibration: Any, test: Any, classifier: Any, rng: np.random.Generator) -> Estimate:
    tables = check_features(calibration, name="calibration"), check_features(test, name="test")
    n, m = len(tables[0]), len(tables[1])
    _require_rows(n, m)
    outcome = CovariateShift(*tables, classifier=classifier, generator=rng).test()
    # The larger of two areas, each of half of the rows.
    spread = np.sqrt((n / 2 + m / 2 + 1.0) / (12.0 * (n / 2) * (m / 2)))
    return Estimate(
        name="probability of telling test from calibration rows",
        value=outcome.area,
        n=n + m,
        p_value=outcome.p_value,
        alternative="greater",
        null_high=float(0.5 + stats.norm.ppf(0.975) * spread),
        null_level=0.95,
        method="classifier two-sample test, two halves, Mann-Whitney",
        reason="no interval: a better classifier might tell more",
        details={"null_subject": "rows of one source"},
    )


def _scores(calibration: Any, test: Any) -> Estimate:
    old, new = (
        np.asarray(as_numpy(check_vector(scores, name=name)), dtype=np.float64)
        for scores, name in ((calibration, "calibration_scores"), (test, "test_scores"))
    )
    _require_rows(old.size, new.size)
    result = stats.ks_2samp(old, new, method="exact" if max(old.size, new.size) <= 2000 else "asymp")
    p = np.asarray(conformal_p_values(old, new))
    return Estimate(
        name="distance of conformal p-values from uniform",
        value=float(result.statistic),
        n=int(new.size),
        p_value=float(result.pvalue),
        alternative="greater",
        null_high=float(np.sqrt(-np.log(0.025) / 2.0 * (1.0 / old.size + 1.0 / new.size))),
        null_level=0.95,
        method="two-sample Kolmogorov-Smirnov test of scores, a function of conformal p-values",
        reason="no interval: it would be that of a largest distance",
        details={"mean_p_value": float(p.mean()), "null_subject": "rows of one source"},
    )


def _require_rows(n: int, m: int) -> None:
    if min(n, m) < FEWEST_ROWS:
        raise InputError(
            f"at least {FEWEST_ROWS} calibration and test rows are needed to compare them, got {n} and {m}."
        )


def _with_conclusion(estimate: Estimate, adjusted: float, level: float, name: str) -> Estimate:
    from dataclasses import replace

    shifted = adjusted <= level
    remedy = "" if not shifted else _REMEDY if name == "features" else _OTHER
    told = {"shifted": bool(shifted), "adjusted_p_value": adjusted, "remedy": remedy}
    return replace(estimate, details={**estimate.details, **told})
