"""Runnable comparisons that print ratios; no test asserts a time."""
