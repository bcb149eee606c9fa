"""Tests of the tests' own servers."""
