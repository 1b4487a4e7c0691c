"""Results -> one dictionary -> self-contained HTML, Markdown, text and JSON.

This room sees `calipers.results` only: it takes plain values and never computes a statistic.
"""

from calipers.report.comparing import (
    comparison_document,
    render_comparison,
    render_comparison_markdown,
)
from calipers.report.document import audit_document
from calipers.report.page import render_html
from calipers.report.words import render_json, render_markdown, render_text
from calipers.report.writing import write_text

__all__ = [
    "audit_document",
    "comparison_document",
    "render_comparison",
    "render_comparison_markdown",
    "render_html",
    "render_json",
    "render_markdown",
    "render_text",
    "write_text",
]


def __dir__() -> list[str]:
    return sorted(__all__)
