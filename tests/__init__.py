"""Tests of the house; see CONTRIBUTING.md for how they are run."""
