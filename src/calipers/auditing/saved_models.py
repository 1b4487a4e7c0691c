"""A fitted model from a file, as data: skops archives are read, pickle is not."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calipers.arrays import import_optional
from calipers.conformal.persistence import is_saved_predictor, load_predictor
from calipers.exceptions import InputError


def load_model(path: Path | str, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that ``skops.io.dump`` or `save_predictor` wrote; no code of the file is run.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str
        Types outside skops's own list that may be built, by full name; the error that refuses a file lists
        them.

    Returns
    -------
    model
        As it was saved.

    Raises
    ------
    InputError
        For a file that is missing, no skops archive (a pickle for instance), damaged, or has types that are
        not trusted.
    MissingDependencyError
        Without skops.
    """
    place = Path(path)
    if not place.is_file():
        raise InputError(f"the model {place} does not exist.")
    if not zipfile.is_zipfile(place):
        raise InputError(
            f"{place.name} is not a skops archive. Pickle and joblib files are never read: they can run any "
            "code. Load the model where you trust it and write it with skops.io.dump(model, 'model.skops')."
        )
    if is_saved_predictor(place):
        return load_predictor(place, trusted=trusted)
    skops = import_optional("skops.io", purpose="saved models", install="calipers[save]")
    try:
        refused = sorted(set(skops.get_untrusted_types(file=place)) - set(trusted))
        if not refused:
            return skops.load(place, trusted=list(trusted))
    except (AttributeError, EOFError, KeyError, ImportError, OSError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {str(error).strip()[:120]}"
        raise InputError(f"{place.name} cannot be read as a skops archive ({reason}).") from None
    raise InputError(
        f"{place.name} holds types that are not trusted: {', '.join(refused)}. Do not load it unless you "
        "know who wrote it and what each of them does; then name them as trusted (--trust)."
    )
