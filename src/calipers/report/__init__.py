"""Results -> one dictionary -> self-contained HTML, Markdown, text and JSON.

This package sees `calipers.results` only: it takes plain values and never computes a statistic.
"""

from typing import Any

from calipers.deprecation import warn_deprecated
from calipers.report.comparison_page import (
    comparison_document,
    render_comparison,
    render_comparison_markdown,
)
from calipers.report.document import audit_document
from calipers.report.page import render_html
from calipers.report.text_formats import render_json, render_markdown, render_text
from calipers.results import write_atomically

__all__ = [
    "audit_document",
    "comparison_document",
    "render_comparison",
    "render_comparison_markdown",
    "render_html",
    "render_json",
    "render_markdown",
    "render_text",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name == "write_text":
        warn_deprecated("calipers.report.write_text is now calipers.results.write_atomically", "0.4")
        return write_atomically
    raise AttributeError(f"module 'calipers.report' has no attribute {name!r}")
