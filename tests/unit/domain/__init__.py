"""Tests of the domain: values and pure functions."""
