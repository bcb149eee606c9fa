"""Revisions of the memory store, the first one first."""
