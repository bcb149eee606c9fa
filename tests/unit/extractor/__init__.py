"""Tests of the extractor: what may be believed, and its call."""
