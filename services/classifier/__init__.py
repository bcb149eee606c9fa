"""Gives facts their aspects, and sessions their labels, titles and summaries."""
