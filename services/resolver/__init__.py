"""Keeps the graph one graph: identity, contradiction, revisions."""
