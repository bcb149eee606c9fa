"""Tests of the recall service's pure parts."""
