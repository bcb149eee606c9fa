"""Tests of the parts of upkeep that need no store."""
