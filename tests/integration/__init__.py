"""Tests of several parts in one process."""
