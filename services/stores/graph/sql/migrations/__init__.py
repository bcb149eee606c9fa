"""Revisions of the graph store, the first one first."""
