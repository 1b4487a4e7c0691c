"""Kinds of states that serve many metrics: counts of distinct rows, moments, gathered rows, a sample."""
