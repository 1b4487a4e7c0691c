"""One page per room of the package, written from its own list of public names."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

ROOMS = (
    "metrics", "conformal", "calibration", "difficulty", "performance", "auditing", "engines", "plots",
    "displays", "report", "scorers", "integrations", "datasets", "results", "inference", "inputs", "arrays",
    "exceptions",
)  # fmt: skip

# Their methods are described on the pages of scikit-learn and of Python.
ELSEWHERE = "BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, _MetadataRequester, Mapping"


def write_pages(app: Any) -> None:
    """Write docs/api/generated: a page per room that exists, with every public object on it."""
    import calipers

    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    functions = [name for name in calipers.__all__ if inspect.isfunction(getattr(calipers, name))]
    pages = {"calipers": ("calipers", functions)} if functions else {}
    for room in ROOMS:
        if (Path(calipers.__file__).parent / room).exists() or room == "exceptions":
            module = importlib.import_module(f"calipers.{room}")
            if getattr(module, "__all__", None):
                pages[room] = (f"calipers.{room}", list(module.__all__))
    for name, (module_name, names) in pages.items():
        write_if_changed(folder / f"{name}.rst", page(module_name, names))
    for stale in set(folder.glob("*.rst")) - {folder / f"{name}.rst" for name in pages}:
        stale.unlink()


def page(module_name: str, names: list[str]) -> str:
    """The page of one room in reStructuredText."""
    module = importlib.import_module(module_name)
    opening = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
    lines = [module_name, "=" * len(module_name), "", opening, "", f".. currentmodule:: {module_name}", ""]
    for name in names:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            lines += [f".. autoclass:: {name}", "   :members:", *class_options(thing, module_name), ""]
        elif callable(thing):
            lines += [f".. autofunction:: {name}", ""]
    return "\n".join(lines)


def class_options(thing: type, module_name: str) -> list[str]:
    """Show methods of bases that no page describes; leave a class of another room out of the index."""
    home = importlib.import_module(module_name)
    hidden = [
        base
        for base in thing.__bases__
        if base.__module__.startswith("calipers.") and base.__name__ not in home.__all__
    ]
    inherited = [f"   :inherited-members: {ELSEWHERE}"] if hidden else []
    elsewhere = not thing.__module__.startswith(module_name)
    return inherited + (["   :no-index:"] if elsewhere else [])


def write_if_changed(path: Path, text: str) -> None:
    """Leave the file alone when nothing changed, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def is_routing(app: Any, what: str, name: str, *rest: Any) -> bool | None:
    """Leave out set_fit_request and its like, which scikit-learn writes with links to its own pages."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


# What markup leaves alone: doctests up to their blank line, directives, quoted code and mathematics.
VERBATIM = re.compile(
    r"(^ *>>>[^\n]*(?:\n *\S[^\n]*)*|^ *\.\. [^\n]*|``.+?``|`[^`]+`)", flags=re.MULTILINE | re.DOTALL
)


def escape_plain_text(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are read in the terminal first: |x| and coef_ mean themselves there, not markup."""
    parts = VERBATIM.split("\n".join(lines))
    parts[::2] = [re.sub(r"(?<=\w)_(?![\w`])", r"\\_", part.replace("|", r"\|")) for part in parts[::2]]
    lines[:] = "".join(parts).split("\n")


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for sources."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-skip-member", is_routing)
    app.connect("autodoc-process-docstring", escape_plain_text, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
