"""The six questions, in the order a report answers them."""

from __future__ import annotations

from calipers.metrics.entry import QUESTIONS

__all__ = ["QUESTIONS", "TITLES"]

TITLES = {
    "coverage": "Does it cover as often as it says?",
    "everywhere": "Does it cover everywhere, and if not, where does it fail?",
    "narrow": "Is it as narrow as it could be?",
    "adaptive": "Is it wider exactly where the case is harder?",
    "probabilities": "Can its probabilities be read as probabilities?",
    "forecast": "What will it score next time?",
}
