"""The site: built offline by `python3 dev.py docs`, a warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from calipers.version import __version__  # noqa: E402

project = "Calipers"
author = "The Calipers developers"
copyright = "The Calipers developers"  # noqa: A001 - the name Sphinx reads
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "mathml",
    "api_pages",
    "pictures",
    "dead_links",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_ext", "notebooks/data"]
root_doc = "index"

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = False
autodoc_typehints = "none"  # numpydoc says the types in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"Calipers {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

nitpicky = True
# numpydoc links fitted attributes by their bare name, which is not a target when nothing else bears it.
nitpick_ignore = [("py:obj", "losses_")]
# Several classes have an attribute guarantee_; numpydoc links the bare name.
suppress_warnings = ["ref.python"]
