"""Tests of the preprocessor: chunks, passages, versions, and its calls."""
