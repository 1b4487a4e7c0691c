"""What is expensive is kept between runs, under a name made of the code, the data and the parameters.

The rule: a result of a study is found again only when nothing it depends on has changed, that is

- the source of the module its function is written in, and of every module of `studies` that this one
  imports, directly or not (no computing module imports figures or claims: changing them recomputes nothing);
- all source files of Calipers, and the versions of numpy, scipy and scikit-learn;
- the arguments of the function, data by content.

Results of older code stay in the folder until it is deleted; nothing reads them.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from calipers.performance.caching import ResumableCache
from calipers.performance.fingerprints import files_fingerprint, source_fingerprint


def study_cache(
    folder: Path | None, function: Callable[..., Any], *determined_by: Any, name: str | None = None
) -> ResumableCache:
    """The cache of what a function of a study computes in parts; None keeps nothing.

    Parameters
    ----------
    folder : Path or None
        The folder of the study's caches.
    function : callable
        What computes: its module is the code the cache depends on.
    *determined_by
        Data and parameters that all parts depend on.
    name : str, optional
        What the folder's name begins with; the name of the function by default.
    """
    label = (name or function.__name__.strip("_")).replace("_", "-").replace(" ", "-")
    code = code_fingerprint(function.__module__)
    return ResumableCache.open(folder, label, function.__qualname__, code, *determined_by)


def remembered(folder: Path | None, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What the function returns for these arguments, from an earlier run if there was one.

    Numbers, text, arrays, lists and dictionaries come back; a tuple as a list.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from studies.caching import remembered
    >>> from studies.efficiency.digits import normalise
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     remembered(Path(folder), normalise, np.array([[0.0, 2.0]]))
    array([[-1.,  1.]])
    """
    cache = study_cache(folder, function, arguments, sorted(options.items()))
    return cache.get("all", lambda: function(*arguments, **options))


@cache
def code_fingerprint(module: str) -> str:
    """A name for the source of a module and of all that it imports of its own package, directly or not."""
    return files_fingerprint(imported_sources(module))


def take_fingerprints_of_code() -> None:
    """Read all code now, when it has just been loaded.

    A file that is edited while a study runs must not lend its new name to what the old code computes.
    """
    source_fingerprint("calipers")
    for name in [name for name in sys.modules if name.partition(".")[0] == "studies"]:
        code_fingerprint(name)


def imported_sources(module: str) -> dict[str, Path]:
    """Module names and files: the module, and all of its package that it imports, directly or not."""
    files: dict[str, Path] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        path = _source(name)
        if path is None or name in files:
            continue
        files[name] = path
        pending += _imports(ast.parse(path.read_text(encoding="utf-8")), name.partition(".")[0])
    return files


def _source(module: str) -> Path | None:
    """The file of a module; None for what is not a module, such as a function that is imported by name."""
    try:
        spec = importlib.util.find_spec(module)
    except (ModuleNotFoundError, ValueError):  # a script has no such entry
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Names in import statements that may be modules of the package; those inside functions too.

    ``from a.b import c`` is ``a.b.c`` when that is a module, and ``a.b`` otherwise: the ``__init__`` of a
    study imports its figures, which compute nothing.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == package)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _source(inner) is not None else str(node.module)
