"""New rows whose features are distributed otherwise: whether they are, and by which ratio at every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.auditing.repair.boosted_trees import Trees, boost
from calipers.auditing.repair.feature_codes import FeatureCodes
from calipers.auditing.repair.stored import part
from calipers.exceptions import InputError
from calipers.inference import fit_logistic
from calipers.inputs import check_features
from calipers.inputs.rows import Rows
from calipers.performance.covariate_shift import CUT, SHIFT_LEVEL
from calipers.results import Estimate

# Fewest new rows that the test for a shift is made with.
FEWEST_NEW_ROWS = 50
# More rows than this on either side hardly change the test or the ratio.
MOST_ROWS = 10_000
# Logarithms of the ratio are kept within this, so that weights stay finite.
_WIDEST = 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """New rows beside the audited ones.

    Parameters
    ----------
    test : Estimate
        The classifier two-sample test of `calipers.performance.exchangeability_test`.
    new_rows : Rows
        The features of the new rows that were looked at.
    effective_rows : float or None
        Untouched rows of equal weight that would say as much as those weighted by the estimated ratio;
        None when nothing was weighted.
    audited_rows : int or None
        Untouched rows of the audits before and after: drawn by the ratio, or all where those were too few.
    """

    test: Estimate
    new_rows: Rows
    effective_rows: float | None = None
    audited_rows: int | None = None

    @property
    def found(self) -> bool:
        """Whether the features differ beyond noise."""
        return bool(self.test.details["shifted"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the report."""
        return {
            "found": self.found, "test": self.test.to_dict(), "new_rows": self.new_rows.n,
            "effective_rows": self.effective_rows, "audited_rows": self.audited_rows,
            "sentence": str(self),
        }  # fmt: skip

    def __str__(self) -> str:
        told = f"{float(self.test):.2f} of pairs told apart"
        if not self.found:
            return f"{self.new_rows.n} new rows: no shift of the features was found ({told})."
        p = self.test.p_value or 0.0
        chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
        words = f"{self.new_rows.n} new rows have other features ({told}, {chance})"
        if self.effective_rows is None:
            return f"{words}; nothing is weighted."
        return (
            f"{words}: rows count by the estimated likelihood ratio, in thresholds and below; the untouched "
            f"ones are worth {self.effective_rows:.0f} rows. Faults are looked for in {self.audited_rows} of "
            "them."
        )


def look_for_shift(rows: Rows, X_new: Any, rng: np.random.Generator) -> Shift:
    """The features of new rows beside those of audited ones."""
    from calipers.performance import exchangeability_test

    if rows.given.get("X") is None:
        raise InputError("X_new needs audited rows with features: give X to the audit.")
    known, new = check_features(rows.given["X"]), check_features(X_new, name="X_new")
    if len(new) < FEWEST_NEW_ROWS:
        raise InputError(f"X_new must have at least {FEWEST_NEW_ROWS} rows, got {len(new)}.")
    tables = [table.take(np.sort(rng.permutation(len(table))[:MOST_ROWS])) for table in (known, new)]
    found = exchangeability_test(*tables, level=SHIFT_LEVEL, random_state=rng)
    return Shift(test=found["features"], new_rows=Rows({"X": tables[1]}))


@part("density ratio")
@dataclass(frozen=True, slots=True, eq=False)
class DensityRatio:
    """How much likelier a row's features are among new rows than among the audited ones.

    Parameters
    ----------
    codes : FeatureCodes
        How features are read.
    centre, scale : array (d,)
        Mean and standard deviation of the features of the audited rows; scale 0 for a feature that enters
        through the trees alone: categories, and what does not vary.
    coefficients : array (2 d + 1,)
        Of 1, of the standardised features and of their squares.
    trees : Trees
        What corrects their sum.
    rows : tuple of int
        Audited and new rows that it was learnt from.

    Notes
    -----
    The log-odds of being new, by logistic regression, corrected by boosted trees as long as they lower the
    log loss on rows kept aside; less the log-odds of the two numbers of rows, they are the logarithm of the
    ratio of the two densities.
    """

    codes: FeatureCodes
    centre: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    trees: Trees
    rows: tuple[int, int]

    def of(self, rows: Rows) -> np.ndarray:
        """The ratio at every row."""
        values = self.codes.values(rows)
        found = self._line(values) + self.trees.predict(values) - np.log(self.rows[1] / self.rows[0])
        return np.asarray(np.exp(np.clip(found, -_WIDEST, _WIDEST)))

    def _line(self, values: np.ndarray) -> np.ndarray:
        # Column by column: sums are the same to the bit however rows are split into blocks.
        found = np.full(len(values), self.coefficients[0])
        for column, coefficient in zip(
            _design(values, self.centre, self.scale), self.coefficients[1:], strict=True
        ):
            found += coefficient * column
        return found


def learn_ratio(rows: Rows, new_rows: Rows, rng: np.random.Generator) -> DensityRatio:
    """The ratio from the features of audited rows and of new ones."""
    codes = FeatureCodes.of(rows)
    values = np.concatenate([codes.values(rows), codes.values(new_rows)])
    is_new = np.repeat([0.0, 1.0], [rows.n, new_rows.n])
    own = values[: rows.n].astype(float)
    numbers = np.array([categories is None for categories in codes.categories])
    centre, scale = own.mean(axis=0), own.std(axis=0) * numbers
    design = np.column_stack([np.ones(len(values)), *_design(values, centre, scale)])
    line = fit_logistic(design, is_new, ridge=1.0 / len(values)).coefficients
    trees = boost(values, is_new, rng, loss="logistic", offset=design @ line)
    return DensityRatio(codes, centre, scale, np.asarray(line), trees, (rows.n, new_rows.n))


def _design(values: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
    """Standardised features, then their squares; zeros where the scale is 0."""
    units = np.where(scale > 0, scale, 1.0)
    columns = [(values[:, j] - centre[j]) / units[j] * (scale[j] > 0) for j in range(values.shape[1])]
    return columns + [np.clip(column, -CUT, CUT) ** 2 for column in columns]
