"""T-SS of a predictor on rows of its own, as `calipers.conformal.tune_predictor` reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from calipers.arrays import RandomState, generator
from calipers.difficulty import ease
from calipers.inputs import check_count
from calipers.metrics.adaptivity.size_and_difficulty import t_ss

# Rows a bin should have, and the largest number of bins: the paper's 50.
_ROWS, _BINS = 20, 50


class SizeAdaptivity:
    """T-SS (eq. 4) over bins of the ease of the rows under the predictor's own model.

    Parameters
    ----------
    options : dict
        ``n_bins``, and options of `ease`.
    random_state : int, Generator or None
        Source of one seed: every predictor sees its rows changed by the same transformations.
    """

    def __init__(self, options: dict[str, Any], random_state: RandomState) -> None:
        self.n_bins = options.pop("n_bins", None)
        self.options = options
        self.seed = int(generator(random_state).integers(2**31 - 1))
        self._known: dict[int, tuple[Any, np.ndarray]] = {}

    def __call__(self, predictor: Any, y: Any, prediction: Any, X: Any) -> float:
        """The reading; NaN where the mean size or the mean difficulty is the same in every bin."""
        # a model trained elsewhere comes in a FrozenEstimator, and is not fitted again
        model, classifier = getattr(predictor, "estimator_", predictor.estimator), is_classifier(predictor)
        stated = model.predict_proba(X) if classifier else predictor.predict(X)
        score = self._ease(model, X, classifier)
        n_bins = max(2, min(_BINS, len(score) // _ROWS)) if self.n_bins is None else self.n_bins
        return float(
            t_ss(
                stated,
                prediction,
                score,
                n_bins=check_count(n_bins, name="n_bins"),
                y_true=y,
                classes=predictor.classes_ if classifier else None,
                n_draws=1,
                random_state=self.seed,
            )
        )

    def _ease(self, model: Any, X: Any, classifier: bool) -> np.ndarray:
        """The ease of the rows, worked out once per model."""
        if id(model) not in self._known:
            options = {} if classifier else {"similarity": "exp_abs", "unit": "spread"}
            score = ease(model, X, **(options | self.options), random_state=self.seed)
            self._known[id(model)] = (model, score)  # the model is kept, so that its id stays its own
        return self._known[id(model)][1]
