"""Finds what matters for a question, as of any date."""
